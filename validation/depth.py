"""How often the chosen depth of reranking loses more than the margin.

The first stage ranks by one function, and a reranker of our own, a ridge regression that is cross-fitted over queries,
reranks: MQ2008's documents by its 46 columns after the best column, and Cranfield's best 100 documents of BM25 by
features of text. A draw of n queries chooses a depth. The promise is broken if the loss of this depth on the queries
that were not drawn, or in the whole population, exceeds the margin. The hardest margin is just below the loss of a
depth in the population, for each depth in turn; the worst is shown.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator

import numpy as np

from truerank import Cutoff
from truerank.core.errors import InvalidInputError, TruerankWarning
from truerank.experiments.depth import reranking_depth
from truerank.measures import parse_measure
from truerank.significance.intervals import student_quantile, with_one_more
from validation.harness import Row, average, collections, rate

PROMISE = "The chosen depth of reranking loses at most the margin against the full depth, in at least 95 % of cases."
REPLICATIONS = 5_300
SIZES, MARGINS = (50, 100, 300), (0.01, 0.02)  # draws of at most half of the queries


def run(replications: int, seed: int) -> list[Row]:
    """Broken promises and the mean share of documents that are reranked."""
    rows = []
    warnings.simplefilter("ignore", TruerankWarning)  # no threshold keeps a promise
    for name, values, depths, gaps in populations(seed):
        rows += _by_query(name, values, gaps, min(replications, 1_000), seed)
        for n in (n for n in SIZES if 2 * n <= len(values)):
            drawn = draws(len(values), n, replications, seed)
            true = values.mean(axis=0)[-1] - values.mean(axis=0)
            for margin in MARGINS:
                chosen = chosen_depths(values, drawn, margin)
                where = f"{name}, {n} queries, margin {margin:g}"
                rows.append(rate(where, "loss in the population above the margin", true[chosen] > margin, high=0.05))
                rows.append(rate(where, "loss on the other queries above the margin",
                                 held_out(values, drawn, chosen) > margin, high=0.05))  # fmt: skip
                rows.append(average(where, "chosen depth as a share of the full one", depths[chosen] / depths[-1]))
            hardest = [float(loss) * 0.999 for loss in true[:-1] if loss > 1e-4]
            broken = [true[chosen_depths(values, drawn, margin)] > margin for margin in hardest]
            if broken:
                worst = max(range(len(broken)), key=lambda k: broken[k].mean())
                where = f"{name}, {n} queries, margin {hardest[worst]:.3g}, just below a depth's loss"
                rows.append(rate(where, "loss in the population above the margin", broken[worst], high=0.05))
    return rows


def _by_query(name: str, values: np.ndarray, gaps: np.ndarray, replications: int, seed: int) -> list[Row]:
    """How often the queries that are not reranked lose more than the promise, in the population and on the others."""
    rows, losses = [], np.maximum(values[:, -1] - values[:, 0], 0.0)
    for n in (n for n in SIZES[1:] if 2 * n <= len(values)):
        for at_most in (0.03, 0.05, 0.1, 0.999 * float(losses.mean())):  # the last is just below the loss of all
            broken, shares, lost = [], [], []
            for own in draws(len(values), n, replications, seed):
                cutoff = Cutoff("of no reranking", at_most=at_most, confidence=0.9, random_state=0)
                try:
                    cutoff.fit_losses(gaps[own], losses[own])
                except InvalidInputError:  # too few queries for any promise
                    break
                skipped = gaps >= cutoff.threshold_
                others = skipped & ~np.isin(np.arange(len(gaps)), own)
                broken.append(skipped.any() and losses[skipped].mean() > at_most)
                shares.append(skipped.mean())
                lost += [losses[others].mean()] if others.any() else []
            where = f"{name}, {n} queries, without reranking a loss of {at_most:.3g} at most"
            if broken:
                rows.append(
                    rate(where, "loss in the population above the promise", broken, high=0.1)._replace(fewest=1_000)
                )
                rows.append(average(where, "queries that are not reranked", shares))
            if len(lost) > 1:
                rows.append(average(where, "mean loss on the other queries", lost, high=at_most)._replace(fewest=500))
    return rows


def populations(seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Values (N, depths) of a measure by query and depth, the depths, and the gaps of the first stage (N,)."""
    rng = np.random.default_rng(seed)
    gains = np.cumsum(rng.gamma(0.5, 0.02, (4_000, 6)) * (rng.random((4_000, 6)) < 0.3) * 0.5 ** np.arange(6), axis=1)
    lost = 0.05 * (rng.random((4_000, 6)) < 0.05)
    values = np.clip(rng.random((4_000, 1)) * 0.6 + gains - lost, 0, 1)
    yield "made", values, np.array([0, 5, 10, 20, 50, 100]), rng.normal(0, 0.03, 4_000) - values[:, -1] + values[:, 0]
    folder = collections()
    if folder is not None:
        yield "MQ2008, nDCG@10", *_mq2008(folder)
        yield "Cranfield, AP", *_cranfield(folder)


def draws(population: int, n: int, replications: int, seed: int) -> np.ndarray:
    """Queries (replications, n) without replacement."""
    rng = np.random.default_rng(seed + n)
    return np.array([rng.permutation(population)[:n] for _ in range(replications)])


def chosen_depths(values: np.ndarray, drawn: np.ndarray, margin: float) -> np.ndarray:
    """Place of the depth (draws,) that `reranking_depth` chooses: its rule for all draws at once."""
    n, result = drawn.shape[1], []
    t = student_quantile(0.975, n - 1)
    for part in np.array_split(drawn, max(1, len(drawn) // 500)):
        own = values[part]  # (draws, n, depths)
        d = own[:, :, :-1] - own[:, :, -1:]
        mean, deviation = d.mean(axis=1), d.std(axis=1, ddof=1)
        equal = d.max(axis=1) == d.min(axis=1)
        deviation[equal] = 0.0
        loss = own[:, :, -1].mean(axis=1)[:, None]
        passed = (mean - t * deviation / np.sqrt(n) > -margin) & (with_one_more(n, mean, deviation, -loss)[0] > -margin)
        result.append(passed.shape[1] - np.cumprod(passed[:, ::-1], axis=1).sum(axis=1))
    return np.concatenate(result)


def held_out(values: np.ndarray, drawn: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Loss (draws,) of the chosen depths on the queries that were not drawn."""
    total = values.sum(axis=0)
    rest = (total[-1] - total)[chosen]
    own = values[drawn, chosen[:, None]] - values[drawn, -1]
    return (rest + own.sum(axis=1)) / (len(values) - drawn.shape[1])


def _by_depth(first: dict, scores: dict, qrels: dict, measure: str, depths: list[int]) -> tuple[np.ndarray, ...]:
    found = reranking_depth(first, scores, qrels, measure, depths=depths)
    return found.values, np.array([line.depth for line in found.lines]), found.gaps


def _cross_fitted(data):
    """Scores (n,) of a ridge regression trained on the other four fifths of the queries."""
    from truerank import RidgeRanker

    scores, fold = np.empty(data.n_rows), np.random.default_rng(0).permutation(data.n_queries) % 5
    for k in range(5):
        model = RidgeRanker().fit(data.take_queries(fold != k))
        rows = np.repeat(fold == k, data.group_sizes)
        scores[rows] = model.predict(data.take_queries(fold == k))
    return scores


def _runs(data, first: np.ndarray, second: np.ndarray):
    """Runs and qrels of scores of rows."""
    parts = [{}, {}, {}]
    for q, (start, stop) in enumerate(zip(data.offsets, data.offsets[1:])):
        names = [f"d{row}" for row in range(start, stop)]
        for part, values in zip(parts, (first, second, data.y)):
            part[str(q)] = dict(zip(names, values[start:stop].tolist()))
    return parts


def _mq2008(folder):
    from truerank.io.letor.read import read_letor

    data = read_letor([folder / "letor4-mq2008" / f"S{k}.txt.gz" for k in range(1, 6)])
    by, judgements = parse_measure("nDCG@10", "trec"), data.judgements()
    X = np.asarray(data.X)
    best = max(range(X.shape[1]), key=lambda j: by.mean(judgements, X[:, j].astype(float)))
    first, second, qrels = _runs(data, X[:, best].astype(float), _cross_fitted(data))
    return _by_depth(first, second, qrels, "nDCG@10", [2, 3, 5, 8, 10, 15, 20, 30])


def _cranfield(folder):
    from truerank import TextFeatures, build_index, read_documents, read_judgements, read_queries, retrieve

    folder = folder / "cranfield"
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as place:
        warnings.simplefilter("ignore")  # two documents have no text
        index = build_index(read_documents(folder / "cran.all.1400.gz"), f"{place}/index")
        queries, qrels = list(read_queries(folder / "cran.qry.gz")), read_judgements(folder / "cranqrel.gz")
        first = retrieve(index, queries, "bm25", depth=100)
        features = TextFeatures(["functions", "coverage", "lengths"], depth=100).fit(index)
        data = features.transform(queries, index, qrels)
        scores = _cross_fitted(data)
    names, second = data.doc_ids.tolist(), {}
    for query, start, stop in zip(data.query_ids.tolist(), data.offsets, data.offsets[1:]):
        second[query] = dict(zip(names[start:stop], scores[start:stop].tolist()))
    return _by_depth(first, second, qrels, "AP", [5, 10, 20, 30, 50, 70])
