"""Which query score, first threshold and step? CISI and NPL, which no bar of the validation uses.

    python -m benchmarks.calibration.bench_cutoffs --data DIR

Five retrieval functions; BM25 ranks, the others are further runs. Third, 400 simulated queries of 5 to 30 documents in
which the level of the scores says little of the query. The share of queries that is answered, a mean over divisions
(three quarters calibrate, the rest is used), over the losses no-relevant@1 and @3 and over bounds of 0.7, 0.85 and 1
times the risk of answering everything; confidence 0.9.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

FUNCTIONS = ("bm25", "dirichlet", "jelinek-mercer", "tfidf", "cosine")
DEPTH = 50
SCORES = ("mean-top", "best", "gap", "agreement", "learned")
FILES = {
    "cisi": ("CISI.ALL.gz", "CISI.QRY.gz", "CISI.REL.gz"),
    "npl": ("doc-text.trec.gz", "query-text.trec.gz", "qrels.gz"),
}


def lists_of(folder: Path, names: tuple[str, str, str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores (n, 5), nan where a function lacks the document, grades and queries; the documents that BM25 found."""
    from truerank.io.documents import read_documents, read_judgements, read_queries
    from truerank.text.index import build_index
    from truerank.text.retrieval import retrieve

    qrels = read_judgements(folder / names[2]).to_dict()
    queries = [query for query in read_queries(folder / names[1]) if query.id in qrels]
    with tempfile.TemporaryDirectory() as place:
        index = build_index(read_documents(folder / names[0]), Path(place) / "index")
        runs = [retrieve(index, queries, function, depth=DEPTH).to_dict() for function in FUNCTIONS]
    rows = [
        ([run[query.id].get(document, np.nan) for run in runs], qrels[query.id].get(document, 0), query.id)
        for query in queries
        for document in runs[0][query.id]
    ]
    return np.array([row[0] for row in rows]), np.array([row[1] for row in rows]), np.array([row[2] for row in rows])


def simulated() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same, of 400 made-up queries; four further runs hold the better documents more often."""
    rng = np.random.default_rng(1)
    qid = np.repeat(np.arange(400), rng.integers(5, 31, 400))
    level, quality = rng.normal(size=400), rng.normal(size=400)
    scores = rng.normal(size=(len(qid), 5)) * 0.7 + (level + quality)[qid][:, None]
    truth = rng.normal(size=len(qid))
    scores += truth[:, None]
    y = (truth + quality[qid] + 0.5 * rng.normal(size=len(qid)) > 2).astype(float)
    scores[:, 1:][scores[:, 1:] < 0] = np.nan
    return scores, y, qid


def answered(data: tuple[np.ndarray, ...], divisions: int, settings: dict[str, Any]) -> float:
    """Mean share of the other queries that are answered; names in capitals are constants of the module."""
    from truerank import Cutoff
    from truerank.calibration import cutoffs
    from truerank.calibration.query_losses import parse_loss

    scores, y, qid = data
    constants = {"START": cutoffs.START} | {name: value for name, value in settings.items() if name.isupper()}
    settings = {name: value for name, value in settings.items() if not name.isupper()}
    names = np.unique(qid)
    shares = []
    for loss in ("no-relevant@1", "no-relevant@3"):
        offsets = np.append(np.flatnonzero(np.append(True, qid[1:] != qid[:-1])), len(qid))
        whole = parse_loss(loss).of_rankings(y, offsets, 1).mean()
        for part in (0.7, 0.85, 1.0):
            for seed in range(divisions):
                part_of = np.random.default_rng(seed).permutation(names)[: 3 * len(names) // 4]
                here = np.isin(qid, part_of)
                cutoff = Cutoff(loss, at_most=part * whole, confidence=0.9, random_state=seed, **settings)
                try:
                    with patch.multiple(cutoffs, **constants):
                        cutoff.fit(scores[here], y[here], qid=qid[here])
                    shares.append(cutoff.answers(scores[~here], qid=qid[~here]).mean())
                except ValueError:  # too few queries for so small a risk
                    shares.append(0.0)
    return float(np.mean(shares))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, metavar="DIR", help="folder of cisi/ and npl/")
    parser.add_argument("--divisions", type=int, default=100, metavar="N")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    sets = {name: lists_of(args.data / name, files) for name, files in FILES.items()}
    sets["simulated"] = simulated()
    choices: dict[str, dict[str, Any]] = {f"query_score={s}": {"query_score": s} for s in SCORES}
    choices |= {f"START={s:g}": {"START": s} for s in (0.1, 0.2, 0.3, 0.4, 0.5)}
    choices |= {f"STEP={s:g}": {"STEP": s} for s in (0.02, 0.05, 0.1)}
    choices |= {f"learned, {s:g} set aside": {"query_score": "learned", "_ASIDE": s} for s in (0.3, 0.4)}
    print("| choice | " + " | ".join([*sets, "mean"]) + " |\n| --- |" + " --- |" * (len(sets) + 1))
    for name, settings in choices.items():
        values = [answered(data, args.divisions, settings) for data in sets.values()]
        values.append(float(np.mean(values)))
        print(f"| {name} | " + " | ".join(f"{value:.3f}" for value in values) + " |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
