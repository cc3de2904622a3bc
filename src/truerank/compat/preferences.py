"""Evaluate runs with preferences ("a is better than b") as judgements, by the measures of trec_eval's `-R prefs`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from truerank.compat.trec_eval import TrecEvalError, in_order, read_judgements
from truerank.compat.trec_eval_preferences import PREFERENCES, Judged, Preference
from truerank.core.checks import check_choice
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.io.streams import Source
from truerank.io.trec import as_run


class Preferences:
    """Preferences between pairs of documents, given by people or language models.

    Parameters
    ----------
    pairs : dict of topic to an iterable of (better, worse) or (better, worse, judge)
        Ids are compared as text. Preferences of one judge are transitive (a over b and b over c mean a over c) and must
        not form a cycle; several judges may contradict each other.

    Raises
    ------
    InvalidInputError
        On entries that are not such tuples, and on a document preferred to itself.

    Examples
    --------
    >>> wanted = Preferences({"q1": [("a", "b"), ("a", "c")]})
    >>> found = evaluate_preferences(wanted, {"q1": {"a": 3.0, "c": 2.0, "b": 1.0}})
    >>> found["prefs_simp"], found.per_query["prefs_num_prefs_ful"].tolist()
    (1.0, [2.0])
    """

    def __init__(self, pairs: Mapping[Any, Iterable[tuple[Any, ...]]]) -> None:
        self.by_topic: dict[str, list[Preference]] = {}
        for topic, given in pairs.items():
            rows = self.by_topic.setdefault(str(topic), [])
            for number, pair in enumerate(given):
                if isinstance(pair, str) or not 2 <= len(pair) <= 3:
                    raise InvalidInputError(
                        f"topic {topic!r}: expected (better, worse) or (better, worse, judge): {pair!r}"
                    )
                better, worse, judge = (*map(str, pair), "")[:3]
                if better == worse:
                    raise InvalidInputError(
                        f"topic {topic!r}: document {better!r} is preferred to itself", code="self-preference"
                    )
                # Both levels are above 0, because a pair does not imply relevance.
                group, subgroup = judge.encode(), b"%d" % number
                rows.append(Preference(group, subgroup, better.encode(), 2.0))
                rows.append(Preference(group, subgroup, worse.encode(), 1.0))

    @classmethod
    def read(cls, source: object) -> Preferences:
        """Read lines `topic judge subgroup document level`; within a subgroup the higher level is preferred."""
        with Source(source) as stream:
            text, name = b"".join(stream.line_blocks()), stream.name
        try:
            judged = read_judgements(text, "prefs")
        except TrecEvalError as error:
            raise DataFileError(str(error), name) from error
        made = cls({})
        made.by_topic = {topic.decode("utf-8", "replace"): rows for topic, rows in judged.preferences.items()}
        return made

    def __repr__(self) -> str:
        return f"Preferences({len(self.by_topic)} topics, {sum(map(len, self.by_topic.values()))} judged documents)"


class PreferenceEvaluation(dict[str, float]):
    """Means over topics by measure (sums of counts), with `per_query`: {measure: float64 (m,)} and `query_ids` (m,)."""

    def __init__(self, per_query: dict[str, np.ndarray], query_ids: np.ndarray) -> None:
        self.per_query, self.query_ids = per_query, query_ids
        counts = list(PREFERENCES)[:3]
        super().__init__(
            (name, float(values.sum() if name in counts else values.mean())) for name, values in per_query.items()
        )


def evaluate_preferences(preferences: Preferences, run: object, *, topics: str = "common") -> PreferenceEvaluation:
    """Evaluate which preferences a run fulfils, by the fourteen measures of trec_eval 10.0.

    A preference is fulfilled if the better document is ranked above the other one, or only the better one is retrieved.
    Documents are ordered by descending score, ties by ascending id.

    Parameters
    ----------
    preferences : Preferences
    run : path, Run, {topic: {document: score}}, or another input of `as_run`
    topics : {"common", "all"}, default "common"
        "common" means topics of the run that have preferences. "all" means all topics with preferences; a topic that
        the run lacks fulfils none.

    Returns
    -------
    PreferenceEvaluation
        Topics are in the order of their names. `prefs_simp` is the fulfilled share of all preferences, `prefs_avgjg`
        its mean over judges, and `prefs_pair` its mean over pairs of documents. The variants `_ret` and `_imp` count
        only pairs of which both documents, or at least one, were retrieved.

    Raises
    ------
    InvalidInputError
        Without a common topic, and if the preferences of a judge form a cycle.
    """
    check_choice(topics, "topics", ("common", "all"))
    lists = as_run(run).to_dict()
    chosen = sorted(topic for topic in preferences.by_topic if topics == "all" or topic in lists)
    if not chosen:
        raise InvalidInputError("the run and the preferences have no topic in common", code="no-common-topic")
    values: dict[str, list[float]] = {name: [] for name in PREFERENCES}
    for topic in chosen:
        found = lists.get(topic, {})
        documents = in_order([d.encode() for d in found], list(found.values()), descending_names=False)
        try:
            judged = Judged.of(preferences.by_topic[topic], documents)
            for name, compute in PREFERENCES.items():
                values[name].append(float(compute(judged)))
        except ValueError as error:
            raise InvalidInputError(
                f"topic {topic!r}: {error}. Name the judge of each pair, (better, worse, judge), or remove the "
                "contradicting pairs",
                code="contradiction",
            ) from error
    return PreferenceEvaluation({name: np.array(v) for name, v in values.items()}, np.array(chosen))
