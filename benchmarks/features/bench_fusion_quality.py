"""Learned fusion of TREC-9's runs beside the unlearned methods: all runs, random subsets, and by judged topics.

Twenty random subsets of 2, 3, 5 and 10 runs; each is cross-validated over five random folds of topics, folds of their
own for each subset. Needs the collections that TRUERANK_DATA names.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from truerank import RunPool, cross_validate_fusion
from truerank.core.printing import table
from truerank.core.random_streams import stream
from truerank.io.streams import files_of
from truerank.io.trec import read_qrels, read_run
from truerank.significance import holm, randomisation

DRAWS = 20
METHODS = ("rrf", "comb-sum", "comb-mnz", "comb-anz", "borda", "weighted-sum", "best-run")


def trec9() -> RunPool:
    """The 104 runs of TREC-9's web track with their judgements."""
    folder = Path(os.environ["TRUERANK_DATA"]) / "trec9-web-runs"
    runs = {path.name.split(".")[0]: read_run(path) for path in files_of(folder / "runs")}
    return RunPool(runs, read_qrels(folder / "qrels.451-500.txt.xz"))


def run() -> None:
    pool = trec9()
    print("## All 104 runs\n")
    print(cross_validate_fusion(pool, measures="AP"))
    print(f"\n## {DRAWS} random subsets: means of MAP over the draws\n")
    rows = []
    for r in (2, 3, 5, 10):
        means: dict[str, list[float]] = {name: [] for name in ("learned", *METHODS)}
        advice = 0
        for draw in range(DRAWS):
            chosen = np.sort(stream(0, f"subset {r} {draw}").permutation(pool.n_runs)[:r])
            found = cross_validate_fusion(pool.select_runs(chosen.tolist()), measures="AP", random_state=draw)
            for name, mean in found.means()["MAP"].items():
                means[name].append(mean)
            advice += found.recommended == "learned"
        learned = np.array(means["learned"])
        p = holm([randomisation(learned, means[name]).p for name in METHODS])
        for name in ("learned", *METHODS):
            other = np.array(means[name])
            rows.append(
                [r, name, float(other.mean())]
                + ([None, "", None] if name == "learned" else
                   [float((learned - other).mean()), f"{(learned > other).sum()}/{(learned < other).sum()}",
                    float(p[METHODS.index(name)])])
            )  # fmt: skip
        best = np.max([means[name] for name in METHODS if name != "best-run"], axis=0)
        rows.append([
            r, "best unlearned, in hindsight", float(best.mean()), float((learned - best).mean()),
            f"{(learned > best).sum()}/{(learned < best).sum()}", randomisation(learned, best).p,
        ])  # fmt: skip
        rows.append([r, f"`learned` recommended in {advice} of {DRAWS}", None, None, "", None])
    print(table(rows, ["runs", "method", "MAP", "learned is", "draws won/lost", "p, holm"]))


if __name__ == "__main__":
    run()
