"""Preferences ("a is better than b") as judgements of a run, by the measures of trec_eval's `-R prefs`."""

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
    """Pairs of documents of which one is the better answer to a topic, as people or language models give them.

    Parameters
    ----------
    pairs : dict of topic to an iterable of (better, worse) or (better, worse, judge)
        Ids are taken as text. The pairs of one judge are joined with those that follow from them (a over b, b over c)
        and must not run in a circle; several judges may contradict each other.

    Raises
    ------
    InvalidInputError
        On entries that are no such tuples, and on a document preferred to itself.

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
                    raise InvalidInputError(f"topic {topic!r}: document {better!r} is preferred to itself")
                # Levels above 0 both: a pair says nothing about relevance.
                group, subgroup = judge.encode(), b"%d" % number
                rows.append(Preference(group, subgroup, better.encode(), 2.0))
                rows.append(Preference(group, subgroup, worse.encode(), 1.0))

    @classmethod
    def read(cls, source: Any) -> Preferences:
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
    """Means over topics by measure (sums of the counts); `per_query`: {measure: float64 (m,)}; `query_ids` (m,)."""

    def __init__(self, per_query: dict[str, np.ndarray], query_ids: np.ndarray) -> None:
        self.per_query, self.query_ids = per_query, query_ids
        counts = list(PREFERENCES)[:3]
        super().__init__(
            (name, float(values.sum() if name in counts else values.mean())) for name, values in per_query.items()
        )


def evaluate_preferences(preferences: Preferences, run: object, *, topics: str = "common") -> PreferenceEvaluation:
    """What share of the preferences a run fulfils, by trec_eval 10.0's fourteen measures.

    A preference is fulfilled where the better document is ranked above the other, or alone is retrieved. Documents
    stand by falling score, those of equal score by rising id.

    Parameters
    ----------
    preferences : Preferences
    run : path, Run, {topic: {document: score}}, or what else `as_run` takes
    topics : {"common", "all"}, default "common"
        "common": topics that have preferences and are in the run; "all": a topic that the run lacks fulfils none.

    Returns
    -------
    PreferenceEvaluation
        Topics in the order of their names. `prefs_simp`: share of all preferences; `prefs_avgjg`: the mean over
        judges; `prefs_pair`: over pairs of documents; with `_ret`, `_imp` of those that the run can decide.

    Raises
    ------
    InvalidInputError
        Without a topic in common, and where a judge's preferences run in a circle.
    """
    check_choice(topics, "topics", ("common", "all"))
    lists = as_run(run).to_dict()
    chosen = sorted(topic for topic in preferences.by_topic if topics == "all" or topic in lists)
    if not chosen:
        raise InvalidInputError("the run and the preferences have no topic in common")
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
                f"topic {topic!r}: {error}. Give the pairs of each judge under a name of its own, "
                "(better, worse, judge), or leave the contradicting ones out."
            ) from error
    return PreferenceEvaluation({name: np.array(v) for name, v in values.items()}, np.array(chosen))
