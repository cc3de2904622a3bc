"""Settings that the name of a measure does not determine, with the values that each well-known tool uses.

A row of CONVENTIONS has the settings of all measures and, under the name of a measure, its own settings. A setting of
the measure itself (`nDCG(gain='linear')@10`) takes precedence; docs/conventions.md has a table. `trec` is NIST's
trec_eval 10.0 (2026). `trec9` is version 9, as pytrec_eval and ir_measures run it. A convention has the values of its
program for every input that the program accepts, or rejects the input: see `grades` below. `python -m benchmarks
bench_conventions` compares all conventions with their programs.
"""

from __future__ import annotations

from typing import Any, Final

DEFAULT_CONVENTION: Final = "ranklib"  # of rankers and judged rows
QRELS_CONVENTION: Final = "trec"  # of qrels and runs

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
    "grades": "any",
    "graded": False,
}
_ABOVE_HALF = 0.5 + 2.0**-25  # the least float64 that is above 0.5 as float32, as LightGBM and CatBoost compare grades

# How a program reads grades (`measures.derived` makes these grades), and why grades that would change are refused (""
# if they are changed).
GRADES: dict[str, str] = {
    "any": "",
    "truncated": "",
    "relevant": "",
    "at most 2": "LETOR's scripts define no gain for grades above 2 (mslr: above 4)",
    "at most 4": "MSLR's script defines no gain for grades above 4",
    "not negative": "its program gives negative grades negative gains",
    "none": "its program has another measure of this name",
}
_NOT_NEGATIVE = {name: {"grades": "not negative"} for name in ("nDCG", "DCG")}

CONVENTIONS: dict[str, dict[str, Any]] = {
    "trec": {"gain": "linear", "ties": "trec", "missing_topics": "skip", "grades": "truncated"},
    "trec9": {
        "gain": "linear",
        "ties": "trec",
        "compare": "float32",
        "missing_topics": "skip",
        "rounding": "truncated",
        "grades": "truncated",
    },
    "gdeval": {"ties": "trec", "empty": "skip", "missing_topics": "skip", "ERR": {"max_grade": 4}},
    "letor3": {"discount": "letor", "grades": "at most 2", "nDCG": {"short": "zero"}, "P": {"short": "zero"}},
    "letor4": {"discount": "letor", "grades": "at most 2", "nDCG": {"short": "zero"}},
    "mslr": {"discount": "letor", "grades": "at most 4", "rel": 2, "nDCG": {"short": "zero"}},
    "ranklib": {},
    "lightgbm": {"empty": "one", "rel": _ABOVE_HALF, "AP": {"denominator": "reachable"}},
    "xgboost": {
        "empty": "one",
        "compare": "float32",
        "AP": {"denominator": "reachable"},
        "P": {"empty": "zero", "short": "shorten"},
        "ROC": {"grades": "none"},
        **_NOT_NEGATIVE,
    },
    "catboost": {
        "gain": "linear",
        "ties": "pessimistic",
        "empty": "one",
        "rel": _ABOVE_HALF,
        "ERR": {"grades": "none"},
        "ROC": {"grades": "none"},
        **_NOT_NEGATIVE,
        "AP": {"empty": "zero", "denominator": "reachable"},
        "RR": {"empty": "zero"},
        "P": {"empty": "zero", "short": "shorten"},
    },
    "sklearn": {"gain": "linear", "ties": "average", "AP": {"ties": "end"}, "ROC": {"empty": "skip"}, **_NOT_NEGATIVE},
    "ranx": {"gain": "linear", "grades": "relevant", "RBP": {"graded": True}},
}


def titled(convention: str) -> str:
    """Return the name of a convention for captions, with the version of trec_eval if it has one.

    >>> titled("trec"), titled("ranklib")
    ('trec (trec_eval 10)', 'ranklib')
    """
    return {"trec": "trec (trec_eval 10)", "trec9": "trec9 (trec_eval 9)"}.get(convention, convention)


def convention_value(convention: str, measure: str, setting: str) -> Any:
    """Return the value of a setting of a measure under a convention, or None if the convention does not set it."""
    row = CONVENTIONS[convention]
    for table in (row.get(measure, {}), row, _BASE):
        if setting in table:
            return table[setting]
    return None
