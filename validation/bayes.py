"""Calibration of the probabilities of better, equivalent and worse: on simulated differences, and on real runs.

A draw takes two systems at random, in random order, and n topics with replacement. The true difference is that of all
topics. "Simulated" draws the true standardised difference from the prior, which the posterior must then match.
"""

from __future__ import annotations

import tempfile
import warnings

import numpy as np

from truerank import build_index, read_documents, read_judgements, read_queries, retrieve
from truerank.significance.bayes import SCALE, SURE, Posterior, cautious, posterior
from validation.families import _of_runs, tables
from validation.harness import FEWEST, Row, collections, rate

PROMISE = "Of the answers better, equivalent and worse with a probability of at least 0.95, at least 95 % are right."
REPLICATIONS = 5_300
SIZES, UNSEEN_SIZES = (25, 50, 100), (50, 100)
_DRAWS = 6  # draws for each replication, since only some draws have an answer
_ROPE = 0.01
_ALONE = "equivalent by the model alone is right"
_TEXTS = {
    "Cranfield": ("cranfield/cran.all.1400.gz", "cranfield/cran.qry.gz", "cranfield/cranqrel.gz"),
    "CISI": ("cisi/CISI.ALL.gz", "cisi/CISI.QRY.gz", "cisi/CISI.REL.gz"),
    "NPL": ("npl/doc-text.trec.gz", "npl/query-text.trec.gz", "npl/qrels.gz"),
}  # documents, queries, judgements


def run(replications: int, seed: int) -> list[Row]:
    """Simulated differences, then real ones by collection and measure."""
    rows, rng = [], np.random.default_rng(seed)
    draws = _DRAWS * replications
    for n in SIZES:
        deviation = np.exp(rng.normal(-2.0, 0.5, draws))
        truth = SCALE * rng.standard_cauchy(draws) * deviation
        found = posterior(rng.normal(truth, deviation, (n, draws)), _ROPE, ends=False)
        setting, sure = f"simulated from the prior, {n} topics", found.equivalent >= SURE
        rows += _rows(setting, found, truth, True)
        rows.append(_share(setting, _ALONE, np.abs(truth[sure]) <= _ROPE, low=SURE))
    chosen = tables(replications >= FEWEST)
    for name, values in (chosen | (unseen() if replications >= FEWEST else {})).items():
        for n in SIZES if name in chosen else UNSEEN_SIZES:
            k, m = values.shape[1], len(values)
            first = rng.integers(0, k, draws)
            second = (first + rng.integers(1, k, draws)) % k
            topics = rng.integers(0, m, (n, draws))
            truth = values[:, first].mean(axis=0) - values[:, second].mean(axis=0)
            ours, theirs = values[topics, first], values[topics, second]
            near = slice(None) if name in chosen else np.abs((ours - theirs).mean(axis=0)) < 2 * _ROPE
            ours, theirs, truth = ours[:, near], theirs[:, near], truth[near]
            found = posterior(ours - theirs, _ROPE, ends=False)
            setting = f"two of {name}, {n} topics"
            rows += _rows(setting, found, truth, False) if name in chosen else []
            rows += _equivalent(setting, found, truth, ours, theirs)
    return rows


def unseen() -> dict[str, np.ndarray]:
    """Values (topics, systems) by other measures, and of retrieval functions, on which the rule was not made.

    It was made on `tables`. That it holds from 50 topics on, and a milder one from 200, was seen on both.
    """
    folder = collections()
    if folder is None:
        return {}
    from truerank.io.trec import as_qrels, judge_run
    from truerank.measures import parse_measure

    found = _of_runs("TREC-3", folder / "trec3-adhoc-runs", "qrels.151-200.txt.xz", ("RR", "nDCG@10", "P@10"))
    found |= _of_runs("TREC-9", folder / "trec9-web-runs", "qrels.451-500.txt.xz", ("P@10",))
    functions = [f"bm25(k1={k}, b={b})" for k in (0.6, 0.9, 1.2, 1.6, 2.0) for b in (0.2, 0.4, 0.6, 0.75, 0.9)]
    functions += [f"dirichlet(mu={mu})" for mu in (50, 100, 200, 400, 800, 1500, 3000)]
    functions += [f"jelinek-mercer(lambda={share})" for share in (0.1, 0.3, 0.5, 0.7)]
    for title, (documents, queries, judgements) in _TEXTS.items():
        with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # documents without a text
            index = build_index(read_documents(folder / documents), f"{place}/index")
            asked, qrels = list(read_queries(folder / queries)), as_qrels(read_judgements(folder / judgements))
            judged = [judge_run(qrels, retrieve(index, asked, function, depth=200)) for function in functions]
        for measure in ("AP", "RR", "nDCG@10"):
            own = [parse_measure(measure, "trec")(missing_topics="zero").per_query(*one) for one in judged]
            found[f"{len(own)} functions on {title}, {measure}"] = np.nan_to_num(np.array(own).T)
    return found


def _equivalent(setting: str, found: Posterior, truth: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> list[Row]:
    """Rows of the answers "equivalent": of the model alone, and of the rule."""
    equal, likely = np.abs(truth) <= _ROPE + 1e-12, np.flatnonzero(found.equivalent >= SURE)
    rows = [_share(setting, _ALONE, equal[likely])]
    if len(likely):
        ours, theirs = ours[:, likely], theirs[:, likely]
        loss = np.maximum(ours.mean(axis=0), theirs.mean(axis=0))
        likely = likely[cautious(ours - theirs, _ROPE, loss, ends=False).equivalent >= SURE]
    rows.append(_share(setting, "equivalent is right", equal[likely], low=SURE))
    return [row for row in rows if row.replications > 1]


def _rows(setting: str, found: Posterior, truth: np.ndarray, exact: bool) -> list[Row]:
    better, worse = truth > _ROPE, truth < -_ROPE
    sure = np.concatenate([better[found.better >= SURE], worse[found.worse >= SURE]])
    rows = [_share(setting, "better and worse are right", sure, low=SURE)]
    for low, high in ((0.6, 0.7), (0.8, 0.9), (0.9, 0.95)):
        chosen = (found.better >= low) & (found.better < high)
        bar = {"low": low, "high": high} if exact else {}
        rows.append(
            _share(setting, f"better, of those with a probability of {low:g} to {high:g}", better[chosen], **bar)
        )
    return [row for row in rows if row.replications > 1]


def _share(setting: str, quantity: str, events: np.ndarray, **bar: float) -> Row:
    return rate(setting, quantity, events if len(events) else [0.0], **bar)
