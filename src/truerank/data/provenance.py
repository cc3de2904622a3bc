"""Sketches of training queries, by which a model recognises the queries that it was trained on.

A query has a 64-bit digest of its rows (the model's columns, in any order, without grades) and another one of its id.
A model keeps the 4,096 smallest digests of each kind: of more training queries, a random sample.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from truerank.core.errors import InvalidInputError, warn
from truerank.core.printing import counted
from truerank.core.types import Scorer
from truerank.data.columns import as_in_training
from truerank.data.grouping import id_text, sums_by_query
from truerank.data.ranking_data import RankingData
from truerank.data.row_source import Part
from truerank.data.rows import beside

SIZE = 4096  # digests of each kind that a model keeps
FEWEST = 20  # recognisable queries that an incomplete sketch requires for a statement
UNRECOGNISED = (
    "not checked: whether these queries trained the systems, because runs and score files do not name a model"
)

_NOWHERE = np.iinfo(np.uint64).max  # digest of a query without rows, which no sketch keeps


class TrainingSketch:
    """The smallest digests of a set of queries.

    Parameters
    ----------
    rows, ids : str or uint64 array, default=""
        Distinct digests of rows and of query ids, ascending; a text is base64 of little-endian numbers.
    complete : pair of bool, default=(True, True)
        Whether all digests of rows, and of ids, are kept.

    Raises
    ------
    InvalidInputError
        If digests are damaged or not ascending.
    """

    model_attributes: ClassVar[tuple[str, ...]] = ()

    def __init__(self, rows: str | np.ndarray = "", ids: str | np.ndarray = "", complete: Any = (True, True)) -> None:
        self.rows = _read(rows) if isinstance(rows, str) else rows
        self.ids = _read(ids) if isinstance(ids, str) else ids
        if not isinstance(complete, list | tuple) or list(map(type, complete)) != [bool, bool]:
            raise InvalidInputError(f"complete must be two bools, got {complete!r:.60}")
        self.complete: tuple[bool, bool] = (complete[0], complete[1])

    @classmethod
    def of(cls, data: object, size: int = SIZE) -> TrainingSketch:
        """Return the sketch of a `RankingData` or of data on a cluster, with at most `size` digests of each kind."""
        rows, ids = query_digests(data)
        rows, ids = np.unique(rows[rows < _NOWHERE]), np.unique(ids)
        return cls(rows[:size], ids[:size], (len(rows) <= size, len(ids) <= size))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrainingSketch) and self.model_params() == other.model_params()

    def __or__(self, other: TrainingSketch) -> TrainingSketch:
        """Return the sketch of the queries of both."""
        size = max(len(self.rows), len(other.rows), SIZE)
        joined, complete = [], []
        for kind, (own, others) in enumerate(((self.rows, other.rows), (self.ids, other.ids))):
            both = np.union1d(own, others)
            for part, sketch in ((own, self), (others, other)):
                if not sketch.complete[kind]:  # digests above its largest are unknown
                    both = both[: np.searchsorted(both, part[-1:].max(initial=0), "right")]
            joined.append(both[:size])
            complete.append(self.complete[kind] and other.complete[kind] and len(both) <= size)
        return TrainingSketch(joined[0], joined[1], complete)

    def model_params(self) -> dict[str, Any]:
        """Return what a model file stores."""
        rows, ids = self.rows.astype("<u8").tobytes(), self.ids.astype("<u8").tobytes()
        texts = {"rows": base64.b64encode(rows).decode(), "ids": base64.b64encode(ids).decode()}
        return texts | {"complete": list(self.complete)}

    def __repr__(self) -> str:
        return f"TrainingSketch({len(self.rows)} queries{'' if self.complete[0] else ' of more'})"


@dataclass(frozen=True)
class Overlap:
    """The queries of some data that a model was trained on.

    Attributes
    ----------
    matched : bool array (m,)
        Queries of the data with the rows of a training query.
    recognisable : int
        Queries that can be recognised: all m, unless the sketch is incomplete.
    same_ids : int
        Other queries with the id of a training query.
    reason : str
        Why training queries cannot be recognised; "" if they can.
    """

    matched: np.ndarray = field(repr=False)
    recognisable: int
    same_ids: int = 0
    reason: str = ""

    @property
    def of(self) -> int:
        """Number of queries m."""
        return len(self.matched)

    @property
    def recognised(self) -> int:
        """Number of matched queries."""
        return int(self.matched.sum())

    @property
    def mostly(self) -> bool:
        """Whether more than half of the recognisable queries are training queries, which rules out a verdict."""
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
            text += f"; {self.same_ids} {have} the id of a training query and other rows"
            text += ". If the ids mean the same queries, the figures flatter the model"
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return the counts for JSON."""
        return {
            "training_queries": self.recognised,
            "recognisable": 0 if self.reason else self.recognisable,
            "queries": self.of,
            "same_ids": self.same_ids,
            "about": str(self),
        }


def training_queries(model: Scorer, data: Any) -> Overlap:
    """Return which queries of some data a fitted model was trained on.

    Parameters
    ----------
    model : fitted ranker, or scikit-learn `Pipeline` that ends in one
        For a `CalibratedRanker`, the training queries of its calibrators count, too.
    data : RankingData, or data on a cluster

    Returns
    -------
    Overlap

    Notes
    -----
    Rows are compared as float32 and without grades, so data are recognised after sorting, new judgements or another
    file format, but not if a document was removed or a value changed. A query is mistaken for one of q training queries
    with probability q / 2^64.

    Examples
    --------
    >>> data = RankingData([[1.0], [2.0], [3.0]], [0, 1, 0], ["a", "b", "b"])
    >>> class Model:
    ...     training_sketch_ = TrainingSketch.of(data.take_queries([1]))
    >>> print(training_queries(Model(), data))
    1 of 2 queries was used for training
    """
    m = data.n_queries
    found = [(sketch, query_digests(seen)) for sketch, seen in _sketches(model, data)]
    if not found:
        why = "the model has no sketch of them (it was read from another tool, or trained with a sketch of size 0)"
        return Overlap(np.zeros(m, dtype=bool), 0, reason=why)
    matched, known, same = np.zeros(m, dtype=bool), np.ones(m, dtype=bool), np.zeros(m, dtype=bool)
    for sketch, (rows, ids) in found:
        matched |= _are_among(rows, sketch.rows)
        same |= _are_among(ids, sketch.ids)
        if not sketch.complete[0]:
            known &= rows <= sketch.rows[-1:].max(initial=0)
    known |= matched
    recognisable = int(known.sum())
    if recognisable < min(m, FEWEST) and not matched.any():
        of = f"{recognisable} of {counted(m, 'query')}"
        why = f"the model's sketch covers a sample of its training queries, and only {of} could be in it"
        return Overlap(np.zeros(m, dtype=bool), recognisable, reason=why)
    return Overlap(matched, recognisable, int((same & known & ~matched).sum()))


class Score(float):
    """A value of a model on some data, with `.training_queries`: the Overlap of the data with its training queries."""

    training_queries: Overlap

    @classmethod
    def of(cls, value: float, model: Scorer, data: object) -> Score:
        """Return the value, and warn if the model was trained on some of the data."""
        score = cls(value)
        score.training_queries = training_queries(model, data)
        warn_of_training_queries(model, score.training_queries)
        return score

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)


def warn_of_training_queries(model: Scorer, overlap: Overlap) -> None:
    """Warn once for a fitted model that its values are from data that it was trained on."""
    if overlap.recognised and not getattr(model, "_warned_of_training_queries", False):
        model.__dict__["_warned_of_training_queries"] = True
        warn(f"{overlap}; figures on training queries flatter the {type(model).__name__}")


def query_digests(data: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return digests of each query's rows, and of its id: uint64 (m,) each; O(n p).

    A query's digest is BLAKE2b of the sum of its mixed row hashes. Dense and sparse rows have the same hash.
    """
    rows, ids = zip(*data.statistics(part_digests, merge=beside))
    return np.concatenate(rows), np.concatenate(ids)


def part_digests(part: Part) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the digests of the queries of one part."""
    from truerank.matrices.content import row_hashes  # imports numba, which a command without a model does not need

    data = part.data
    sizes = np.diff(data.offsets)
    with np.errstate(over="ignore"):
        sums = sums_by_query(row_hashes(data.X, rounded=True), data.offsets)
    words = np.column_stack([sizes.astype(np.uint64), sums]).astype("<u8")
    rows = _digests(words.view("V16").ravel().tolist(), b"rows")
    rows[sizes == 0] = _NOWHERE
    ids = data.query_ids
    if ids.dtype.kind == "i":
        return [(rows, _digests(ids.astype("S").tolist(), b"id"))]
    texts = map(str if ids.dtype.kind == "U" else id_text, ids.tolist())
    return [(rows, _digests([text.encode("utf-8", "surrogatepass") for text in texts], b"id"))]


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
    if hasattr(model, "steps"):
        for _, step in model.steps[:-1]:
            if step is not None and step != "passthrough":
                query = {"qid": data.query_index} if "qid" in inspect.signature(step.transform).parameters else {}
                data = data.replaced(X=step.transform(data.X, **query), feature_names=None)
        yield from _sketches(model.steps[-1][1], data)
        return
    if isinstance(data, RankingData):
        data = as_in_training(data, getattr(model, "feature_names_in_", None))
    if (own := getattr(model, "training_sketch_", None)) is not None:
        yield own, data
    inner = getattr(model, "ranker_", None)
    if hasattr(inner, "steps") or _keeps_sketch(inner):
        yield from _sketches(inner, model.transformed(data) if hasattr(model, "transformed") else data)


def _keeps_sketch(model: Any) -> bool:
    return model is not None and (hasattr(model, "training_sketch_") or _keeps_sketch(getattr(model, "ranker_", None)))


def _read(text: str) -> np.ndarray:
    try:
        digests = np.frombuffer(base64.b64decode(text, validate=True), dtype="<u8").astype(np.uint64)
    except (binascii.Error, ValueError) as error:
        raise InvalidInputError(f"digests must be base64 of 64-bit numbers: {error}") from error
    if (digests[1:] <= digests[:-1]).any():
        raise InvalidInputError("digests must be distinct and ascending")
    return digests
