"""The union of the documents that several runs retrieved for each topic, and the runs' ranked lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.kernel import kernel
from truerank.core.types import ArrayLike
from truerank.data.grouping import RowsByQuery, offsets_of, places_of, query_of_rows
from truerank.data.ranking_data import Judgements
from truerank.features.document_union import join_lists
from truerank.io.trec import Qrels, Run, as_qrels, as_run, judge_lists
from truerank.matrices.sorting import best_first


class RunPool(RowsByQuery):
    """The documents that any of r runs retrieved for m topics, and the runs' lists as ranked rows of them.

    Lists are ranked as in trec_eval: by score, and equal scores by descending document id. The order of the lines
    and the rank column of a file have no effect. Memory is proportional to the number of retrieved documents.

    Parameters
    ----------
    runs : mapping of name to run, or sequence of Run
        A run is a `Run`, a path, or `{topic: {document: score}}`. Runs of a sequence are named by their tags.
    qrels : Qrels, optional
        Topics then have the order of the qrels, and topics without judgements are left out. Without qrels they have
        the order of first appearance over the runs.

    Attributes
    ----------
    names : list of str (r,)
    query_ids : str array (m,)
    offsets : int64 array (m + 1,)
        Rows of topic i are `offsets[i]:offsets[i + 1]`.
    ids : DocumentIds (n,)
        By descending id within a topic; `doc_ids` are the same as strings.
    list_offsets : int64 array (m r + 1,)
        Entries of run j's list for topic i are `list_offsets[i * r + j]:list_offsets[i * r + j + 1]`.
    rows, scores : int64 and float64 arrays (e,)
        Row and score of each entry, lists in ranked order.
    grades : float64 array (n,) or None
        NaN for unjudged documents; None without qrels.
    unretrieved, unretrieved_offsets : arrays or None
        Grades of the judged documents that no run retrieved, by topic.
    topics_without_runs : list of str
        Topics of the qrels that no run has, in alphabetical order. They are not in `query_ids`.

    Raises
    ------
    InvalidInputError
        On no runs, names that repeat, scores that are not finite, or qrels that share no topic with the runs.

    Examples
    --------
    >>> pool = RunPool({"a": {"1": {"d1": 4.0, "d2": 2.0}}, "b": {"1": {"d2": 7.0, "d3": 7.0}}})
    >>> pool.doc_ids.tolist(), pool.rows.tolist(), pool.ranks.tolist()
    (['d3', 'd2', 'd1'], [2, 1, 0, 1], [1, 2, 1, 2])
    """

    def __init__(self, runs: object, qrels: Qrels | None = None) -> None:
        named = named_runs(runs)
        self.names = list(named)
        places = [{topic: i for i, topic in enumerate(run.query_ids.tolist())} for run in named.values()]
        if qrels is None:
            topics = list(dict.fromkeys(topic for place in places for topic in place))
        else:
            topics = [topic for topic in qrels.query_ids.tolist() if any(topic in place for place in places)]
            if not topics:
                raise InvalidInputError(
                    f"the runs and the qrels share no topic: run {self.names[0]} has {list(places[0])[:3]}…, the qrels "
                    f"have {qrels.query_ids[:3].tolist()}…; topics are compared as text"
                )
        self.query_ids = np.array(topics, dtype=str)
        self.topics_without_runs = [] if qrels is None else sorted({*qrels.query_ids.tolist()} - {*topics})
        lists = np.zeros((len(topics), len(named), 2), dtype=np.int64)  # first entry and length of every list
        for j, (run, place) in enumerate(zip(named.values(), places)):
            here = [i for i, topic in enumerate(topics) if topic in place]
            numbers = np.array([place[topics[i]] for i in here], dtype=np.int64)
            lists[here, j, 0] = run.offsets[numbers]
            lists[here, j, 1] = np.diff(run.offsets)[numbers]
        self.ids, self.offsets, self.list_offsets, self.rows, self.scores = join_lists(list(named.values()), lists)
        if not np.isfinite(self.scores).all():
            raise InvalidInputError("scores of runs must be finite numbers, got nan or infinity")
        _rank_lists(self.list_offsets, self.scores, self.rows)
        self.grades: np.ndarray | None = None
        self.unretrieved: np.ndarray | None = None
        self.unretrieved_offsets: np.ndarray | None = None
        if qrels is not None:
            self.judge(qrels)

    def judge(self, qrels: Qrels) -> None:
        """Use the grades of `qrels` without changing the topics."""
        found = judge_lists(qrels, self.query_ids, self.doc_ids, self.offsets)
        assert found.judged is not None
        self.grades = np.where(found.judged, found.grades, np.nan)
        self.unretrieved, self.unretrieved_offsets = found.missing_grades, found.missing_offsets

    @property
    def doc_ids(self) -> np.ndarray:
        """Document ids as strings, StringDType (n,)."""
        return self.ids.texts

    @property
    def n_runs(self) -> int:
        return len(self.names)

    @property
    def list_sizes(self) -> np.ndarray:
        """Documents of each list, int64 (m r,)."""
        return np.diff(self.list_offsets)

    @property
    def lengths(self) -> np.ndarray:
        """Documents of each list by topic and run, int64 (m, r)."""
        return self.list_sizes.reshape(self.n_queries, self.n_runs)

    @property
    def ranks(self) -> np.ndarray:
        """Rank of each entry in its list, 1 is best; int64 (e,)."""
        return np.arange(len(self.rows)) - self.spread(self.list_offsets[:-1]) + 1

    @property
    def run_of_entry(self) -> np.ndarray:
        return self.spread(np.tile(np.arange(self.n_runs), self.n_queries))

    @property
    def query_of_row(self) -> np.ndarray:
        return query_of_rows(self.offsets)

    def findings(self) -> list[dict[str, Any]]:
        """Return data quality findings of the lists, dicts of "code", "run" and "topics".

        Codes: "missing-topic", no document for the topic; "short-list", fewer than a tenth of the median list;
        "all-tied", several documents with equal scores, which only the document ids rank.
        """
        lengths = self.lengths
        usual = float(np.median(lengths[lengths > 0])) if (lengths > 0).any() else 0.0
        low, high = (self.per_list(way, self.scores).reshape(lengths.shape) for way in (np.minimum, np.maximum))
        masks = {
            "missing-topic": lengths == 0,
            "short-list": (lengths > 0) & (lengths < 0.1 * usual),
            "all-tied": (lengths > 1) & (low == high),
        }
        return [
            {"code": code, "run": name, "topics": self.query_ids[mask[:, j]].tolist()}
            for code, mask in masks.items()
            for j, name in enumerate(self.names)
            if mask[:, j].any()
        ]

    def per_list(self, reduce: np.ufunc, values: np.ndarray) -> np.ndarray:
        """Reduce the entries (e,) of each list to a number (m r,); 0 for empty lists."""
        result = np.zeros(len(self.list_offsets) - 1)
        full = np.flatnonzero(self.list_sizes)
        if len(full):
            result[full] = reduce.reduceat(values, self.list_offsets[full])
        return result

    def spread(self, by_list: np.ndarray) -> np.ndarray:
        """Repeat the number of each list (m r,) for its entries (e,)."""
        return np.repeat(by_list, self.list_sizes)

    def add_up(self, values: np.ndarray) -> np.ndarray:
        """Sum the entries' values (e,) for each row (n,)."""
        return np.bincount(self.rows, weights=values, minlength=self.n_rows)

    def add_up_ranks(self, by_rank: np.ndarray) -> np.ndarray:
        """Sum `by_rank[rank - 1]` over the ranks of each row (n,)."""
        return self.add_up(by_rank[self.ranks - 1])

    @property
    def times_retrieved(self) -> np.ndarray:
        """Runs that retrieved each document, float64 (n,)."""
        return np.bincount(self.rows, minlength=self.n_rows).astype(np.float64)

    def checked_weights(self, weights: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return `weights` as float64 (r,), or raise an error unless each run has a finite number."""
        values = np.asarray(weights, dtype=np.float64)
        if values.shape != (self.n_runs,) or not np.isfinite(values).all():
            raise InvalidInputError(
                f"weights must hold one finite number for each of the {self.n_runs} runs, got {weights!r}"
            )
        return values

    @property
    def longest(self) -> int:
        """Documents of the longest list."""
        return int(self.list_sizes.max(initial=0))

    def within_depth(self, depth: int | None) -> np.ndarray:
        """Return a mask (n,) of the rows in the first `depth` documents of some run; all rows for None."""
        chosen = np.ones(self.n_rows, dtype=bool)
        if depth is not None:
            chosen[:] = False
            chosen[self.rows[self.ranks <= check_positive_int(depth, "depth")]] = True
        return chosen

    def best(self, scores: np.ndarray, depth: int | None = None) -> np.ndarray:
        """Return at most `depth` rows of each topic by descending score, ties by descending document id."""
        values = -np.asarray(scores, dtype=np.float64)
        parts = [
            start + np.argsort(values[start:stop], kind="stable")[:kept]
            for start, stop, kept in zip(self.offsets[:-1], self.offsets[1:], self._kept(depth))
        ]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    def _kept(self, depth: int | None) -> np.ndarray:
        sizes = np.diff(self.offsets)
        return sizes if depth is None else np.minimum(sizes, check_positive_int(depth, "depth"))

    def judgements(self, rows: np.ndarray) -> Judgements:
        """Return judgements of the chosen rows by topic; every other judged document counts as missing.

        Topics without a chosen row become queries without rows. Under `trec`, ties break by descending document id.
        """
        if self.grades is None or self.unretrieved is None or self.unretrieved_offsets is None:
            raise InvalidInputError("this pool has no judgements. Create it with qrels")
        query = self.query_of_row
        grades = self.grades[rows]
        left_out = ~np.isnan(self.grades)
        left_out[rows] = False
        topics = np.concatenate([query[left_out], query_of_rows(self.unretrieved_offsets)])
        order = np.argsort(topics, kind="stable")
        missing = np.concatenate([self.grades[left_out], self.unretrieved])[order]

        def ends(of: np.ndarray) -> np.ndarray:
            return offsets_of(np.bincount(of, minlength=self.n_queries))

        return Judgements(
            np.nan_to_num(grades), ends(query[rows]), judged=~np.isnan(grades), tie_keys=-rows,
            query_ids=self.query_ids, missing_grades=missing, missing_offsets=ends(topics),
        )  # fmt: skip

    def to_run(self, scores: np.ndarray, *, depth: int | None = 1000, tag: str = "fusion") -> Run:
        """Return the best `depth` documents of each topic by `scores` (n,), as a run."""
        rows = self.best(scores, depth)
        offsets = offsets_of(self._kept(depth))
        return Run(self.query_ids, offsets, self.ids.take(rows), scores[rows], tag)

    def take(self, queries: ArrayLike) -> RunPool:
        """Return the pool of some topics (numbers), in the given order."""
        chosen = np.asarray(queries, dtype=np.int64)
        rows, offsets = places_of(self.offsets, chosen)
        lists = (chosen[:, None] * self.n_runs + np.arange(self.n_runs)).ravel()
        part = self._part(self.names, chosen, offsets, rows, *places_of(self.list_offsets, lists))
        part.topics_without_runs = []
        if self.unretrieved is not None and self.unretrieved_offsets is not None:
            places, part.unretrieved_offsets = places_of(self.unretrieved_offsets, chosen)
            part.unretrieved = self.unretrieved[places]
        return part

    def select_runs(self, runs: Sequence[int]) -> RunPool:
        """Return the pool of some runs (numbers); judged documents of other runs only become unretrieved."""
        chosen = np.asarray(runs, dtype=np.int64)
        lists = (np.arange(self.n_queries)[:, None] * self.n_runs + chosen).ravel()
        entries, list_offsets = places_of(self.list_offsets, lists)
        kept = np.zeros(self.n_rows, dtype=bool)
        kept[self.rows[entries]] = True
        rows, names = np.flatnonzero(kept), [self.names[j] for j in chosen]
        part = self._part(names, slice(None), offsets_of(kept)[self.offsets], rows, entries, list_offsets)
        if self.grades is not None:
            judged = self.judgements(rows)
            part.unretrieved, part.unretrieved_offsets = judged.missing_grades, judged.missing_offsets
        return part

    def select_names(self, names: Sequence[str]) -> RunPool:
        """Return the pool of the runs of a model, in its order, or raise an error if one is missing."""
        if self.names == list(names):
            return self
        lacking = [name for name in names if name not in self.names]
        if lacking:
            raise InvalidInputError(
                f"the runs {', '.join(self.names[:6])}{' …' * (len(self.names) > 6)} lack {', '.join(lacking[:6])}; "
                f"the model needs {', '.join(names[:6])}{' …' * (len(names) > 6)}. Runs have the names of their files "
                "without endings"
            )
        return self.select_runs([self.names.index(name) for name in names])

    def _part(
        self,
        names: list[str],
        queries: np.ndarray | slice,
        offsets: np.ndarray,
        rows: np.ndarray,
        entries: np.ndarray,
        lists: np.ndarray,
    ) -> RunPool:
        part = RunPool.__new__(RunPool)
        part.names, part.query_ids = list(names), self.query_ids[queries]
        part.topics_without_runs = self.topics_without_runs
        new_row = np.empty(self.n_rows, dtype=np.int64)
        new_row[rows] = np.arange(len(rows))
        part.offsets, part.ids = offsets, self.ids.take(rows)
        part.list_offsets, part.rows, part.scores = lists, new_row[self.rows[entries]], self.scores[entries]
        part.grades = None if self.grades is None else self.grades[rows]
        part.unretrieved = part.unretrieved_offsets = None
        return part

    def __repr__(self) -> str:
        return f"RunPool({self.n_runs} runs, {self.n_queries} topics, {self.n_rows} documents)"


def named_runs(runs: object) -> dict[str, Run]:
    """Return runs by name, from a mapping or a sequence of runs, paths or `{topic: {document: score}}`."""
    if isinstance(runs, RunPool | Run | str | bytes) or not isinstance(runs, Mapping | Sequence):
        raise InvalidInputError(
            f"runs must be a mapping of names to runs or a sequence of runs, got {type(runs).__name__}"
        )
    if isinstance(runs, Mapping):
        named = {str(name): as_run(run, str(name)) for name, run in runs.items()}
    else:
        read = [as_run(run) for run in runs]
        tags = [run.tag or f"run {number}" for number, run in enumerate(read, 1)]
        named = {f"{tag} ({i})" if tags.count(tag) > 1 else tag: run for i, (tag, run) in enumerate(zip(tags, read), 1)}
    if not named:
        raise InvalidInputError("got no runs; give at least one")
    return named


def judged_pool(runs: object, qrels: object = None) -> RunPool:
    """Return a pool with judgements, from runs and qrels (or their paths), or such a pool itself."""
    if isinstance(runs, RunPool):
        if qrels is not None:
            raise InvalidInputError(
                "qrels were given with a RunPool, which has its own judgements. Leave out the qrels"
            )
        if runs.grades is None:
            raise InvalidInputError("this pool has no judgements. Create it with qrels")
        return runs
    if qrels is None:
        raise InvalidInputError("no qrels were given; a learned fusion needs judgements of the runs' topics")
    return RunPool(runs, as_qrels(qrels))


@kernel
def _rank_lists(lists, scores, rows):
    """Sort every list by descending score, equal scores by ascending row. Most lists are already sorted."""
    for i in range(len(lists) - 1):
        start, stop = lists[i], lists[i + 1]
        k = start + 1
        while k < stop and scores[k] <= scores[k - 1]:
            k += 1
        if k < stop:
            order = np.empty(stop - start, dtype=np.int64)
            best_first(scores[start:stop], order)
            scores[start:stop] = scores[start:stop][order]
            rows[start:stop] = rows[start:stop][order]
        tied = start
        for k in range(start + 1, stop + 1):
            if k == stop or scores[k] != scores[tied]:
                if k - tied > 1:
                    rows[tied:k].sort()
                tied = k
