"""Error rates of the verdicts where each is just wrong, and their power.

The true difference is moved to the edge of what a verdict says: 0 for "better", -δ for "not worse by more than δ", -δ
and δ for "equivalent within δ". Each verdict is of one comparison. The first rows have L = 0, the least strict rule.
The rows about rare large losses and about pairs of real runs have the baselines' own L, and are observed: no bar.
"""

from __future__ import annotations

import numpy as np

from truerank.io.streams import files_of
from truerank.io.trec import judge_run, read_qrels, read_run
from truerank.measures import parse_measure
from truerank.significance.intervals import Interval, Verdict, decided, student_quantile, with_one_more
from truerank.significance.paired import paired_tests
from validation.harness import Row, average, centred_differences, collections, mq2008, rate, trec9

PROMISE = "A verdict on one comparison is wrong in at most 5 % of samples."
_N = 50
_WITHOUT = 0.0  # L of populations of differences alone
_PAIRS, _LEAST = 12, 0.005  # real pairs with the least deviation, and their least true loss


def run(replications: int, seed: int) -> list[Row]:
    """Samples of 50 queries from made and real centred differences; δ is half a standard deviation."""
    rng = np.random.default_rng(seed)
    populations = {
        "normal": rng.normal(size=(100_000, 1)),
        "skewed, a third ties": centred_differences(
            np.where(rng.random((20_000, 10)) < 0.6, 0.0, rng.gamma(0.7, 0.3, (20_000, 10)))
        ),
    }
    for name, values in (("TREC-9, AP", trec9()), ("MQ2008, nDCG@10", mq2008())):
        if values is not None:
            populations[name] = centred_differences(values)
    rows = []
    for name, differences in populations.items():
        rows += _of(f"{name}, n = {_N}", differences - differences.mean(axis=0), replications, seed)
    return [*rows, *_rare_losses(replications, seed), *_real_losses(replications, seed)]


def _of(setting: str, differences: np.ndarray, replications: int, seed: int) -> list[Row]:
    rng = np.random.default_rng(seed + 1)
    pairs = rng.integers(differences.shape[1], size=replications)
    margins = differences.std(axis=0)[pairs] / 2
    d = differences[rng.integers(0, len(differences), (_N, replications)), pairs]
    middle, below, above, other, other_below = (
        _verdicts(sample, margins, _WITHOUT) for sample in (d, d - margins, d + margins, -d, -d - margins)
    )  # the other direction of a pair has the other tail
    found = {
        "better": [one.better for one in middle],
        "not worse": [one.not_worse for one in other_below],
        "equivalent, truth -δ": [one.equivalent for one in below],
        "equivalent, truth δ": [one.equivalent for one in above],
        "power of better": [one.better for one in above],
        "power of not worse": [one.not_worse for one in other],
        "power of equivalent": [one.equivalent for one in middle],
        "undecided": [one.kinds == ("undecided",) for one in middle],
    }
    wrong = {
        "better": '"better" where the difference is 0',
        "not worse": '"not worse by more than δ" where it is worse by δ',
        "equivalent, truth -δ": '"equivalent within δ" where it is worse by δ',
        "equivalent, truth δ": '"equivalent within δ" where it is better by δ',
    }
    right = {
        "power of better": '"better" where it is better by δ (power)',
        "power of not worse": '"not worse by more than δ" where the difference is 0 (power)',
        "power of equivalent": '"equivalent within δ" where the difference is 0 (power)',
        "undecided": '"undecided" where the difference is 0',
    }
    rows = [rate(setting, text, found[key], high=0.05) for key, text in wrong.items()]
    usual = [_within_90(sample, margins) for sample in (d - margins, d)]
    rows.append(rate(setting, "the 90 % interval lies within ±δ (TOST) where it is worse by δ", usual[0]))
    rows += [rate(setting, text, found[key]) for key, text in right.items()]
    return [*rows, rate(setting, "the 90 % interval lies within ±δ (TOST) where the difference is 0 (power)", usual[1])]


def _within_90(d: np.ndarray, margins: np.ndarray) -> np.ndarray:
    """Whether Student's 90 % interval of each sample (n, replications) lies within ±δ."""
    half = student_quantile(0.95, len(d) - 1) * d.std(axis=0, ddof=1) / np.sqrt(len(d))
    return np.abs(d.mean(axis=0)) + half < margins


def _verdicts(d: np.ndarray, margins: np.ndarray, loss: float) -> list[Verdict]:
    """The verdicts of samples (n, replications): those of `decided`, whose Student's intervals are made together."""
    tested = paired_tests("t", d)
    figures = (tested.mean, tested.low, tested.high, tested.p, tested.deviation, margins)
    found = [
        Verdict(Interval(mean, low, high), p, len(d), deviation, margin, loss)
        for mean, low, high, p, deviation, margin in zip(*(one.tolist() for one in figures))
    ]
    for column in range(3):
        assert found[column].kinds == decided("t", d[:, column], margins[column], loss).kinds
    return found


def _not_worse(d: np.ndarray, baseline: np.ndarray, margins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether samples (n, replications) are promoted by δ: by the rule, and by Student's interval alone."""
    n, mean, deviation = len(d), d.mean(axis=0), d.std(axis=0, ddof=1)
    alone = mean - student_quantile(0.975, n - 1) * deviation / np.sqrt(n) > -margins
    ruled = alone & (with_one_more(n, mean, deviation, -baseline.mean(axis=0))[0] > -margins)
    for column in range(3):  # the package's own verdicts
        loss = float(baseline[:, column].mean())
        assert ruled[column] == decided("t", d[:, column], margins[column], loss).not_worse
    return ruled, alone


def _rare_losses(replications: int, seed: int) -> list[Row]:
    """A candidate that loses 0.5 on 4 % of queries and is equal on the others, with δ = 0.005."""
    rng, rows = np.random.default_rng(seed + 2), []
    for n in (12, 25, 60, 100):
        shape = (n, replications)
        for name, baseline in {
            "median 0.5": rng.uniform(0, 1, shape),
            "60 % zero": np.where(rng.random(shape) < 0.6, 0.0, rng.uniform(0, 1, shape)),
            "as of RR": 1 / rng.geometric(0.5, shape),
        }.items():
            d = np.where(rng.random(shape) < 0.04, -0.5, 0.0)
            ruled, alone = _not_worse(d, baseline, np.full(replications, 0.005))
            setting = f"0.5 lost on 4 % of queries, baseline {name}, n = {n}"
            rows.append(rate(setting, '"not worse by more than 0.005"', ruled))
            rows.append(rate(setting, "Student's interval alone is above -0.005", alone))
    return rows


def _real_losses(replications: int, seed: int) -> list[Row]:
    """The pairs with the least deviation among those with a true loss of at least `_LEAST`; δ is that loss."""
    rng, rows = np.random.default_rng(seed + 3), []
    for name, values in _of_tracks().items():
        first, second = np.triu_indices(values.shape[1], 1)
        swap = values[:, first].mean(axis=0) > values[:, second].mean(axis=0)
        first, second = np.where(swap, second, first), np.where(swap, first, second)  # the first is worse
        d = values[:, first] - values[:, second]
        losing = np.flatnonzero(d.mean(axis=0) <= -_LEAST)
        chosen = losing[np.argsort(d[:, losing].std(axis=0), kind="stable")[:_PAIRS]]
        for n in (25, 50, 100):
            found = []
            for pair in chosen.tolist():
                drawn = rng.integers(0, len(d), (n, replications))
                own, baseline, loss = d[drawn, pair], values[drawn, second[pair]], -d[:, pair].mean()
                margins = np.full(replications, 0.02)
                found.append(
                    [*_not_worse(own, baseline, margins * 0 + loss), *_not_worse(own + loss, baseline, margins)]
                )
            for k, text in enumerate((
                '"not worse by more than δ" where it is worse by δ',
                "Student's interval alone is above -δ where it is worse by δ",
                '"not worse by more than 0.02" without a loss (power)',
                "Student's interval alone is above -0.02 without a loss (power)",
            )):  # fmt: skip
                of_pairs = np.array([one[k] for one in found])
                setting = f"{name}, {len(chosen)} closest pairs, n = {n}"
                rows.append(average(setting, f"{text}, mean of pairs", of_pairs.mean(axis=0)))
                if k < 2:
                    worst = of_pairs[of_pairs.mean(axis=1).argmax()]
                    rows.append(rate(setting, f"{text}, worst pair", worst))
    return rows


def _of_tracks() -> dict[str, np.ndarray]:
    """Values (topics, runs) of real runs by collection and measure."""
    folder, found = collections(), {}
    if folder is None:
        return {}
    for track, runs, measures in (("TREC-9", "trec9-web-runs", "AP nDCG@10"), ("TREC-3", "trec3-adhoc-runs", "AP")):
        qrels = read_qrels(next((folder / runs).glob("qrels.*")))
        judged = [judge_run(qrels, read_run(path)) for path in files_of(folder / runs / "runs")]
        for name in measures.split():
            measure = parse_measure(name, "trec")(missing_topics="zero")
            found[f"{track}, {name}"] = np.array([measure.per_query(*one) for one in judged]).T
    values = mq2008()
    return found if values is None else found | {"MQ2008, nDCG@10": values}
