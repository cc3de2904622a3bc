"""LETOR collections and folds, selection by validation, paired tests, and a store from which a killed run resumes.

Every measure is kept by query, in the order of the pooled collection, so that a paired test can compare two learners.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from reproductions import variations
from truerank import RankingData
from truerank.core.checks import check_positive_int
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.core.json_lines import JsonLines
from truerank.core.printing import note, plain
from truerank.core.random_streams import seed_of, stream
from truerank.data.grouping import offsets_of, places_of
from truerank.data.splits import query_folds
from truerank.io.streams import find_file

# Name -> (folder below --data, convention of its published tables, how NULL is read).
COLLECTIONS = {
    "ohsumed": ("letor3-ohsumed/querylevelnorm", "letor3", "error"),
    "ohsumed-null": ("letor3-ohsumed/null", "letor3", "nan"),
    "mq2008": ("letor4-mq2008", "letor4", "error"),
    "mq2008-agg": ("letor4-mq2008-agg", "letor4", "nan"),
}
TRIVIAL = ("best single feature", "constant scores")
"""Rankers that no verdict may credit with a published result."""


@dataclass(frozen=True)
class Collection:
    """Judged queries in five disjoint parts.

    Attributes
    ----------
    name : str
    data : RankingData
        The rows of all parts, in their order.
    parts : list of int64 arrays
        Numbers of the queries of each part S1 … S5.
    convention : str
        The convention of the published tables.
    """

    name: str
    data: RankingData
    parts: list[np.ndarray]
    convention: str


@dataclass(frozen=True)
class Fold:
    """Training, validation and test queries of one fold, as numbers into `data`."""

    name: str
    data: RankingData = field(repr=False)
    train_queries: np.ndarray = field(repr=False)
    valid_queries: np.ndarray = field(repr=False)
    test_queries: np.ndarray = field(repr=False)

    @cached_property
    def train(self) -> RankingData:
        """Rows of the training queries, part by part in the order in which the fold names them."""
        return self.data.take_queries(self.train_queries)

    @cached_property
    def valid(self) -> RankingData:
        """Rows of the validation queries."""
        return self.data.take_queries(self.valid_queries)

    @cached_property
    def test(self) -> RankingData:
        """Rows of the test queries."""
        return self.data.take_queries(self.test_queries)


def load_collection(root: str | os.PathLike[str], name: str) -> Collection:
    """Read one of `COLLECTIONS` from the folder `root`.

    Raises
    ------
    DataFileError
        When a part is missing. The message names the expected files.
    """
    if name not in COLLECTIONS:
        raise InvalidInputError(f"unknown collection {name!r}. Choose among: {', '.join(COLLECTIONS)}")
    folder, convention, missing = COLLECTIONS[name]
    loaded = load_parts(Path(root) / folder, missing=missing)
    ends = offsets_of([part.n_queries for part in loaded])
    parts = [np.arange(a, b) for a, b in zip(ends[:-1], ends[1:])]
    data = RankingData.concatenate(loaded)
    order = variations.row_order(data.offsets)
    ids = None if data.doc_ids is None else data.doc_ids[order]
    assert data.y is not None
    data = RankingData.from_grouped(
        data.X[order], data.y[order], data.offsets, data.query_ids, doc_ids=ids, feature_names=data.feature_names
    )
    return Collection(name, data, parts, convention)


def load_parts(folder: str | os.PathLike[str], *, missing: str = "error") -> list[RankingData]:
    """Read the parts S1 … S5 (or A1 … A5) of a folder, each as `.txt`, `.txt.gz`, `.txt.xz` or `.txt.zst`."""
    folder = Path(folder)
    letter = "A" if find_file(folder, "A1.txt") else "S"
    paths = []
    for number in range(1, 6):
        path = find_file(folder, f"{letter}{number}.txt")
        if path is None:
            raise DataFileError(
                f"expected the part {letter}{number}.txt (or .txt.gz, .txt.xz, .txt.zst) of a LETOR collection in five "
                "parts; --data names the folder that holds letor4-mq2008/, letor3-ohsumed/ and so on",
                str(folder),
            )
        paths.append(path)
    from truerank import read_letor

    return [read_letor(str(path), missing=missing) for path in paths]


def letor_folds(collection: Collection) -> list[Fold]:
    """The five published folds in LETOR 4's order: fold 1 tests on S5.

    Each fold tests on S_k, validates on S_(k-1) and trains on the other three. LETOR 3 numbers the same folds by their
    test part.
    """
    return _cyclic_folds(collection.data, collection.parts, "fold ")


def random_folds(data: RankingData, repetition: int, *, seed: int = 0) -> list[Fold]:
    """Five folds like LETOR's, of a random division of the queries; `seed` and `repetition` determine the division."""
    parts = query_folds(data.n_queries, 5, random_state=stream(seed, "assignment", repetition))
    return _cyclic_folds(data, parts, f"repetition {repetition} fold ")


def _cyclic_folds(data: RankingData, parts: Sequence[np.ndarray], prefix: str) -> list[Fold]:
    folds = []
    for number in range(1, 6):
        train, valid, test = letor_fold_parts(number)
        rows = np.concatenate([parts[k - 1] for k in train])
        folds.append(Fold(f"{prefix}{number}", data, rows, parts[valid - 1], parts[test - 1]))
    return folds


def letor_fold_parts(fold: int) -> tuple[tuple[int, int, int], int, int]:
    """Parts of LETOR fold 1 … 5 as (training parts, validation part, test part), in LETOR 4's naming S1 … S5.

    Fold 1 trains on S1 S2 S3, validates on S4, tests on S5; the next folds shift by one, cyclically.

    >>> letor_fold_parts(2)
    ((2, 3, 4), 5, 1)
    """
    if fold not in (1, 2, 3, 4, 5):
        raise InvalidInputError(f"LETOR has the folds 1 to 5, got {fold!r}")
    a, b, c, d, e = ((fold + shift - 1) % 5 + 1 for shift in range(5))
    return (a, b, c), d, e


def random_trials(
    n_items: int, sizes: tuple[int, ...], n_trials: int, *, random_state: Any = None
) -> list[tuple[np.ndarray, ...]]:
    """Assign items (queries) to roles at random, so that every item has each role equally often (SVM-MAP's protocol).

    Successive blocks of `sizes[0]` items of a random order have the first role, one block for each trial. The other
    roles follow cyclically. After the last whole block a new order is drawn, in which the items that had the second
    role least often get its places. With 10, 5 and 35 of 50 queries, the five trials of one order train on disjoint
    queries, and each pair of orders validates every query once.

    Parameters
    ----------
    n_items : int
    sizes : tuple of int
        Number of items in each role; must add up to `n_items`.
    n_trials : int
    random_state : int or generator, optional

    Returns
    -------
    list of tuples of int64 arrays
        A tuple for each trial, with an ascending array for each role.

    Examples
    --------
    >>> trials = random_trials(5, (1, 1, 3), 5, random_state=1)
    >>> sorted(int(train[0]) for train, _, _ in trials)
    [0, 1, 2, 3, 4]
    """
    if sum(sizes) != n_items or min(sizes) < 0:
        raise InvalidInputError(f"the roles' sizes {sizes} must add up to the {n_items} items")
    n_trials = check_positive_int(n_trials, "n_trials")
    generator = stream(seed_of(random_state), "random-trials")
    bounds = np.cumsum((0, *sizes))
    trials: list[tuple[np.ndarray, ...]] = []
    starts = range(0, n_items - sizes[0] + 1, max(sizes[0], 1))
    second = np.zeros(n_items, dtype=bool)
    second[[place % n_items for start in starts for place in range(start + bounds[1], start + bounds[2])]] = True
    times = np.zeros(n_items, dtype=np.int64)  # that each item had the second role in whole orders
    while len(trials) < n_trials:
        drawn = generator.permutation(n_items)
        drawn = drawn[np.argsort(times[drawn], kind="stable")]
        order = np.empty(n_items, dtype=np.int64)
        order[second] = generator.permutation(drawn[: second.sum()])
        order[~second] = generator.permutation(drawn[second.sum() :])
        times[order[second]] += 1
        for start in starts[: n_trials - len(trials)]:
            rolled = np.roll(order, -start)
            trials.append(tuple(np.sort(rolled[a:b]) for a, b in zip(bounds[:-1], bounds[1:])))
    return trials


def rows_of(data: RankingData, queries: np.ndarray) -> np.ndarray:
    """Rows of some queries, in the order of `data.take_queries(queries)`."""
    return places_of(data.offsets, queries)[0]


def grouped_scores(ranker: Any, data: RankingData) -> np.ndarray:
    """A ranker's scores (n,) in the grouped order of `data`, which measures expect."""
    return data.grouped(ranker.predict(data))


@dataclass(frozen=True)
class Selection:
    """The chosen candidate, its fitted ranker and validation measure, and the measures of all candidates."""

    params: dict[str, Any]
    ranker: Any
    value: float
    values: list[float]


def select(
    candidates: Sequence[dict[str, Any]], fit: Callable[[dict[str, Any], Fold], Any], fold: Fold, measure: Any
) -> Selection:
    """Fit every candidate on the training queries and keep the best by `measure` on the validation queries.

    The first of equal candidates wins, so list the simplest first. Tied documents count with the average over their
    orders (`Measure.tie_averaged`), so that the order of a file's rows has no effect on the choice.

    Parameters
    ----------
    candidates : sequence of dict
        Settings for `fit`.
    fit : callable (settings, fold) -> fitted ranker
    fold : Fold
    measure : Measure
    """
    if not candidates:
        raise InvalidInputError("select: got no candidates")
    judgements, measure = fold.valid.judgements(), measure.tie_averaged()
    best: tuple[float, Any, dict[str, Any]] | None = None
    values = []
    for params in candidates:
        ranker = fit(params, fold)
        value = float(measure.mean(judgements, grouped_scores(ranker, fold.valid)))
        values.append(value)
        if measure.improves(value, None if best is None else best[0]):
            best = value, ranker, params
    assert best is not None
    return Selection(best[2], best[1], best[0], values)


def measure_test(ranker: Any, fold: Fold, measures: Mapping[str, Any]) -> dict[str, list[float]]:
    """Each measure's values by test query, as lists that a `ResultStore` can keep."""
    judgements, scores = fold.test.judgements(), grouped_scores(ranker, fold.test)
    return {name: measure.per_query(judgements, scores).tolist() for name, measure in measures.items()}


def pool(folds: Sequence[Fold], values: Sequence[Sequence[float | None]]) -> np.ndarray:
    """Test values of all folds as one array (m,) in the order of the collection's queries."""
    result = np.full(folds[0].data.n_queries, np.nan)
    for fold, part in zip(folds, values, strict=True):
        result[fold.test_queries] = np.array(part, dtype=np.float64)  # a store writes nan as None
    return result


def mean_of_folds(folds: Sequence[Fold], pooled: np.ndarray) -> float:
    """Mean over folds of the mean over each fold's test queries, as in LETOR's tables."""
    return float(np.mean([np.nanmean(pooled[fold.test_queries]) for fold in folds]))


def spread(values: Iterable[float]) -> dict[str, float]:
    """Mean, sample standard deviation and range of repeated results."""
    array = np.asarray(list(values), dtype=np.float64)
    deviation = float(array.std(ddof=1)) if len(array) > 1 else 0.0
    return {
        "n": len(array),
        "mean": float(array.mean()),
        "sd": deviation,
        "min": float(array.min()),
        "max": float(array.max()),
    }


def compare_paired(a: np.ndarray, b: np.ndarray) -> dict[str, float]:
    """Compare two results by query: difference of means, wins, losses, ties, and the p-values of three tests.

    With repeated divisions pass each query's mean over them: only queries are independent, repetitions are not.
    """
    from truerank.significance import paired_t, randomisation, wilcoxon, win_loss

    return (
        {"difference": float((np.asarray(a) - np.asarray(b)).mean())}
        | win_loss(a, b)._asdict()
        | {
            "p_paired_t": float(paired_t(a, b).p),
            "p_wilcoxon": float(wilcoxon(a, b).p),
            "p_randomisation": float(randomisation(a, b).p),
        }
    )


class ResultStore:
    """Store the finished pieces of a long run, one JSON line each, so that a killed run can resume.

    Lines with another `stamp` belong to other settings. They are kept and ignored.

    Parameters
    ----------
    path : path or None
        None keeps results in memory only.
    stamp : JSON value
        The settings that change every result, such as the seed.

    Examples
    --------
    >>> store = ResultStore(None)
    >>> store.compute({"fold": 1}, lambda: {"AP": 0.5})
    {'AP': 0.5}
    >>> store.compute({"fold": 1}, lambda: 1 / 0)
    {'AP': 0.5}
    """

    def __init__(self, path: str | os.PathLike[str] | None, stamp: Any = None) -> None:
        if path is not None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        expected = "expected a JSON object with stamp, key and result; remove this file to compute everything anew"
        self._lines = JsonLines(path, expected)
        self.path = self._lines.path
        self._stamp = _canonical(stamp)
        self._results: dict[str, Any] = {}
        for number, record in enumerate(self._lines.held, start=1):
            if not isinstance(record, dict) or not {"stamp", "key", "result"} <= set(record):
                raise DataFileError(expected, self.path, number)
            if _canonical(record["stamp"]) == self._stamp and record["result"] is not None:  # null: not finished
                self._results[_canonical(record["key"])] = record["result"]
        self.n_resumed = len(self._results)

    def compute(self, key: Any, work: Callable[[], Any]) -> Any:
        """Return the stored result of `key` (a JSON value), or compute it by `work()` and store it."""
        name = _canonical(key)
        if name not in self._results:
            self._results[name] = result = plain(work())
            self._lines.append({"stamp": json.loads(self._stamp), "key": plain(key), "result": result})
        return self._results[name]

    def __contains__(self, key: Any) -> bool:
        return _canonical(key) in self._results

    def __len__(self) -> int:
        return len(self._results)


def open_store(folder: str | os.PathLike[str], stamp: Any) -> ResultStore:
    """The store of an experiment in its `--out` folder; says how many pieces it already has."""
    store = ResultStore(Path(folder) / "results.jsonl", stamp)
    if store.n_resumed:
        note(f"{store.n_resumed} finished pieces found in {store.path}")
    return store


def _canonical(value: Any) -> str:
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"))


def published(paper: str) -> dict[str, Any]:
    """Read the published figures of a paper from `published/<paper>.json`.

    Every file names its `source`, the `page` (table, section) and the `conditions` of the figures.

    Examples
    --------
    >>> published("descent")["tau"]["linear SVR before it, defaults, its seed"]
    0.4651331622497886
    """
    text = resources.files("reproductions").joinpath("published", f"{paper}.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def show(text: str) -> None:
    """Write a report to stdout."""
    sys.stdout.write(f"{text}\n")


def add_options(parser: Any, out: str, folders: str = "letor4-mq2008/ and so on", seed: int | None = 0) -> None:
    """Add the options that the experiments on collections share."""
    parser.add_argument("--data", required=True, metavar="DIR", help=f"folder that holds {folders}")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions: shows that everything runs")
    said = "seed of all random draws (default: 0)" if seed == 0 else "draw folds at random (default: in file order)"
    parser.add_argument("--seed", type=int, default=seed, metavar="N", help=said)
    parser.add_argument("--out", default=out, metavar="DIR", help=f"folder of results and resuming (default: {out})")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
