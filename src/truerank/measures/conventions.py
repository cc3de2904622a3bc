"""The settings that a measure's name does not give, as each well-known tool chooses them.

A row of CONVENTIONS has the settings of all measures and, under the name of a measure, those of that measure alone. A
setting that is given with the measure (`nDCG(gain='linear')@10`) takes precedence. docs/conventions.md has them as a
table. `trec` is NIST's trec_eval 10.0 (2026); `trec9` is version 9, which pytrec_eval and ir_measures run.
"""

from __future__ import annotations

from typing import Any

DEFAULT_CONVENTION = "ranklib"

# Settings that a convention does not give: the form of Burges et al. (2005), which RankLib computes.
_BASE: dict[str, Any] = {
    "gain": "exponential",
    "discount": "log2",
    "short": "pad",
    "ties": "stable",
    "compare": "float64",
    "empty": "zero",
    "missing_topics": "zero",
    "rel": 1,
    "p": 0.8,
    "denominator": "relevant",
    "judged_only": False,
    "rounding": "nearest",
}

CONVENTIONS: dict[str, dict[str, Any]] = {
    "trec": {"gain": "linear", "ties": "trec", "missing_topics": "skip"},
    "trec9": {
        "gain": "linear",
        "ties": "trec",
        "compare": "float32",
        "missing_topics": "skip",
        "rounding": "truncated",
    },
    "gdeval": {"ties": "trec", "ERR": {"max_grade": 4}},
    "letor3": {"discount": "letor", "nDCG": {"short": "zero"}, "P": {"short": "zero"}},
    "letor4": {"discount": "letor", "nDCG": {"short": "zero"}},
    "mslr": {"discount": "letor", "rel": 2, "nDCG": {"short": "zero"}},
    "ranklib": {},
    "lightgbm": {"empty": "one", "AP": {"denominator": "reachable"}},
    "xgboost": {
        "empty": "one",
        "compare": "float32",
        "AP": {"denominator": "reachable"},
        "P": {"empty": "zero", "short": "shorten"},
    },
    "catboost": {
        "gain": "linear",
        "ties": "pessimistic",
        "empty": "one",
        "AP": {"empty": "zero", "denominator": "reachable"},
        "RR": {"empty": "zero"},
        "P": {"empty": "zero", "short": "shorten"},
    },
    "sklearn": {"gain": "linear", "ties": "average", "AP": {"ties": "end"}},
    "ranx": {"gain": "linear"},
}


def titled(convention: str) -> str:
    """Return the name of a convention for captions, with the version of trec_eval.

    >>> titled("trec"), titled("ranklib")
    ('trec (trec_eval 10)', 'ranklib')
    """
    return {"trec": "trec (trec_eval 10)", "trec9": "trec9 (trec_eval 9)"}.get(convention, convention)


def convention_value(convention: str, measure: str, setting: str) -> Any:
    """Return the value of a setting of a measure under a convention, None if it has none."""
    row = CONVENTIONS[convention]
    for table in (row.get(measure, {}), row, _BASE):
        if setting in table:
            return table[setting]
    return None
