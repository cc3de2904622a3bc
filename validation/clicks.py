"""Propensities, off-policy values, confidence sequences and trained rankers of `truerank.clicks` on simulated users.

Users click on documents of real judged data (MQ2008, OHSUMED, MSLR-WEB10K's sample) by a position, a trust or a cascade
model with examination 1/k. Two single features rank the shown lists. The value is estimated for a ridge regression on
all features, which was never shown. Each hundred replications give one simulated log, so 2,000 give 20 logs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from truerank.clicks.examination import Examination
from truerank.clicks.log import ClickLog
from truerank.clicks.sequences import confidence_sequence
from truerank.clicks.simulation import MODELS, relevance_of, simulate, trust_of
from truerank.clicks.value import ESTIMATORS, evaluate_from_clicks
from truerank.data.grouping import ranks_by_query
from truerank.data.ranking_data import RankingData
from validation.harness import Row, average, collections, rate, streams

PROMISE = (
    "Propensities are within 0.02 of the truth, intervals of values contain the truth for any relevance of documents "
    "that were never shown, wrong models are not called identified, and confidence sequences are valid at every look."
)
COLLECTIONS = {"MQ2008": (24, 36), "OHSUMED": (10, 44), "MSLR": (105, 109)}  # the two features that rank
_THETA = 1.0 / np.arange(1, 11)
_FEW = 10  # a run with fewer logs is a test run on small logs


def run(replications: int, seed: int) -> list[Row]:
    """Measure all parts: values, identification, sequences, and with enough replications cost and trained rankers."""
    seeds = max(replications // 100, 1)
    small = seeds < _FEW
    names = ["sample"] if small else list(COLLECTIONS)
    rows = value_rows([found for name in names for found in valued(name, seeds, seed)])
    rows += identified_rows([found for name in names for found in identified(name, seeds, seed)])
    rows += sequences(replications, seed)
    if small:
        return rows
    return [*rows, *large(seed), *(row for name in names for row in trained_rows(trained(name, seeds, seed)))]


@lru_cache(maxsize=4)
def collection(name: str) -> tuple[RankingData, dict[str, np.ndarray]]:
    """Return judged data with document ids and the scores of two rankers; the shipped sample without TRUERANK_DATA."""
    from truerank.data.samples import load_sample
    from truerank.io.letor.read import read_letor

    folder = None if name == "sample" else collections()
    if folder is None:
        data, (a, b) = load_sample(), (0, 5)
    else:
        files = {
            "MQ2008": [folder / "letor4-mq2008" / f"S{k}.txt.gz" for k in range(1, 6)],
            "OHSUMED": [folder / "letor3-ohsumed" / "min" / f"S{k}.txt.gz" for k in range(1, 6)],
            "MSLR": [folder / "mslr-web10k-sample" / "fold1.train.5k.txt.gz"],
        }[name]
        parts = [read_letor(path) for path in files]
        queries = np.concatenate([np.array([str(query) for query in part.qid.tolist()]) for part in parts])
        X, y = np.vstack([np.asarray(part.X) for part in parts]), np.concatenate([part.y for part in parts])
        data = RankingData(X, y, queries, doc_ids=np.array([f"d{row}" for row in range(len(X))]))
        a, b = COLLECTIONS[name]
    return data, {"a": data.restore(data.X[:, a]), "b": data.restore(data.X[:, b])}


def _new_scores(data: RankingData) -> np.ndarray:
    """Fitted values of a ridge regression of the grades on features standardised within the collection."""
    X = (data.X - data.X.mean(axis=0)) / np.maximum(data.X.std(axis=0), 1e-9)
    return X @ np.linalg.solve(X.T @ X + len(X) * 1e-2 * np.eye(X.shape[1]), X.T @ (data.y - data.y.mean()))


def _run_of(data: RankingData, scores: np.ndarray) -> dict[str, dict[str, float]]:
    texts = data.doc_ids.tolist()
    cuts = zip(data.query_ids.tolist(), data.offsets[:-1], data.offsets[1:])
    return {str(query): dict(zip(texts[start:stop], scores[start:stop].tolist())) for query, start, stop in cuts}


def _truth(data: RankingData, scores: np.ndarray, shares: np.ndarray, model: str) -> float:
    """Expected clicks per impression of the ranker under a click model."""
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


class Valued(NamedTuple):
    """The results of one log: errors and coverage of propensities, and coverage and width of values by estimator."""

    collection: str
    model: str
    read_as: str
    propensities: tuple[list[float], list[bool]] | None
    intervals: dict[str, list[float]]
    never_shown: float


def valued(name: str, seeds: int, seed: int) -> list[Valued]:
    """Estimate propensities and the value of a ranker that was never shown from 100,000 impressions."""
    data, rankers = collection(name)
    scores = _new_scores(data)
    run = _run_of(data, scores)
    found = []
    for number in range(seeds):
        for model in MODELS:
            log = simulate(data, rankers, model, _size(100_000, seeds), random_state=seed + 1_000 + number)
            truth = _truth(data, scores, np.full(data.n_queries, 1.0 / data.n_queries), model)
            for read_as in ("position", "trust") if model == "trust" else ("position",):
                seen = Examination(read_as, max_position=10).fit(log)
                errors = np.abs(seen.propensities_ - _THETA).tolist()
                inside = ((seen.low_ <= _THETA) & (seen.high_ >= _THETA)).tolist()
                intervals = {}
                for estimator in ESTIMATORS if (name, model) == ("MQ2008", "position") else ESTIMATORS[:1]:
                    for about in (
                        ("clicks", "queries") if (estimator, model) == (ESTIMATORS[0], "position") else ("clicks",)
                    ):
                        cutoff = int(np.isfinite(seen.propensities_).sum())  # below 10 only in test runs
                        one = evaluate_from_clicks(
                            log, {"new": run}, examination=seen, estimator=estimator, about=about, cutoff=cutoff
                        )["new"]
                        intervals[f"{estimator}|{about}"] = [
                            one.low <= truth <= one.high, one.high - one.low,
                            one.sampling_low <= truth <= one.sampling_high, one.sampling_high - one.sampling_low,
                        ]  # fmt: skip
                known = (errors, inside) if model == "position" else None
                found.append(Valued(name, model, read_as, known, intervals, _never_shown(data, log, scores)))
    return found


def value_rows(found: list[Valued]) -> list[Row]:
    """Summarise propensities and values over logs."""
    rows = []
    for name, model, read_as in dict.fromkeys(each[:3] for each in found):
        logs = [each for each in found if each[:3] == (name, model, read_as)]
        right = model == read_as
        setting = f"{name}, {model} clicks read as {read_as}, 100,000 impressions by two rankers"
        known = [each.propensities for each in logs if each.propensities is not None]
        if known:
            errors = np.array([one[0] for one in known])[:, 1:]
            covered = np.array([one[1] for one in known])[:, 1:]
            rows.append(average(setting, "mean error of a propensity", errors.mean(axis=1)))
            rows.append(average(setting, "largest error of the ten propensities", errors.max(axis=1), high=0.02))
            rows.append(average(setting, "95 % intervals of propensities cover the truth", covered.mean(axis=1)))
        unseen = [each.never_shown for each in logs]
        rows.append(average(setting, "share of the new top ten that was never shown", unseen))
        for key in logs[0].intervals:
            estimator, about = key.split("|")
            covered, width, without, narrow = np.array([each.intervals[key] for each in logs], dtype=np.float64).T
            barred = right and key == "self-normalised|clicks" and (name, model) == ("MQ2008", "position")
            what = f"{estimator}, about {about}"
            rows.append(rate(setting, f"{what}: with bounds covers", covered, low=0.93 if right else None))
            rows.append(average(setting, f"{what}: width with bounds", width, high=0.12 if barred else None))
            rows.append(rate(setting, f"{what}: without bounds covers", without))
            rows.append(average(setting, f"{what}: width without bounds", narrow))
    return rows


def _never_shown(data: RankingData, log: ClickLog, scores: np.ndarray) -> float:
    """Share of the documents in the new top ten that no impression shows."""
    cells = log.cells()
    shown = set(zip(log.query_ids[cells.query].tolist(), log.document_ids[cells.document].tolist()))
    top = ranks_by_query(scores, data.offsets) <= 10
    pairs = zip(data.qid[top].tolist(), data.doc_ids[top].tolist())
    return float(np.mean([(str(query), document) not in shown for query, document in pairs]))


def identified(name: str, seeds: int, seed: int) -> list[tuple[str, str, str, bool]]:
    """Fit a million impressions; return collection, true model, fitted model, and whether it is called identified."""
    data, rankers = collection(name)
    found = []
    for number in range(seeds):
        for model in MODELS:
            log = simulate(data, rankers, model, _size(1_000_000, seeds), random_state=seed + 2_000 + number)
            for read_as in ("position",) if model == "position" else ("position", "trust"):
                seen = Examination(read_as, max_position=10).fit(log)
                found.append((name, model, read_as, seen.identified_))
    return found


def identified_rows(found: list[tuple[str, str, str, bool]]) -> list[Row]:
    """Summarise how often each pair of true and fitted model is called identified."""
    rows = []
    for name, model, read_as in dict.fromkeys(each[:3] for each in found):
        said = [each[3] for each in found if each[:3] == (name, model, read_as)]
        bar = {"low": 0.9} if model == read_as else {"high": 0.1}
        setting = f"{name}, {model} clicks read as {read_as}, 1,000,000 impressions by two rankers"
        rows.append(rate(setting, "called identified", said, **bar))
    return rows


def _size(impressions: int, seeds: int) -> int:
    return impressions if seeds >= _FEW else 2_000


def sequences(replications: int, seed: int) -> list[Row]:
    """Compare confidence sequences with daily t-tests in a year of looks: false alarms and days until a difference."""
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


OURS = "ips-lambdarank on training_data"


def trained(name: str, seeds: int, seed: int) -> list[tuple[str, str, np.ndarray, dict[str, np.ndarray]]]:
    """Train rankers on clicks; return collection, click model, test queries, and nDCG@10 of these queries by ranker.

    In each replication 60 % of the queries have impressions (8,000 in all for MQ2008, else 4,000). The others are test
    queries.
    """
    data, rankers = collection(name)
    return [found for number in range(seeds) for found in _trained(name, data, rankers, seed, number)]


def _trained(
    name: str, data: RankingData, rankers: dict[str, np.ndarray], seed: int, number: int
) -> list[tuple[str, str, np.ndarray, dict[str, np.ndarray]]]:
    import lightgbm
    import xgboost

    from truerank.clicks.training import training_data
    from truerank.measures import parse_measure
    from truerank.rankers.oblivious_boosting import ObliviousBoosting

    measure = parse_measure("nDCG@10", "ranklib")
    columns = [data.grouped(scores) for scores in rankers.values()]
    chosen = np.random.default_rng([7, seed + number]).permutation(data.n_queries) < 0.6 * data.n_queries
    first = chosen[data.query_index]
    learn = RankingData(data.X[first], data.y[first], data.qid[first], doc_ids=data.doc_ids[first])
    test = RankingData(data.X[~first], data.y[~first], data.qid[~first])

    def trees(objective: str, X: np.ndarray, y: np.ndarray, qid: np.ndarray, **more: Any) -> np.ndarray:
        ranker = ObliviousBoosting(objective=objective, leaves="constant", n_estimators=50)
        return ranker.fit(X, y, qid=qid, **more).predict(test.X)

    full = trees("lambdarank", learn.X, learn.y, learn.qid)
    found = []
    for model in MODELS:
        impressions = 8_000 if name == "MQ2008" else 4_000
        shown_by = {letter: column[first] for letter, column in zip("ab", columns)}
        log = simulate(learn, shown_by, model, impressions, random_state=seed + 3_000 + number)
        seen = Examination("trust" if model == "trust" else "position", max_position=10, n_draws=20).fit(log)
        rows = training_data(log, learn, seen).data
        usual = np.bincount(log.position, weights=log.clicked) / np.maximum(np.bincount(log.position), 1)
        cells = log.cells()
        expected = np.bincount(cells.of_row, weights=usual[log.position])
        names = zip(log.query_ids[cells.query].tolist(), log.document_ids[cells.document].tolist())
        place = {key: cell for cell, key in enumerate(names)}
        keys = zip(rows.qid.tolist(), rows.doc_ids.tolist())
        cell = np.array([place.get((str(query), document), -1) for query, document in keys])
        hits, views, usual = (np.where(cell >= 0, v[cell], 0.0) for v in (cells.clicks, cells.n, expected))
        labels = {
            "naive clicks (click rate)": hits / np.maximum(views, 1.0),
            "COEC (clicks over expected clicks)": np.minimum(hits / np.maximum(usual, 1e-9), 4.0) / 4.0,
            "training_data": rows.y,
        }
        scores = {"production (bucket a)": columns[0][~first], "lambdarank on the true grades": full}
        for label, y in labels.items():
            scores[f"ips-lambdarank on {label}"] = trees("ips-lambdarank", rows.X, y, rows.qid)
        where = {key: row for row, key in enumerate(zip(learn.qid.tolist(), learn.doc_ids.tolist()))}
        shown = zip(log.query_ids[log.query].tolist(), log.document_ids[log.document].tolist())
        X, y = learn.X[[where[key] for key in shown]], log.clicked.astype(np.int64)
        scores["unbiased-lambdarank on impressions"] = trees(
            "unbiased-lambdarank", X, y.astype(float), log.impression, position=log.position
        )
        for label, position in (("", None), (" with positions", log.position - 1)):
            held = lightgbm.Dataset(X, y, group=np.diff(log.offsets), position=position, params={"verbose": -1})
            settings = {"objective": "lambdarank", "verbose": -1, "num_threads": 1}
            scores[f"LightGBM lambdarank{label} on impressions"] = lightgbm.train(settings, held, 50).predict(test.X)
        boosted = xgboost.XGBRanker(objective="rank:ndcg", lambdarank_unbiased=True, n_estimators=50, n_jobs=1)
        scores["XGBoost rank:ndcg, unbiased, on impressions"] = boosted.fit(X, y, qid=log.impression).predict(test.X)
        judged = test.judgements()
        values = {label: measure.per_query(judged, np.asarray(s, dtype=np.float64)) for label, s in scores.items()}
        found.append((name, model, np.flatnonzero(~chosen), values))
    return found


def trained_rows(found: list[tuple[str, str, np.ndarray, dict[str, np.ndarray]]]) -> list[Row]:
    """Summarise the means by ranker, with paired t-tests over queries; a query counts with its mean over logs."""
    from truerank.significance import paired_t

    rows = []
    for name, model in dict.fromkeys(each[:2] for each in found):
        logs = [each for each in found if each[:2] == (name, model)]
        queries = np.concatenate([each[2] for each in logs])
        times = np.bincount(queries)
        by_query, means = {}, {}
        for label in logs[0][3]:
            sums = np.bincount(queries, weights=np.concatenate([each[3][label] for each in logs]))
            by_query[label] = sums[times > 0] / times[times > 0]
            means[label] = [float(each[3][label].mean()) for each in logs]
        for label, values in means.items():
            p = "" if label == OURS else f"; p {paired_t(by_query[OURS], by_query[label]).p:.4f} against training_data"
            setting = f"{name}, {model} clicks on 60 % of the queries, tested on the others"
            error = float(np.std(by_query[label], ddof=1)) / len(by_query[label]) ** 0.5  # over queries
            rows.append(Row(setting, f"nDCG@10, {label}{p}", float(np.mean(values)), error, len(values)))
    return rows


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
    """Measure CPU seconds and memory of reading and examining 10,000,000 rows in a separate process."""
    import subprocess
    import sys
    import tempfile

    import pyarrow
    from pyarrow import parquet

    data, rankers = collection("MQ2008")
    log = simulate(data, rankers, impressions=1_140_000, random_state=seed)
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
