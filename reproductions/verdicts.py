"""Verdicts by rule: a published figure or sentence, our figure, and whether it was reproduced.

Each function turns the result of one experiment into rows. `published/*.json` holds the published figures and sentences
with their sources. A panel without one gets no row. The rules:

* A *figure* is reproduced if ours lies within the tolerance of the published one, on either side.
* A *claim* ("A above B") is reproduced if the difference has the published direction and p < 0.05. It is not reproduced
  if the difference has the other direction and p < 0.05. Otherwise it is undecided.
* What would be reproduced is undecided if a trivial ranker (constant scores, the best single feature) would pass in the
  place of the ranker of the row. It passes a claim with at least half of the difference that ours has, so that
  rounding cannot pass. A figure that is significantly above the trivial ranker's is not affected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from scipy.stats import binomtest

from reproductions.protocol import TRIVIAL, published
from truerank.core.printing import table

Row = dict[str, Any]
SIGNIFICANT = 0.05
SHARE = 0.5  # of our difference, which a trivial ranker needs to pass in our place
# Standard error of MAP over OHSUMED's 106 queries.
MAP_TOLERANCE = 0.022
TOPICS_TOLERANCE = 0.03  # the same over TREC-9's 50 topics
TAU_TOLERANCE = 0.001


def figure(
    paper: str, item: str, published: float, ours: float, tolerance: float, trivial: Mapping[str, tuple[float, float]]
) -> Row:
    """A row for a published figure; larger figures are better.

    Parameters
    ----------
    trivial : mapping of str to (figure, p)
        The figures of the trivial rankers, and p of ours against them (NaN without a test).
    """

    def near(value: float) -> bool:
        return abs(value - published) <= tolerance

    as_good = [name for name, (value, p) in trivial.items() if near(value) and not (ours > value and p < SIGNIFICANT)]
    verdict = "not reproduced" if not near(ours) else "undecided" if as_good else "reproduced"
    why = f"within the tolerance too: {', '.join(as_good)}" if verdict == "undecided" else ""
    return _row(paper, item, f"{published:.4f} ± {tolerance:g}", f"{ours:.4f}", verdict, why)


def claim(
    paper: str, item: str, published: str, difference: float, p: float, trivial: Mapping[str, tuple[float, float]],
    ours: str = "",
) -> Row:  # fmt: skip
    """A row for a comparison.

    Parameters
    ----------
    difference : float
        Positive if ours has the published direction.
    p : float
        Two-sided; NaN counts as 1.
    trivial : mapping of str to (difference, p)
        The same comparison with a trivial ranker in the place of the claim's ranker.
    """
    as_good = [name for name, (d, q) in trivial.items() if d > 0 and d >= SHARE * difference and q < SIGNIFICANT]
    if not p < SIGNIFICANT:
        verdict, why = "undecided", "p is large"
    elif difference <= 0:
        verdict, why = "not reproduced", ""
    else:
        verdict, why = ("undecided", f"also passes: {', '.join(as_good)}") if as_good else ("reproduced", "")
    return _row(paper, item, published, ours or f"{difference:+.4f}, p {_short(p)}", verdict, why)


def _row(paper: str, item: str, published: str, ours: str, verdict: str, why: str) -> Row:
    return {"paper": paper, "item": item, "published": published, "ours": ours, "verdict": verdict, "why": why}


def _short(p: float) -> str:
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}"


def adarank_rows(result: dict[str, Any]) -> list[Row]:
    """Figure 2 with its t tests, and figures 9 and 10, for each update."""
    rows: list[Row] = []
    source, trials = published("adarank"), result["trials"]
    for name in trials["features"]:
        measure = "AP(rel=2)" if "MAP" in name else "nDCG@5"
        for baseline in trials["baselines"]:
            test = trials["tests"][f"{name} - {baseline}, {measure}"]
            trivial = {
                t: (other["difference"], other["p_paired_t"])
                for t in TRIVIAL
                for other in [trials["tests"][f"{t} - {baseline}, {measure}"]]
            }
            rows.append(
                claim("AdaRank", f"{name} above {baseline}, {measure}", source["figure 2"]["claim"],
                      test["difference"], test["p_paired_t"], trivial)
            )  # fmt: skip
    for key, found in trials["training"].items():
        measure, label = key.rsplit(" (", 1)[0], key.rsplit(" (", 1)[1].rstrip(")")
        if label in TRIVIAL:
            continue
        # The best single feature by either measure, in the place of the models trained on them.
        single = _ahead(trials["training"][f"{measure} ({TRIVIAL[0]})"])
        number = "9" if measure == "AP(rel=2)" else "10"
        ours = f"{found['own measure ahead']} of {found['trials']} trials, behind in {found['behind']}"
        item = f"figure {number}, {key}: own measure ahead"
        rows.append(
            claim("AdaRank", item, source[f"figure {number}"]["claim"], *_ahead(found), {TRIVIAL[0]: single}, ours)
        )
    return rows


def _ahead(found: Mapping[str, Any]) -> tuple[float, float]:
    """Trials with the own measure ahead, less those with it behind, and p of a sign test without the ties."""
    ahead, behind = found["own measure ahead"], found["behind"]
    return ahead - behind, float(binomtest(ahead, ahead + behind).pvalue) if ahead + behind else math.nan


def letor_rows(result: dict[str, Any]) -> list[Row]:
    """MAP of the learners with published figures."""
    rows = []
    for name, part in result["collections"].items():
        for learner, row in part["learners"].items():
            if "MAP" in row["published"]:
                trivial = {t: (values["MAP"], values["p"][learner]) for t, values in part["trivial"].items()}
                item, ours = f"{learner}, {name} MAP", row["test"]["MAP"]
                rows.append(figure("LETOR", item, row["published"]["MAP"], ours, MAP_TOLERANCE, trivial))
    return rows


def descent_rows(result: dict[str, Any]) -> list[Row]:
    """The article's two figures with its seed, and its claim over random splits."""
    found, splits = result["diabetes"], result["splits"]
    trivial = {name: (tau, math.nan) for name, tau in result["trivial"].items()}
    rows = [
        figure("descent", label, value, found[label]["tau"]["mean"], TAU_TOLERANCE, trivial)
        for label, value in published("descent")["tau"].items()
    ]
    test = splits["tests"]["descent - linear SVR, defaults"]
    others = {
        t: (other["difference"], other["p"])
        for t in TRIVIAL
        for other in [splits["tests"][f"{t} - linear SVR, defaults"]]
    }
    ours = f"{test['difference']:+.4f}, ahead in {test['above']} of {splits['n']} splits, p {_short(test['p'])}"
    said = published("descent")["claim"]
    rows.append(
        claim(
            "descent", "RankSVM by descent above the article's SVR", said, test["difference"], test["p"], others, ours
        )
    )
    return rows


def calibration_rows(result: dict[str, Any]) -> list[Row]:
    """By panel with a published table: whether A. Laplace is on the published side of each other method."""
    rows = []
    tables = published("calibration")["tables"]
    for panel, part in result["panels"].items():
        table_of = tables.get(part["classifier"], {}) if "script" not in part else {}
        for column, loss in enumerate(("log_loss", "squared_error", "error")):
            for method, found in part["against"][loss].items():
                if method not in table_of:
                    continue
                theirs, laplace = table_of[method][column], table_of["asymmetric-laplace"][column]
                behind = theirs < laplace if loss == "log_loss" else theirs > laplace
                sign = 1.0 if behind else -1.0
                trivial = {
                    t: (sign * one[loss][method]["difference"], one[loss][method]["p"])
                    for t, one in result["trivial"].items()
                }
                side = "better" if behind else "worse"
                rows.append(
                    claim("calibration", f"{panel}, {loss.replace('_', ' ')}: A. Laplace {side} than {method}",
                          f"{laplace:g} against {theirs:g}", sign * found["difference"], found["p"], trivial)
                )  # fmt: skip
    return rows


def oblivious_rows(result: dict[str, Any]) -> list[Row]:
    """The published differences of tables 2 and 3, on fold 1 (the thesis has one split) and on five folds."""
    rows = []
    source = {(row["a"], row["b"]): row for row in published("oblivious")["p"]}
    for name, part in result["collections"].items():
        for stop, key, text in (("nDCG@5", "ranklib", "nDCG@5"), ("squared error", "mse", "squared error")):
            for scope, tests in part["tests"][stop].items():
                for test in tests:
                    said = source[test["a"], test["b"]][key] if test["figure"] == key else 1.0
                    if said >= SIGNIFICANT:
                        continue
                    a, b = test["a"], test["b"]
                    trivial = {}
                    for t, values in part["trivial"].items():
                        # On squared error the claim is that b is better (less) than a.
                        other = np.mean(part["values"][stop][b if key == "ranklib" else a][scope][key])
                        ahead = values[scope][key] - other if key == "ranklib" else other - values[scope][key]
                        trivial[t] = (float(ahead), 0.0)
                    what = f"{a} {'above' if key == 'ranklib' else 'has more than'} {b}"
                    rows.append(
                        claim("oblivious", f"{name}, {scope}, {text}: {what}", f"p {said:.2g}, one-sided",
                              test["difference"], min(1.0, 2 * test["p"]), trivial)
                    )  # fmt: skip
    return rows


def svm_map_rows(result: dict[str, Any]) -> list[Row]:
    """MAP of tables 10 and 11, and wins and losses of SVM-MAP, on TREC-9."""
    rows: list[Row] = []
    source = published("svm_map")
    for title in ("all runs", "without the best run"):
        part, target, wins = result[title], source["map"]["trec-9"][title], source["wins"]["trec-9"][title]
        for name, value in part["MAP"].items():
            if name in target and name.startswith("svm"):
                trivial = {t: (found["MAP"], found[name]["p"]) for t, found in part["trivial"].items()}
                rows.append(figure("SVM-MAP", f"{name}, {title}, MAP", target[name], value, TOPICS_TOLERANCE, trivial))
        for name, test in part["against"].items():
            if name not in wins or name == "svm-map":
                continue
            trivial = {t: (-found[name]["difference"], found[name]["p"]) for t, found in part["trivial"].items()}
            ours = f"{test['difference']:+.4f}, {test['wins']}/{test['losses']}, p {_short(test['p'])}"
            rows.append(
                claim("SVM-MAP", f"above {name}, {title}", wins[name], test["difference"], test["p"], trivial, ours)
            )
    return rows


ROWS: dict[str, Callable[[dict[str, Any]], list[Row]]] = {
    "adarank": adarank_rows,
    "letor": letor_rows,
    "descent": descent_rows,
    "calibration": calibration_rows,
    "oblivious": oblivious_rows,
    "svm-map": svm_map_rows,
}


def overview_table(rows: Iterable[Row]) -> str:
    """The rows as text."""
    names = ["paper", "item", "published", "ours", "verdict", "why"]
    return table([[row[name] for name in names] for row in rows], names)
