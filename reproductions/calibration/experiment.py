"""Probability estimates for text classifiers by asymmetric distributions (Bennett 2003), on Reuters-21578.

Besides the paper's table: what each step of preprocessing does, all topics by their size, other sets, and rankers.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

from reproductions.calibration.choice import bundled_sets, correct, mq2008_rankers, reuters_by_size, total_and_p
from reproductions.calibration.topic_scores import (
    ALL_METHODS,
    LOSSES,
    PAPER_METHODS,
    PAPER_NAMES,
    PUBLISHED,
    SCRIPT,
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
    sign_tests,
    topic_scores,
)
from reproductions.protocol import show
from truerank import AsymmetricGaussianCalibrator, AsymmetricLaplaceCalibrator, SplineCalibrator
from truerank.calibration.diagnostics import Losses, reliability
from truerank.calibration.pool import cross_validated_log_odds, held_out_losses
from truerank.core.printing import note, plain, print_json, table
from truerank.report.calibration_figures import (
    CalibrationFigure,
    decile_figure,
    density_figure,
    log_odds_figure,
    normals_figure,
    reliability_figure,
)
from truerank.text.tokens import TOPIC_WORD, WORD
from truerank.text.topic_classifiers import linear_svm, naive_bayes
from truerank.text.voted_perceptron import voted_perceptron

LETTERS_FIRST = r"[^\W\d_][^\W_]*"
# Panel -> (classifier of the paper, word, how it is made here). Naive Bayes smooths its words with the word prior, as
# the paper's does. The last two are prepared as the script's.
PANELS: dict[str, tuple[str, str, Callable[[], Any]]] = {
    "naive Bayes": ("naive Bayes", TOPIC_WORD, lambda: naive_bayes(smoothing="word-prior")),
    "linear SVM, log tf": ("linear SVM", TOPIC_WORD, lambda: linear_svm(weighting="log-tf")),
    "linear SVM, tf-idf": ("linear SVM", TOPIC_WORD, lambda: linear_svm(weighting="tf-idf")),
    "voted perceptron": ("voted perceptron", TOPIC_WORD, voted_perceptron),
    "naive Bayes, as the script": ("naive Bayes", LETTERS_FIRST, lambda: naive_bayes(smoothing="add-one")),
    "linear SVM, as the script": ("linear SVM", LETTERS_FIRST, lambda: linear_svm(weighting="selected-log-tf")),
}
AS_THE_SCRIPT = ("naive Bayes, as the script", "linear SVM, as the script")
STEPS: list[tuple[str, str, bool, Callable[[], Any]]] = [
    ("naive Bayes: letters and digits, add-one", WORD, True, lambda: naive_bayes(smoothing="add-one")),
    ("… without the unprocessed items' text", WORD, False, lambda: naive_bayes(smoothing="add-one")),
    ("… words begin with a letter", LETTERS_FIRST, True, lambda: naive_bayes(smoothing="add-one")),
    ("… of three letters and more", TOPIC_WORD, True, lambda: naive_bayes(smoothing="add-one")),
    ("… smoothed with the word prior", TOPIC_WORD, True, lambda: naive_bayes(smoothing="word-prior")),
    ("linear SVM: letters and digits, log tf, rows of selected words", WORD, True,
     lambda: linear_svm(weighting="selected-log-tf")),
    ("… words begin with a letter", LETTERS_FIRST, True, lambda: linear_svm(weighting="selected-log-tf")),
    ("… rows scaled over all words", LETTERS_FIRST, True, lambda: linear_svm(weighting="log-tf")),
    ("… of three letters and more", TOPIC_WORD, True, lambda: linear_svm(weighting="log-tf")),
    ("… tf-idf", TOPIC_WORD, True, lambda: linear_svm(weighting="tf-idf")),
    ("… log tf, C = 3", TOPIC_WORD, True, lambda: linear_svm(weighting="log-tf", C=3.0)),
]  # fmt: skip
RANKERS = ("ridge", "rank-svm", "adarank")
SPLINE = "spline, monotone"
# The limits that the paper's text gives, with a number that it does not print: INF = 100/range.
AS_PRINTED = {
    "asymmetric-laplace, limits as printed": AsymmetricLaplaceCalibrator(smallest_scale=0.01, limits="paper"),
    "asymmetric-gaussian, limits as printed": AsymmetricGaussianCalibrator(smallest_scale=0.01, limits="paper"),
}
N_DRAWS = 4
FOOTNOTE_METHODS = ("asymmetric-laplace", "logistic", "platt")
PARTS = ("panels", "steps", "all-topics", "by-size", "sets", "rankers")


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the experiment."""
    parser.add_argument(
        "--data", required=True, metavar="DIR", help="folder that holds reuters21578/ and letor4-mq2008/"
    )
    parser.add_argument(
        "--quick", action="store_true", help="three topics, one fold, no steps and no script: shows that all runs"
    )
    parser.add_argument(
        "--out",
        default="calibration-output",
        metavar="DIR",
        help="scores (for resuming), figures (default: %(default)s)",
    )
    parser.add_argument(
        "--part", action="append", choices=PARTS, help="run this part alone; may be repeated (default: all parts)"
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="draw the five folds of the panels (default: by the documents' order)"
    )
    parser.add_argument(
        "--panel", action="append", choices=list(PANELS), help="of the panels this one alone; may be repeated"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Compute, print, keep the result for the figures."""
    result = args.result = compute(args)
    shown = {key: value for key, value in result.items() if key not in ("scores", "top_five_rows")}
    if args.json:
        print_json(plain(shown))
    else:
        _print(shown)
    return 0


def compute(args: argparse.Namespace) -> dict[str, Any]:
    """All results; scores of the text classifiers are kept in `--out` and read again from there."""
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    parts = args.part or PARTS
    n_topics = 3 if args.quick else 10
    documents = read_documents(args.data)
    corpus = load_corpus(documents, TOPIC_WORD)
    result: dict[str, Any] = {"topics": corpus.topics[:n_topics], "words": corpus.train.shape[1]}
    result["scores"], result["panels"] = {}, {}
    corpora = {TOPIC_WORD: corpus}
    wanted = args.panel or [name for name in PANELS if not (args.quick and name in AS_THE_SCRIPT)]
    chosen = [name for name in PANELS if "panels" in parts and name in wanted]
    for name in chosen:
        published, word, make = PANELS[name]
        if word not in corpora:
            corpora[word] = load_corpus(documents, word)
        kept = out / f"scores-{_slug(name)}-{n_topics}.npz"
        scores = topic_scores(corpora[word], make, n_topics, kept, draw=args.seed)
        result["scores"][name] = scores
        result["panels"][name] = panel(scores, published)
        if name in AS_THE_SCRIPT:
            result["panels"][name]["script"] = SCRIPT[published]
            result["panels"][name]["draws"] = draws(
                corpora[word], make, n_topics, 1 if args.quick else N_DRAWS, out / f"scores-{_slug(name)}-draw"
            )
        note(f"{name}: done")
    result["trivial"] = trivial_panels(corpus, n_topics) if "panels" in parts else {}
    result["steps"] = [] if args.quick or "steps" not in parts else steps(documents, out)
    result["by_size"], result["all_topics"] = {}, {}
    if not args.quick and {"all-topics", "by-size"} & set(parts):
        for name, (_, _, make) in list(PANELS.items())[:2]:
            scores = topic_scores(corpus, make, len(corpus.topics), out / f"scores-{_slug(name)}-all.npz")
            if "all-topics" in parts:
                result["all_topics"][name] = all_topics(scores)
            if "by-size" in parts:
                result["by_size"][name] = reuters_by_size(scores)
            note(f"{name}, all topics: done")
    result["bundled_sets"] = bundled_sets(1 if args.quick else 5) if "sets" in parts else []
    result["rankers"], result["top_five"] = [], None
    if "rankers" in parts:
        rankers = RANKERS[:1] if args.quick else RANKERS
        result["rankers"], top_five = mq2008_rankers(args.data, rankers, 1 if args.quick else 5)
        result["top_five_rows"] = top_five.pop("probabilities"), top_five.pop("relevant")
        result["top_five"] = top_five
    correct([*(rows[1:] for rows in result["by_size"].values()), result["bundled_sets"], result["rankers"]])
    return result


def panel(scores: list[TopicScores], published: str) -> dict[str, Any]:
    """The paper's table for one classifier: our sums, the published ones, sign tests, the paper's claims."""
    is_bayes = published == "naive Bayes"
    all_losses: dict[str, Losses] = {name: pooled(calibrated_losses(scores, name)) for name in ALL_METHODS}
    for name, calibrator in AS_PRINTED.items():
        all_losses[name] = pooled(calibrated_losses(scores, calibrator))
    all_losses[SPLINE] = pooled(calibrated_losses(scores, SplineCalibrator(monotone=True)))
    all_losses["uncalibrated"] = pooled(calibrated_losses(scores, "uncalibrated"))
    rows = {
        name: figures_of(part.sums(), decision_only=name == "uncalibrated" and not is_bayes)
        for name, part in all_losses.items()
    }
    paper = {name: rows[name] for name in PAPER_METHODS}

    def best(figure: str) -> str:
        sign = -1 if figure.startswith("log") else 1
        return min(paper, key=lambda name: sign * paper[name][figure])

    compared = [name for name in all_losses if name != "uncalibrated" or is_bayes]
    peers = ["logistic", "platt", "isotonic", "beta", "temperature"]
    pairs = [("asymmetric-laplace", name) for name in compared if name != "asymmetric-laplace"]
    pairs += [(a, b) for a, b in combinations(PAPER_METHODS, 2) if "asymmetric-laplace" not in (a, b)]
    pairs += [(a, b) for a in (SPLINE, "hybrid", "pool") for b in peers]
    tests = sign_tests(all_losses, pairs)
    return {
        "decisions": len(all_losses["platt"].error),
        "ours": rows,
        "published": PUBLISHED.get(published, {}),
        "classifier": published,
        "against": against_laplace(all_losses),
        "sign_tests": tests,
        "level_with_best": {figure: _level_with(best(key), loss, tests) for loss, key, figure in (
            ("log_loss", "log_loss_nats", "log_loss"), ("squared_error", "squared_error", "squared_error"),
            ("error", "errors", "errors"),
        )},
    }  # fmt: skip


def against_laplace(all_losses: dict[str, Losses]) -> dict[str, dict[str, dict[str, float]]]:
    """By loss and method: the method's sum minus A. Laplace's, and p of a paired t-test over the decisions."""
    ours = all_losses["asymmetric-laplace"]
    found: dict[str, dict[str, dict[str, float]]] = {}
    for loss in LOSSES:
        found[loss] = {}
        for name in PAPER_METHODS:
            if name != "asymmetric-laplace":
                total, p = total_and_p(getattr(all_losses[name], loss), getattr(ours, loss))
                found[loss][name] = {"difference": total, "p": p}
    return found


def trivial_panels(corpus: Corpus, n_topics: int) -> dict[str, Any]:
    """`against_laplace` for scores that a claim about calibrators must not hold for: constants, the best word."""
    made = {"constant scores": constant_scores, "best single feature": best_word_scores}
    return {
        name: against_laplace({m: pooled(calibrated_losses(make(corpus, n_topics), m)) for m in PAPER_METHODS})
        for name, make in made.items()
    }


def _level_with(best: str, loss: str, tests: list[dict[str, Any]]) -> list[str]:
    """The best of the paper's methods, and those that the sign test at p = 0.01 does not tell from it."""
    level = [best]
    for test in tests:
        if best in (test["a"], test["b"]) and test[loss]["p"] >= SIGNIFICANT:
            other = test["b"] if test["a"] == best else test["a"]
            if other in PAPER_METHODS:
                level.append(other)
    return level


def draws(corpus: Corpus, make: Callable[[], Any], n_topics: int, n_draws: int, kept: Path) -> dict[str, Any]:
    """What the draw of the folds alone does: least and greatest figures of the paper's methods over draws."""
    figures: dict[str, list[dict[str, Any]]] = {name: [] for name in PAPER_METHODS}
    for draw in range(n_draws):
        scores = topic_scores(corpus, make, n_topics, kept.with_name(f"{kept.name}-{draw}.npz"), draw=draw)
        for name in PAPER_METHODS:
            figures[name].append(figures_of(pooled(calibrated_losses(scores, name)).sums()))
    return {
        name: {key: [min(row[key] for row in rows), max(row[key] for row in rows)] for key in rows[0]}
        for name, rows in figures.items()
    }


def steps(documents: tuple[list[Any], list[Any]], out: Path) -> list[dict[str, Any]]:
    """What each step of preprocessing does to A. Laplace, LogReg and the monotone spline."""
    rows = []
    corpora: dict[tuple[str, bool], Corpus] = {}
    for number, (name, word, unprocessed, make) in enumerate(STEPS):
        key = (word, unprocessed)
        if key not in corpora:
            corpora[key] = load_corpus(documents, word, unprocessed=unprocessed)
        scores = topic_scores(corpora[key], make, 10, out / f"scores-step-{number}.npz")
        row: dict[str, Any] = {"step": name, "words": corpora[key].train.shape[1]}
        row["training"] = on_training(scores)
        row["uncalibrated_errors"] = pooled(calibrated_losses(scores, "uncalibrated")).sums().errors
        for label, method in (
            ("asymmetric-laplace", "asymmetric-laplace"),
            ("logistic", "logistic"),
            (SPLINE, SplineCalibrator(monotone=True)),
        ):
            row[label] = figures_of(pooled(calibrated_losses(scores, method)).sums())
        rows.append(row)
        note(f"step {name}: done")
    return rows


def on_training(scores: list[TopicScores]) -> dict[str, float]:
    """What the five-fold scores of the training documents alone say: the figures that preparation is chosen by.

    Errors of the raw scores, and log losses in nats of A. Laplace and LogReg, cross-validated on these scores.
    """
    methods = ("asymmetric-laplace", "logistic")
    result = {"errors": 0.0, **dict.fromkeys(methods, 0.0)}
    for topic in scores:
        log_odds, _ = cross_validated_log_odds(methods, False, topic.train, topic.in_train, None, None, 5, 1, 0)
        result["errors"] += float(((topic.train > 0) != topic.in_train).sum())
        for method, some in zip(methods, held_out_losses(log_odds, topic.in_train).sum(axis=(1, 2))):
            result[method] += float(some)
    return result


def all_topics(scores: list[TopicScores]) -> dict[str, Any]:
    """The paper's footnote: its methods over all topics with a test document, and without the largest ones."""
    result = {}
    for name, some in (("all", scores), ("all but the 10 largest", scores[10:])):
        every = {method: pooled(calibrated_losses(some, method)) for method in FOOTNOTE_METHODS}
        result[name] = {
            "topics": len(some), "decisions": len(every["platt"].error),
            "ours": {method: figures_of(part.sums()) for method, part in every.items()},
            "sign_tests": sign_tests(every, [("asymmetric-laplace", b) for b in FOOTNOTE_METHODS[1:]]),
        }  # fmt: skip
    return result


def figures(args: argparse.Namespace) -> list[CalibrationFigure]:
    """Figures 4 and 5 for the class earn, reliability of the pooled decisions, and the calibrated ranker."""
    from truerank.calibration.classifier import make_calibrator

    result = getattr(args, "result", None) or compute(args)
    pictures = []
    for name in (name for name in [*list(PANELS)[:2], "voted perceptron"] if name in result["scores"]):
        topic = result["scores"][name][0]
        laplace = make_calibrator("asymmetric-laplace").fit(topic.train, topic.in_train)
        logistic = make_calibrator("logistic").fit(topic.train, topic.in_train)
        spline = SplineCalibrator(monotone=True).fit(topic.train, topic.in_train)
        data = [("training", topic.train, topic.in_train), ("test", topic.test, topic.in_test)]
        pictures.append(density_figure(
            f"densities-{_slug(name)}", f"A. Laplace against the scores: {topic.topic}, {name}", laplace, data
        ))  # fmt: skip
        pictures.append(normals_figure(
            f"normals-{_slug(name)}", f"Gauss and A. Gauss: {topic.topic}, {name}",
            {m: make_calibrator(m).fit(topic.train, topic.in_train) for m in ("gaussian", "asymmetric-gaussian")},
        ))  # fmt: skip
        pictures.append(log_odds_figure(
            f"log-odds-{_slug(name)}", f"Log-odds: {topic.topic}, {name}",
            {"A. Laplace": laplace, "LogReg": logistic, "spline": spline}, data,
        ))  # fmt: skip
        pictures.append(_pooled_reliability(name, result["scores"][name]))
    if result["top_five"] is None:
        return pictures
    p, relevant = result["top_five_rows"]
    ranker, deciles = result["top_five"]["ranker"], result["top_five"]["deciles"]
    pictures.append(reliability_figure(
        "reliability-ranker", f"P(relevant): {ranker} on MQ2008, test queries", reliability(relevant, p, n_bins=15),
        f"{len(p):,} documents; 15 bins of equal counts",
    ))  # fmt: skip
    pictures.append(decile_figure("top-five", f"Relevant in the top 5: {ranker} on MQ2008", deciles))
    return pictures


def _pooled_reliability(name: str, scores: list[TopicScores]) -> CalibrationFigure:
    import numpy as np

    from truerank.calibration.classifier import make_calibrator

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
    show(f"Reuters-21578, ModApte, topics {', '.join(result['topics'])}; {result['words']} words; five-fold scores")
    for name, part in result["panels"].items():
        _print_panel(name, part, len(result["topics"]))
    if result["steps"]:
        _print_steps(result["steps"])
    for name, parts in result["all_topics"].items():
        for which, part in parts.items():
            _print_topics(f"{name}, {which}", part)
    choices = {f"{name}, topics by training documents": rows for name, rows in result["by_size"].items()}
    choices |= {"sets that ship with scikit-learn": result["bundled_sets"], "rankers": result["rankers"]}
    for title, parts in choices.items():
        if parts:
            _print_choices(title, parts)
    if result["top_five"] is not None:
        _print_top_five(result["top_five"])


def _print_panel(name: str, part: dict[str, Any], n_topics: int) -> None:
    theirs_of, others = part["published"], "paper"
    what = "the published log loss is in bits by its size"
    if n_topics < 10:
        theirs_of, what = {}, "published sums are of ten topics and not shown"
    elif "script" in part:
        theirs_of, others, what = part["script"], "script", "prepared as the script's, whose log loss is in nats"
    show(f"\n{name}: sums over {part['decisions']} decisions; {what}")
    rows = []
    for method, ours in part["ours"].items():
        theirs = theirs_of.get(method, [None, None, None])
        rows.append([
            PAPER_NAMES.get(method, method), *(_two(ours[key]) for key in ("log_loss_nats", "log_loss_bits")),
            _two(ours["squared_error"]), ours["errors"], *(_two(value) for value in theirs[:2]), _two(theirs[2], 0),
        ])  # fmt: skip
    show(table(rows, ["method", "nats", "bits", "sq. error", "errors", others, "sq. error", "errors"]))
    if "draws" in part:
        show("the same with folds drawn at random, least to greatest of the draws")
        rows = [
            [
                PAPER_NAMES[name],
                *(f"{_short(low)} to {_short(high)}" for key, (low, high) in row.items() if "bits" not in key),
            ]
            for name, row in part["draws"].items()
        ]
        show(table(rows, ["method", "nats", "sq. error", "errors"]))
    rows = [
        [PAPER_NAMES.get(t["a"], t["a"]), PAPER_NAMES.get(t["b"], t["b"]),
         *(f"{t[k]['wins']}/{t[k]['losses']}{' *' if t[k]['p'] < SIGNIFICANT else ''}" for k in LOSSES)]
        for t in part["sign_tests"]
    ]  # fmt: skip
    show("micro sign tests, wins/losses, * p < 0.01")
    show(table(rows, ["method", "against", "log loss", "squared error", "errors"]))
    for figure, level in part["level_with_best"].items():
        names = [PAPER_NAMES[method] for method in level]
        rest = f"; not told from it at p = {SIGNIFICANT}: {', '.join(names[1:])}" if names[1:] else ""
        show(f"best {figure.replace('_', ' ')} of the paper's methods: {names[0]}{rest}")


def _print_steps(steps: list[dict[str, Any]]) -> None:
    show("\nwhat each step of preprocessing does (log loss in nats, squared error, errors)")
    rows = [
        [row["step"], row["words"], int(row["training"]["errors"]), f"{row['training']['asymmetric-laplace']:.1f}",
         f"{row['training']['logistic']:.1f}", row["uncalibrated_errors"],
         *(f"{row[m]['log_loss_nats']:.1f} {row[m]['squared_error']:.1f} {row[m]['errors']}"
           for m in ("asymmetric-laplace", "logistic", SPLINE))]
        for row in steps
    ]  # fmt: skip
    header = ["step", "words", "training: raw errors", "A. Laplace", "LogReg", "test: raw errors"]
    show(table(rows, [*header, "A. Laplace", "LogReg", SPLINE]))


def _print_topics(title: str, part: dict[str, Any]) -> None:
    show(f"\n{title}: {part['topics']} topics with a test document, {part['decisions']} decisions")
    rows = [
        [PAPER_NAMES.get(m, m), _two(r["log_loss_nats"]), _two(r["log_loss_bits"]), _two(r["squared_error"]),
         r["errors"]]
        for m, r in part["ours"].items()
    ]  # fmt: skip
    show(table(rows, ["method", "nats", "bits", "sq. error", "errors"]))
    for t in part["sign_tests"]:
        against = PAPER_NAMES.get(t["b"], t["b"])
        words = [f"{k.replace('_', ' ')} {t[k]['wins']}/{t[k]['losses']} p {t[k]['p']:.2g}" for k in LOSSES]
        show(f"A. Laplace against {against}, wins/losses: {'; '.join(words)}")


def _print_choices(title: str, parts: list[dict[str, Any]]) -> None:
    show(f"\n{title}: choose_calibrator against the best of Platt, isotonic, beta, temperature; paired t")
    rows = []
    for part in parts:
        for loss in ("log_loss", "squared_error"):
            c = part[loss]
            rows.append([
                part["set"], part["topics"], loss, _two(c["chosen"]), _two(c["peers"][c["best_peer"]]),
                c["best_peer"], f"{c['p']:.3f}", f"{c['p_holm']:.3f}" if "p_holm" in c else "",
                "yes" if c["not_worse"] else "NO",
            ])  # fmt: skip
    show(table(rows, ["set", "fits", "loss", "chosen", "best peer", "", "p", "p (Holm)", "not worse"]))
    for part in parts:
        weights = ", ".join(f"{name} {weight:.2f}" for name, weight in part["mean_weights"].items())
        show(f"  {part['set']}: chose {part['chosen']}; mean weights {weights}")


def _print_top_five(top: dict[str, Any]) -> None:
    show(f"\nrelevant in the top 5 by decile of the expected number, {top['ranker']} on MQ2008 test queries")
    rows = [[r["decile"], r["queries"], r["expected"], r["observed"], r["standard_error"]] for r in top["deciles"]]
    show(table(rows, ["decile", "queries", "expected", "observed", "standard error"]))
    show(f"mean over queries: expected {top['expected']:.4f}, observed {top['observed']:.4f}")


def _two(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _short(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.1f}"
