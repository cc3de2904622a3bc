"""Sketches by which a model recognises its training queries.

A query has a 64-bit digest of its rows (the model's columns, in any order, without grades) and a 64-bit digest of its
id. A model keeps the 4,096 smallest digests of each kind, which are a random sample of more training queries. The model
also keeps the 4,096 smallest hashes of single rows, with the digest of their query, to recognise changed queries.

With fewer than five columns, equal rows of different queries are common (a constant column, two flags). With so few
columns, a query has a digest of its rows only if its columns have at least eight further values.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from truerank.core.checks import check_choice
from truerank.core.errors import InvalidInputError, Remedy, warn
from truerank.core.names import resolve
from truerank.core.printing import counted
from truerank.core.types import Scorer
from truerank.data.columns import as_in_training, rows_for
from truerank.data.grouping import id_text, query_of_rows, sums_by_query
from truerank.data.ranking_data import RankingData
from truerank.data.remarks import Remark
from truerank.data.row_source import Part
from truerank.data.rows import beside

SIZE = 4096  # digests of each kind that a model keeps
FEWEST_COLUMNS, FEWEST_ROWS = 5, 4  # with fewer, single rows do not identify a query
FEWEST_VALUES = 8  # of a query with few columns, besides the first value of each; six erred once in 10,000 queries
FEWEST = 20  # recognisable queries that an incomplete sketch requires for a statement
UNRECOGNISED = (
    "not checked: whether the systems were trained on these queries, because runs and score files do not name a model"
)

TRAINING_QUERIES = ("leave out", "keep", "refuse")
KEEP = Remedy("to compute the values nevertheless", training_queries="keep")

_NOWHERE = int(np.iinfo(np.uint64).max)  # digest of a query without identifying rows, which no sketch keeps


class TrainingSketch:
    """The smallest digests of a set of queries.

    Parameters
    ----------
    rows, ids : str or uint64 array, default=""
        Distinct digests of the rows of queries and of query ids, ascending; a text is base64 of little-endian numbers.
    complete : list of bool, default=(True, True, False)
        Whether the sketch has all digests of queries, ids and single rows. Older models lack the third value.
    single, of_query : str or uint64 array, default=""
        Distinct hashes of single rows that occur in one query only, ascending, and the digest of that query.

    Raises
    ------
    InvalidInputError
        If digests are damaged or not ascending.
    """

    model_attributes: ClassVar[dict[str, str]] = {}

    def __init__(
        self,
        rows: str | np.ndarray = "",
        ids: str | np.ndarray = "",
        complete: Any = (True, True, False),
        single: str | np.ndarray = "",
        of_query: str | np.ndarray = "",
    ) -> None:
        self.rows, self.ids, self.single, self.of_query = map(_read, (rows, ids, single, of_query))
        for own in (self.rows, self.ids, self.single):
            if (own[1:] <= own[:-1]).any():
                raise InvalidInputError("digests must be distinct and ascending", argument="digests")
        if not isinstance(complete, list | tuple) or list(map(type, complete)) not in ([bool] * 2, [bool] * 3):
            raise InvalidInputError(f"complete must be two or three bools, got {complete!r:.60}", argument="complete")
        if len(self.of_query) != len(self.single):
            raise InvalidInputError(
                f"{len(self.single)} rows have {len(self.of_query)} queries, but each row requires one query"
            )
        self.complete: tuple[bool, bool, bool] = (complete[0], complete[1], len(complete) == 3 and complete[2])

    @classmethod
    def of(cls, data: object, size: int = SIZE) -> TrainingSketch:
        """Return the sketch of a `RankingData` or of data on a cluster, with at most `size` digests of each kind."""
        rows, ids, single, of_query, whole = _digests_of(data)
        rows, ids = np.unique(rows[rows < _NOWHERE]), np.unique(ids)
        single, of_query, all_kept = _in_one_query(single, of_query, size)
        return cls(rows[:size], ids[:size], (len(rows) <= size, len(ids) <= size, whole and all_kept), single, of_query)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrainingSketch) and self.model_params() == other.model_params()

    def __or__(self, other: TrainingSketch) -> TrainingSketch:
        """Return the sketch of the queries of both sketches."""
        size = max(len(self.rows), len(other.rows), SIZE)
        joined, complete = [], []
        for kind, (own, others) in enumerate(((self.rows, other.rows), (self.ids, other.ids))):
            both = np.union1d(own, others)
            for part, sketch in ((own, self), (others, other)):
                if not sketch.complete[kind]:  # digests above its largest are unknown
                    both = both[: np.searchsorted(both, part[-1:].max(initial=0), "right")]
            joined.append(both[:size])
            complete.append(self.complete[kind] and other.complete[kind] and len(both) <= size)
        single = np.concatenate([self.single, other.single])
        known = single <= min(self.largest, other.largest)
        rows = _in_one_query(single[known], np.concatenate([self.of_query, other.of_query])[known], size)
        whole = self.complete[2] and other.complete[2] and rows[2]
        return TrainingSketch(joined[0], joined[1], (*complete, whole), rows[0], rows[1])

    @property
    def largest(self) -> int:
        """The largest hash up to which the sketch has every row that occurs in one query only; -1 without such rows."""
        if self.complete[2]:
            return _NOWHERE
        return int(self.single[-1]) if len(self.single) else -1

    def model_params(self) -> dict[str, Any]:
        """Return the parameters for a model file."""
        names = ("rows", "ids", "single", "of_query")
        texts = {name: base64.b64encode(getattr(self, name).astype("<u8").tobytes()).decode() for name in names}
        return texts | {"complete": list(self.complete)}

    def __repr__(self) -> str:
        return f"TrainingSketch({len(self.rows)} queries{'' if self.complete[0] else ' of more'})"


@dataclass(frozen=True, eq=False)
class Overlap:
    """The queries of some data that a model was trained on.

    Attributes
    ----------
    seen : bool array (m,)
        Queries of the data with the rows of a training query, or with at least half of their rows in one.
    known : bool array (m,)
        Queries that can be recognised: all, unless the sketch is incomplete, or the model has fewer than five columns
        with too few distinct values (see `training_queries`).
    same : bool array (m,)
        Queries with the id of a training query.
    enough : bool array (m,) or None
        Queries with enough rows (four) to be recognised after a document was added or removed. None if the model keeps
        no digests of single rows: it has fewer than five columns, or was saved by an older version.
    sampled : bool
        Whether the sketch covers a sample of the training queries.
    sketched : bool
        Whether the model has a sketch of its training queries.
    """

    seen: np.ndarray = field(repr=False)
    known: np.ndarray = field(repr=False)
    same: np.ndarray = field(repr=False)
    enough: np.ndarray | None = field(repr=False, default=None)
    sampled: bool = False
    sketched: bool = True

    def take_queries(self, queries: np.ndarray) -> Overlap:
        """Return the overlap of some queries, given as numbers or as a mask."""
        enough = None if self.enough is None else self.enough[queries]
        taken = {"seen": self.seen[queries], "known": self.known[queries], "same": self.same[queries]}
        return replace(self, **taken, enough=enough)

    @property
    def matched(self) -> np.ndarray:
        """The training queries (m,); none if they cannot be recognised."""
        return np.zeros_like(self.seen) if self.reason else self.seen

    @property
    def recognisable(self) -> int:
        """The number of queries that can be recognised."""
        return int(self.known.sum())

    @property
    def same_ids(self) -> int:
        """The number of other queries with the id of a training query."""
        return 0 if self.reason else int((self.same & self.known & ~self.seen).sum())

    @property
    def by_rows(self) -> int | None:
        """The number of queries with enough rows, see `enough`."""
        return None if self.reason or self.enough is None else int(self.enough.sum())

    @property
    def reason(self) -> str:
        """The reason why training queries cannot be recognised; "" if they can."""
        if not self.sketched:
            return (
                "the model has no sketch of its training queries (it is from another tool, or has a sketch of size 0)"
            )
        if self.recognisable >= (min(self.of, FEWEST) if self.sampled else 1) or self.seen.any():
            return ""
        if not self.sampled:
            return f"fewer than {FEWEST_COLUMNS} columns have enough distinct values to identify a query"
        of = f"{self.recognisable} of {counted(self.of, 'query')}"
        return f"the model stores a sample of its training queries, and only {of} could be in this sample"

    @property
    def of(self) -> int:
        """The number of queries m."""
        return len(self.seen)

    @property
    def recognised(self) -> int:
        """The number of matched queries."""
        return int(self.matched.sum())

    @property
    def mostly(self) -> bool:
        """Return whether more than half of the recognisable queries are training queries, which excludes a verdict."""
        return 2 * self.recognised > self.recognisable

    def __str__(self) -> str:
        if self.reason:
            return f"training queries could not be recognised: {self.reason}"
        count = f"{self.recognised} of {counted(self.of, 'query')}"
        if self.recognisable < self.of:
            count = f"{self.recognised} of the {counted(self.recognisable, 'recognisable query')} (of {self.of})"
        text = f"{count} {'was' if 1 in (self.recognised, self.of) else 'were'} used for training"
        if not self.recognised:
            text = f"{count} {'has' if self.of == 1 else 'have'} the same rows as a training query"
        if self.same_ids:
            have = "other query has" if self.same_ids == 1 else "other queries have"
            text += f"; {self.same_ids} {have} the id of a training query but different rows"
            text += ". If the ids mean the same queries, the figures overstate the quality of the model"
        if self.recognised < self.of:
            known = "none" if self.by_rows is None else f"{self.by_rows} of {self.of}"
            text += f" (after adding or removing a row, {known} can be recognised; changed rows cannot)"
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return the counts for JSON."""
        return {
            "training_queries": self.recognised,
            "recognisable": 0 if self.reason else self.recognisable,
            "queries": self.of,
            "same_ids": self.same_ids,
            "recognisable_by_rows": self.by_rows,
            "about": str(self),
        }


def training_queries(model: Scorer, data: Any) -> Overlap:
    """Return which queries of a data set a fitted model was trained on.

    Parameters
    ----------
    model : fitted ranker, or scikit-learn `Pipeline` that ends in one
        For a `CalibratedRanker`, the training queries of its calibrators count, too.
    data : RankingData, data frame, path of a file of rows, or data on a cluster

    Returns
    -------
    Overlap

    Notes
    -----
    Rows are compared as float32 and without grades, so that data are recognised after sorting, after new judgements, or
    in another file format. A query is mistaken for one of q training queries with probability q / 2^64.

    A query whose documents changed is recognised by its rows: at least four of its distinct rows have a hash of at most
    the sketch's largest hash, and at least half of these rows belong to one training query. Rows of models with fewer
    than five columns are not used, because equal rows are then common. Such a model recognises an unchanged query if
    its columns have at least eight values besides the first value of each column.

    A row with a changed value is not recognised.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(8, 3))
    >>> data = RankingData(rows, None, ["a", "a", "a", "a", "b", "b", "b", "b"])
    >>> class Model:
    ...     training_sketch_ = TrainingSketch.of(data.take_queries([1]))
    >>> print(training_queries(Model(), data))
    1 of 2 queries was used for training (after adding or removing a row, none can be recognised; changed rows cannot)
    """
    if not hasattr(data, "n_queries"):
        data = resolve("truerank.io.rows:rows_of")(data, model=model)
    m = data.n_queries
    found = [(sketch, query_digests(seen), seen) for sketch, seen in _sketches(model, data)]
    if not found:
        none = np.zeros(m, dtype=bool)
        return Overlap(none, none, none, sketched=False)
    matched, known, same = np.zeros(m, dtype=bool), np.ones(m, dtype=bool), np.zeros(m, dtype=bool)
    by_rows: np.ndarray | None = None
    for sketch, (rows, ids), seen in found:
        matched |= _are_among(rows, sketch.rows)
        same |= _are_among(ids, sketch.ids)
        within = rows < _NOWHERE if sketch.complete[0] else rows <= sketch.rows[-1:].max(initial=0)
        if seen.n_features >= FEWEST_COLUMNS and sketch.largest >= 0:
            state = (sketch.single, sketch.of_query, sketch.largest)
            enough, near = map(np.concatenate, zip(*seen.statistics(part_matches, *state, merge=beside)))
            matched |= near
            within |= enough
            by_rows = enough if by_rows is None else by_rows & enough
        known &= within
    sampled = any(not sketch.complete[0] for sketch, _, _ in found)
    return Overlap(matched, known | matched, same, by_rows, sampled)


@dataclass(frozen=True)
class Provenance:
    """The training queries of models in data, as the Overlap of each model by name; and whether the rule is "keep"."""

    overlaps: Mapping[str, Overlap]
    keeps: bool = False

    def take_queries(self, queries: np.ndarray) -> Provenance:
        """Return the training queries among some queries."""
        return replace(self, overlaps={name: one.take_queries(queries) for name, one in self.overlaps.items()})

    @property
    def keep(self) -> np.ndarray:
        """The queries to keep, bool (m,)."""
        seen = np.logical_or.reduce([one.matched for one in self.overlaps.values()])
        return np.ones_like(seen) if self.keeps else ~seen

    def kept(self, data: Any) -> Any:
        """Return the data of the queries to keep."""
        return data if self.keep.all() else data.take_queries(self.keep)

    def __str__(self) -> str:
        """Return a sentence for each model."""
        left = "; these queries are left out"
        if self.keeps:
            left = "; the values include these queries, and are too optimistic for new queries"
        return "\n".join(f"{name}: {one}{left if one.recognised else ''}" for name, one in self.overlaps.items())

    def to_dict(self) -> dict[str, Any]:
        """Return the counts of each model for JSON."""
        return {
            name: one.to_dict() | {"left_out": 0 if self.keeps else one.recognised}
            for name, one in self.overlaps.items()
        }

    @property
    def remarks(self) -> list[Remark]:
        """The remarks on models with training queries, and on models that were trained on most of the queries."""
        seen = {name: one for name, one in self.overlaps.items() if one.recognised}
        mostly = {} if self.keeps else {name: one for name, one in seen.items() if one.mostly}
        codes = {"mostly-training-queries": mostly, f"training-queries-{'kept' if self.keeps else 'left-out'}": seen}
        return [
            Remark(code, ", ".join(f"{one.recognised} of {name}" for name, one in own.items()), len(own), list(own))
            for code, own in codes.items()
            if own
        ]


def settle_training(
    models: Mapping[str, Any], data: Any, rule: str = "leave out", *,
    remedies: Sequence[Remedy | str] = ("use other queries", KEEP),
) -> Provenance:  # fmt: skip
    """Return the queries of `data` on which no model (by name) was trained; "keep" keeps all queries, with a remark.

    Raises
    ------
    InvalidInputError
        With "refuse", if a model was trained on a query; with "leave out", if models were trained on more than half of
        the queries, or if no query is left. `remedies` are those of a message about training queries.
    """
    check_choice(rule, "training_queries", TRAINING_QUERIES)
    found = Provenance({name: training_queries(model, data) for name, model in models.items()}, rule == "keep")
    for name, one in found.overlaps.items():
        if rule != "keep" and (one.mostly or (rule == "refuse" and one.recognised)):
            raise InvalidInputError(
                f"{name}: {one}. Values on training queries are too optimistic",
                argument="training_queries",
                remedies=remedies,
                code="training-queries",
            )
    if not found.keep.any():
        raise InvalidInputError(
            f"{'; '.join(str(found).splitlines())}. No query is left",
            remedies=["use queries on which no model was trained"],
            code="training-queries",
        )
    return found


class Score(float):
    """A value of a model on data, whose `.training_queries` is the Overlap of the data with the training queries."""

    training_queries: Overlap

    @classmethod
    def of(cls, value: float, model: Scorer, data: object) -> Score:
        """Return the value as a Score, and warn if the model was trained on queries of the data."""
        score = cls(value)
        score.training_queries = training_queries(model, data)
        warn_of_training_queries(model, score.training_queries)
        return score

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)


def warn_of_training_queries(model: Scorer, overlap: Overlap) -> None:
    """Warn once for a fitted model that its values are from its training data."""
    if overlap.recognised and not getattr(model, "_warned_of_training_queries", False):
        model.__dict__["_warned_of_training_queries"] = True
        warn(f"{overlap}. Figures on training queries overstate the quality of the {type(model).__name__}")


def query_digests(data: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return digests of each query's rows and of its id, uint64 (m,) each; O(n p).

    A query's digest is BLAKE2b of the sum of its mixed row hashes. Equal dense and sparse rows have equal hashes.
    """
    return _digests_of(data)[:2]


def _digests_of(data: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, bool]:
    """Return digests of queries and of ids, the smallest row hashes, their queries, and whether these are all."""
    rows, ids, single, of_query, whole = zip(*data.statistics(part_digests, merge=beside))
    largest = min((own[-1] for own, all_kept in zip(single, whole) if not all_kept and len(own)), default=_NOWHERE)
    hashes, queries = np.concatenate(single), np.concatenate(of_query)
    known = hashes <= largest
    return np.concatenate(rows), np.concatenate(ids), hashes[known], queries[known], all(whole)


def part_digests(part: Part) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, bool]]:
    """Return a part's digests of queries and ids, its smallest row hashes, their queries, and whether these are all."""
    from truerank.matrices.content import row_hashes  # imports numba, which a command without a model does not need

    data = part.data
    sizes = np.diff(data.offsets)
    hashes = row_hashes(data.X, rounded=True)
    with np.errstate(over="ignore"):
        sums = sums_by_query(hashes, data.offsets)
    words = np.column_stack([sizes.astype(np.uint64), sums]).astype("<u8")
    rows = _digests(words.view("V16").ravel().tolist(), b"rows")
    rows[sizes == 0] = _NOWHERE
    if data.n_features < FEWEST_COLUMNS:
        X, values = getattr(data.X, "codes", data.X), np.zeros(len(sizes), dtype=np.int64)
        for k in range(data.n_features):
            distinct, _ = _distinct_in_queries(row_hashes(X[:, [k]], rounded=True), data.offsets)
            values += np.maximum(np.bincount(distinct, minlength=len(sizes)) - 1, 0)
        rows[values < FEWEST_VALUES] = _NOWHERE
    ids = data.query_ids
    if ids.dtype.kind == "i":
        names = ids.astype("S").tolist()
    else:
        texts = map(str if ids.dtype.kind == "U" else id_text, ids.tolist())
        names = [text.encode("utf-8", "surrogatepass") for text in texts]
    single = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.uint64), False
    if data.n_features >= FEWEST_COLUMNS:
        few = np.arange(len(hashes))
        if len(few) > 4 * SIZE:  # enough for SIZE distinct ones
            few = np.argpartition(hashes, 4 * SIZE)[: 4 * SIZE]
        # Another part may have the same row, so that rows of several queries are dropped only where all parts meet.
        own, of_query = _ordered(hashes[few], rows[query_of_rows(data.offsets)[few]])
        new = np.append(True, (own[1:] != own[:-1]) | (of_query[1:] != of_query[:-1]))[: len(own)]
        own, of_query = own[new], of_query[new]
        single = own[: 2 * SIZE], of_query[: 2 * SIZE], len(few) == len(hashes) and len(own) <= 2 * SIZE
    return [(rows, _digests(names, b"id"), *single)]


def _in_one_query(hashes: np.ndarray, queries: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return the `size` smallest hashes that occur in one query, ascending, their queries, and whether these are all.

    >>> hashes, queries = np.array([5, 3, 3, 5, 1], dtype=np.uint64), np.array([7, 7, 7, 8, 8], dtype=np.uint64)
    >>> [one.tolist() for one in _in_one_query(hashes, queries, 9)[:2]]
    [[1, 3], [8, 7]]
    """
    hashes, queries = _ordered(hashes, queries)
    first = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1])[: len(hashes)])
    last = np.append(first[1:], len(hashes))[: len(first)] - 1
    alone = first[queries[first] == queries[last]]
    return hashes[alone[:size]], queries[alone[:size]], len(alone) <= size


def _ordered(hashes: np.ndarray, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return hashes in ascending order, equal ones by query, and their queries."""
    order = np.argsort(hashes)  # in a fifth of the time of a sort by both
    ranked = hashes[order]
    ties = np.flatnonzero(ranked[1:] == ranked[:-1])
    if len(ties):
        ties = np.union1d(ties, ties + 1)
        order[ties] = order[ties][np.lexsort((queries[order[ties]], ranked[ties]))]
    return ranked, queries[order]


def part_matches(
    part: Part, single: np.ndarray, of_query: np.ndarray, largest: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return which queries of a part have enough rows to be recognised by `single`, and which match: bool (m,) each."""
    from truerank.matrices.content import row_hashes

    offsets, hashes = part.data.offsets, row_hashes(part.data.X, rounded=True)
    m = len(offsets) - 1
    query, distinct = _distinct_in_queries(hashes, offsets, largest)
    count = np.bincount(query, minlength=m)
    found = _are_among(distinct, single)
    queries = of_query[np.searchsorted(single, distinct[found])]
    both, shared = np.unique(np.column_stack([query[found].astype(np.uint64), queries]), axis=0, return_counts=True)
    most = np.zeros(m, dtype=np.int64)
    np.maximum.at(most, both[:, 0].astype(np.int64), shared)
    enough = count >= FEWEST_ROWS
    return [(enough, enough & (2 * most >= count))]


def _distinct_in_queries(
    hashes: np.ndarray, offsets: np.ndarray, largest: int = _NOWHERE
) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct hashes of each query up to `largest`: the queries' numbers, ascending, and the hashes."""
    below = hashes <= np.uint64(largest)
    query, hashes = query_of_rows(offsets)[below], hashes[below]
    order = np.lexsort((hashes, query))
    query, hashes = query[order], hashes[order]
    new = np.append(True, (query[1:] != query[:-1]) | (hashes[1:] != hashes[:-1]))[: len(order)]
    return query[new], hashes[new]


def _are_among(digests: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Return which digests are among `kept`, which ascend: bool (m,)."""
    if len(kept) == 0:
        return np.zeros(len(digests), dtype=bool)
    return np.asarray(kept[np.minimum(np.searchsorted(kept, digests), len(kept) - 1)] == digests)


def _digests(contents: list[bytes], kind: bytes) -> np.ndarray:
    empty, digests = hashlib.blake2b(digest_size=8, person=kind), []
    for content in contents:
        digest = empty.copy()  # in half the time of a new one
        digest.update(content)
        digests.append(digest.digest())
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def _sketches(model: Any, data: Any) -> Iterator[tuple[TrainingSketch, Any]]:
    """Yield the sketches of a model and its parts, each with the data that the part receives."""
    if not keeps_sketch(model):
        return
    if hasattr(model, "steps"):
        for _, step in model.steps[:-1]:
            if step is not None and step != "passthrough":
                query = {"qid": data.query_index} if "qid" in inspect.signature(step.transform).parameters else {}
                X = step.transform(rows_for(step, data), **query)
                data = data.replaced(X=X.to_numpy() if hasattr(X, "to_numpy") else X, feature_names=None)
        yield from _sketches(model.steps[-1][1], data)
        return
    if isinstance(data, RankingData):
        data = as_in_training(data, getattr(model, "feature_names_in_", None))
    if (own := getattr(model, "training_sketch_", None)) is not None:
        yield own, data
    inner = getattr(model, "ranker_", None)
    if keeps_sketch(inner):
        yield from _sketches(inner, model.transformed(data) if hasattr(model, "transformed") else data)


def keeps_sketch(model: Any) -> bool:
    """Return whether a model, or the ranker in a pipeline, recognises its training queries."""
    if hasattr(model, "steps"):
        return keeps_sketch(model.steps[-1][1])
    return model is not None and (hasattr(model, "training_sketch_") or keeps_sketch(getattr(model, "ranker_", None)))


def _read(digests: str | np.ndarray) -> np.ndarray:
    if not isinstance(digests, str):
        return digests
    try:
        return np.frombuffer(base64.b64decode(digests, validate=True), dtype="<u8").astype(np.uint64)
    except (binascii.Error, ValueError) as error:
        raise InvalidInputError(f"digests must be base64 of 64-bit numbers: {error}", argument="digests") from error
