"""The union of the documents that several runs retrieved for each topic, and the runs' ranked lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError, Remedy
from truerank.core.names import resolve
from truerank.core.types import ArrayLike, DTypeLike
from truerank.data.grouping import RowsByQuery, offsets_of, places_of, query_of_rows
from truerank.data.ranking_data import Judgements, RankingData
from truerank.io.document_ids import DocumentIds
from truerank.io.trec import Qrels, Run, as_qrels, as_run, judge_lists

MARGIN = 0.05


class RunPool(RowsByQuery):
    """The documents that any of r runs retrieved for m topics, and the runs' lists as ranked rows of the documents.

    Lists are ranked as in trec_eval: by score, and equal scores by descending document id. The order of the lines
    and the rank column of a file have no effect. Memory is proportional to the number of retrieved documents.

    Parameters
    ----------
    runs : mapping of name to run, or sequence of Run
        A run is a `Run`, a path, or `{topic: {document: score}}`. Runs of a sequence are named by their tags.
    qrels : qrels, optional
        Topics then have the order of the qrels, and topics without judgements are left out. Without qrels, topics have
        the order of first appearance over the runs.

    query_features : mapping of topic to mapping of name to number, optional
        Features of topics for `QueryFusion`, such as the number of words.

    Attributes
    ----------
    names : list of str (r,)
    query_ids : str array (m,)
    offsets : int64 array (m + 1,)
        Rows of topic i are `offsets[i]:offsets[i + 1]`.
    ids : DocumentIds (n,)
        Ids in descending order within a topic; `doc_ids` has the ids as strings.
    list_offsets : int64 array (m r + 1,)
        Entries of run j's list for topic i are `list_offsets[i * r + j]:list_offsets[i * r + j + 1]`.
    rows, scores : int64 and float64 arrays (e,)
        Row and score of each entry, lists in ranked order.
    grades : float64 array (n,) or None
        NaN for unjudged documents; None without qrels.
    unretrieved, unretrieved_offsets : arrays or None
        Grades of the judged documents that no run retrieved, by topic.
    topics_without_runs : list of str
        Topics of the qrels that no run has, in alphabetical order. These topics are not in `query_ids`.

    Raises
    ------
    InvalidInputError
        For no runs, names that repeat, scores that are not finite, or qrels that share no topic with the runs.

    Examples
    --------
    >>> pool = RunPool({"a": {"1": {"d1": 4.0, "d2": 2.0}}, "b": {"1": {"d2": 7.0, "d3": 7.0}}})
    >>> pool.doc_ids.tolist(), pool.rows.tolist(), pool.ranks.tolist()
    (['d3', 'd2', 'd1'], [2, 1, 0, 1], [1, 2, 1, 2])
    """

    def __init__(
        self,
        runs: object,
        qrels: object = None,
        *,
        query_features: Mapping[Any, Mapping[str, float]] | None = None,
    ) -> None:
        named = named_runs(runs)
        judged = None if qrels is None else as_qrels(qrels)
        self.names = list(named)
        places = [{topic: i for i, topic in enumerate(run.query_ids.tolist())} for run in named.values()]
        if judged is None:
            topics = list(dict.fromkeys(topic for place in places for topic in place))
        else:
            topics = [topic for topic in judged.query_ids.tolist() if any(topic in place for place in places)]
            if not topics:
                raise InvalidInputError(
                    f"the runs and the qrels share no topic: run {self.names[0]} has {list(places[0])[:3]}…, the "
                    f"qrels have {judged.query_ids[:3].tolist()}…. Topics are compared as text",
                    code="no-common-topic",
                )
        self.query_ids = np.array(topics, dtype=str)
        self.topics_without_runs = [] if judged is None else sorted({*judged.query_ids.tolist()} - {*topics})
        lists = np.zeros((len(topics), len(named), 2), dtype=np.int64)  # first entry and length of every list
        for j, (run, place) in enumerate(zip(named.values(), places)):
            here = [i for i, topic in enumerate(topics) if topic in place]
            numbers = np.array([place[topics[i]] for i in here], dtype=np.int64)
            lists[here, j, 0] = run.offsets[numbers]
            lists[here, j, 1] = np.diff(run.offsets)[numbers]
        self.ids, self.offsets, self.list_offsets, self.rows, self.scores = join_lists(list(named.values()), lists)
        if not np.isfinite(self.scores).all():
            wrong = self.scores[~np.isfinite(self.scores)][0]
            raise InvalidInputError(f"scores of runs must be finite numbers, got {wrong}", argument="scores")
        _rank_lists(self.list_offsets, self.scores, self.rows)
        self.query_values: np.ndarray | None = None  # (m, f)
        self.query_value_names: list[str] = []
        if query_features is not None:
            found = resolve("truerank.features.query_features:own_features")(query_features, topics)
            self.query_values, self.query_value_names = found
        self.grades: np.ndarray | None = None
        self.unretrieved: np.ndarray | None = None
        self.unretrieved_offsets: np.ndarray | None = None
        if judged is not None:
            self.judge(judged)

    def judge(self, qrels: Qrels) -> None:
        """Set the grades of the documents to those of `qrels`; the topics do not change."""
        found = judge_lists(qrels, self.query_ids, self.doc_ids, self.offsets)
        assert found.judged is not None
        self.grades = np.where(found.judged, found.grades, np.nan)
        self.unretrieved, self.unretrieved_offsets = found.missing_grades, found.missing_offsets

    @property
    def doc_ids(self) -> np.ndarray:
        """The document ids as strings, StringDType (n,)."""
        return self.ids.texts

    @property
    def n_runs(self) -> int:
        return len(self.names)

    @property
    def list_sizes(self) -> np.ndarray:
        """The number of documents of each list, int64 (m r,)."""
        return np.diff(self.list_offsets)

    @property
    def lengths(self) -> np.ndarray:
        """The number of documents of each list by topic and run, int64 (m, r)."""
        return self.list_sizes.reshape(self.n_queries, self.n_runs)

    @property
    def ranks(self) -> np.ndarray:
        """The rank of each entry in its list, from 1 (best), int64 (e,)."""
        return np.arange(len(self.rows)) - self.spread(self.list_offsets[:-1]) + 1

    @property
    def run_of_entry(self) -> np.ndarray:
        return self.spread(np.tile(np.arange(self.n_runs), self.n_queries))

    @property
    def query_of_row(self) -> np.ndarray:
        return query_of_rows(self.offsets)

    def findings(self) -> list[dict[str, Any]]:
        """Return data quality findings of the lists, dicts of "code", "run" and "topics".

        Codes: "missing-topic", no document for the topic; "short-list", fewer documents than a tenth of the median
        list; "all-tied", several documents with equal scores, so that only the document ids rank them.
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

    @property
    def times_retrieved(self) -> np.ndarray:
        """The number of runs that retrieved each document, float64 (n,)."""
        return np.bincount(self.rows, minlength=self.n_rows).astype(np.float64)

    def checked_weights(self, weights: Sequence[float] | np.ndarray | None) -> np.ndarray:
        """Return `weights` as float64 (r,), by default 1, or raise an error unless each run has a finite number."""
        values = np.ones(self.n_runs) if weights is None else np.asarray(weights, dtype=np.float64)
        if values.shape != (self.n_runs,) or not np.isfinite(values).all():
            raise InvalidInputError(
                f"weights must hold one finite number for each of the {self.n_runs} runs, got {weights!r}",
                argument="weights",
            )
        return values

    def within_depth(self, depth: int | None) -> np.ndarray:
        """Return a mask (n,) of the rows in the first `depth` documents of some run; all rows for None."""
        chosen = np.ones(self.n_rows, dtype=bool)
        if depth is not None:
            chosen[:] = False
            chosen[self.rows[self.ranks <= check_positive_int(depth, "depth")]] = True
        return chosen

    def best(self, scores: np.ndarray, depth: int | None = None) -> np.ndarray:
        """Return at most `depth` rows of each topic by descending score, with ties by descending document id."""
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
        """Return judgements of the chosen rows by topic; all other judged documents count as missing.

        Topics without a chosen row become queries without rows. Under `trec`, ties break by descending document id.
        """
        if self.grades is None or self.unretrieved is None or self.unretrieved_offsets is None:
            raise InvalidInputError("this pool has no judgements. Create it with RunPool(runs, qrels)")
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
        part = self._part(np.asarray(queries, dtype=np.int64), np.arange(self.n_runs))
        part.topics_without_runs = []
        return part

    def select_runs(self, runs: Sequence[int]) -> RunPool:
        """Return the pool of some runs (numbers), in which judged documents of other runs count as not retrieved."""
        return self._part(np.arange(self.n_queries), np.asarray(runs, dtype=np.int64))

    def select_names(self, names: Sequence[str]) -> RunPool:
        """Return the pool of the runs of a model, in the model's order, or raise an error if a run is missing."""
        if self.names == list(names):
            return self
        lacking = [name for name in names if name not in self.names]
        if lacking:
            raise InvalidInputError(
                f"the runs {', '.join(self.names[:6])}{' …' * (len(self.names) > 6)} lack {', '.join(lacking[:6])}. "
                f"The model requires {', '.join(names[:6])}{' …' * (len(names) > 6)}. The name of a run is the name "
                "of its file without suffixes",
                code="lost-run",
            )
        return self.select_runs([self.names.index(name) for name in names])

    def _part(self, queries: np.ndarray, runs: np.ndarray) -> RunPool:
        """Return the pool of some topics and runs (numbers), with the rows that are in their lists."""
        part = RunPool.__new__(RunPool)
        part.names, part.query_ids = [self.names[j] for j in runs], self.query_ids[queries]
        part.topics_without_runs = self.topics_without_runs
        part.query_values = None if self.query_values is None else self.query_values[queries]
        part.query_value_names = self.query_value_names
        entries, part.list_offsets = places_of(self.list_offsets, (queries[:, None] * self.n_runs + runs).ravel())
        there = np.bincount(self.rows[entries], minlength=self.n_rows) > 0
        places, offsets = places_of(self.offsets, queries)
        rows, part.offsets = places[there[places]], offsets_of(there[places])[offsets]
        new_row = np.empty(self.n_rows, dtype=np.int64)
        new_row[rows] = np.arange(len(rows))
        part.ids, part.rows, part.scores = self.ids.take(rows), new_row[self.rows[entries]], self.scores[entries]
        part.grades = part.unretrieved = part.unretrieved_offsets = None
        if self.grades is not None:
            judged = self.judgements(rows)
            assert judged.missing_grades is not None
            assert judged.missing_offsets is not None
            missing, part.unretrieved_offsets = places_of(judged.missing_offsets, queries)
            part.grades, part.unretrieved = self.grades[rows], judged.missing_grades[missing]
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
        raise InvalidInputError("got no runs. Pass at least one run", argument="runs")
    return named


def judged_pool(runs: object, qrels: object = None) -> RunPool:
    """Return a pool with judgements, from runs and qrels (or their paths); return such a pool unchanged."""
    if isinstance(runs, RunPool):
        if qrels is not None:
            raise InvalidInputError("qrels were given with a RunPool, which has its own judgements. Omit the qrels")
        if runs.grades is None:
            raise InvalidInputError("this pool has no judgements. Create it with RunPool(runs, qrels)")
        return runs
    if qrels is None:
        raise InvalidInputError(
            "no qrels were given, but a learned fusion requires judgements of the runs' topics",
            argument="qrels",
            remedies=[Remedy(qrels=...)],
        )
    return RunPool(runs, as_qrels(qrels))


def join_runs(
    runs: Sequence[Run],
    qrels: Qrels | None = None,
    *,
    names: Sequence[str] | None = None,
    missing: str = "min",
    margin: float = MARGIN,
    dtype: DTypeLike = np.float64,
) -> RankingData:
    """Return a row for each (topic, document) that some run retrieved, and a column with the scores of each run.

    The documents of a topic are sorted by descending id, so that the order of the rows breaks ties as trec_eval does.

    Parameters
    ----------
    runs : sequence of Run
    qrels : qrels, optional
        Grades of the rows, and of judged documents that no run retrieved (`RankingData.with_judgements`). Topics
        follow `RunPool`.
    names : sequence of str, optional
        Column names; by default the runs' tags, numbered if they repeat.
    missing : {"min", "nan"}
        Value of a document that a run did not retrieve. "min": the run's lowest score for the topic minus `margin`
        times the range of its scores (minus `margin` if all are equal), and 0 in a topic that the run lacks.
    margin : float
        Number greater than 0.
    dtype : float64 or float32

    Raises
    ------
    InvalidInputError
        For no runs, repeated names, a wrong number of names, or qrels that share no topic with the runs.

    Examples
    --------
    >>> import io
    >>> from truerank.io.trec import read_run
    >>> a = read_run(io.StringIO("1 Q0 d1 1 4 a\\n1 Q0 d2 2 2 a\\n"))
    >>> b = read_run(io.StringIO("1 Q0 d2 1 7 b\\n1 Q0 d3 2 7 b\\n"))
    >>> joined = join_runs([a, b], margin=0.5)
    >>> joined.doc_ids.tolist(), joined.X.tolist()
    (['d3', 'd2', 'd1'], [[1.0, 7.0], [2.0, 7.0], [4.0, 6.5]])
    """
    check_choice(missing, "missing", ("min", "nan"))
    check_number(margin, "margin", "(0, inf)")
    if names is not None and (len(names) != len(runs) or len(set(names)) < len(names)):
        raise InvalidInputError(f"join_runs requires {len(runs)} different names of runs, got {list(names)}")
    pool = RunPool(runs if names is None else dict(zip(names, runs)), qrels)
    low, high = pool.per_list(np.minimum, pool.scores), pool.per_list(np.maximum, pool.scores)
    with np.errstate(over="ignore"):
        absent = (low - margin * np.where(high > low, high - low, 1.0)).astype(dtype)
        below = np.nextafter(low.astype(dtype), -np.inf)  # the margin may be lost in rounding
    absent = np.minimum(absent, below).clip(np.finfo(dtype).min)
    absent[pool.list_sizes == 0] = 0.0
    X = np.full((pool.n_rows, pool.n_runs), np.nan, dtype=dtype)
    if missing == "min":
        X[:] = absent.reshape(pool.n_queries, pool.n_runs)[pool.query_of_row]
    X[pool.rows, pool.run_of_entry] = pool.scores
    data = RankingData.from_grouped(
        X, None, pool.offsets, pool.query_ids, doc_ids=pool.doc_ids, feature_names=pool.names
    )  # fmt: skip
    if qrels is None:
        return data
    return data.with_judgements(judge_lists(qrels, pool.query_ids, pool.doc_ids, pool.offsets))


def join_lists(
    runs: Sequence[Run], lists: np.ndarray
) -> tuple[DocumentIds, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Join the documents of r lists for m topics; `lists` int64 (m, r, 2) has the first entry and length of each list.

    Returns ids (n,), by descending id within a topic, and their offsets (m + 1,) by topic; list offsets (m r + 1,),
    for run j and topic i from `i * r + j`; and the document and score of each entry (e,).

    The cost is e look-ups and a sort of each topic's documents.
    """
    list_offsets = offsets_of(lists[:, :, 1])
    ends = list_offsets[:: len(runs)].tolist()
    rows = np.empty(ends[-1], dtype=np.int64)
    names = [_latin(run.ids) for run in runs]
    ids: list[str] = []
    sizes = []
    for i, of_topic in enumerate(lists.tolist()):
        entries = [own[first : first + length] for own, (first, length) in zip(names, of_topic)]
        found = sorted(set().union(*entries), reverse=True)
        row_of = dict(zip(found, range(len(ids), len(ids) + len(found))))
        rows[ends[i] : ends[i + 1]] = [row_of[name] for own in entries for name in own]
        ids += found
        sizes.append(len(found))
    joined = DocumentIds.back_to_back("".join(ids).encode("latin-1"), map(len, ids), len(ids))
    starts = lists[:, :, 0] + offsets_of([run.n_rows for run in runs])[:-1]
    places = np.repeat(starts.ravel() - list_offsets[:-1], np.diff(list_offsets)) + np.arange(ends[-1])
    scores = np.concatenate([run.scores for run in runs])[places].astype(np.float64)
    return joined, offsets_of(sizes), list_offsets, rows, scores


def _latin(ids: DocumentIds) -> list[str]:
    """Return ids with a character for each byte: Python compares them fast, and in the order of their texts."""
    text = ids.utf8.tobytes().decode("latin-1")
    return [text[begin:end] for begin, end in zip(ids.begins.tolist(), ids.ends.tolist())]


def _rank_lists(lists: np.ndarray, scores: np.ndarray, rows: np.ndarray) -> None:
    """Sort every list by descending score, equal scores by ascending row. Most lists are already sorted."""
    first = np.zeros(len(rows) + 1, dtype=bool)
    first[lists] = True
    rising = np.flatnonzero((scores[1:] > scores[:-1]) & ~first[1:-1])
    if len(rising):
        entries, offsets = places_of(lists, np.unique(np.searchsorted(lists, rising, side="right")) - 1)
        order = entries[np.lexsort((-scores[entries], query_of_rows(offsets)))]
        scores[entries], rows[entries] = scores[order], rows[order]
    tied = np.append(False, (scores[1:] == scores[:-1]) & ~first[1:-1])
    member = np.flatnonzero(tied | np.append(tied[1:], False))
    bits = int(rows.max(initial=0)).bit_length()
    rows[member] = np.sort((np.cumsum(~tied[member]) << bits) | rows[member]) & ((1 << bits) - 1)
