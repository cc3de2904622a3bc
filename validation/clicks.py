"""Propensities, off-policy values and confidence sequences of `truerank.clicks` on simulated users.

Users click on real judged lists (MQ2008, OHSUMED, MSLR-WEB10K's sample) by a position, a trust or a cascade model with
examination 1/k. Two single features rank; the ranker whose value is estimated is a ridge regression on all features,
which was never shown. A replication in a hundred simulates a log, in the settings after the first one in two hundred.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from truerank.clicks.examination import Examination
from truerank.clicks.log import ClickLog
from truerank.clicks.sequences import confidence_sequence
from truerank.clicks.simulation import relevance_of, simulate, trust_of
from truerank.clicks.value import ESTIMATORS, evaluate_from_clicks
from truerank.data.grouping import ranks_by_query
from truerank.data.ranking_data import RankingData
from validation.harness import Row, average, collections, rate, streams

PROMISE = (
    "Propensities are within 0.02 of the truth, intervals of values hold the truth whatever was never shown, wrong "
    "models are not called identified, and confidence sequences may be looked at every day."
)
_THETA = 1.0 / np.arange(1, 11)
_FEW = 10  # logs; with fewer this is a test run, on small logs


def run(replications: int, seed: int) -> list[Row]:
    """All parts, one after another."""
    seeds, half = max(replications // 100, 1), max(replications // 200, 1)
    rows = [*propensities(seeds, seed), *values(seeds, seed, VALUED[:1]), *values(half, seed, VALUED[1:])]
    rows += [*identified(seeds, seed, READ[:1]), *identified(half, seed, READ[1:]), *sequences(replications, seed)]
    return rows if half < _FEW else [*rows, *large(seed), *trained(1, seed)]


@lru_cache(maxsize=4)
def collection(name: str) -> tuple[RankingData, tuple[int, int]]:
    """Judged data with document ids, and the two features that rank; the shipped sample where they are not here."""
    from truerank.data.samples import load_sample
    from truerank.io.letor.read import read_letor

    folder = None if name == "sample" else collections()
    if folder is None:
        return load_sample(), (0, 5)
    files, features = {
        "MQ2008": ([folder / "letor4-mq2008" / f"S{k}.txt.gz" for k in range(1, 6)], (24, 36)),
        "OHSUMED": ([folder / "letor3-ohsumed" / "min" / f"S{k}.txt.gz" for k in range(1, 6)], (10, 44)),
        "MSLR": ([folder / "mslr-web10k-sample" / "fold1.train.5k.txt.gz"], (112, 116)),
    }[name]
    parts = [read_letor(path) for path in files]
    queries = np.concatenate([np.array([str(query) for query in part.qid.tolist()]) for part in parts])
    X = np.vstack([np.asarray(part.X) for part in parts])
    names = np.array([f"d{row}" for row in range(len(X))])
    return RankingData(X, np.concatenate([part.y for part in parts]), queries, doc_ids=names), features


def _new_scores(data: RankingData) -> np.ndarray:
    """A ridge regression of the grades on features standardised within the collection."""
    X = (data.X - data.X.mean(axis=0)) / np.maximum(data.X.std(axis=0), 1e-9)
    return X @ np.linalg.solve(X.T @ X + len(X) * 1e-2 * np.eye(X.shape[1]), X.T @ (data.y - data.y.mean()))


def _run_of(data: RankingData, scores: np.ndarray) -> dict[str, dict[str, float]]:
    texts = data.doc_ids.tolist()
    cuts = zip(data.query_ids.tolist(), data.offsets[:-1], data.offsets[1:])
    return {str(query): dict(zip(texts[start:stop], scores[start:stop].tolist())) for query, start, stop in cuts}


def _log(name: str, model: str, impressions: int, seeds: int, seed: int) -> tuple[RankingData, ClickLog]:
    data, (a, b) = collection(name if seeds >= _FEW else "sample")
    rankers = {"a": data.restore(data.X[:, a]), "b": data.restore(data.X[:, b])}
    return data, simulate(data, rankers, model, impressions if seeds >= _FEW else 2_000, random_state=seed)


def propensities(seeds: int, seed: int) -> list[Row]:
    """Errors of the propensities of two rankers' logs, and what their intervals cover."""
    rows = []
    for name in ("MQ2008", "OHSUMED", "MSLR"):
        errors, covered = [], []
        for number in range(seeds):
            _, log = _log(name, "position", 100_000, seeds, seed + number)
            seen = Examination(max_position=10).fit(log)
            errors.append(np.abs(seen.propensities_ - _THETA)[1:])
            covered.append(((seen.low_ <= _THETA) & (seen.high_ >= _THETA))[1:])
        setting = f"{name}, 100,000 impressions by two rankers, position model"
        rows.append(average(setting, "mean error of a propensity", np.mean(errors, axis=1)))
        rows.append(average(setting, "largest error of the ten propensities", np.max(errors, axis=1), high=0.02))
        rows.append(average(setting, "95 % intervals of propensities cover the truth", np.mean(covered, axis=1)))
    return rows


def _truth(data: RankingData, scores: np.ndarray, shares: np.ndarray, model: str) -> float:
    """Clicks per impression that the ranker would have (the cascade's are simulated by its formula)."""
    rank = ranks_by_query(scores, data.offsets)
    top = rank <= 10
    relevance, place = relevance_of(data)[top], rank[top] - 1
    if model == "cascade":
        grid = np.zeros((data.n_queries, 10))
        grid[data.query_index[top], place] = relevance
        left = np.cumprod(np.hstack([np.ones((len(grid), 1)), 1.0 - grid[:, :-1]]), axis=1)
        return float((shares[:, None] * grid * left * _THETA).sum())
    alpha, beta = trust_of(_THETA) if model == "trust" else (_THETA, np.zeros(10))
    return float((shares[data.query_index[top]] * (alpha[place] * relevance + beta[place])).sum())


VALUED = (
    ("MQ2008", "position", "position"), ("OHSUMED", "position", "position"), ("MSLR", "position", "position"),
    ("MQ2008", "trust", "trust"), ("MQ2008", "trust", "position"), ("MQ2008", "cascade", "position"),
)  # fmt: skip
READ = (
    ("position", "position"), ("trust", "trust"), ("trust", "position"), ("cascade", "position"), ("cascade", "trust"),
)  # fmt: skip


def values(seeds: int, seed: int, settings: tuple[tuple[str, str, str], ...] = VALUED) -> list[Row]:
    """Coverage and width of intervals of the value of a ranker that was never shown."""
    rows = []
    for name, model, read_as in settings:
        found: dict[tuple[str, str], list[tuple[bool, float, bool, float]]] = {}
        unseen = []
        for number in range(seeds):
            data, log = _log(name, model, 100_000, seeds, seed + 1_000 + number)
            scores = _new_scores(data)
            run = _run_of(data, scores)
            seen = Examination(read_as, max_position=10).fit(log)
            shares = np.bincount(log.query[log.offsets[:-1]], minlength=data.n_queries) / log.n_impressions
            truth = _truth(data, scores, shares, model)
            unseen.append(_never_shown(data, log, scores))
            for estimator in ESTIMATORS:
                for about in ("clicks", "queries") if estimator == ESTIMATORS[0] else ("clicks",):
                    try:
                        one = evaluate_from_clicks(
                            log, {"new": run}, examination=seen, estimator=estimator, about=about
                        )["new"]
                    except ValueError:  # in test runs on small logs
                        continue
                    found.setdefault((estimator, about), []).append((
                        one.low <= truth <= one.high, one.high - one.low,
                        one.sampling_low <= truth <= one.sampling_high, one.sampling_high - one.sampling_low,
                    ))  # fmt: skip
        setting = f"{name}, {model} clicks read as {read_as}, 100,000 impressions"
        rows.append(average(setting, "share of the new top ten that was never shown", unseen))
        right = model == read_as
        for (estimator, about), results in found.items():
            covered, width, without, narrow = np.array(results, dtype=np.float64).T
            what = f"{estimator}, error of {about}"
            rows.append(rate(setting, f"{what}: with bounds covers", covered, low=0.93 if right else None))
            barred = (
                right and estimator == ESTIMATORS[0] and about == "clicks" and name == "MQ2008" and model == "position"
            )
            rows.append(average(setting, f"{what}: width with bounds", width, high=0.12 if barred else None))
            rows.append(rate(setting, f"{what}: without bounds covers", without))
            rows.append(average(setting, f"{what}: width without bounds", narrow))
    return rows


def _never_shown(data: RankingData, log: ClickLog, scores: np.ndarray) -> float:
    """Share of the documents of the new top ten that no impression shows."""
    cells = log.cells()
    shown = set(zip(log.query_ids[cells.query].tolist(), log.document_ids[cells.document].tolist()))
    top = ranks_by_query(scores, data.offsets) <= 10
    pairs = zip(data.qid[top].tolist(), data.doc_ids[top].tolist())
    return float(np.mean([(str(query), document) not in shown for query, document in pairs]))


def identified(seeds: int, seed: int, settings: tuple[tuple[str, str], ...] = READ) -> list[Row]:
    """How often the propensities of a million impressions are called identified."""
    rows = []
    for model, read_as in settings:
        said = []
        for number in range(seeds):
            _, log = _log("MQ2008", model, 1_000_000, seeds, seed + 2_000 + number)
            said.append(Examination(read_as, max_position=10).fit(log).identified_)
        right = model == read_as
        bar = {"low": 0.9} if right else {"high": 0.1}
        rows.append(
            rate(f"MQ2008, {model} clicks read as {read_as}, 1,000,000 impressions", "called identified", said, **bar)
        )
    return rows


def sequences(replications: int, seed: int) -> list[Row]:
    """False alarms of confidence sequences and of daily t-tests in a year of looks, and how long a difference takes."""
    rows = []
    per_day, days = 10, 365
    looks = np.arange(1, days + 1) * per_day
    draws: dict[str, Callable[[np.random.Generator, float], tuple[np.ndarray, float, float]]] = {
        "interleaving, 60 % of sessions tied": _outcomes,
        "A/B, half and half, click rate 0.3": lambda rng, effect: _arms(rng, effect, 0.3, 0.5),
        "A/B, one user in ten, click rate 0.02": lambda rng, effect: _arms(rng, effect, 0.02, 0.1),
    }
    for name, draw in draws.items():
        always, daily = [], []
        for rng in streams(seed, replications):
            x, low, high = draw(rng, 0.0)
            found = confidence_sequence(x, low, high, looks=looks)
            always.append(found.low[-1] > 0 or found.high[-1] < 0)
            daily.append((np.abs(_t(x, looks)[2:]) > 1.96).any())
        setting = f"{name}, {per_day} units a day, daily looks for a year"
        rows.append(rate(setting, "false alarms, confidence sequence", always, high=0.05))
        rows.append(rate(setting, "false alarms, a t-test every day", daily))
    for effect in (0.05, 0.1, 0.2):
        stopped = []
        for rng in streams(seed + 1, max(replications // 10, 4)):
            x, low, high = _outcomes(rng, effect)
            found = confidence_sequence(x, low, high, looks=looks)
            stopped.append(int(np.argmax(found.low > 0)) + 1 if (found.low > 0).any() else days + 1)
        needed = (2.802 / effect) ** 2 * (0.4 - effect**2) / per_day  # of a t-test with 80 % power, in days
        setting = f"interleaving as above, true mean {effect:g}; a fixed t-test with 80 % power: {needed:.0f} days"
        rows.append(rate(setting, "found within a year", np.array(stopped) <= days))
        rows.append(Row(setting, "median days until found", float(np.median(stopped)), 0.0, len(stopped)))
        rows.append(Row(setting, "days until found in 80 %", float(np.quantile(stopped, 0.8)), 0.0, len(stopped)))
    return rows


def trained(seeds: int, seed: int) -> list[Row]:
    """nDCG@10 on unseen queries of trees that learned from clicks on others, and paired t-tests over queries."""
    import lightgbm
    import xgboost

    from truerank.clicks.training import training_data
    from truerank.measures import parse_measure
    from truerank.rankers.oblivious_boosting import ObliviousBoosting
    from truerank.significance import paired_t

    data, (a, b) = collection("MQ2008")
    first = data.query_index < 0.6 * data.n_queries
    learn = RankingData(data.X[first], data.y[first], data.qid[first], doc_ids=data.doc_ids[first])
    test = RankingData(data.X[~first], data.y[~first], data.qid[~first])
    measure = parse_measure("nDCG@10", "ranklib")
    found: dict[str, list[np.ndarray]] = {}
    for number in range(seeds):
        rankers = {"a": learn.X[:, a], "b": learn.X[:, b]}
        log = simulate(learn, rankers, impressions=20_000, random_state=seed + 3_000 + number)
        seen = Examination(max_position=10).fit(log)
        rows = training_data(log, learn, seen).data
        cells = log.cells(log.position)
        expected = (np.bincount(log.position, weights=log.clicked) / np.maximum(np.bincount(log.position), 1))[
            cells.keys[0]
        ]
        texts = zip(log.query_ids[cells.query].tolist(), log.document_ids[cells.document].tolist())
        sums: dict[tuple[str, str], np.ndarray] = {}
        for key, n, clicks, usual in zip(texts, cells.n, cells.clicks, expected):
            sums[key] = sums.get(key, np.zeros(3)) + [clicks, n, n * usual]
        totals = np.array([sums[str(query), name] for query, name in zip(rows.qid.tolist(), rows.doc_ids.tolist())])
        labels = {
            "naive clicks (click rate)": totals[:, 0] / totals[:, 1],
            "COEC (clicks over expected clicks)": np.minimum(totals[:, 0] / np.maximum(totals[:, 2], 1e-9), 4.0) / 4.0,
            "training_data": rows.y,
        }
        scores = {"production (bucket a)": test.X[:, a]}
        settings = {"leaves": "constant", "n_estimators": 100}
        for name, y in labels.items():
            ranker = ObliviousBoosting(objective="ips-lambdarank", **settings).fit(rows.X, y, qid=rows.qid)
            scores[f"ips-lambdarank on {name}"] = ranker.predict(test.X)
        ranker = ObliviousBoosting(objective="lambdarank", **settings).fit(learn.X, learn.y, qid=learn.qid)
        scores["lambdarank on the true grades"] = ranker.predict(test.X)
        place = {key: row for row, key in enumerate(zip(learn.qid.tolist(), learn.doc_ids.tolist()))}
        shown = zip(log.query_ids[log.query].tolist(), log.document_ids[log.document].tolist())
        X, y = learn.X[[place[key] for key in shown]], log.clicked.astype(np.int64)
        ranker = ObliviousBoosting(objective="unbiased-lambdarank", **settings)
        ranker.fit(X, y.astype(float), qid=log.impression, position=log.position)
        scores["unbiased-lambdarank on impressions"] = ranker.predict(test.X)
        light = lightgbm.LGBMRanker(n_estimators=100, num_leaves=31, verbose=-1, n_jobs=1)
        for name, position in (("", None), (" with positions", log.position - 1)):
            sizes = np.diff(log.offsets)
            held = lightgbm.Dataset(X, y, group=sizes, position=position, params={"verbose": -1})
            given = {"objective": "lambdarank", "verbose": -1, "num_threads": 1, "num_leaves": light.num_leaves}
            scores[f"LightGBM lambdarank{name} on impressions"] = lightgbm.train(given, held, 100).predict(test.X)
        boosted = xgboost.XGBRanker(objective="rank:ndcg", lambdarank_unbiased=True, n_estimators=100, n_jobs=1)
        scores["XGBoost rank:ndcg, unbiased, on impressions"] = boosted.fit(X, y, qid=log.impression).predict(test.X)
        for name, values in scores.items():
            found.setdefault(name, []).append(
                measure.per_query(test.judgements(), np.asarray(values, dtype=np.float64))
            )
    mean = {name: np.mean(values, axis=0) for name, values in found.items()}
    ours = mean["ips-lambdarank on training_data"]
    setting = (
        f"MQ2008, {learn.n_queries} queries of 20,000 impressions to learn from, {test.n_queries} to test, {seeds} logs"
    )
    rows_out = []
    for name, values in mean.items():
        p = "" if name.endswith("training_data") else f"; p {paired_t(ours, values).p:.4f} against training_data"
        rows_out.append(
            Row(setting, f"nDCG@10, {name}{p}", float(values.mean()), float(np.std(values) / len(values) ** 0.5), seeds)
        )
    return rows_out


def _outcomes(rng: np.random.Generator, effect: float) -> tuple[np.ndarray, float, float]:
    return rng.choice([-1.0, 0.0, 1.0], p=[0.2 - effect / 2, 0.6, 0.2 + effect / 2], size=3_650), -1.0, 1.0


def _arms(rng: np.random.Generator, effect: float, base: float, share: float) -> tuple[np.ndarray, float, float]:
    arm = rng.random(3_650) < share
    clicked = rng.random(3_650) < base + effect * arm
    return clicked * np.where(arm, 1 / share, -1 / (1 - share)), -1 / (1 - share), 1 / share


def _t(x: np.ndarray, looks: np.ndarray) -> np.ndarray:
    mean, square = np.cumsum(x)[looks - 1] / looks, np.cumsum(x**2)[looks - 1] / looks
    return mean / np.sqrt(np.maximum(square - mean**2, 1e-12) / looks)


def large(seed: int) -> list[Row]:
    """CPU seconds and memory of reading and examining 10,000,000 rows, in a process of its own."""
    import subprocess
    import sys
    import tempfile

    import pyarrow
    from pyarrow import parquet

    data, (a, b) = collection("MQ2008")
    rankers = {"a": data.restore(data.X[:, a]), "b": data.restore(data.X[:, b])}
    log = simulate(data, rankers, impressions=1_080_000, random_state=seed)
    last = int(np.searchsorted(log.offsets, 10_000_000, side="right")) - 1
    n = int(log.offsets[last])
    lists = pyarrow.array([f"{number:032x}" for number in range(log.n_impressions)])
    table = {"position": log.position, "clicked": log.clicked.astype(np.int8), "time": log.time}
    texts = {"query": log.query_ids, "document": log.document_ids, "ranker": log.ranker_ids}
    columns = {
        name: pyarrow.array(names.tolist()).take(pyarrow.array(getattr(log, name))) for name, names in texts.items()
    }
    table |= {"impression": lists.take(pyarrow.array(log.impression)), **columns}
    with tempfile.TemporaryDirectory() as folder:
        parquet.write_table(pyarrow.table(table).slice(0, n), f"{folder}/log.parquet")
        del log, table, columns, lists
        program = (
            "import resource, sys, time\nfrom truerank import Examination, read_clicks\n"
            "Examination().fit(read_clicks(sys.argv[1]))\n"
            "print(time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)"
        )
        words = [sys.executable, "-c", program, f"{folder}/log.parquet"]
        seconds, gigabytes = map(
            float, subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
        )
    setting = f"Parquet file of {n:,} rows, 32 letters an impression"
    return [
        Row(setting, "CPU seconds to read and examine (at most 60)", seconds, 0.0, 1),
        Row(setting, "gigabytes of memory (at most 2)", gigabytes, 0.0, 1),
    ]
