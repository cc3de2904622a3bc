"""Verdicts by rule: a published figure or sentence, ours, and whether it was reproduced.

Each function reads the result of one experiment and gives rows. A row needs a published figure or sentence of that very
panel, which `published/*.json` holds with its source; what has none gets no row. The rules:

* A *figure* is reproduced when ours is within the tolerance of the published one, on either side.
* A *claim* ("A above B") is reproduced when the difference has the published direction and p < 0.05, and not reproduced
  when it has the other direction and p < 0.05.
* Everything else is undecided. So is a verdict that a trivial ranker would get too: constant scores, or the best single
  feature, in the place of the ranker that the row is about.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from reproductions.protocol import COLLECTIONS, compare_paired, published
from truerank.core.files import atomic_write
from truerank.core.printing import plain, table

Row = dict[str, Any]
SIGNIFICANT = 0.05
# Standard error of MAP over OHSUMED's 106 queries.
MAP_TOLERANCE = 0.022
TOPICS_TOLERANCE = 0.03  # the same over TREC-9's 50 topics
TAU_TOLERANCE = 0.001
LIBRARIES = ("truerank", "numpy", "scipy", "scikit-learn", "numba")
CONSTANT, BEST_FEATURE = "constant scores", "best single feature"


def figure(
    paper: str, item: str, published: float, ours: float, tolerance: float, trivial: Mapping[str, tuple[float, float]]
) -> Row:
    """A row for a published figure.

    Parameters
    ----------
    trivial : mapping of str to (figure, p)
        What trivial rankers have, and p of ours against them (NaN where there is no test).
    """

    def near(value: float) -> bool:
        return abs(value - published) <= tolerance

    as_good = [name for name, (value, p) in trivial.items() if near(value) and not (ours != value and p < SIGNIFICANT)]
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
        > 0 where ours has the published direction.
    p : float
        Two-sided; NaN counts as 1.
    trivial : mapping of str to (difference, p)
        The same comparison with a trivial ranker in the place of the ranker that the claim is about.
    """
    as_good = [name for name, (d, q) in trivial.items() if d > 0 and q < SIGNIFICANT]
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
    """Figure 2 with its t tests, and figures 9 and 10, for each update that was run."""
    rows: list[Row] = []
    source = published("adarank")
    trials = result.get("trials")
    for name in trials["features"] if trials else ():
        measure = "AP(rel=2)" if "MAP" in name else "nDCG@5"
        for baseline in trials["baselines"]:
            test = trials["tests"][f"{name} - {baseline}, {measure}"]
            trivial = {
                t: (other["difference"], other["p_paired_t"])
                for t in (CONSTANT, BEST_FEATURE)
                for other in [trials["tests"][f"{t} - {baseline}, {measure}"]]
            }
            rows.append(
                claim("AdaRank", f"{name} above {baseline}, {measure}", source["figure 2"]["claim"],
                      test["difference"], test["p_paired_t"], trivial)
            )  # fmt: skip
    if trials:
        from scipy.stats import binomtest

        for key, found in trials["training"].items():
            n, k = found["trials"], found["own measure ahead"]
            number = "9" if key.startswith("AP") else "10"
            rows.append(
                claim("AdaRank", f"figure {number}, {key}: own measure ahead", source[f"figure {number}"]["claim"],
                      k - n / 2, float(binomtest(k, n).pvalue), {}, f"{k} of {n} trials")
            )  # fmt: skip
    return rows


def letor_rows(result: dict[str, Any]) -> list[Row]:
    """MAP of the learners with published figures."""
    rows = []
    for name, part in result["collections"].items():
        scheme = next(iter(part["official"]))
        for learner, row in part["official"][scheme].items():
            if "MAP" in row["published"]:
                by_query = np.array(row["ap_by_query"])
                trivial = {
                    t: (values["MAP"], compare_paired(by_query, np.array(values["ap_by_query"]))["p_paired_t"])
                    for t, values in part["trivial"].items()
                }
                ours = row["test"]["MAP"]
                rows.append(
                    figure("LETOR", f"{learner}, {name} MAP", row["published"]["MAP"], ours, MAP_TOLERANCE, trivial)
                )
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
        for t in (CONSTANT, BEST_FEATURE)
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


def finished(path: Path, settings: dict[str, Any]) -> dict[str, Any] | None:
    """The rows and conventions of `write_finished`, or None: nothing there, other settings, another version."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(kept, dict) or kept.get("settings") != settings or kept.get("version") != _version("truerank"):
        return None
    return kept if {"rows", "conventions"} <= kept.keys() else None


def write_finished(path: Path, settings: dict[str, Any], rows: list[Row], conventions: dict[str, str]) -> None:
    """Keep the rows of an experiment that ran to its end, with what it was told (as `plain` gives it)."""
    found = {"settings": settings, "version": _version("truerank"), "rows": rows, "conventions": conventions}
    _write(path, found)


def conventions_of(result: Any, place: str = "") -> dict[str, str]:
    """Every `convention` that a result states, by its place in it."""
    found: dict[str, str] = {}
    for key, value in result.items() if isinstance(result, dict) else ():
        if key == "convention":
            found[place or "all"] = value
        else:
            found |= conventions_of(value, f"{place}, {key}" if place else str(key))
    return found


def write_manifest(
    path: Path, settings: dict[str, dict[str, Any]], conventions: dict[str, dict[str, str]]
) -> dict[str, Any]:
    """Write, and give back, what the figures depend on: data by their hashes, versions, settings, conventions.

    Parameters
    ----------
    path : Path
    settings, conventions : dict
        By experiment: what it was told (seeds, parts, `quick`), and the conventions that its result states. Hashed
        (SHA-256, 64 digits) are the files of the collections below `data`, and the `runs` and `qrels`.
    """
    manifest = {
        "data": dict(_digests(settings.values())),
        "versions": {name: _version(name) for name in LIBRARIES} | {"python": platform.python_version()},
        "machine": platform.machine(),
        "settings": settings,
        "conventions": conventions,
    }
    _write(path, manifest)
    return manifest


def _write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path, "w") as file:
        file.write(json.dumps(plain(content), indent=1, ensure_ascii=False) + "\n")


def _digests(settings: Iterable[dict[str, Any]]) -> Iterable[tuple[str, str]]:
    """Hashes of the files that experiments with these settings read, each by its path below the folder named."""
    folders = {folder.split("/")[0] for folder, _, _ in COLLECTIONS.values()} | {"reuters21578"}
    places = {Path(one["data"], folder) for one in settings if "data" in one for folder in folders}
    places |= {Path(one[name]) for one in settings for name in ("runs", "qrels") if isinstance(one.get(name), str)}
    for place in sorted(places):
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if file.is_file():
                with open(file, "rb") as content:
                    digest = hashlib.file_digest(content, "sha256").hexdigest()
                yield file.relative_to(place.parent).as_posix(), digest


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
