"""Random models and rows in every format; the test suite tries a few of them.

    PYTHONPATH=src:tests python tests/support/fuzz_exports.py --minutes 10 --seed 1

A trial draws rows (constant, tiny, huge, sparse, integer, float32 and missing values, few queries, strange names), fits
a ranker to them, and saves, loads and exports it. What comes out is a sentence or an export: the loaded model has the
same scores, a certificate is what `import_model` of the export says again, and no format ends in another exception.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from truerank import CalibratedRanker, RankingData, export_model, import_model, load_model, save_model
from truerank.core.errors import TruerankError
from truerank.export.formats import FORMATS
from truerank.models.registry import RANKERS, ranker_class
from truerank.rankers.base import Ranker

IMPORTED = {"solr": "solr", "elasticsearch": "elasticsearch", "lightgbm": "lightgbm",
            "xgboost": "xgboost"}  # fmt: skip
WORDS = [
    "bm25",
    "a b",
    "ü",
    "x" * 300,
    "\u202e",
    "'; --",
    '"',
    "\\",
    "0",
    "nan",
    "class",
    "f1",
    "*/",
    "\n",
    "\t",
    "{{q}}",
]
MADE = [
    lambda rng, n: rng.normal(size=n), lambda rng, n: np.round(rng.lognormal(size=n), 3),
    lambda rng, n: rng.normal(size=n) * 10.0 ** rng.integers(-40, 40), lambda rng, n: np.zeros(n),
    lambda rng, n: rng.integers(0, 4, n).astype(float), lambda rng, n: np.full(n, rng.normal() * 1e6),
    lambda rng, n: 1e9 + np.round(rng.uniform(size=n), 6), lambda rng, n: rng.normal(size=n) * 1e-310,
    lambda rng, n: (rng.uniform(size=n) < 0.05) * rng.lognormal(size=n), lambda rng, n: -rng.lognormal(size=n) * 1e30,
    lambda rng, n: rng.integers(-(2**53), 2**53, n).astype(float), lambda rng, n: 2.0 ** rng.integers(-60, 60, n),
]  # fmt: skip
SMALL: dict[str, dict[str, Any]] = {
    "adarank": {"n_estimators": 5}, "rank-boost": {"n_estimators": 5},
    "oblivious-boosting": {"n_estimators": 4, "depth": 3}, "list-net": {"max_iter": 20},
    "nonnegative-list-net": {"max_iter": 20}, "pairwise-descent": {"max_iter": 2000},
}  # fmt: skip


def drawn(seed: int) -> tuple[RankingData, str, dict[str, Any], bool]:
    """Rows, a ranker's name with its parameters, and whether it is to be calibrated."""
    rng = np.random.default_rng(seed)
    m, p = int(rng.integers(2, 12)), int(rng.integers(1, 9))
    sizes = rng.integers(1, 15, m)
    n = int(sizes.sum())
    X = np.column_stack([MADE[int(rng.integers(len(MADE)))](rng, n) for _ in range(p)])
    name = str(rng.choice([name for name in RANKERS if issubclass(ranker_class(name), Ranker)]))
    if rng.uniform() < 0.3:
        X[rng.uniform(size=X.shape) < 0.2] = np.nan
    if rng.uniform() < 0.2:
        with np.errstate(over="ignore"):
            X = X.astype(np.float32)
    y = rng.integers(0, int(rng.integers(1, 5)) + 1, n)
    names = rng.choice(WORDS, p, replace=False).tolist() if rng.uniform() < 0.5 else None
    params = dict(SMALL.get(name, {}))
    if name == "oblivious-boosting":
        params["leaves"] = str(rng.choice(["constant", "fuzzy", "polynomial"]))
    data = RankingData(X, y, np.repeat(np.arange(m), sizes), feature_names=names)
    return data, name, params, bool(rng.uniform() < 0.15)


def trial(seed: int, folder: Path) -> Iterator[tuple[str, str]]:
    """What came of each step: ("fitted ridge", "refused: …"), ("solr", "exported"), or "WRONG: …"."""
    data, name, params, calibrated = drawn(seed)
    rng = random.Random(seed)

    def tried(step: str, work: Any) -> Any:
        try:
            return work(), "done"
        except TruerankError as error:
            text = str(error)
            return None, f"refused: {text}" if 20 < len(text) < 3000 and text.isprintable() else f"WRONG: {error!r}"
        except Exception:
            return None, f"WRONG: {traceback.format_exc()[-900:]}"

    ranker = ranker_class(name)(**params)
    model, found = tried("fit", lambda: (CalibratedRanker(ranker, cv=2) if calibrated else ranker).fit(data))
    yield f"fit {name}", found
    if model is None:
        return
    expected, found = tried("predict", lambda: model.predict(data))
    yield f"predict {name}", found
    if expected is None:
        return
    if not np.isfinite(expected).all():
        yield f"predict {name}", "WRONG: scores that are not finite"
    _, found = tried("save", lambda: save_model(model, folder / "m.json"))
    yield f"save {name}", found
    if found == "done":
        again, found = tried("load", lambda: load_model(folder / "m.json"))
        yield f"load {name}", found if not found.startswith("refused") else f"WRONG: {found}"
        if again is not None and not np.array_equal(again.predict(data), expected):
            yield f"load {name}", "WRONG: other scores after loading"
    for format in rng.sample(list(FORMATS), 5):
        settings: dict[str, Any] = {"certify": data if rng.random() < 0.7 else None, "force": rng.random() < 0.3}
        settings["absent"] = rng.choice([None, None, "zero", "nan"])
        export, found = tried("export", lambda: export_model(model, format, **settings))  # noqa: B023
        yield format, found
        if export is None:
            continue
        own = export.certificate
        if not settings["force"] and (own.rank_agreement < 1 or not np.isfinite(own.largest_difference)):
            yield format, f"WRONG: certified with agreement {own.rank_agreement}"
        yield format, tried("str", lambda: (str(own), json.dumps(own.to_dict())))[1]  # noqa: B023
        if format in IMPORTED:
            path = folder / f"e.{format}"
            path.write_text(str(export))
            given, found = tried("import", lambda: import_model(path, feature_names=data.feature_names))  # noqa: B023
            yield f"import {format}", found
            finite = not np.isnan(np.asarray(data.X, dtype=float)).any()
            if given is not None and finite and settings["certify"] is not None and not settings["force"]:
                scores, found = tried("score", lambda: given.predict(data))  # noqa: B023
                if scores is None:
                    yield f"import {format}", found
                else:
                    with np.errstate(all="ignore"):
                        off = np.abs(scores / own.policy.get("times", 1.0) + own.policy["constant_left_out"] - expected)
                    if not off.max() <= own.largest_difference + 1e-6 * (1 + np.abs(expected).max()):
                        yield (
                            f"import {format}",
                            f"WRONG: off by {off.max():.3g}, certified {own.largest_difference:.3g}",
                        )


def fuzz(seeds: Iterator[int], until: float) -> tuple[collections.Counter, list[tuple[int, str, str]]]:
    """Counts of what came of all steps, and what is wrong with its seed."""
    counts: collections.Counter = collections.Counter()
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            if time.monotonic() > until:
                break
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for step, found in trial(seed, Path(folder)):
                    counts[f"{step}: {found.split(':')[0]}"] += 1
                    if found.startswith("WRONG"):
                        wrong.append((seed, step, found))
                        if os.environ.get("FUZZ_VERBOSE"):
                            print(seed, step, found, flush=True)
    return counts, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0, help="the first of the trials' seeds")
    args = parser.parse_args()
    seeds = iter(range(args.seed, args.seed + 10**9))
    counts, wrong = fuzz(seeds, time.monotonic() + 60 * args.minutes)
    for key, count in sorted(counts.items()):
        print(f"{count:6d} {key}")
    print(f"{len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
