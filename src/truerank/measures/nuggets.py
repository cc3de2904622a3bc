"""Nugget recall of generated answers, as the TREC RAG tracks and nuggetizer compute it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from truerank.core.errors import DataFileError, InvalidInputError
from truerank.core.files import read_text
from truerank.core.types import PathLike
from truerank.measures.base import mean_of
from truerank.measures.diversity import TopicValues

_CREDIT = {"support": 1.0, "partial_support": 0.5, "not_support": 0.0}
_IMPORTANCE = ("vital", "okay")


@dataclass(repr=False, eq=False)
class NuggetScores(TopicValues):
    """The result of `nugget_scores`."""

    KIND: ClassVar[str] = "nugget-scores"


def nugget_scores(answers: Iterable[Mapping[str, Any]] | PathLike) -> NuggetScores:
    """Measure the answers of one system by the nuggets (facts) that they support.

    Parameters
    ----------
    answers : iterable of records, or path
        One record `{"qid": topic, "nuggets": [{"importance": ..., "assignment": ...}, ...]}` for each topic; a file has
        one record on each line. The importance is "vital" or "okay", and the assignment is "support", "partial_support"
        or "not_support". Other entries of a record are ignored.

    Returns
    -------
    NuggetScores
        `vital` is the share of vital nuggets that the answer supports, where partial support counts 0.5, and `all` the
        share of all nuggets; `strict_vital` and `strict_all` count full support alone. Without nuggets, a share is 0.

    Raises
    ------
    InvalidInputError, DataFileError
        On an unknown word, a record without these entries, or a topic that occurs twice.

    References
    ----------
    Pradeep, Thakur, Upadhyay, Campos, Craswell, Lin: Initial nugget evaluation results for the TREC 2024 RAG track with
    the AutoNuggetizer framework. arXiv 2411.09607 (2024). Values equal the values of nuggetizer 0.0.5.

    Examples
    --------
    >>> found = nugget_scores([{"qid": "1", "nuggets": [{"importance": "vital", "assignment": "partial_support"},
    ...                                                 {"importance": "okay", "assignment": "support"}]}])
    >>> found.means
    {'vital': 0.5, 'all': 0.75, 'strict_vital': 0.0, 'strict_all': 0.5}
    """
    path: str | None = None
    lines: Iterable[Any]
    if isinstance(answers, str | os.PathLike):
        path = os.fspath(answers)
        lines = [line for line in read_text(path).splitlines() if line.strip()]
    else:
        lines = answers
    values = dict[str, list[float]]()
    for number, one in enumerate(lines, 1):
        try:
            record = json.loads(one) if isinstance(one, str) else one
            topic, nuggets = str(record["qid"]), record["nuggets"]
            vital = np.array([_IMPORTANCE.index(nugget["importance"]) == 0 for nugget in nuggets], dtype=bool)
            credit = np.array([_CREDIT[nugget["assignment"]] for nugget in nuggets])
        except (ValueError, KeyError, TypeError) as error:
            expected = f"expected qid and nuggets with importance {_IMPORTANCE} and assignment {tuple(_CREDIT)}"
            message = f"answer {number}: {expected}, got {str(one)[:120]}"
            if path is not None:
                raise DataFileError(message, path, number, code="nuggets") from error
            raise InvalidInputError(message, argument="answers", code="nuggets") from error
        if topic in values:
            raise InvalidInputError(
                f"topic {topic!r} has two answers, but each topic must have one. Pass the answers of one system.",
                argument="answers",
            )
        values[topic] = [mean_of(own) for full in (credit, credit == 1.0) for own in (full[vital], full)]
    if not values:
        raise InvalidInputError("there are no answers. Pass a record for each topic.", argument="answers")
    names = ("vital", "all", "strict_vital", "strict_all")
    return NuggetScores(list(values), dict(zip(names, np.array(list(values.values())).T)))
