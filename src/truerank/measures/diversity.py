"""Measures of novelty and diversity over subtopics: α-nDCG, α-DCG, ERR-IA and nERR-IA, as ndeval computes them."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from truerank.core.checks import check_number
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.core.files import read_text
from truerank.core.printing import counted, styled_table
from truerank.core.results import Result, data_frame
from truerank.core.types import PathLike
from truerank.io.trec import as_run

Subtopics = dict[str, dict[str, set[str]]]  # by topic and document
_DISCOUNTS: dict[str, Callable[[int], float]] = {
    "alpha_DCG": lambda rank: math.log2(rank + 1), "alpha_nDCG": lambda rank: math.log2(rank + 1), "ERR_IA": float,
    "nERR_IA": float,
}  # fmt: skip
_NAME = re.compile(rf"({'|'.join(_DISCOUNTS)})@([1-9]\d*)")


@dataclass(repr=False, eq=False)
class TopicValues(Result):
    """Values (m,) by measure, which `Experiment.of_values` compares with the values of other systems."""

    query_ids: list[str]
    per_query: dict[str, np.ndarray] = field(repr=False)

    @property
    def means(self) -> dict[str, float]:
        """The mean over the topics, by measure."""
        return {name: float(values.mean()) for name, values in self.per_query.items()}

    @property
    def summary(self) -> str:
        name, mean = next(iter(self.means.items()))
        return f"{name} is {mean:.4f} over {counted(len(self.query_ids), 'topic')}."

    def _figures(self) -> dict[str, Any]:
        return {"topics": len(self.query_ids), "means": self.means}

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each topic."""
        return data_frame(self.per_query, self.query_ids, "topic")

    def _table(self, style: str) -> str:
        return styled_table([list(one) for one in self.means.items()], ["measure", "mean"], style)


@dataclass(repr=False, eq=False)
class Diversity(TopicValues):
    """The result of `diversity`."""

    alpha: float

    KIND: ClassVar[str] = "diversity"

    def _figures(self) -> dict[str, Any]:
        return {"alpha": self.alpha} | super()._figures()


def diversity(
    subtopics: Mapping[Any, Mapping[Any, Collection[Any]]] | PathLike, run: object,
    measures: str | Sequence[str] = "alpha_nDCG@10 ERR_IA@10", *, alpha: float = 0.5,
) -> Diversity:  # fmt: skip
    """Measure how many subtopics the first documents of a run cover, and how little the documents repeat subtopics.

    Parameters
    ----------
    subtopics : {topic: {document: subtopics}}, or path
        The subtopics for which a document is relevant. Lines of a file are `topic subtopic document grade`, and a
        document with a grade above 0 is relevant.
    run : run
        Documents with equal scores are sorted by document id, ascending, as in ndeval.
    measures : str or sequence of str
        alpha_nDCG@k, alpha_DCG@k, ERR_IA@k and nERR_IA@k.
    alpha : float in [0, 1], default 0.5
        Penalty of repeated subtopics: the gain of a subtopic is (1 - alpha)^(number of earlier documents with it).

    Raises
    ------
    InvalidInputError, DataFileError

    Notes
    -----
    The gain of a rank is the sum over the document's subtopics, divided by log2(rank + 1) for alpha-DCG and by the rank
    for ERR-IA. alpha_DCG and ERR_IA divide by the value of a list in which each document has all subtopics. alpha_nDCG
    and nERR_IA divide by the value of the greedily best list, where ties go to the largest id. A topic without a
    relevant document, or without a document in the run, counts 0. Values equal the values of ndeval except for
    alpha_DCG@1 and ERR_IA@1, where ndeval omits the division by the number of subtopics.

    References
    ----------
    Clarke, Kolla, Cormack, Vechtomova, Ashkan, Büttcher, MacKinnon: Novelty and diversity in information retrieval
    evaluation. SIGIR 2008. Chapelle, Ji, Liao, Velipasaoglu, Lai, Wu: Intent-based diversification of web search
    results. Information Retrieval 14 (2011), 572-592.

    Examples
    --------
    >>> found = diversity({"1": {"d1": "a", "d2": "b", "d3": "a"}}, {"1": {"d1": 3.0, "d3": 2.0, "d2": 1.0}})
    >>> {name: round(mean, 4) for name, mean in found.means.items()}
    {'alpha_nDCG@10': 0.9652, 'ERR_IA@10': 0.5711}
    """
    alpha = check_number(alpha, "alpha", "[0, 1]")
    names = measures.split() if isinstance(measures, str) else list(measures)
    asked = dict[str, tuple[str, int]]()
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None:
            raise InvalidInputError(argument="measures", expected="alpha_nDCG@k, alpha_DCG@k, ERR_IA@k or nERR_IA@k",
                                    value=name)  # fmt: skip
        asked[name] = match[1], int(match[2])
    judged, ranked = _read(subtopics), as_run(run)
    ends = zip(ranked.query_ids.tolist(), ranked.offsets[:-1].tolist(), ranked.offsets[1:].tolist())
    lists = {}
    for topic, start, stop in ends:
        rows = sorted(zip((-ranked.scores[start:stop]).tolist(), ranked.doc_ids[start:stop].tolist()))
        lists[topic] = [document for _, document in rows]
    values = {
        name: np.array([_value(kind, k, lists.get(topic, []), own, alpha) for topic, own in judged.items()])
        for name, (kind, k) in asked.items()
    }
    return Diversity(list(judged), values, alpha)


def _value(kind: str, k: int, ranked: list[str], relevant: dict[str, set[str]], alpha: float) -> float:
    every = set[str]().union(*relevant.values())
    if not every:
        return 0.0

    def total(gains: list[float]) -> float:
        return sum(gain / _DISCOUNTS[kind](rank) for rank, gain in enumerate(gains, 1))

    best = _gains([every] * k, alpha) if kind in ("alpha_DCG", "ERR_IA") else _best(relevant, k, alpha)
    return total(_gains([relevant.get(document, set()) for document in ranked[:k]], alpha)) / total(best)


def _gains(covered: list[set[str]], alpha: float) -> list[float]:
    """Return the gains of documents with these subtopics, in ranked order."""
    seen, found = Counter[str](), list[float]()
    for own in covered:
        found.append(sum((1.0 - alpha) ** seen[one] for one in sorted(own)))
        seen.update(own)
    return found


def _best(relevant: dict[str, set[str]], k: int, alpha: float) -> list[float]:
    """Return the gains of the list with the document of the largest gain at each rank."""
    left, seen, found = sorted(relevant, reverse=True), Counter[str](), list[float]()
    while left and len(found) < k:
        gains = [sum((1.0 - alpha) ** seen[one] for one in sorted(relevant[document])) for document in left]
        place = gains.index(max(gains))
        found.append(gains[place])
        seen.update(relevant[left.pop(place)])
    return found


def _read(subtopics: Mapping[Any, Mapping[Any, Collection[Any]]] | PathLike) -> Subtopics:
    if isinstance(subtopics, Mapping):
        return {str(topic): {str(document): set(map(str, own)) for document, own in documents.items()}
                for topic, documents in subtopics.items()}  # fmt: skip
    name, found = os.fspath(subtopics), Subtopics()
    for number, line in enumerate(read_text(name).splitlines(), 1):
        if not line.strip():
            continue
        try:
            topic, subtopic, document, grade = line.split()
            documents = found.setdefault(topic, {})
            if int(grade) > 0:
                documents.setdefault(document, set()).add(subtopic)
        except ValueError as error:
            raise DataFileError(
                f"expected `topic subtopic document grade`, got {line[:80]!r}", name, number, code="subtopics"
            ) from error
    return found
