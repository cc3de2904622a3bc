"""Probability estimates for text classifiers by asymmetric distributions (Bennett, SIGIR 2003), on Reuters-21578."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from reproductions.calibration.figures import density_figure, log_odds_figure
from reproductions.calibration.pipelines import linear_svm, naive_bayes, voted_perceptron
from reproductions.calibration.topic_scores import (
    LOSSES,
    PAPER_METHODS,
    PAPER_NAMES,
    PUBLISHED,
    Corpus,
    TopicScores,
    calibrated_losses,
    figures_of,
    load_corpus,
    pooled,
    read_documents,
    read_newsgroups,
    sign_tests,
    topic_scores,
    trivial_scores,
)
from reproductions.plots import Figure
from reproductions.protocol import add_options, show
from truerank import AsymmetricGaussianCalibrator, AsymmetricLaplaceCalibrator, SplineCalibrator
from truerank.calibration.base import make_calibrator
from truerank.calibration.diagnostics import Losses
from truerank.core.printing import note, table
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


def run(args: argparse.Namespace) -> dict[str, Any]:
    """All results, and the scores for the figures, which are stored in `--out` and read again from there."""
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
            kept = out / f"scores-{_slug(name)}-{n_topics}.npz"
            scores = result["scores"][name] = topic_scores(corpus, make, n_topics, kept, draw=args.seed)
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
    found = {}
    for name, share in (("constant scores", 0.0), ("best single feature", 1.0)):
        scores = trivial_scores(corpus, n_topics, share)
        found[name] = against_laplace({m: pooled(calibrated_losses(scores, m)) for m in PAPER_METHODS})
    return found


def figures(result: dict[str, Any]) -> list[Figure]:
    """The paper's figures 2 to 5 for the largest topic, earn."""
    pictures = []
    for name, scores in result["scores"].items():
        if name == "linear SVM, tf-idf":
            continue
        topic = scores[0]
        made = {
            "A. Laplace": "asymmetric-laplace", "LogReg": "logistic", "spline": SplineCalibrator(monotone=True),
            "gaussian": "gaussian", "asymmetric-gaussian": "asymmetric-gaussian",
        }  # fmt: skip
        fitted = {label: make_calibrator(one).fit(topic.train, topic.in_train) for label, one in made.items()}
        data = [("training", topic.train, topic.in_train), ("test", topic.test, topic.in_test)]
        for kind, draw, said, labels in (
            ("densities", density_figure, "A. Laplace against the scores", ["A. Laplace"]),
            ("normals", density_figure, "Gauss and A. Gauss", ["gaussian", "asymmetric-gaussian"]),
            ("log-odds", log_odds_figure, "Log-odds", ["A. Laplace", "LogReg", "spline"]),
        ):
            shown, title = {label: fitted[label] for label in labels}, f"{said}: {topic.topic}, {name}"
            pictures.append(draw(f"{kind}-{_slug(name)}", title, shown, data))
    return pictures


def _slug(name: str) -> str:
    return name.lower().replace(",", "").replace(" ", "-")


def print_tables(result: dict[str, Any]) -> None:
    """Print the paper's table for each panel, with ours."""
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


def _two(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"
