"""Judged rows grouped by query, for rankers, and judgements, for measures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np

from truerank.core.checks import as_array, as_numbers, as_vector, check_plain, column_labels, is_sparse
from truerank.core.errors import InvalidInputError, Remedy
from truerank.core.names import resolve
from truerank.core.types import ArrayLike, Matrix, Scorer
from truerank.data.grouping import (
    Grouping,
    RowsByQuery,
    as_ids,
    group_rows,
    id_texts,
    in_query_order,
    offsets_of,
    one_query,
    places_of,
)
from truerank.data.rows import Description, HeldPart, Merge, add

_BY_ROW = ("X", "y", "doc_ids", "comments", "sample_weight", "judged", "pooled", "position")
_BY_QUERY = ("query_ids", "query_weight")
# The value of every row, or query, if the attribute is None.
_WHERE_NONE = {"judged": True, "pooled": False, "sample_weight": 1.0, "query_weight": 1.0}


class RankingData(Grouping):
    """Rows grouped by query, as flat arrays and offsets.

    Rows may be given in any order. Rows are copied only if they are not grouped. All arrays are in *grouped order*:
    queries in order of first appearance, rows of a query in the caller's order.

    Parameters
    ----------
    X : array (n, p), SciPy CSR matrix (n, p), or BinnedMatrix
        Types other than float32 and float64 become float64. The column names of frames become `feature_names`.
    y : array (n,), optional
        Relevance grades; None for data without judgments.
    qid : array-like (n,) of hashables, optional
        Query of each row; None means one query, which is an error for more than 1,000 rows with grades.
    doc_ids, comments : array-like (n,) of str, optional
        Document id and free text of each row, stored as StringDType. None and NaN become "", and 7.0 becomes "7".
    feature_names : sequence of str, optional
        One name for each column.
    query_weight : array-like (m,) or (n,), mapping or Series by query id, optional
        Weight of each query, or of each row if constant within queries. Default: 1.
    sample_weight : array-like (n,), optional
        Weight of each row. Default: 1.

    Attributes
    ----------
    X, y, doc_ids, comments, feature_names, query_weight, sample_weight
        As above, in grouped order.
    offsets, query_ids, order, n_joined
        See `Grouping`.
    category_names : dict of column name to list of str, or None
        The texts of categorical columns, whose numbers are positions in these lists.
    position : float64 array (n,) or None
        Position at which each row was shown, from 1; see `with_position`.
    judged, pooled : bool arrays (n,) or None
        Whether a document was judged, and whether an unjudged document was pooled; see `with_judgements`.
    missing_grades, missing_offsets : arrays or None
        See `Judgements`.

    Raises
    ------
    InvalidInputError
        On different lengths, an X without two dimensions, grades that are not finite, and missing query ids.

    Examples
    --------
    >>> data = RankingData([[1.0], [2.0], [3.0]], [0, 1, 2], qid=["b", "a", "b"])
    >>> data.query_ids.tolist(), data.offsets.tolist(), data.X[:, 0].tolist()
    (['b', 'a'], [0, 2, 3], [1.0, 3.0, 2.0])
    >>> data.restore(data.X[:, 0]).tolist()
    [1.0, 2.0, 3.0]
    """

    __slots__ = (*_BY_ROW, "category_names", "feature_names", "missing_grades", "missing_offsets", "query_weight")

    category_names: dict[str, list[str]] | None
    position: np.ndarray | None
    judged: np.ndarray | None
    pooled: np.ndarray | None
    missing_grades: np.ndarray | None
    missing_offsets: np.ndarray | None

    def __init__(
        self,
        X: Matrix,
        y: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        *,
        doc_ids: ArrayLike | None = None,
        comments: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        query_weight: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        if feature_names is None and hasattr(X, "columns"):
            feature_names = list(column_labels(X))
        X = as_matrix(X)
        n = X.shape[0]
        grouping = one_query(n) if qid is None and y is None else group_rows(qid, n)
        super().__init__(grouping.offsets, grouping.query_ids, grouping.order, grouping.n_joined)
        self.X = self.grouped(X)
        self.y = None if y is None else self.grouped(as_grades(y, n))
        self.doc_ids = None if doc_ids is None else self.grouped(_as_text(doc_ids, n, "doc_ids"))
        self.comments = None if comments is None else self.grouped(_as_text(comments, n, "comments"))
        self.feature_names = None if feature_names is None else [str(name) for name in feature_names]
        if self.feature_names is not None and len(self.feature_names) != X.shape[1]:
            raise InvalidInputError(
                f"feature_names has {len(self.feature_names)} names, but X has {X.shape[1]} columns"
            )
        if query_weight is not None:
            query_weight = in_query_order(query_weight, self, "query_weight", qid, y, X)
            query_weight = as_query_weight(query_weight, self.offsets, self.order)
        self.query_weight: np.ndarray | None = query_weight
        self.sample_weight = None if sample_weight is None else self.grouped(as_sample_weight(sample_weight, n))
        self.judged = self.pooled = self.missing_grades = self.missing_offsets = None
        self.category_names = self.position = None

    @classmethod
    def from_grouped(
        cls,
        X: Matrix,
        y: np.ndarray | None,
        offsets: np.ndarray,
        query_ids: np.ndarray | None = None,
        *,
        doc_ids: np.ndarray | None = None,
        comments: np.ndarray | None = None,
        feature_names: Sequence[str] | None = None,
        query_weight: np.ndarray | None = None,
        sample_weight: np.ndarray | None = None,
        order: np.ndarray | None = None,
        n_joined: int = 0,
    ) -> RankingData:
        """Return data from grouped and checked arrays, without a copy."""
        self = cls.__new__(cls)
        self.X, self.y = X, y
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        self.query_ids = np.arange(len(offsets) - 1) if query_ids is None else query_ids
        self.doc_ids, self.comments = doc_ids, comments
        self.query_weight, self.sample_weight = query_weight, sample_weight
        self.feature_names = None if feature_names is None else list(feature_names)
        self.order, self.n_joined = order, n_joined
        self.judged = self.pooled = self.missing_grades = self.missing_offsets = None
        self.category_names = self.position = None
        return self

    def with_judgements(self, judgements: Judgements) -> RankingData:
        """Return the data with other judgements, without a copy.

        A document with a negative grade (pooled but not judged) has grade 0 in `y`, and is marked in `pooled`.

        Raises
        ------
        InvalidInputError
            If the judgements have different queries or rows.
        """
        if not np.array_equal(judgements.offsets, self.offsets):
            raise InvalidInputError(
                f"the judgements have {judgements.n_rows} documents of {judgements.n_queries} queries, but the data "
                f"have {self.n_rows} of {self.n_queries}. Both must have the same rows",
                argument="judgements",
            )
        known, pooled = judgements.known, judgements.grades < 0
        return self.replaced(
            y=np.maximum(judgements.grades, 0.0),
            judged=None if known.all() else known,
            pooled=pooled if pooled.any() else None,
            missing_grades=judgements.missing_grades,
            missing_offsets=judgements.missing_offsets,
        )

    def beyond_rows(self) -> str:
        """Return a text on judgements for measures that are not in the rows, or "" without such judgements."""
        parts = []
        if self.missing_grades is not None and len(self.missing_grades):
            parts.append(f"{len(self.missing_grades)} judged documents without a row")
        if self.judged is not None:
            parts.append(f"{int((~self.judged).sum())} rows without a judgement")
        return " and ".join(parts)

    def replaced(self, **changes: Any) -> RankingData:
        """Return the data with other attributes, in grouped order, without checks and without a copy.

        With `order=None`, the grouped order becomes the caller's order.
        """
        made = RankingData.__new__(RankingData)
        for name in (*Grouping.__slots__, *RankingData.__slots__):
            setattr(made, name, changes.pop(name) if name in changes else getattr(self, name))
        if changes:
            raise TypeError(f"RankingData has no {', '.join(changes)}")
        return made

    def digested(self) -> dict[str, Any]:
        """Return all data that affect a fit, that is, all except document ids, comments and the caller's order."""
        X = self.X
        rows = (X.data, X.indices, X.indptr, X.shape) if is_sparse(X) else X
        names = ("y", "offsets", "query_ids", "query_weight", "sample_weight", "judged", "pooled", "position")
        more = ("missing_grades", "missing_offsets", "feature_names", "category_names")
        return {"X": rows} | {name: getattr(self, name) for name in (*names, *more)}

    @property
    def n_features(self) -> int:
        """The number of columns p."""
        return int(self.X.shape[1])

    @property
    def weight_by_query(self) -> np.ndarray:
        """The weight of each query, float64 (m,), by default 1."""
        return np.ones(self.n_queries) if self.query_weight is None else self.query_weight

    @property
    def row_weight(self) -> np.ndarray | None:
        """The sample weight times the query weight of each row, float64 (n,), in grouped order; None if all are 1."""
        if self.query_weight is None:
            return self.sample_weight
        by_row = np.repeat(self.query_weight, self.group_sizes)
        return by_row if self.sample_weight is None else self.sample_weight * by_row

    def with_sample_weight(self, weight: ArrayLike) -> RankingData:
        """Return the data with other weights of rows (n,), given in the caller's row order."""
        return self.replaced(sample_weight=self.grouped(as_sample_weight(weight, self.n_rows)))

    def with_position(self, position: ArrayLike) -> RankingData:
        """Return the data with positions (n,), given in the caller's row order, for `unbiased-lambdarank`.

        Raises
        ------
        InvalidInputError
            If the values are not finite numbers, one for each row.

        Examples
        --------
        >>> data = RankingData([[1.0], [2.0], [3.0]], [0, 1, 0], ["a", "b", "b"]).with_position([1, 1, 2])
        >>> data.take_queries([1]).position.tolist()
        [1.0, 2.0]
        """
        return self.replaced(position=self.grouped(as_vector(position, "position", self.n_rows)))

    def statistics(self, function: Callable[..., Any], *state: Any, merge: Merge = add, keep: bool = False) -> Any:
        """Return `function(part, *state)` for these rows; see `truerank.data.row_source`."""
        return function(HeldPart(self), *state)

    def in_memory(self, user: str) -> RankingData:
        """Return the data, whose rows are in memory, as `user` requires."""
        return self

    def in_parts(self, n_jobs: int | None) -> Any:
        """Return the rows as the only part of a `RowSource`, for a fit with `n_jobs` threads."""
        return resolve("truerank.data.row_source:OnePart")(self, n_jobs)

    def scores(self, model: Scorer) -> np.ndarray:
        """Return scores (n,), float64, in grouped order, by a fitted ranker."""
        return np.asarray(model.predict(self.replaced(order=None)), dtype=np.float64)

    def as_grouped(self) -> RankingData:
        """Return the rows in grouped order, without the caller's order."""
        return self.replaced(order=None)

    def inside(self, outer: Any, name: str) -> RankingData:
        """Return the rows for a fit inside a fit to `outer`, here without change."""
        return self

    def without_features(self) -> RankingData:
        """Return the data without X."""
        return self.replaced(X=np.zeros((self.n_rows, 0)), feature_names=None, comments=None, order=None)

    def describe(self) -> Description:
        """Return the properties of the rows that a fit requires; O(n p)."""
        return Description.of(self)

    def take_queries(self, queries: ArrayLike) -> RankingData:
        """Return the data of some queries in the given order; indices may repeat as in NumPy, or are a boolean mask.

        Rows are copied, except a contiguous run of queries. `restore` of the returned data is the identity.
        """
        index = np.asarray(queries)
        if index.dtype == bool:
            index = np.flatnonzero(index)
        index = index.astype(np.int64)
        rows: Any
        if len(index) and index[0] >= 0 and np.all(np.diff(index) == 1):
            offsets = offsets_of(np.diff(self.offsets)[index])
            rows = slice(int(self.offsets[index[0]]), int(self.offsets[index[-1] + 1]))
        else:
            rows, offsets = places_of(self.offsets, index)
        taken: dict[str, Any] = {"offsets": offsets, "order": None, "n_joined": 0}
        for names, places in ((_BY_ROW, rows), (_BY_QUERY, index)):
            for name in names:
                values = getattr(self, name)
                taken[name] = None if values is None else values[places]
        if self.missing_grades is not None and self.missing_offsets is not None:
            missing, taken["missing_offsets"] = places_of(self.missing_offsets, index)
            taken["missing_grades"] = self.missing_grades[missing]
        return self.replaced(**taken)

    sample = take_queries

    @staticmethod
    def concatenate(parts: Sequence[RankingData]) -> RankingData:
        """Concatenate data sets. A query id in two parts remains two queries.

        Grades, document ids, comments and positions are kept if all parts have them. Missing weights are 1.

        Raises
        ------
        InvalidInputError
            Without parts, or on parts with different columns, orders of columns, or numbers for categories.
        """
        if not parts:
            raise InvalidInputError("concatenate: got no parts. Pass at least one RankingData")
        widths = {part.n_features for part in parts}
        if len(widths) > 1:
            raise InvalidInputError(
                f"concatenate: the parts have different numbers of features: {sorted(widths)}. Read all parts with the "
                "same features or n_features"
            )
        names = next((part.feature_names for part in parts if part.feature_names is not None), None)
        for number, part in enumerate(parts, 1):
            if part.feature_names is not None and names is not None and part.feature_names != names:
                wrong, right = next(pair for pair in zip(part.feature_names, names) if pair[0] != pair[1])
                raise InvalidInputError(
                    f"concatenate: part {number} has column {wrong!r} in place of {right!r}",
                    argument="parts",
                    remedies=[Remedy("to read the same columns in one order", features=[...])],
                )
        starts = offsets_of([part.n_rows for part in parts])
        offsets = np.concatenate([[0]] + [part.offsets[1:] + start for part, start in zip(parts, starts)])
        if any(is_sparse(part.X) for part in parts):
            from scipy import sparse

            X = sparse.vstack([part.X for part in parts], format="csr")
        elif getattr(parts[0].X, "is_binned_matrix", False):
            X = parts[0].X.concatenate([part.X for part in parts])
        else:
            X = np.concatenate([part.X for part in parts])

        def joined(name: str) -> np.ndarray | None:
            values = [getattr(part, name) for part in parts]
            if name in _WHERE_NONE and any(value is not None for value in values):
                sizes = [part.n_rows if name in _BY_ROW else part.n_queries for part in parts]
                values = [np.full(n, _WHERE_NONE[name]) if value is None else value for n, value in zip(sizes, values)]
            return None if any(value is None for value in values) else np.concatenate(values)

        whole = RankingData.from_grouped(X, None, offsets, feature_names=names)
        for name in (*_BY_ROW[1:], *_BY_QUERY):
            setattr(whole, name, joined(name))
        whole.category_names = parts[0].category_names
        if any(part.category_names != whole.category_names for part in parts):
            raise InvalidInputError(
                "concatenate: the parts have different numbers for categories. Read all parts with the same "
                "`categories`"
            )
        if any(part.missing_grades is not None for part in parts):
            counts = [np.zeros(p.n_queries) if p.missing_offsets is None else np.diff(p.missing_offsets) for p in parts]
            whole.missing_offsets = offsets_of(np.concatenate(counts))
            whole.missing_grades = np.concatenate([p.missing_grades for p in parts if p.missing_grades is not None])
        return whole

    def judgements(self) -> Judgements:
        """Return the judgements for measures: grades, offsets, and document ids as tie keys."""
        if self.y is None:
            raise InvalidInputError(
                "the data have no grades (y), which measures and training require",
                remedies=[Remedy("to RankingData", y=...)],
            )
        grades, judged = self.y, self.judged
        if self.pooled is not None:
            grades = np.where(self.pooled, -1.0, grades)
            judged = None if judged is None else judged | self.pooled
        return Judgements(
            grades,
            self.offsets,
            judged=judged,
            tie_keys=self.doc_ids,
            query_ids=self.query_ids,
            missing_grades=self.missing_grades,
            missing_offsets=self.missing_offsets,
        )

    def __repr__(self) -> str:
        return f"RankingData({self.n_rows} rows, {self.n_queries} queries, {self.n_features} features)"


class Judgements(RowsByQuery):
    """Grades by query, which measures evaluate. Topics of the qrels that a run lacks are queries without rows.

    Parameters
    ----------
    grades : float64 array (n,)
        Grade of each document: 0 if it is not in the qrels, negative if it was pooled but not judged.
    offsets : int64 array (m + 1,)
    judged : bool array (n,), optional
        Whether the document is in the qrels. By default, all documents are.
    tie_keys : array (n,), optional
        Document ids, which sort equal scores in descending order with `ties="trec"`. Default: row order.
    query_ids : array (m,), optional
    missing_grades : float64 array, optional
        Grades of judged documents without a row (not retrieved), grouped by query.
    missing_offsets : int64 array (m + 1,), optional
        Start of each query's entries in `missing_grades`.
    """

    __slots__ = (
        "cache", "grades", "judged", "missing_grades", "missing_offsets", "offsets", "query_ids", "row_cache",
        "tie_keys",
    )  # fmt: skip

    def __init__(
        self,
        grades: np.ndarray,
        offsets: np.ndarray,
        *,
        judged: np.ndarray | None = None,
        tie_keys: np.ndarray | None = None,
        query_ids: np.ndarray | None = None,
        missing_grades: np.ndarray | None = None,
        missing_offsets: np.ndarray | None = None,
    ) -> None:
        self.grades = np.ascontiguousarray(grades, dtype=np.float64)
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        self.judged, self.tie_keys = judged, tie_keys
        self.query_ids = np.arange(len(self.offsets) - 1) if query_ids is None else query_ids
        self.missing_grades, self.missing_offsets = missing_grades, missing_offsets
        self.cache: dict[Any, Any] = {}  # results of measures that depend on grades, but not on scores (ideal DCG)
        self.row_cache: dict[Any, Any] = {}  # and on the rows alone (order of document ids)

    @classmethod
    def from_labels(
        cls, y: ArrayLike, qid: ArrayLike | None = None, *, doc_ids: ArrayLike | None = None
    ) -> tuple[Judgements, Grouping]:
        """Return judgements of rows in any order, and the grouping of scores in the same order."""
        grades = as_grades(y, None)
        grouping = group_rows(qid, len(grades))
        keys = None if doc_ids is None else grouping.grouped(_as_text(doc_ids, len(grades), "doc_ids"))
        return cls(grouping.grouped(grades), grouping.offsets, tie_keys=keys, query_ids=grouping.query_ids), grouping

    @property
    def sizes(self) -> np.ndarray:
        """The number of ranked documents of each query, int64 (m,)."""
        return np.diff(self.offsets)

    @property
    def known(self) -> np.ndarray:
        """Whether each row was judged, bool (n,); a negative grade means pooled but not judged."""
        known = self.grades >= 0
        return known if self.judged is None else known & self.judged

    def with_grades(
        self, grades: np.ndarray, judged: np.ndarray | None, missing_grades: np.ndarray | None
    ) -> Judgements:
        """Return other judgements of the same rows."""
        other = copy(self)
        other.grades, other.judged, other.missing_grades, other.cache = grades, judged, missing_grades, {}
        return other

    def take_queries(self, queries: ArrayLike) -> tuple[Judgements, np.ndarray]:
        """Return the judgements of the queries with these numbers, in the given order, and their rows, int64."""
        index = np.asarray(queries, dtype=np.int64)
        rows, offsets = places_of(self.offsets, index)
        missing: dict[str, Any] = {}
        if self.missing_grades is not None and self.missing_offsets is not None:
            places, missing["missing_offsets"] = places_of(self.missing_offsets, index)
            missing["missing_grades"] = self.missing_grades[places]
        for name in ("judged", "tie_keys"):
            values = getattr(self, name)
            missing[name] = None if values is None else values[rows]
        return Judgements(self.grades[rows], offsets, query_ids=self.query_ids[index], **missing), rows

    @property
    def longest(self) -> int:
        """The number of ranked documents of the longest query, or 0 without queries."""
        return int(np.diff(self.offsets).max(initial=0))


def as_matrix(X: Any) -> Any:
    """Return X as a C-contiguous float32 or float64 array or a CSR matrix; a BinnedMatrix is unchanged."""
    if getattr(X, "is_binned_matrix", False):
        return X
    array = X if type(X) is np.ndarray and X.dtype in (np.float32, np.float64) else _as_floats(X)
    if is_sparse(array):
        return array
    if array.ndim != 2:
        raise InvalidInputError(
            f"X must have two dimensions (documents, features), got the shape {array.shape}. Reshape your data: "
            "X.reshape(-1, 1) for a single feature, X.reshape(1, -1) for a single document"
        )
    return np.ascontiguousarray(array)


def _as_floats(X: Any) -> Any:
    """Return X as a float32 or float64 array or a CSR matrix."""
    check_plain(X, "X")
    if is_sparse(X):
        matrix = X.tocsr()
        return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    try:
        array = np.asarray(X)
        check_plain(array, "X")
        if array.dtype.kind == "c":
            raise InvalidInputError("Complex data not supported: X must hold real numbers", argument="X")
        return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
    except InvalidInputError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"X must be a numeric matrix (documents, features): {error}", argument="X") from error


def as_grades(y: ArrayLike, n_rows: int | None) -> np.ndarray:
    """Return finite grades, one for each row, as float64 (n,)."""
    grades = as_numbers(y, "y")
    if grades.ndim == 2 and grades.shape[1] == 1:
        grades = grades[:, 0]
    if grades.ndim != 1:
        raise InvalidInputError(
            f"y must be one-dimensional, one grade for each row, got the shape {grades.shape}", argument="y"
        )
    if n_rows is not None and len(grades) != n_rows:
        raise InvalidInputError(f"inconsistent numbers of samples: y has {len(grades)} grades, but X has {n_rows} rows")
    if not np.isfinite(grades).all():
        row = int(np.flatnonzero(~np.isfinite(grades))[0])
        raise InvalidInputError(
            f"Input y contains NaN or infinity: y[{row}] is {grades[row]}. Give every row a finite grade", argument="y"
        )
    return np.ascontiguousarray(grades)


def as_query_weight(weight: ArrayLike, offsets: np.ndarray, order: np.ndarray | None = None) -> np.ndarray:
    """Return weights by query, float64 (m,), from weights by query or by row (n,), in the caller's row `order`."""
    values = as_numbers(weight, "query_weight")
    m, n = len(offsets) - 1, int(offsets[-1])
    if values.ndim == 0:
        values = np.full(m, float(values))
    if len(as_vector(values, "query_weight", None, "[0, inf)")) not in (m, n):
        raise InvalidInputError(
            f"query_weight must have one entry for each query ({m}) or each row ({n}), got {len(values)}"
        )
    if len(values) == n and n != m:
        if order is not None:
            values = values[order]
        first = values[offsets[:-1]]
        differs = np.flatnonzero(values != np.repeat(first, np.diff(offsets)))
        if len(differs):
            query = int(np.searchsorted(offsets, differs[0], side="right")) - 1
            raise InvalidInputError(
                f"query_weight by row must be constant within a query, but query {query} (from 0) has "
                f"{first[query]:g} and {values[differs[0]]:g}",
                argument="query_weight",
            )
        values = first
    if m and not (values > 0).any():
        raise InvalidInputError("query_weight is 0 for every query, but at least one weight must be positive")
    return np.ascontiguousarray(values)


def as_sample_weight(weight: ArrayLike, n_rows: int) -> np.ndarray:
    """Return weights by row, float64 (n,), in the caller's row order."""
    return np.ascontiguousarray(as_vector(weight, "sample_weight", n_rows, "[0, inf)"))


def _as_text(values: ArrayLike, n_rows: int, name: str) -> np.ndarray:
    array = as_array(values, name)
    if name == "doc_ids":
        array = as_ids(array, name)
    if array.shape != (n_rows,):
        raise InvalidInputError(f"{name} must have one entry for each of the {n_rows} rows, got shape {array.shape}")
    if array.dtype.kind in "fO":
        array = np.array(id_texts(array.tolist()), dtype=object)
    # StringDType stores strings of any length without padding, and its elements are `str`.
    return array.astype(np.dtypes.StringDType(), copy=False)
