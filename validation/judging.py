"""Estimates from few human judgements: coverage, width and wrong decisions on the judgements of real collections.

LLMJudge: the systems are the rankings by other judges' labels, and all pairs of them are compared. TREC-9: 104 runs,
whose judged documents are the frame; all others count 0. Draws are independent samples of documents; what is judged
is looked up in the complete judgements, and the estimates are those of `truerank.judging`.
"""

from __future__ import annotations

import time
from itertools import combinations
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit
from scipy.stats import kendalltau

from truerank.io.streams import files_of
from truerank.io.trec import Run, as_qrels, as_run, judge_run, read_qrels, read_run
from truerank.judging.estimate import FEWEST_RESIDUALS, Sampled, estimate, gain_estimates, spread_of
from truerank.judging.plan import allocate, plan_judgements
from truerank.judging.predictions import Factors, make_factors
from truerank.judging.sums import Frame, gains, sum_measure
from truerank.significance.intervals import student_quantile
from validation.harness import Row, average, collections, rate

PROMISE = "Intervals from few human judgements hold whatever the judge does, and a weak judge costs nothing."
_Z = NormalDist().inv_cdf(0.975)
_GAIN = "DCG(gain='exponential')@10"
_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2)
_SLOW = 12  # draws of infAP, which ranks 885,949 documents anew in each
_MANY = 100  # replications below which only some judges, settings and runs are tried


class Draws(NamedTuple):
    """Estimates (draws,) of one difference, half widths of intervals, and whether there are ten residuals."""

    values: np.ndarray
    halves: np.ndarray
    enough: np.ndarray

    def figures(self, truth: float) -> np.ndarray:
        """Covered, width, decided, decided for the wrong side: (draws, 4); NaN where there is no interval."""
        half = self.halves
        decided = np.abs(self.values) > half
        found = np.stack(
            [np.abs(self.values - truth) <= half, 2 * half, decided, decided & (self.values * truth <= 0)], axis=1
        ).astype(float)
        found[~self.enough] = np.nan
        return found


def draw(
    w: np.ndarray, gained: np.ndarray, chances: np.ndarray, factors: Any, drawn: np.ndarray, n_topics: int
) -> Draws:
    """Estimates of Σ w g / topics from samples (draws, N) of documents; the baseline has the normal quantile."""
    nothing, one = np.zeros((1, len(w)), dtype=bool), np.ones((1, len(w)))
    found = []
    for own in drawn:
        made = gain_estimates(Sampled(nothing, own[None], chances[None], one), factors, gained, nothing[0])
        spread = spread_of((w / n_topics) ** 2 * made.variances)
        half = _Z * spread.error if isinstance(factors, Nothing) else spread.half
        found.append((w @ made.gains / n_topics, half, spread.residuals))
    values, halves, residuals = np.array(found).T
    return Draws(values, halves, residuals >= FEWEST_RESIDUALS)


class Nothing:
    """The prediction 0 for every document."""

    def predict(self, judged: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Zeros (N,)."""
        return np.zeros(len(values))


class LLMJudge(NamedTuple):
    """Labels by judge and topic, the rankings that they give, and people's grades."""

    labels: dict[str, dict[str, dict[str, float]]]
    runs: dict[str, Run]
    human: dict[str, dict[str, float]]


def llmjudge(folder: Path, judges: int = 23) -> LLMJudge:
    """Judges of the collection; a system ranks documents by its judge's labels, ties by document number."""
    labels = {}
    for path in files_of(folder / "judges")[-judges:]:
        qrels = read_qrels(path)
        labels[path.name.split(".")[0]] = qrels.by_topic(qrels.grades)
    runs = {}
    for name, own in labels.items():
        ranked = {topic: sorted(docs, key=lambda d: (-docs[d], int(d[1:]))) for topic, docs in own.items()}
        runs[name] = as_run({t: {d: float(-place) for place, d in enumerate(docs)} for t, docs in ranked.items()}, name)
    human = read_qrels(folder / "qrels.human.txt.xz")
    return LLMJudge(labels, runs, human.by_topic(human.grades))


def run(replications: int, seed: int) -> list[Row]:
    """Every judge of LLMJudge in turn, budgets, topics, TREC-9 and the time of a plan."""
    folder = collections()
    rows = []
    if folder is not None:
        data = llmjudge(folder / "llmjudge", 23 if replications >= _MANY else 4)
        rows += _every_judge(data, replications, seed)
        rows += _budgets(data, replications, seed + 1)
        rows += _topics(data, replications, seed + 2)
        rows += _rounds(data, replications, seed + 4)
        rows += _trec9(folder / "trec9-web-runs", replications, seed + 3)
    return [*rows, _speed(100 if replications >= _MANY else 10)]


def _looked_up(table: dict[str, dict[str, float]], frame: Frame) -> np.ndarray:
    return np.array([table[topic][document] for topic, document in frame.keys])


def _every_judge(data: LLMJudge, replications: int, seed: int) -> list[Row]:
    """All pairs of systems, 100 judgements a pair, each judge in turn."""
    measure, rng = sum_measure(_GAIN), np.random.default_rng(seed)
    n_pairs = (len(data.runs) - 1) * (len(data.runs) - 2) // 2
    each = -(-replications // n_pairs)
    kept: dict[str, dict[str, list[np.ndarray]]] = {name: {} for name in data.runs}
    for a, b in combinations(data.runs, 2):
        frame = Frame({a: data.runs[a], b: data.runs[b]}, measure)
        w, q, g = frame.difference(*frame.runs), len(frame.topics), gains(measure, _looked_up(data.human, frame))
        truth, n = float(w @ g) / q, len(w)
        uniform, planned = np.full(n, min(1.0, 100 / n)), allocate(np.abs(w), 100)
        if not w.any():
            continue  # two judges with the same labels
        for judge in data.runs:
            if judge in (a, b):
                continue
            uniforms = rng.random((each, n))
            ways = {
                "uniform": (uniform, Nothing()),
                "no judge": (planned, make_factors(frame, {})),
                "judge": (planned, make_factors(frame, {judge: _looked_up(data.labels[judge], frame)})),
            }
            for way, (chances, factors) in ways.items():
                one = draw(w, g, chances, factors, uniforms < chances, q).figures(truth)
                kept[judge].setdefault(way, []).append(one)
    found = {judge: {way: np.concatenate(parts) for way, parts in ways.items()} for judge, ways in kept.items()}
    rows, ratios = [], []
    for judge, ways in found.items():
        name = f"LLMJudge, DCG@10, 100 judgements, {judge}"
        full, bare, base = ways["judge"], ways["no judge"], ways["uniform"]
        ratios.append(_ratio(full, base))
        rows += [
            rate(name, "coverage of these topics", _kept(full[:, 0]), low=0.93, high=0.97),
            Row(name, "width over that of the uniform sample", *ratios[-1], len(full)),
            Row(name, "width over that of the same plan without a judge", *_ratio(full, bare), len(full), high=1.02),
            rate(name, "wrong decisions", _kept(full[:, 3]), high=0.01),
        ]
    name = f"LLMJudge, DCG@10, 100 judgements, all {len(found)} judges"
    whole = {way: np.concatenate([ways[way] for ways in found.values()]) for way in ("judge", "no judge", "uniform")}
    mean = float(np.mean([value for value, _ in ratios]))
    error = float(np.sqrt(np.sum([e**2 for _, e in ratios]))) / len(ratios)
    n = len(whole["judge"])
    rows += [
        rate(name, "coverage of these topics", _kept(whole["judge"][:, 0]), low=0.93, high=0.97),
        rate(name, "coverage, no judge", _kept(whole["no judge"][:, 0]), low=0.93, high=0.97),
        rate(name, "coverage, uniform sample", _kept(whole["uniform"][:, 0])),
        Row(name, "width over that of the uniform sample, mean over judges", mean, error, n, high=0.62),
        _saved(name, "the plan", whole["no judge"], whole["uniform"]),
        _saved(name, "the judge", whole["judge"], whole["no judge"]),
        average(name, "decided", _kept(whole["judge"][:, 2])),
        average(name, "decided, uniform sample", _kept(whole["uniform"][:, 2])),
        rate(name, "wrong decisions", _kept(whole["judge"][:, 3]), high=0.01),
        rate(name, "no interval, fewer than ten residuals", np.isnan(whole["judge"][:, 0])),
    ]  # fmt: skip
    return rows


def _saved(name: str, what: str, one: np.ndarray, other: np.ndarray) -> Row:
    """How many times the judgements would be needed without something: the squared ratio of widths."""
    value, error = _ratio(one, other)
    return Row(name, f"judgements saved by {what}, (width without / with)²", value**-2, 2 * error / value**3, len(one))


def _kept(values: np.ndarray) -> np.ndarray:
    return values[~np.isnan(values)]


def _ratio(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Ratio of two mean widths, and its error from the paired draws."""
    both = ~(np.isnan(one[:, 1]) | np.isnan(other[:, 1]))
    x, y = one[both, 1], other[both, 1]
    value = x.mean() / y.mean()
    return float(value), float((x - value * y).std() / np.sqrt(len(x)) / y.mean())


def _budgets(data: LLMJudge, replications: int, seed: int) -> list[Row]:
    """Three judges together, and other budgets, measures and gains, on random pairs of systems."""
    rng, names = np.random.default_rng(seed), list(data.runs)
    settings = [(_GAIN, 200, 1), (_GAIN, 400, 1), (_GAIN, 100, 3), ("P@10", 100, 1), ("P(rel=3)@10", 100, 1),
                ("RBP(0.8)", 100, 1), ("DCG@20", 100, 1)]  # fmt: skip
    rows = []
    for measure_name, budget, n_judges in settings if replications >= _MANY else settings[::6]:
        measure, kept, bare = sum_measure(measure_name), [], []
        while len(kept) < replications / 10:
            a, b, *judges = rng.choice(len(names), 2 + n_judges, replace=False)
            frame = Frame({names[a]: data.runs[names[a]], names[b]: data.runs[names[b]]}, measure)
            w, g = frame.difference(*frame.runs), gains(measure, _looked_up(data.human, frame))
            if not w.any():
                continue
            chances, q = allocate(np.abs(w), budget), len(frame.topics)
            labels = {names[j]: _looked_up(data.labels[names[j]], frame) for j in judges}
            drawn = rng.random((10, len(w))) < chances
            for factors, store in ((make_factors(frame, labels), kept), (make_factors(frame, {}), bare)):
                store.append(draw(w, g, chances, factors, drawn, q).figures(float(w @ g) / q))
        found, without = np.concatenate(kept), np.concatenate(bare)
        name = f"LLMJudge, {measure_name}, {budget} judgements, {n_judges} judge{'s' if n_judges > 1 else ''}"
        rows.append(rate(name, "coverage of these topics", _kept(found[:, 0]), low=0.93, high=0.97))
        rows.append(Row(name, "width over that of the same plan without a judge", *_ratio(found, without), len(found)))
    return rows


def _rounds(data: LLMJudge, replications: int, seed: int) -> list[Row]:
    """Two rounds of 50 judgements by the public functions; the second plans by the grades of the first."""
    rng, names = np.random.default_rng(seed), list(data.runs)
    covered: list[float] = []
    while len(covered) < replications:
        a, b, judge = (names[k] for k in rng.choice(len(names), 3, replace=False))
        runs = {a: data.runs[a], b: data.runs[b]}
        measure = sum_measure(_GAIN)
        frame = Frame(runs, measure)
        w, q = frame.difference(*frame.runs), len(frame.topics)
        if not w.any():
            continue
        truth = float(w @ gains(measure, _looked_up(data.human, frame))) / q
        human, labels = (
            as_qrels({topic: {d: own[d] for t, d in frame.keys if t == topic} for topic, own in table.items()})
            for table in (data.human, data.labels[judge])
        )
        for _ in range(20):
            plan = plan_judgements(runs, _GAIN, budget=50, random_state=rng).with_grades(human)
            plan = plan_judgements(runs, _GAIN, budget=50, human=plan, judges=[labels], random_state=rng).with_grades(
                human
            )
            found = estimate(runs, _GAIN, plan=plan, judges=[labels]).difference(a, b)
            covered.append(float("nan") if found.low != found.low else float(found.low <= truth <= found.high))
    name = "LLMJudge, DCG@10, two rounds of 50 judgements, 1 judge"
    return [rate(name, "coverage of these topics", _kept(np.array(covered)), low=0.93, high=0.97)]


def _topics(data: LLMJudge, replications: int, seed: int) -> list[Row]:
    """Topics are resampled with replacement, each copy judged anew; the truth is the mean over all topics."""
    rng, names, measure = np.random.default_rng(seed), list(data.runs), sum_measure(_GAIN)
    covered: dict[int, list[bool]] = {25: [], 50: []}
    while len(covered[25]) < replications:
        a, b, judge = (names[k] for k in rng.choice(len(names), 3, replace=False))
        frame = Frame({a: data.runs[a], b: data.runs[b]}, measure)
        w, g = frame.difference(*frame.runs), gains(measure, _looked_up(data.human, frame))
        if not w.any():
            continue
        labels, truth = _looked_up(data.labels[judge], frame), float(w @ g) / len(frame.topics)
        parts = [np.flatnonzero(frame.topic == topic) for topic in range(len(frame.topics))]
        for n, kept in covered.items():
            for _ in range(10):
                chosen = [parts[k] for k in rng.integers(0, len(parts), n)]
                rows, topic = np.concatenate(chosen), np.repeat(np.arange(n), [len(part) for part in chosen])
                chances = allocate(np.abs(w[rows]), 4.0 * n)
                factors = Factors([(topic, 4.0), (labels[rows], 2.0)], len(rows))
                drawn = rng.random(len(rows)) < chances
                nothing, one = np.zeros((1, len(rows)), dtype=bool), np.ones((1, len(rows)))
                sampled = Sampled(nothing, drawn[None], chances[None], one)
                made = gain_estimates(sampled, factors, g[rows], nothing[0])
                by_topic = np.bincount(topic, weights=w[rows] * made.gains, minlength=n)
                half = student_quantile(0.975, n - 1) * by_topic.std(ddof=1) / np.sqrt(n)
                kept.append(bool(abs(by_topic.mean() - truth) <= half))
    return [
        rate(f"LLMJudge, DCG@10, {n} resampled topics, 4 judgements a topic", "coverage of topics like these", one,
             low=0.93, high=0.97)
        for n, one in covered.items()
    ]  # fmt: skip


def _trec9(folder: Path, replications: int, seed: int) -> list[Row]:
    """P@10 of 104 runs from a share of the judgements, beside a uniform sample and infAP."""
    rng, measure = np.random.default_rng(seed), sum_measure("P@10")
    qrels = read_qrels(folder / "qrels.451-500.txt.xz")
    paths = files_of(folder / "runs")[: None if replications >= _MANY else 4]
    runs = {path.name.split(".")[0]: read_run(path) for path in paths}
    frame = Frame(runs, measure, "all")
    table, q = qrels.by_topic(qrels.grades), len(frame.topics)
    judged = np.array([document in table[topic] for topic, document in frame.keys])
    w = frame.weights[:, judged].tocsr()
    g = np.array([float(table[t][d] >= 1) for (t, d), known in zip(frame.keys, judged) if known])
    truth, n = w @ g / q, int(judged.sum())
    square, total = np.asarray(w.multiply(w).sum(axis=0))[0], np.asarray(w.sum(axis=0))[0]
    importance = np.sqrt(np.maximum(len(runs) * square - total**2, 0.0))
    frame.topic, frame.weights = frame.topic[judged], w
    factors = make_factors(frame, {})
    chosen = rng.choice(len(runs), (300, 2))
    chosen = chosen[chosen[:, 0] != chosen[:, 1]]
    d = (w[chosen[:, 0]] - w[chosen[:, 1]]).tocsr()
    d.eliminate_zeros()
    d2, there = d.multiply(d).tocsr(), (d != 0).astype(float)
    d4 = d2.multiply(d2).tocsr()
    nothing, one = np.zeros((1, n), dtype=bool), np.ones((1, n))
    rows = []
    for share in _SHARES if replications >= _MANY else _SHARES[:1]:
        budget = share * qrels.n_rows
        chances, flat = allocate(importance, budget), share
        repeats = replications if budget < n else 1
        taus, plain, covered, errors = [], [], [], []
        for _ in range(repeats):
            drawn = rng.random(n) < chances
            made = gain_estimates(Sampled(nothing, drawn[None], chances[None], one), factors, g, nothing[0])
            taus.append(kendalltau(w @ made.gains, truth).statistic)
            plain.append(kendalltau(w @ ((rng.random(n) < flat) * g), truth).statistic)
            off, variances = d @ (made.gains - g) / q, d2 @ made.variances / q**2
            freedom = 2 * variances**2 / np.maximum(d4 @ made.variances**2 / q**4, 1e-300)
            half = stdtrit(np.maximum(np.floor(freedom), 1), 0.975) * np.sqrt(variances)
            enough = there @ (made.variances > 0) >= FEWEST_RESIDUALS
            covered.append(float((np.abs(off) <= half)[enough].mean()) if enough.any() else np.nan)
            errors.append(float(np.mean(w @ (made.gains - g))) / q)
        name = f"TREC-9, {len(runs)} runs, P@10, {share:.0%} of the judgements ({budget:,.0f})"
        slow = _inferred(runs, qrels, share, rng, _SLOW if replications >= _MANY else 1)
        best = max(float(np.mean(slow)), float(np.mean(plain)))
        if budget < n:
            rows.append(average(name, "coverage of 300 differences", _kept(np.array(covered)), low=0.93, high=0.97))
            rows.append(average(name, "mean error of the runs' values", errors))
            rows.append(average(name, "Kendall's tau with all judgements, plan without a judge", taus, low=best))
        else:
            text = (
                f"Kendall's tau with all judgements, plan without a judge: all {n:,} documents in a top ten are judged"
            )
            rows.append(Row(name, text, float(taus[0]), 0.0, 1))
        rows.append(Row(name, "Kendall's tau, uniform sample", float(np.mean(plain)),
                        float(np.std(plain)) / np.sqrt(len(plain)), len(plain)))  # fmt: skip
        rows.append(average(name, "Kendall's tau of infAP with AP, uniform sample of the pool", slow))
    return rows


def _inferred(runs: dict[str, Run], qrels: Any, share: float, rng: np.random.Generator, draws: int) -> list[float]:
    """Kendall's tau of infAP, from a sample of the pool, with AP from all of it."""
    from truerank.measures import AP, infAP

    full = {name: judge_run(qrels, run) for name, run in runs.items()}
    exact, inferred = AP(convention="trec", missing_topics="zero"), infAP(convention="trec", missing_topics="zero")
    truth = [float(np.mean(exact.per_query(*one))) for one in full.values()]
    place = {
        (topic, document): row
        for row, (topic, document) in enumerate(
            (topic, document)
            for topic, start, stop in zip(qrels.query_ids.tolist(), qrels.offsets[:-1], qrels.offsets[1:])
            for document in qrels.doc_ids[start:stop].tolist()
        )
    }
    rows = {
        name: np.array([
            place.get((topic, document), -1)
            for topic, start, stop in zip(one.query_ids.tolist(), one.offsets[:-1], one.offsets[1:])
            for document in one.tie_keys[start:stop].tolist()
        ])
        for name, (one, _) in full.items()
    }  # fmt: skip
    found = []
    for _ in range(draws):
        shown = rng.random(qrels.n_rows) < share
        grades = np.where(shown, qrels.grades, -1.0)
        values = []
        for name, (one, scores) in full.items():
            seen = rows[name] >= 0
            fresh = type(one)(
                np.where(seen, grades[rows[name]], 0.0), one.offsets, judged=seen, tie_keys=one.tie_keys,
                query_ids=one.query_ids, missing_grades=_missing(rows[name], grades),
                missing_offsets=one.missing_offsets,
            )  # fmt: skip
            values.append(float(np.nanmean(inferred.per_query(fresh, scores))))
        found.append(float(kendalltau(values, truth).statistic))
    return found


def _missing(rows: np.ndarray, grades: np.ndarray) -> np.ndarray:
    """Grades of judged documents that the run lacks, in the order of the qrels."""
    there = np.zeros(len(grades), dtype=bool)
    there[rows[rows >= 0]] = True
    return grades[~there]


def _speed(n_runs: int) -> Row:
    """CPU seconds of a plan for runs of 100 documents on 50 topics."""
    rng = np.random.default_rng(0)
    documents = [f"document-{number}" for number in range(1_000)]
    runs = {
        f"run{r}": {
            str(t): {documents[k]: float(-place) for place, k in enumerate(rng.choice(1_000, 100, replace=False))}
            for t in range(50)
        }
        for r in range(n_runs)
    }
    start = time.process_time()
    plan = plan_judgements(runs, "DCG@10", budget=500)
    seconds = time.process_time() - start
    return Row(f"{n_runs} runs, 50 topics, 100 documents each, DCG@10 ({len(set(plan.keys)):,} documents)",
               "CPU seconds of plan_judgements", seconds, 0.0, 1)  # fmt: skip
