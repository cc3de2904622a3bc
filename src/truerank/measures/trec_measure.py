"""Measures that only NIST's trec_eval has, by the names that it uses."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.compat.trec_eval_measures import RANKED, UNJUDGED, UNPOOLED, Ranked
from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import Judgements
from truerank.measures.base import Measure
from truerank.measures.derived import kept
from truerank.measures.ranking import Ordered

_UNWANTED = ("unj", "rbp_resid", "num_nonrel_judged_ret")  # these count documents that are not relevant or unjudged

# Names of trec_eval without another measure here. Other measures compute all queries at once.
OWN_NAMES = [
    "num_nonrel_judged_ret",
    "gm_bpref",
    "Rprec_mult",
    "utility",
    "11pt_avg",
    "binG",
    "G",
    "ideal_dcg",
    "ndcg_rel",
    "Rndcg",
    "relative_P",
    "yaap",
    "rbp",
    "rbp_resid",
    "unj",
]
_NEW = ("rbp", "rbp_resid", "unj")


class TrecMeasure(Measure):
    """A measure of trec_eval 10.0 by its printed name (`Rndcg`, `relative_P_5`, `Rprec_mult_1.20`, `utility`).

    The functions of `compat.trec_eval_measures`, which document the formulas, compute one topic at a time. Ties, topics
    and averages are treated as for other measures. Grades are whole numbers; a negative grade means unjudged. `root` is
    trec_eval's name, such as "relative_P"; `parameter` is the cutoff or share of a measure with several values.
    """

    NAME = "trec_eval"
    OWN = ("root", "parameter", "rel")
    root: str
    parameter: float | None

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        root = settings["root"]
        object.__setattr__(self, "root", root)
        object.__setattr__(self, "parameter", settings.get("parameter"))
        object.__setattr__(self, "AGGREGATE", RANKED[root].mean)
        object.__setattr__(self, "higher_is_better", root not in _UNWANTED)

    def __call__(self, *positional: Any, **settings: Any) -> Measure:
        if positional or not settings.keys().isdisjoint(("root", "parameter")):
            raise InvalidInputError(
                f"{self}: give settings by name. The number is a part of the name", code="positional"
            )
        return super().__call__(**settings)

    def _text(self, given: dict[str, Any]) -> str:
        shares = RANKED[self.root].kind == "shares"
        cut = "" if self.parameter is None else f"_{self.parameter:.2f}" if shares else f"_{self.parameter:.0f}"
        inside = ",".join(
            f"{name}={given[name]!r}" for name in sorted(given) if name not in ("convention", "root", "parameter")
        )
        return f"{self.root}{cut}" + (f"({inside})" if inside else "")

    @property
    def rises_with_grades(self) -> bool:
        """Return False for measures that count unjudged documents."""
        return self.root not in _UNWANTED

    def check(self) -> Measure:
        """Return the measure; raise if the version of trec_eval does not have it."""
        if self.convention == "trec9" and self.root in _NEW:
            raise InvalidInputError(
                f"{self.root} is new in trec_eval 10 and has no value under convention 'trec9'. Use 'trec'",
                code="new-measure",
            )
        return super().check()

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        judgements, measure = ordered.judgements, RANKED[self.root]
        if float(self.rel) != int(self.rel):
            raise InvalidInputError(f"{self.root}: rel must be an integer, as in trec_eval, got {self.rel}")
        level, counts, truncates = int(self.rel), _counts(judgements), self.setting("rounding") == "truncated"
        known = judgements.grades if judgements.judged is None else np.where(judgements.judged, judgements.grades, -0.5)
        marked = np.where(known < 0, np.where(known == -0.5, UNPOOLED, UNJUDGED), known).astype(np.int64)
        values = np.zeros((ordered.k, judgements.n_queries))
        parameters = measure.default if self.parameter is None else (self.parameter,)
        for row, places in enumerate(ordered.rows):
            ranked = marked[places]
            for query, (start, stop) in enumerate(
                zip(judgements.offsets[:-1].tolist(), judgements.offsets[1:].tolist())
            ):
                at_level = counts[query]
                pooled = [(i, grade) for i, grade in enumerate(ranked[start:stop].tolist()) if grade != UNPOOLED]
                topic = Ranked(pooled, stop - start, at_level, len(at_level), sum(at_level[level:]), level)
                topic.truncates = truncates
                values[row, query] = topic.bpref if self.root == "gm_bpref" else measure.values(topic, parameters)[0]
        return values, np.zeros(judgements.n_queries, dtype=bool)


@kept
def _counts(judgements: Judgements) -> list[list[int]]:
    """Return the number of judged documents of each query by grade, from grade 0."""
    counts = []
    for query in range(judgements.n_queries):
        rows = slice(*judgements.offsets[query : query + 2])
        grades = judgements.grades[rows]
        grades = grades if judgements.judged is None else grades[judgements.judged[rows]]
        if judgements.missing_grades is not None and judgements.missing_offsets is not None:
            missing = judgements.missing_grades[slice(*judgements.missing_offsets[query : query + 2])]
            grades = np.concatenate([grades, missing])
        whole = grades.astype(np.int64)
        if not np.array_equal(whole, grades):
            what = f"grade {grades[whole != grades][0]:g} in query {judgements.query_ids[query]}"
            raise InvalidInputError(f"trec_eval's measures require integer grades, got {what}", code="grade")
        counts.append(np.bincount(whole[whole >= 0]).tolist())
    return counts


def trec_measure(name: str, version: str) -> TrecMeasure | None:
    """Return the measure that trec_eval prints under a name, or None; `relative_P.5` means `relative_P_5`."""
    if name in OWN_NAMES and RANKED[name].kind not in ("cutoffs", "shares"):
        return TrecMeasure(root=name, convention=version)
    root, _, text = name.rpartition("_")
    if root not in OWN_NAMES:
        root, _, text = name.partition(".")
    kind = RANKED[root].kind if root in OWN_NAMES else None
    if kind == "cutoffs" and text.isascii() and text.isdigit() and 0 < len(text) <= 9 and int(text) > 0:
        return TrecMeasure(root=root, parameter=int(text), convention=version)
    if kind == "shares":
        try:
            share = float(text)
        except ValueError:
            return None
        return TrecMeasure(root=root, parameter=share, convention=version) if 0 <= share <= 100 else None
    return None
