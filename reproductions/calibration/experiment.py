"""Probability estimates for text classifiers by asymmetric distributions (Bennett, SIGIR 2003), on Reuters-21578."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from reproductions.calibration.figures import (
    CalibrationFigure,
    density_figure,
    log_odds_figure,
    normals_figure,
    reliability_figure,
)
from reproductions.calibration.pipelines import linear_svm, naive_bayes, voted_perceptron
from reproductions.calibration.topic_scores import (
    LOSSES,
    PAPER_METHODS,
    PAPER_NAMES,
    PUBLISHED,
    SIGNIFICANT,
    Corpus,
    TopicScores,
    best_word_scores,
    calibrated_losses,
    constant_scores,
    figures_of,
    load_corpus,
    pooled,
    read_documents,
    read_newsgroups,
    sign_tests,
    topic_scores,
)
from reproductions.protocol import add_options, show
from truerank import AsymmetricGaussianCalibrator, AsymmetricLaplaceCalibrator, SplineCalibrator
from truerank.calibration.base import make_calibrator
from truerank.calibration.diagnostics import Losses, reliability
from truerank.core.printing import note, plain, print_json, table
from truerank.significance import paired_t

# Panel -> (the paper's classifier, how it is made here). Naive Bayes smooths its words with the word prior, as in the
# paper.
PANELS: dict[str, tuple[str, Callable[[], Any]]] = {
    "naive Bayes": ("naive Bayes", lambda: naive_bayes(smoothing="word-prior")),
    "linear SVM, log tf": ("linear SVM", lambda: linear_svm(weighting="log-tf")),
    "linear SVM, tf-idf": ("linear SVM", lambda: linear_svm(weighting="tf-idf")),
    "voted perceptron": ("voted perceptron", voted_perceptron),
}
# Ten newsgroups in place of MSN Web and TREC-AP, with more words than Reuters.
STAND_IN: dict[str, tuple[str, Callable[[], Any]]] = {
    "naive Bayes": ("naive Bayes", lambda: naive_bayes(1000, smoothing="word-prior")),
    "linear SVM, log tf": ("linear SVM", lambda: linear_svm(1000, weighting="log-tf")),
}
# Methods of the table besides the paper's: its future work, and its limits with a number that it does not print
# (INF = 100 / range).
OTHERS: dict[str, Any] = {
    "hybrid": "hybrid",
    "spline, monotone": SplineCalibrator(monotone=True),
    "asymmetric-laplace, limits as printed": AsymmetricLaplaceCalibrator(smallest_scale=0.01, limits="paper"),
    "asymmetric-gaussian, limits as printed": AsymmetricGaussianCalibrator(smallest_scale=0.01, limits="paper"),
    "uncalibrated": "uncalibrated",
}
PARTS = ("panels", "all-topics")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the experiment."""
    add_options(parser, "calibration-output", "reuters21578/ or newsgroups10/", seed=None)
    parser.add_argument(
        "--part", action="append", choices=PARTS, help="run only this part; may be repeated (default: all parts)"
    )
    parser.add_argument("--panel", action="append", choices=list(PANELS), help="run only this panel; may be repeated")
    parser.add_argument(
        "--stand-in", action="store_true", help="ten newsgroups in place of MSN Web and TREC-AP, with 1,000 words"
    )


def run(args: argparse.Namespace) -> int:
    """Compute and print the tables; `args.result` keeps the scores for the figures."""
    result = args.result = compute(args)
    shown = {key: value for key, value in result.items() if key != "scores"}
    if args.json:
        print_json(plain(shown))
    else:
        _print(shown)
    return 0


def compute(args: argparse.Namespace) -> dict[str, Any]:
    """All results. The scores of the text classifiers are stored in `--out` and read again from there."""
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    parts = args.part or PARTS
    n_topics = 3 if args.quick else 10
    corpus = load_corpus((read_newsgroups if args.stand_in else read_documents)(args.data))
    panels = STAND_IN if args.stand_in else PANELS
    result: dict[str, Any] = {"topics": corpus.topics[:n_topics], "words": corpus.train.shape[1]}
    result["collection"] = "ten newsgroups" if args.stand_in else "Reuters-21578, ModApte"
    result |= {"scores": {}, "panels": {}, "all_topics": {}}
    wanted = args.panel or list(panels)
    for name, (classifier, make) in panels.items() if "panels" in parts else ():
        if name in wanted:
            scores = topic_scores(corpus, make, n_topics, out / f"scores-{_slug(name)}-{n_topics}.npz", draw=args.seed)
            result["scores"][name] = scores
            result["panels"][name] = panel(scores, classifier) | ({"published": {}} if args.stand_in else {})
            note(f"{name}: done")
    result["trivial"] = trivial_panels(corpus, n_topics) if "panels" in parts else {}
    for name, (classifier, make) in list(PANELS.items())[:2] if "all-topics" in parts and not args.quick else ():
        scores = topic_scores(corpus, make, len(corpus.topics), out / f"scores-{_slug(name)}-all.npz")
        for which, some in (("all topics", scores), ("all topics but the 10 largest", scores[10:])):  # footnote 1
            result["all_topics"][f"{name}, {which}"] = panel(some, classifier) | {"topics": len(some)}
        note(f"{name}, all topics: done")
    return result


def panel(scores: list[TopicScores], classifier: str) -> dict[str, Any]:
    """The paper's table for one classifier: our sums, the published ones, sign tests."""
    is_bayes = classifier == "naive Bayes"
    methods: dict[str, Any] = dict(zip(PAPER_METHODS, PAPER_METHODS)) | OTHERS
    all_losses = {name: pooled(calibrated_losses(scores, method)) for name, method in methods.items()}
    rows = {
        name: figures_of(part.sums(), decision_only=name == "uncalibrated" and not is_bayes)
        for name, part in all_losses.items()
    }
    pairs = list(combinations(PAPER_METHODS, 2))
    pairs += [("asymmetric-laplace", name) for name in OTHERS if name != "uncalibrated" or is_bayes]
    return {
        "decisions": len(all_losses["platt"].error),
        "ours": rows,
        "published": PUBLISHED.get(classifier, {}),
        "classifier": classifier,
        "against": against_laplace(all_losses),
        "sign_tests": sign_tests(all_losses, pairs),
    }


def against_laplace(all_losses: dict[str, Losses]) -> dict[str, dict[str, dict[str, float]]]:
    """By loss and method: the method's sum minus A. Laplace's, and p of a paired t test over the decisions."""
    ours = all_losses["asymmetric-laplace"]
    found: dict[str, dict[str, dict[str, float]]] = {}
    for loss in LOSSES:
        found[loss] = {}
        for name in PAPER_METHODS:
            if name != "asymmetric-laplace":
                theirs, laplace = (np.asarray(getattr(one, loss), dtype=float) for one in (all_losses[name], ours))
                found[loss][name] = {"difference": float((theirs - laplace).sum()), "p": paired_t(theirs, laplace).p}
    return found


def trivial_panels(corpus: Corpus, n_topics: int) -> dict[str, Any]:
    """`against_laplace` for the scores of the trivial rankers: constant scores and the best word of each topic."""
    made = {"constant scores": constant_scores, "best single feature": best_word_scores}
    return {
        name: against_laplace({m: pooled(calibrated_losses(make(corpus, n_topics), m)) for m in PAPER_METHODS})
        for name, make in made.items()
    }


def figures(args: argparse.Namespace) -> list[CalibrationFigure]:
    """The paper's figures 2 to 5 for the largest topic, earn, and the reliability of all decisions."""
    pictures = []
    for name, scores in args.result["scores"].items():
        if name == "linear SVM, tf-idf":
            continue
        topic = scores[0]
        fitted = {
            "A. Laplace": make_calibrator("asymmetric-laplace"),
            "LogReg": make_calibrator("logistic"),
            "spline": SplineCalibrator(monotone=True),
            "gaussian": make_calibrator("gaussian"),
            "asymmetric-gaussian": make_calibrator("asymmetric-gaussian"),
        }
        fitted = {label: one.fit(topic.train, topic.in_train) for label, one in fitted.items()}
        data = [("training", topic.train, topic.in_train), ("test", topic.test, topic.in_test)]
        title, slug = f"{topic.topic}, {name}", _slug(name)
        pictures.append(
            density_figure(f"densities-{slug}", f"A. Laplace against the scores: {title}", fitted["A. Laplace"], data)
        )
        normals = {m: fitted[m] for m in ("gaussian", "asymmetric-gaussian")}
        pictures.append(normals_figure(f"normals-{slug}", f"Gauss and A. Gauss: {title}", normals))
        curves = {m: fitted[m] for m in ("A. Laplace", "LogReg", "spline")}
        pictures.append(log_odds_figure(f"log-odds-{slug}", f"Log-odds: {title}", curves, data))
        pictures.append(_pooled_reliability(name, scores))
    return pictures


def _pooled_reliability(name: str, scores: list[TopicScores]) -> CalibrationFigure:
    p = [make_calibrator("asymmetric-laplace").fit(t.train, t.in_train).predict_proba(t.test)[:, 1] for t in scores]
    y = np.concatenate([t.in_test for t in scores])
    diagram = reliability(y, np.concatenate(p), n_bins=10, strategy="uniform")
    return reliability_figure(
        f"reliability-{_slug(name)}", f"A. Laplace, {name}, {len(scores)} topics", diagram,
        f"{len(y):,} test decisions; 10 bins of equal width",
    )  # fmt: skip


def _slug(name: str) -> str:
    return name.lower().replace(",", "").replace(" ", "-")


def _print(result: dict[str, Any]) -> None:
    show(f"{result['collection']}, topics {', '.join(result['topics'])}; {result['words']} words; five-fold scores")
    for name, part in result["panels"].items():
        _print_panel(name, part, len(result["topics"]))
    for name, part in result["all_topics"].items():
        _print_panel(name, part, part["topics"])


def _print_panel(name: str, part: dict[str, Any], n_topics: int) -> None:
    theirs_of, what = part["published"], "the published log loss is in bits by its size"
    if n_topics != 10:
        theirs_of, what = {}, "the published sums are of ten topics and not shown"
    show(f"\n{name}: sums over {part['decisions']} decisions; {what}")
    rows = []
    for method, ours in part["ours"].items():
        theirs = theirs_of.get(method, [None, None, None])
        rows.append([
            PAPER_NAMES.get(method, method), *(_two(ours[key]) for key in ("log_loss_nats", "log_loss_bits")),
            _two(ours["squared_error"]), ours["errors"], *(_two(value) for value in theirs[:2]), _two(theirs[2], 0),
        ])  # fmt: skip
    show(table(rows, ["method", "nats", "bits", "sq. error", "errors", "paper", "sq. error", "errors"]))
    rows = [
        [PAPER_NAMES.get(t["a"], t["a"]), PAPER_NAMES.get(t["b"], t["b"]),
         *(f"{t[k]['wins']}/{t[k]['losses']}{' *' if t[k]['p'] < SIGNIFICANT else ''}" for k in LOSSES)]
        for t in part["sign_tests"]
    ]  # fmt: skip
    show(f"micro sign tests, wins/losses, * p < {SIGNIFICANT}")
    show(table(rows, ["method", "against", "log loss", "squared error", "errors"]))


def _two(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"
