"""Does a cutoff keep its promise? Real queries are divided at random: one half calibrates, all are what is true.

The risk of a threshold is its risk over all queries of the set, from which the calibration half is drawn without
replacement. α is 0.35 for MQ2008's queries with nothing relevant in the top 3, else a share of the loss where
everything is answered or shown, so that there is something to decide. Beside each promise stands a threshold tuned on
the same half: the most inclusive one whose mean loss there is at most α. For promises about depth, half as many queries
as there are are drawn with replacement, and documents have held-out scores of least squares.
"""

from __future__ import annotations

import math
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import bdtr

from truerank import Cutoff
from truerank.calibration.cutoffs import START, STEP, betting_p, least_losses
from truerank.calibration.query_losses import BY_DEPTH, parse_loss
from truerank.core.errors import InvalidInputError
from truerank.core.random_streams import stream
from truerank.data.grouping import group_rows, query_of_rows, ranks_by_query
from validation.harness import TEN, Row, average, collections, rate, streams

PROMISE = (
    "A cutoff breaks its guarantee in at most 1 - confidence of the divisions of a set of queries, and the expected "
    "loss under conformal risk control is at most α."
)
CONFIDENCE = 0.9
DIVISIONS = 1_000  # replications of the default; with fewer, there are as many draws
REPLICATIONS = DIVISIONS
DRAWS = 5_300  # with replacement, of promises about depth and of useless scores
MANY, FEW = (
    500,
    800,
)  # draws of losses in [0, 1] with confidence, of sets with more queries, which bet on each threshold
COMPARED = 3  # draws that are compared with `Cutoff` itself
FEWEST_FOR_REAL_DATA = 100
ANSWERED_BAR = 0.55  # of MQ2008's queries


class Lists(NamedTuple):
    """Judged result lists, grouped by query; further columns of `scores` are other runs."""

    scores: np.ndarray
    y: np.ndarray
    offsets: np.ndarray
    k: int
    at_most: float | None = None


def lists_of(scores: Any, y: Any, qid: Any, k: int, at_most: float | None = None) -> Lists:
    """Rows in any order as `Lists`, best first."""
    grouping = group_rows(qid)
    columns = np.asarray(grouping.grouped(scores), dtype=np.float64)
    columns = columns[:, None] if columns.ndim == 1 else columns
    order = np.lexsort((-columns[:, 0], grouping.query_index))
    return Lists(columns[order], np.asarray(grouping.grouped(y))[order], grouping.offsets, k, at_most)


def simulated() -> Lists:
    """300 queries of 10 documents whose scores say something of the document and of the query."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(300), 10)
    scores = rng.normal(size=3_000) + rng.normal(size=300)[qid]
    return lists_of(scores, rng.random(3_000) < 1 / (1 + np.exp(2 - scores)), qid, 3)


def letor(folder: Path, k: int, aggregated: Path | None = None, at_most: float | None = None) -> Lists:
    """Probabilities of boosted trees that were trained and calibrated on the other four parts.

    Ranks in `aggregated` are those of further runs.
    """
    from truerank import CalibratedRanker, ObliviousBoosting
    from truerank.io.letor.read import read_letor

    parts = [read_letor(folder / f"S{j}.txt.gz") for j in range(1, 6)]
    columns, grades, queries = [], [], []
    for j, part in enumerate(parts):
        rest = [other for other in range(5) if other != j]
        X = np.vstack([np.asarray(parts[i].X) for i in rest])
        y = np.concatenate([parts[i].y for i in rest])
        qid = np.concatenate([[f"{i}:{name}" for name in parts[i].qid] for i in rest])
        ranker = CalibratedRanker(ObliviousBoosting(), method="platt", query_statistics=True).fit(X, y, qid=qid)
        found = ranker.predict_proba(part)[:, 1][:, None]
        if aggregated is not None:
            other = read_letor(aggregated / f"A{j + 1}.txt.gz", missing="nan")
            place = {(q, d): i for i, (q, d) in enumerate(zip(other.qid.tolist(), other.doc_ids.tolist()))}
            at = [place[q, d] for q, d in zip(part.qid.tolist(), part.doc_ids.tolist())]
            found = np.hstack([found, -np.asarray(other.X)[at]])
        columns.append(found)
        grades.append(part.y)
        queries += [f"{j} {name}" for name in part.qid]
    return lists_of(np.vstack(columns), np.concatenate(grades), queries, k, at_most)


def linear(folder: Path, k: int) -> Lists:
    """Least squares of the grades (ridge 10), fitted to the other four parts."""
    from truerank.io.letor.read import read_letor

    parts = [read_letor(folder / f"S{j}.txt.gz") for j in range(1, 6)]
    X = [np.column_stack([np.asarray(part.X), np.ones(part.n_rows)]) for part in parts]
    scores = []
    for j in range(5):
        rest = [other for other in range(5) if other != j]
        A, y = np.vstack([X[i] for i in rest]), np.concatenate([parts[i].y for i in rest])
        scores.append(X[j] @ np.linalg.solve(A.T @ A + 10 * np.eye(A.shape[1]), A.T @ y))
    queries = [f"{j} {name}" for j, part in enumerate(parts) for name in part.qid]
    return lists_of(np.concatenate(scores), np.concatenate([part.y for part in parts]), queries, k)


def trec9(folder: Path) -> Lists:
    """The 50 best documents of each topic by reciprocal rank fusion of ten runs."""
    from truerank.features.run_pool import RunPool
    from truerank.io.streams import files_of
    from truerank.io.trec import read_qrels, read_run

    paths = [path for path in files_of(folder / "runs") if path.name.split(".")[0] in TEN]
    pool = RunPool({path.name: read_run(path) for path in paths}, read_qrels(folder / "qrels.451-500.txt.xz"))
    run = np.tile(np.arange(len(paths)), pool.n_queries).repeat(np.diff(pool.list_offsets))
    runs = np.full((pool.n_rows, len(paths)), np.nan)
    near = pool.ranks <= 50
    runs[pool.rows[near], run[near]] = 1.0 / (60 + pool.ranks[near])
    fused = np.nansum(runs, axis=1)
    kept = ranks_by_query(fused, pool.offsets) <= 50
    grades = np.nan_to_num(np.asarray(pool.grades))[kept]
    return lists_of(np.column_stack([fused, runs])[kept], grades, query_of_rows(pool.offsets)[kept], 1)


def cranfield(folder: Path) -> Lists:
    """What `truerank text pipeline` writes: held-out probabilities of the 50 candidates of each query."""
    import csv

    from truerank.cli import main
    from truerank.io.documents import read_judgements

    with tempfile.TemporaryDirectory() as place:
        files = [str(folder / name) for name in ("cran.all.1400.gz", "cran.qry.gz", "cranqrel.gz")]
        given = [f for pair in zip(("--documents", "--queries", "--qrels"), files) for f in pair]
        main(
            [
                "text",
                "pipeline",
                *given,
                *["--ranker", "ridge", "--families", "papers", "--depth", "50", "--out"],
                f"{place}/out",
            ]
        )
        with open(f"{place}/out/probabilities.csv", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
    qrels = read_judgements(files[2]).to_dict()
    grades = [qrels[row["query"]].get(row["document"], 0) for row in rows]
    return lists_of([float(row["probability"]) for row in rows], grades, [row["query"] for row in rows], 1)


def reuters(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Of the test documents of the ten largest topics: statistics of ten classifiers' scores, and errors of the best.

    Columns: the highest log-odds of naive Bayes, its distance to the next, and the logarithm of the number of words.
    """
    from reproductions.calibration.reuters import modapte_split, read_reuters
    from reproductions.calibration.topic_scores import load_corpus

    from truerank import TopicNaiveBayes
    from truerank.calibration.classifier import classifier_scores

    corpus = load_corpus(modapte_split(read_reuters(folder)), r"[A-Za-z]{3,}")
    scores = np.stack(
        [
            classifier_scores(TopicNaiveBayes().fit(corpus.train, corpus.in_train[:, t].astype(int)), corpus.test)
            for t in range(10)
        ],
        axis=1,
    )
    kept = corpus.in_test[:, :10].any(axis=1)
    scores, right = scores[kept], corpus.in_test[kept, :10]
    ordered = np.sort(scores, axis=1)
    words = np.log1p(np.asarray(corpus.test.sum(axis=1)).ravel()[kept])
    wrong = ~right[np.arange(len(right)), scores.argmax(axis=1)]
    return np.stack([ordered[:, -1], ordered[:, -1] - ordered[:, -2], words], axis=1), wrong.astype(np.float64)


def halves(m: int, replications: int, seed: int) -> Iterator[np.ndarray]:
    """The queries (m // 2,) that calibrate, ascending, of each division."""
    for rng in streams(seed, replications):
        yield np.sort(rng.permutation(m)[: m // 2])


def _tuned(values: np.ndarray, losses: np.ndarray, at_most: float) -> float:
    """The lowest score above which no more than α is lost on average."""
    order = np.argsort(-values, kind="stable")
    means = np.cumsum(losses[order]) / np.arange(1, len(order) + 1)
    kept = np.flatnonzero(means <= at_most)
    return float(values[order][kept[-1]]) if len(kept) else math.inf


def answers(
    setting: str, loss: str, scores: np.ndarray, losses: np.ndarray, at_most: float, replications: int, seed: int,
    *, bar: float | None = None, **settings: Any,
) -> list[Row]:  # fmt: skip
    """When to answer: unit scores (m,) or statistics (m, s), and the losses (m,)."""
    broken: dict[str, list[bool]] = {"cutoff": [], "tuned": []}
    shares: dict[str, list[float]] = {"cutoff": [], "tuned": []}
    for number, half in enumerate(halves(len(losses), replications, seed)):
        cutoff = Cutoff(loss, at_most=at_most, confidence=CONFIDENCE, random_state=number, **settings)
        answered = {"cutoff": cutoff.fit_losses(scores[half], losses[half]).answers(scores)}
        if scores.ndim == 1:
            answered["tuned"] = scores >= _tuned(scores[half], losses[half], at_most)
        for name, one in answered.items():
            broken[name].append(bool(one.any() and losses[one].mean() > at_most + 1e-12))
            shares[name].append(float(one.mean()))
    promise = f"{loss} at most {at_most:g} of the answered"
    rows = [
        rate(setting, f"{promise}: promise broken", broken["cutoff"], high=1 - CONFIDENCE),
        average(setting, f"{promise}: share answered", shares["cutoff"], low=bar),
    ]
    if shares["tuned"]:
        rows.append(rate(setting, f"{promise}: broken by a threshold tuned on the half", broken["tuned"]))
        rows.append(average(setting, f"{promise}: share answered by a tuned threshold", shares["tuned"]))
    return rows


def depths(setting: str, loss: str, data: Lists, confidence: float | None, draws: int, seed: int) -> list[Row]:
    """How deep to show: half as many queries as there are, drawn with replacement, calibrate; all are what is true.

    The draws are those of `Cutoff`, but all on one table of losses by query and document; the first few are compared
    with `Cutoff`.
    """
    m, offsets, own = len(data.offsets) - 1, data.offsets, data.scores[:, 0]
    table, at_depth_0 = parse_loss(loss).of_rankings(data.y, offsets, 1), offsets[:-1] + np.arange(m)
    missed = BY_DEPTH[loss] == "missed"
    at_most = 0.2 if missed else round(0.85 * float(np.nanmean(table[at_depth_0 + np.diff(offsets)])), 2)
    order = np.argsort(-own, kind="stable")
    query, start = query_of_rows(offsets)[order], np.searchsorted(-own[order], -own[order])
    depth = np.zeros((len(own) + 1, m), dtype=np.int16)  # documents shown of each query, by place in the order
    depth[np.arange(1, len(own) + 1), query] = 1
    np.cumsum(depth, axis=0, out=depth)
    row = np.arange(len(own)) + query_of_rows(offsets) + 1
    rises, known = np.nan_to_num(table[row] - table[row - 1])[order], ~np.isnan(table[at_depth_0])
    ends = np.append(np.flatnonzero(np.diff(own[order])), len(own) - 1)
    bets = stream(0, "cutoff").permutation(m // 2)
    true, shown, refused = np.full(draws, np.nan), np.full(draws, np.nan), np.zeros(draws, dtype=bool)
    for number, rng in enumerate(streams(seed, draws)):
        drawn = rng.integers(0, m, m // 2)
        times = np.bincount(drawn, minlength=m)
        if confidence is None:
            n = times[known].sum()
            bound = (n * np.nanmean(table[at_depth_0][drawn]) + np.cumsum(times[query] * rises)[ends] + 1) / (n + 1)
            fits = np.flatnonzero(bound <= at_most + 1e-12)
            place = ends[fits[0]] + 1 if len(fits) else None
        else:
            place = _tested(data, table, at_depth_0, depth, start, np.cumsum(times[query]), drawn[bets], loss, at_most)
        refused[number] = place is None
        if place is not None:
            true[number] = np.nanmean(table[at_depth_0 + depth[place]])
            shown[number] = place / len(own)
        if number < COMPARED:
            _same_as_cutoff(data, drawn, loss, at_most, confidence, None if place is None else own[order][place - 1])
    promise = f"{loss} at most {at_most:g}" + ("" if confidence else ", in expectation")
    kept, name = true[~refused], f"{setting}, {m // 2} drawn with replacement"
    if confidence is None:
        rows = [average(name, f"{promise}: mean loss", kept, high=at_most)]
    else:
        broken = np.nan_to_num(true) > at_most + 1e-12
        rows = [rate(name, f"{promise}: promise broken", broken, high=1 - confidence)]
    if len(kept):
        rows.append(average(name, f"{promise}: share of documents shown", shown[~refused]))
    return [*rows, *([rate(name, f"{promise}: nothing promised", refused)] if refused.any() else [])]


def _tested(
    data: Lists, table: np.ndarray, at_depth_0: np.ndarray, depth: np.ndarray, start: np.ndarray, weight: np.ndarray,
    drawn: np.ndarray, loss: str, at_most: float,
) -> int | None:  # fmt: skip
    """The number of documents of all queries above the last threshold before the first that is not rejected."""
    counts = np.unique(np.ceil(np.minimum(np.arange(STEP, 1 + STEP / 2, STEP), 1.0) * weight[-1] - 1e-9).astype(int))
    places = np.unique(start[np.searchsorted(weight, counts[counts < weight[-1]], side="right")])
    places = np.append(places, len(weight))
    if BY_DEPTH[loss] == "missed":
        places = places[::-1]
    losses = table[at_depth_0[drawn][:, None] + depth[places][:, drawn].T]
    known = ~np.isnan(losses)
    n = known.sum(axis=0)
    losses = np.nan_to_num(np.take_along_axis(losses, np.argsort(~known, axis=0, kind="stable"), axis=0))
    binary = bool(((losses == 0) | (losses == 1)).all())
    least = least_losses(at_most, CONFIDENCE, binary)
    tested = np.flatnonzero(n >= max(least, START * n.max() if BY_DEPTH[loss] == "shown" else 0))
    p = bdtr(losses.sum(axis=0), n, at_most) if binary else betting_p(losses, n, at_most, CONFIDENCE)
    passed = int(np.argmin(np.append(p[tested] <= 1 - CONFIDENCE, False)))
    return int(places[tested][passed - 1]) if passed else None


def _same_as_cutoff(
    data: Lists, drawn: np.ndarray, loss: str, at_most: float, confidence: float | None, lowest: float | None
) -> None:
    """Raise if `Cutoff` shows other documents than those with a score of at least `lowest`."""
    rows = np.concatenate([np.arange(data.offsets[q], data.offsets[q + 1]) for q in drawn])
    qid = np.repeat(np.arange(len(drawn)), np.diff(data.offsets)[drawn])
    own = data.scores[:, 0]
    try:
        cutoff = Cutoff(loss, at_most=at_most, confidence=confidence, random_state=0)
        found = own >= cutoff.fit(own[rows], data.y[rows], qid=qid).threshold_
    except InvalidInputError:
        found = np.zeros(len(own), dtype=bool)
    expected = own >= (math.inf if lowest is None else lowest)
    if (found != expected).any():
        raise AssertionError(f"{loss}: Cutoff shows {found.sum()} documents, the simulation {expected.sum()}")


def useless(setting: str, loss: str, losses: np.ndarray, draws: int, seed: int) -> list[Row]:
    """Random query scores at confidence 0.95 and half of the base risk, which no threshold can promise."""
    at_most, answered = float(losses.mean()) / 2, []
    for number, rng in enumerate(streams(seed, draws)):
        drawn = rng.integers(0, len(losses), len(losses) // 2)
        cutoff = Cutoff(loss, at_most=at_most, confidence=0.95, random_state=number)
        answered.append(cutoff.fit_losses(rng.random(len(drawn)), losses[drawn]).answered_ > 0)
    name = f"{setting}, random scores, {len(losses) // 2} drawn with replacement"
    return [
        rate(name, f"{loss} at most half of the base risk, confidence 0.95: refused", ~np.array(answered), low=0.95)
    ]


def of_lists(setting: str, data: Lists, replications: int, seed: int) -> list[Row]:
    """All losses and procedures on one set of queries."""
    from truerank.calibration.query_losses import list_statistics

    rows = []
    statistics = list_statistics(data.scores, data.offsets, data.k)
    name = f"no-relevant@{data.k}"
    losses = parse_loss(name).of_rankings(data.y, data.offsets, 1)
    at_most = data.at_most or round(0.85 * losses.mean(), 2)
    bar = None if data.at_most is None else ANSWERED_BAR
    rows += answers(f"{setting}, mean-top", name, statistics[:, 1], losses, at_most, replications, seed, bar=bar)
    if data.scores.shape[1] > 1:
        rows += answers(f"{setting}, agreement", name, statistics[:, 6], losses, at_most, replications, seed)
    rows += answers(f"{setting}, learned", name, statistics, losses, at_most, replications, seed, query_score="learned")
    for name in ("irrelevant@5", "1-nDCG@10"):
        shares = parse_loss(name).of_rankings(data.y, data.offsets, 1)
        at_most = round(0.85 * shares.mean(), 2)
        rows += answers(f"{setting}, mean-top", name, statistics[:, 1], shares, at_most, replications, seed)
    return rows


def of_depths(setting: str, data: Lists, draws: int, seed: int) -> list[Row]:
    """All losses about depth on one set of queries, and refusals of a useless score."""
    rows = []
    for name, kind in BY_DEPTH.items():
        for confidence in (None, CONFIDENCE)[kind == "shown" :]:
            bets = confidence is not None and not name.startswith("no-") and len(data.offsets) > MANY
            rows += depths(setting, name, data, confidence, min(draws, FEW) if bets else draws, seed)
    name = f"no-relevant@{data.k}"
    return rows + useless(setting, name, parse_loss(name).of_rankings(data.y, data.offsets, 1), draws, seed)


def run(replications: int, seed: int) -> list[Row]:
    """Simulated queries, and the collections where there are enough divisions to be worth their training."""
    warnings.filterwarnings("ignore", message="no query will be answered")
    draws = DRAWS if replications >= DIVISIONS else replications
    rows = of_lists("simulated, 300 queries", simulated(), replications, seed)
    drawn = of_depths("simulated, 300 queries", simulated(), draws, seed)
    folder = collections()
    if folder is None or replications < FEWEST_FOR_REAL_DATA:
        return _with_bars(rows, drawn)
    scores, wrong = reuters(folder / "reuters21578")
    setting, at_most = f"Reuters, naive Bayes, {len(wrong):,} documents", round(0.85 * float(wrong.mean()), 3)
    rows += answers(f"{setting}, highest log-odds", "error", scores[:, 0], wrong, at_most, replications, seed)
    rows += answers(f"{setting}, learned", "error", scores, wrong, at_most, replications, seed, query_score="learned")
    rows += of_lists("Cranfield pipeline, 225 queries", cranfield(folder / "cranfield"), replications, seed)
    rows += of_lists("TREC-9, ten runs fused, 50 topics", trec9(folder / "trec9-web-runs"), replications, seed)
    ohsumed = letor(folder / "letor3-ohsumed" / "querylevelnorm", 1)
    rows += of_lists("OHSUMED, 106 queries", ohsumed, replications, seed)
    of_ohsumed = linear(folder / "letor3-ohsumed" / "querylevelnorm", 1)
    drawn += of_depths("OHSUMED, 106 queries, linear scores", of_ohsumed, draws, seed)
    mq2008 = letor(folder / "letor4-mq2008", 3, folder / "letor4-mq2008-agg", 0.35)
    rows += of_lists("MQ2008, 784 queries", mq2008, replications, seed)
    drawn += of_depths("MQ2008, 784 queries, linear scores", linear(folder / "letor4-mq2008", 3), draws, seed)
    return _with_bars(rows, drawn)


def _with_bars(rows: list[Row], drawn: list[Row]) -> list[Row]:
    return [*rows, *drawn]
