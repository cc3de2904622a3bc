"""Training queries are recognised, whatever became of their file, and no other query is."""

from __future__ import annotations

import numpy as np

from truerank.data.provenance import TrainingSketch, training_queries
from truerank.data.ranking_data import RankingData
from validation.harness import Row, average, collections, rate, streams

PROMISE = (
    "A model recognises its training queries, saved again or without a document, and takes no other query for one."
)


class _Model:
    def __init__(self, sketch: TrainingSketch) -> None:
        self.training_sketch_ = sketch


def _made(rng: np.random.Generator, queries: int, rows: int = 5) -> RankingData:
    X = rng.normal(size=(queries * rows, 5))
    return RankingData(X, rng.integers(0, 3, len(X)), np.repeat(np.arange(queries), rows))


def _real() -> RankingData | None:
    folder = collections()
    if folder is None:
        return None
    from truerank.io.letor.read import read_letor

    return read_letor(folder / "letor4-mq2008" / "S1.txt.gz")


def _saved_again(data: RankingData, rng: np.random.Generator) -> RankingData:
    """The same queries: rows in another order, float32, other grades and ids."""
    places = rng.permutation(data.n_rows)
    X = data.X[places].astype(np.float32).astype(np.float64)
    return RankingData(X, rng.integers(0, 5, data.n_rows), data.query_index[places] + 10_000)


def _near_copies(replications: int, seed: int) -> list[Row]:
    """471 of MQ2008's queries train. They lose a document each, and the other queries are asked about."""
    folder = collections()
    if folder is None:
        return []
    from truerank.io.letor.read import read_letor

    parts = [read_letor(folder / "letor4-mq2008" / f"S{k}.txt.gz") for k in range(1, 6)]
    whole = RankingData.concatenate(parts)
    rows = []
    for n_columns in (whole.n_features, 10, 3):
        falsely, right, enough, able = [], [], [], []
        for rng in streams(seed + 2, min(replications, 25)):
            order = rng.permutation(whole.n_queries)
            columns = np.sort(rng.choice(whole.n_features, n_columns, replace=False))
            data = whole.replaced(X=np.ascontiguousarray(whole.X[:, columns]), feature_names=None)
            train, other = data.take_queries(np.sort(order[:471])), data.take_queries(np.sort(order[471:]))
            model = _Model(TrainingSketch.of(train))
            about = training_queries(model, other)
            falsely += about.matched.tolist()
            able.append(about.recognisable / about.of)
            kept = np.ones(train.n_rows, dtype=bool)
            kept[train.offsets[:-1] + rng.integers(0, train.group_sizes)] = False
            found = training_queries(model, RankingData(train.X[kept], None, train.query_index[kept]))
            if found.by_rows is not None:
                right.append(found.recognised / found.by_rows)
                enough.append(found.by_rows / found.of)
        setting = f"MQ2008, 471 training queries, {n_columns} columns"
        rows.append(rate(setting, "other queries falsely recognised", falsely, high=0.0))
        rows.append(average(setting, "share of queries that can be recognised unchanged", able))
        if right:
            rows.append(average(setting, "one document fewer: share with enough rows", enough))
            rows.append(average(setting, "one document fewer: share of these recognised", right))
    return rows


def run(replications: int, seed: int) -> list[Row]:
    """Half of the queries train; the other half, and the first half saved again, are asked about."""
    rows = []
    sources = {"Gaussian features, 60 queries": None, "MQ2008, queries split at random": _real()}
    for setting, data in sources.items():
        if data is None and setting.startswith("MQ2008"):
            continue
        wrong, right = [], []
        for rng in streams(seed, replications):
            whole = _made(rng, 60) if data is None else data
            order = rng.permutation(whole.n_queries)
            half = whole.n_queries // 2
            train, other = whole.take_queries(np.sort(order[:half])), whole.take_queries(np.sort(order[half:]))
            model = _Model(TrainingSketch.of(train))
            wrong.append(training_queries(model, other).recognised > 0)
            right.append(training_queries(model, _saved_again(train, rng)).recognised == half)
        rows.append(rate(setting, "draws with a query falsely recognised", wrong, high=0.0))
        rows.append(rate(setting, "draws with all training queries recognised when saved again", right, low=1.0))
    rows += _near_copies(replications, seed)
    share = []
    for rng in streams(seed + 1, replications):
        train = _made(rng, 600, rows=1)
        found = training_queries(_Model(TrainingSketch.of(train, 128)), train)
        share.append(found.recognised / found.of)
    rows.append(average("600 queries, a sketch of 128", "share recognised (128 / 600 = 0.213)", share))
    return rows
