"""All experiments as one table: a published figure or claim, ours, and whether it was reproduced.

Each function reads the result of one experiment (what its `--json` prints) and gives rows. A verdict is a rule, not an
opinion: a figure is reproduced when ours is at least the published one less its tolerance (for figures without an
order, within the tolerance of it), a claim when the comparison that it states comes out so here. The tolerances are
the standard errors of the test sets, stated beside each rule.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from truerank.core.files import atomic_write
from truerank.core.printing import plain, table
from truerank.papers.protocol import COLLECTIONS, published

Row = dict[str, Any]
# Standard error of MAP over OHSUMED's 106 queries.
MAP_TOLERANCE = 0.022
TOPICS_TOLERANCE = 0.03  # the same over TREC-9's 50 topics
LIBRARIES = ("truerank", "numpy", "scipy", "scikit-learn", "numba")


def figure(paper: str, item: str, published: float, ours: float, tolerance: float, *, least: bool = True) -> Row:
    """A row for a published figure; with `least` more is better, and only falling short by the tolerance counts."""
    reached = ours >= published - tolerance if least else abs(ours - published) <= tolerance
    return claim(paper, item, f"{published:.4f}", f"{ours:.4f}", reached)


def claim(paper: str, item: str, published: str, ours: str, holds: bool) -> Row:
    """A row for a claim in words."""
    verdict = "reproduced" if holds else "not reproduced"
    return {"paper": paper, "item": item, "published": published, "ours": ours, "verdict": verdict}


def adarank_rows(result: dict[str, Any]) -> list[Row]:
    """The order and the significance of figure 2, figures 9 and 10 (more than half of the trials)."""
    rows: list[Row] = []
    trials = result.get("trials")
    if trials:
        n = trials["assignments"]
        for baseline in ("BM25", "Ranking SVM", "Ranking SVM, C by cross-validation", "RankBoost"):
            test = trials["tests"][f"AdaRank.MAP (adaboost) - {baseline}, AP(rel=2)"]
            ours = f"{test['difference']:+.4f}, p {test['p_paired_t']:.3f}, ahead in {test['above']} of {n} deals"
            rows.append(claim("AdaRank", f"figure 2: MAP above {baseline}", "above", ours, test["difference"] > 0))
            significant = test["difference"] > 0 and test["p_paired_t"] < 0.05
            rows.append(claim("AdaRank", f"t test: MAP above {baseline}", "p < .05", ours, significant))
        for number, measure in ((9, "AP(rel=2)"), (10, "nDCG@5")):
            for update in ("adaboost", "paper"):
                found = trials["training"][f"{measure} ({update})"]
                ours = f"{found['own measure ahead']} of {found['trials']} trials"
                ahead = 2 * found["own measure ahead"] > found["trials"]
                rows.append(claim("AdaRank", f"figure {number}, update {update}", "own measure ahead", ours, ahead))
    ohsumed = result.get("collections", {}).get("ohsumed")
    if ohsumed:
        target = published("letor")["tables"]["ohsumed"]["AdaRank-MAP"]["MAP"]
        for update in ("adaboost", "paper"):
            value = ohsumed["published_folds"][f"AdaRank-MAP, {update}"]["AP"]
            rows.append(figure("LETOR", f"AdaRank-MAP, OHSUMED MAP, update {update}", target, value, MAP_TOLERANCE))
    return rows


def letor_rows(result: dict[str, Any]) -> list[Row]:
    """MAP of the learners with published figures, less one standard error."""
    rows = []
    for name, part in result["collections"].items():
        scheme = next(iter(part["official"]))
        for learner, row in part["official"][scheme].items():
            if "MAP" in row["published"]:
                rows.append(
                    figure(
                        "LETOR", f"{learner}, {name} MAP", row["published"]["MAP"], row["test"]["MAP"], MAP_TOLERANCE
                    )
                )
    return rows


def descent_rows(result: dict[str, Any]) -> list[Row]:
    """The article's two figures with its seed, to .001."""
    found = result["diabetes"]
    return [
        figure("descent", label, value, found[label]["tau"]["mean"], 0.001, least=False)
        for label, value in published("descent")["tau"].items()
        if label in found
    ]


def calibration_rows(result: dict[str, Any]) -> list[Row]:
    """The paper's claims by classifier; and the footnote over all topics."""
    rows = [
        claim("calibration", f"{name}: {text}", "holds", "holds" if holds else "fails", holds)
        for name, panel in result["panels"].items()
        for text, holds in panel["claims"].items()
    ]
    for name, found in result.get("all_topics", {}).items():
        ours = found["all"]["ours"]
        a, b = (ours[method]["errors"] for method in ("asymmetric-laplace", "logistic"))
        text = f"footnote, {name}, all topics: errors of A. Laplace and LogReg"
        rows.append(claim("calibration", text, "A. Laplace fewest", f"{a}, {b}", a <= b))
    return rows


def oblivious_rows(result: dict[str, Any]) -> list[Row]:
    """The order of nDCG@5 (table 4) with trees stopped by nDCG@5, and of the squared error stopped by itself."""
    rows = []
    for name, part in result["collections"].items():
        for stop, figure_name, sign, text in (
            ("nDCG@5", "ranklib", 1, "nDCG@5"),
            ("squared error", "mse", -1, "squared error"),
        ):
            by_kind = part["values"][stop]
            means = {kind: float(np.mean(values["five folds"][figure_name])) for kind, values in by_kind.items()}
            order = sorted(means, key=lambda kind: -sign * means[kind])
            ours = ", ".join(f"{kind} {means[kind]:.4f}" for kind in order)
            wanted = ["fuzzy", "constant", "polynomial"] if sign > 0 else ["polynomial", "constant", "fuzzy"]
            rows.append(claim("oblivious", f"{name}, order by {text}", " > ".join(wanted), ours, order == wanted))
    return rows


def svm_map_rows(result: dict[str, Any]) -> list[Row]:
    """MAP of tables 10 and 11 less one standard error over 50 topics, and the claim that SVM-MAP is above SVM-ROC."""
    rows: list[Row] = []
    target = published("svm_map")["map"]["trec-9"]
    for title in ("all runs", "without the best run"):
        ours = result[title]["MAP"]
        for name, value in ours.items():
            if name in target[title]:
                rows.append(figure("SVM-MAP", f"{name}, TREC-9, {title}", target[title][name], value, TOPICS_TOLERANCE))
        test = result[title]["against"]["svm-roc"]
        text = f"{test['difference']:+.4f}, {test['wins']}/{test['losses']}, p {test['p']:.3f}"
        rows.append(claim("SVM-MAP", f"above SVM-ROC, {title}", "above", text, test["difference"] > 0))
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
    names = ["paper", "item", "published", "ours", "verdict"]
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
