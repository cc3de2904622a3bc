"""Explain why a document ranks above another document: contributions of features to the difference of the scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import factorial
from typing import Any, ClassVar

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.printing import styled_table, table
from truerank.core.random_streams import stream
from truerank.core.results import Result
from truerank.core.types import Matrix, MeasureLike, Scorer
from truerank.data.columns import shown_names
from truerank.data.grouping import mixed_queries, ranks_by_query
from truerank.data.ranking_data import RankingData
from truerank.inspection.importance import measure_of
from truerank.inspection.shapley import tree_shapley
from truerank.io.rows import RowsLike, rows_of
from truerank.rankers.pipeline import ranker_scores

_Score = Callable[[np.ndarray], np.ndarray]  # of rows of one query

_ENUMERATED = 10  # differing features up to which all coalitions are scored
_ORDERS = 64  # orders of the features that are drawn beyond that, half of them reversed copies
_VALUES = 1 << 22  # values of the rows that are scored at once
_CANDIDATES = 256  # observed values of a feature that are tried for a document
_FEW_CANDIDATES = 24  # the same if each of them requires scoring the whole query


@dataclass(frozen=True)
class Change:
    """The nearest observed value of a feature for which the lower document would rank above the upper document."""

    feature: str
    value: float  # the lower document's
    needed: float  # the value that suffices if nothing else changes
    score: float  # the lower document's with this value
    share: float  # of the reference rows with a value between the two: a distance that does not depend on the scale


@dataclass(frozen=True)
class Explanation(Result):
    """The explanation of why document `above` ranks above document `below`; pairs have this order.

    `contributions` (p,) of the features add up to `scores[0] - scores[1]`. `changes` are single changes for which
    `below` would rank above, nearest first, without features that describe only the query.
    """

    query: str
    above: str  # the document's name, or its row number
    below: str
    scores: tuple[float, float]
    ranks: tuple[int, int]  # from 1; equal scores keep the order of the rows
    grades: tuple[float, float] | None
    contributions: np.ndarray = field(repr=False)
    values: np.ndarray = field(repr=False)  # float64 (p, 2)
    feature_names: list[str] = field(repr=False)
    method: str  # how the contributions were computed
    changes: list[Change] = field(repr=False)
    measure: str | None = None
    measure_now: float | None = None  # of the query as it is ranked
    measure_swapped: float | None = None  # with the two documents exchanged
    category_names: Mapping[str, Sequence[str]] = field(default_factory=dict, repr=False)

    KIND: ClassVar[str] = "explanation"

    @property
    def summary(self) -> str:
        """A sentence on the feature with the largest contribution."""
        k = self.order()[0]
        most = f"{self.feature_names[k]} contributes {self.contributions[k]:+.4g} of {self.difference:+.4g}"
        return f"{self.above} ranks above {self.below} in query {self.query}: {most}."

    @property
    def difference(self) -> float:
        """The score of `above` minus the score of `below`."""
        return self.scores[0] - self.scores[1]

    def order(self) -> np.ndarray:
        """Return the columns by the size of their contribution, largest first."""
        return np.argsort(-np.abs(self.contributions), kind="stable")

    def _figures(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "above": self._document(0),
            "below": self._document(1),
            "difference": self.difference,
            "method": self.method,
            "contributions": [
                dict(zip(("feature", "contribution", "above", "below"), row))
                for row in self._rows(self.order())
                if row[1] != 0
            ],
            "changes": [vars(change) for change in self.changes],
            "measure": self.measure,
            "measure_now": self.measure_now,
            "measure_swapped": self.measure_swapped,
        }

    def _document(self, which: int) -> dict[str, Any]:
        grade = None if self.grades is None else self.grades[which]
        name = (self.above, self.below)[which]
        return {"document": name, "rank": self.ranks[which], "score": self.scores[which], "grade": grade}

    def __str__(self) -> str:
        return self.to_text()

    def _rows(self, columns: Iterable[int]) -> list[list[Any]]:
        """Return the feature, its contribution and its values in both documents, for some columns."""
        return [
            [self.feature_names[k], float(self.contributions[k]), *(self._shown(k, value) for value in self.values[k])]
            for k in columns
        ]

    def _shown(self, k: int, value: float) -> float | str:
        """Return a value of feature k, or the text of a category."""
        texts = self.category_names.get(self.feature_names[k], ())
        return texts[int(value)] if 0 <= value < len(texts) else float(value)

    def _tables(self, style: str, most: int) -> tuple[str, str]:
        """Return a table of the two documents, and one of the `most` largest contributions and the others' sum."""
        order = [k for k in self.order() if self.contributions[k] != 0]
        rows, rest = self._rows(order[:most]), order[most:]
        if rest:
            rows.append([f"{len(rest)} more", float(self.contributions[rest].sum()), None, None])
        rows.append(["difference", self.difference, None, None])
        documents = [self._document(0), self._document(1)]
        header = ["feature", "contribution", self.above, self.below]
        head = styled_table([list(one.values()) for one in documents], list(documents[0]), style)
        return head, styled_table(rows, header, style)

    def to_text(self, most: int = 12) -> str:
        """Return the explanation as text, with `most` features and one line for all others."""
        head, contributions = self._tables("text", most)
        lines = [f"query {self.query}", head, "", contributions, f"({self.method})"]
        if self.changes:
            lines += ["", f"{self.below} would rank above {self.above} after one of these changes:"]
            shown = [
                [c.feature, *(self._shown(self.feature_names.index(c.feature), value) for value in (c.value, c.needed)),
                 f"{100 * c.share:.0f} %"]
                for c in self.changes[:5]
            ]  # fmt: skip
            lines.append(table(shown, ["feature", "value", "needed", "rows between"]))
        else:
            lines += ["", f"no change of one feature to an observed value ranks {self.below} above {self.above}"]
        if self.measure_now is not None and self.measure_swapped is not None:
            both = f"{self.measure_now:.4f}, {self.measure_swapped:.4f} with both documents exchanged"
            lines += ["", f"{self.measure} of the query {both}"]
        return "\n".join(lines)

    def _table(self, style: str) -> str:
        return "\n\n".join(self._tables(style, len(self.contributions)))


def explain(
    ranker: Any,
    data: RowsLike,
    query: Any = None,
    above: Any = None,
    below: Any = None,
    *,
    reference: Any = None,
    measure: MeasureLike | None = None,
    convention: str = "ranklib",
) -> Explanation:
    """Explain why one document of a query ranks above another document, by contributions of the features.

    For linear rankers, a contribution is the weight times the difference of the values; for RankBoost, the difference
    of the feature's steps; for boosted oblivious trees, the difference of exact Shapley values (`inspection.shapley`).
    For any other ranker or pipeline, contributions are Shapley values of exchanging the lower document's values for the
    upper document's values, by enumeration for at most 10 differing features, else over 64 random orders. Pipelines are
    explained by their input columns, and a calibrated ranker by its scores.

    Parameters
    ----------
    ranker : fitted ranker, pipeline, or anything with `predict(X)`
    data : RankingData, data frame, or path of a file of rows
        The rows of the query; rows of other queries are allowed.
    query : hashable, optional
        Name of the query. If None, `above` and `below` are row numbers in the caller's order, from 0.
    above, below : document ids, or row numbers in the caller's order
        By default, `above` is the query's first document, and `below` is the first document below it with a higher
        grade, or else the next document.
    reference : array (r, p), optional
        Rows for the averages of trees, and for the values to try. Default: all rows of `data`.
    measure, convention : optional
        Measure of the query before and after the exchange. Default: the ranker's `measure`, else
        nDCG@10.

    Raises
    ------
    InvalidInputError
        If the query or a document is unknown, or the rows belong to different queries.

    Notes
    -----
    Up to 256 p predictions are required for the changes (24 p times the query's rows for pipelines with whole-query
    steps).

    Examples
    --------
    >>> from truerank import RankSVM
    >>> data = RankingData([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], [2, 1, 0], doc_ids=["a", "b", "c"])
    >>> result = explain(RankSVM().fit(data), data, above=0, below=2)
    >>> bool(abs(result.contributions.sum() - result.difference) < 1e-12)
    True
    """
    data = rows_of(data, model=ranker)
    ranker = _below_probabilities(ranker)
    number, rows = _query_rows(data, query, above, below)
    X = _dense(data.X, rows)
    score = partial(_predict, ranker, data)
    scores = score(X)
    order = np.argsort(-scores, kind="stable")
    ranks = ranks_by_query(scores, np.array([0, len(rows)]))
    grades = None if data.y is None else data.y[rows]
    i, j = _pair(data, rows, order, grades, query, above, below)
    if i == j:
        raise InvalidInputError("`above` and `below` are the same document. Name two documents", argument="above")
    known = _dense(data.X, slice(None)) if reference is None else np.asarray(reference, dtype=np.float64)
    if known.ndim != 2 or known.shape[1] != X.shape[1] or len(known) == 0:
        raise InvalidInputError(f"reference must be rows of {X.shape[1]} columns, got the shape {known.shape}")
    contributions, method = _contributions(ranker, score, X, i, j, known)
    names = shown_names(data.feature_names, X.shape[1])
    own = [k for k in range(X.shape[1]) if not _of_the_query(data, X, k)]
    changes = _changes(score, hasattr(ranker, "steps"), X, scores, i, j, known, names, own)
    name = now = swapped = None
    if grades is not None:
        pinned = measure_of(ranker, measure, convention)
        one = RankingData.from_grouped(
            X, grades, np.array([0, len(rows)]), doc_ids=None if data.doc_ids is None else data.doc_ids[rows]
        ).judgements()
        exchanged = scores.copy()
        exchanged[[i, j]] = scores[[j, i]]
        name, now, swapped = pinned.label, float(pinned.mean(one, scores)), float(pinned.mean(one, exchanged))
    both = None if grades is None else (float(grades[i]), float(grades[j]))
    return Explanation(
        str(data.query_ids[number]), _name(data, rows, i), _name(data, rows, j), (float(scores[i]), float(scores[j])),
        (int(ranks[i]), int(ranks[j])), both, contributions, np.stack([X[i], X[j]], axis=1), names, method, changes,
        name, now, swapped, data.category_names or {},
    )  # fmt: skip


def row_contributions(ranker: Any, X: Any, reference: Any) -> np.ndarray | None:
    """Return contributions (n, p) of the features to the scores of X, against the rows of `reference`; see `explain`.

    Returns None for rankers whose scores are not a sum over features.
    """
    ranker = _below_probabilities(ranker)
    if getattr(X, "is_binned_matrix", False):
        return None
    if hasattr(ranker, "coef_") and np.shape(ranker.coef_) == (X.shape[1],):
        rows = _dense(X, slice(None))
        return np.where(ranker.coef_ == 0, 0.0, rows * ranker.coef_)
    if hasattr(ranker, "step_functions"):
        steps: np.ndarray = ranker.step_functions().contributions(_dense(X, slice(None)))
        return steps
    if hasattr(ranker, "tree_features_") and isinstance(X, np.ndarray):
        return tree_shapley(ranker, X, reference).values
    return None


def _below_probabilities(ranker: Scorer) -> Any:
    """Return the ranker inside a calibrated ranker, whose scores determine the order."""
    while hasattr(ranker, "calibrators_") and hasattr(ranker, "ranker_"):
        ranker = ranker.ranker_
    return ranker


def _predict(ranker: Any, data: RankingData, X: np.ndarray) -> np.ndarray:
    """Return scores (n,) of the rows X of one query, with the columns of `data`."""
    rows = RankingData.from_grouped(X, None, np.array([0, len(X)]), feature_names=data.feature_names)
    return ranker_scores(ranker, rows.replaced(category_names=data.category_names))


def _dense(X: Matrix, rows: Any) -> np.ndarray:
    if getattr(X, "is_binned_matrix", False):
        raise InvalidInputError(
            "explain requires feature values. Pass the data without bins, and a pipeline that bins them"
        )
    part = X[rows]
    return np.ascontiguousarray(part.toarray() if hasattr(part, "toarray") else part, dtype=np.float64)


def _query_rows(data: RankingData, query: object, above: Any, below: Any) -> tuple[int, np.ndarray]:
    """Return the number of the query and its rows, in grouped order."""
    if query is None:
        if above is None:
            raise InvalidInputError(
                "no document is named. Name the query, or two rows (`above`, `below`)", argument="query"
            )
        places = [_place(data, row) for row in (above, below) if row is not None]
        numbers = {int(np.searchsorted(data.offsets, place, side="right")) - 1 for place in places}
        if len(numbers) > 1:
            raise InvalidInputError(
                f"rows {above} and {below} belong to different queries. Name two rows of one query",
                code="different-queries",
            )
        number = numbers.pop()
    else:
        found = np.flatnonzero(data.query_ids == query)
        if not len(found):
            found = np.flatnonzero(data.query_ids.astype(str) == str(query))
        if not len(found):
            few = ", ".join(str(name) for name in data.query_ids[:5])
            raise InvalidInputError(
                f"query {query!r} is not in the data. The first of its {data.n_queries} queries are: {few}",
                argument="query",
            )
        number = int(found[0])
    return number, np.arange(data.offsets[number], data.offsets[number + 1])


def _place(data: RankingData, row: object) -> int:
    """Return the grouped position of a row of the caller."""
    if isinstance(row, bool) or not isinstance(row, int | np.integer) or not 0 <= row < data.n_rows:
        raise InvalidInputError(f"a row number must be an integer in 0 … {data.n_rows - 1}, got {row!r}", code="no-row")
    return int(row) if data.order is None else int(np.flatnonzero(data.order == row)[0])


def _pair(
    data: RankingData,
    rows: np.ndarray,
    order: np.ndarray,
    grades: np.ndarray | None,
    query: object,
    above: Any,
    below: Any,
) -> tuple[int, int]:
    """Return the positions of the two documents within the query."""
    if len(rows) < 2:
        raise InvalidInputError(
            "the query has a single document, so that there is no pair to compare. Name another query"
        )

    def place(document: object) -> int:
        if query is not None and data.doc_ids is not None:
            found = np.flatnonzero(data.doc_ids[rows] == str(document))
            if not len(found):
                few = ", ".join(data.doc_ids[rows[order[:5]]].tolist())
                raise InvalidInputError(
                    f"document {document!r} is not in query {query!r}. Its first documents are: {few}"
                )
            if len(found) > 1:
                raise InvalidInputError(
                    f"document {document!r} occurs {len(found)} times in query {query!r}. Give these rows different "
                    "ids, or name rows by number, without `query`",
                    argument="document",
                )
            return int(found[0])
        found_place = _place(data, document) - int(rows[0])
        if not 0 <= found_place < len(rows):
            raise InvalidInputError(
                f"row {document} (from 0) does not belong to query {query!r}. Name one of its rows, or leave query out"
            )
        return found_place

    if above is None and below is not None:
        j = place(below)
        return int(order[0] if order[0] != j else order[1]), j
    i = int(order[0]) if above is None else place(above)
    if below is not None:
        return i, place(below)
    rank = int(np.flatnonzero(order == i)[0])
    under = order[rank + 1 :]
    if not len(under):
        raise InvalidInputError("the document is the last of the query. Name the document to compare it with")
    better = under if grades is None else under[grades[under] > grades[i]]
    return i, int(better[0] if len(better) else under[0])


def _name(data: RankingData, rows: np.ndarray, i: int) -> str:
    if data.doc_ids is not None:
        return str(data.doc_ids[rows[i]])
    place = int(rows[i])
    return f"row {place if data.order is None else int(data.order[place])}"


def _contributions(
    ranker: Scorer, score: _Score, X: np.ndarray, i: int, j: int, reference: np.ndarray
) -> tuple[np.ndarray, str]:
    """Return contributions (p,) to the difference of rows i and j of one query, and the name of the method."""
    rows = row_contributions(ranker, X[[i, j]], reference)
    if rows is not None:
        how = "difference of exact Shapley values"
        if hasattr(ranker, "coef_"):
            how = "weight times difference of the values"
        elif hasattr(ranker, "step_functions"):
            how = "difference of the features' steps"
        return rows[0] - rows[1], how
    differing = np.flatnonzero((X[i] != X[j]) & ~(np.isnan(X[i]) & np.isnan(X[j])))
    contributions = np.zeros(X.shape[1])
    if len(differing):
        contributions[differing] = _exchange_game(score, hasattr(ranker, "steps"), X, i, j, differing)
    if len(differing) <= _ENUMERATED:
        return contributions, "Shapley values of exchanging the two documents' values, by enumeration"
    return contributions, f"Shapley values of exchanging the two documents' values, over {_ORDERS} orders"


def _exchange_game(score: _Score, by_query: bool, X: np.ndarray, i: int, j: int, players: np.ndarray) -> np.ndarray:
    """Return Shapley values of v(S), where v(S) is the score of row j with row i's values in S.

    For a pipeline, row i also gets row j's values, and v is half their difference.
    """
    n = len(players)

    def gaps(masks: np.ndarray) -> np.ndarray:
        """Return v of each mask."""
        mixed = np.repeat(X[j][None], len(masks), axis=0)
        mixed[:, players] = np.where(masks, X[i, players], X[j, players])
        if not by_query:
            return score(mixed)
        values = np.empty(len(masks))
        for k, row in enumerate(mixed):
            query = X.copy()
            query[j] = row
            query[i, players] = np.where(masks[k], X[j, players], X[i, players])
            scores = score(query)
            values[k] = (scores[j] - scores[i]) / 2
        return values

    result = np.zeros(n)
    if n <= _ENUMERATED:
        numbers = np.arange(1 << n)
        masks = ((numbers[:, None] >> np.arange(n)) & 1).astype(bool)
        value = gaps(masks)
        size = masks.sum(axis=1)
        weights = np.array([factorial(s) * factorial(n - s - 1) / factorial(n) for s in range(n)])
        for k in range(n):
            without = numbers[~masks[:, k]]
            result[k] = np.sum(weights[size[without]] * (value[without | (1 << k)] - value[without]))
        return result
    drawn = [stream(0, "explain", draw).permutation(n) for draw in range(_ORDERS // 2)]
    orders = np.stack([order for one in drawn for order in (one, one[::-1])])
    at_once = max(1, _VALUES // ((n + 1) * X.shape[1]))
    for part in (orders[start : start + at_once] for start in range(0, _ORDERS, at_once)):
        joined = np.argsort(part, axis=1)  # after how many others each player comes in
        masks = joined[:, None, :] < np.arange(n + 1)[:, None]
        steps = np.diff(gaps(masks.reshape(-1, n)).reshape(len(part), n + 1), axis=1)
        for order, step in zip(part, steps):
            result[order] += step / _ORDERS
    return result


def _of_the_query(data: RankingData, X: np.ndarray, k: int) -> bool:
    """Return whether feature k describes the query, that is, whether it is constant within every query of the data."""
    if data.n_queries == 1 or len(np.unique(X[:, k])) > 1:
        return False
    return not mixed_queries(_dense(data.X, np.s_[:, k : k + 1])[:, 0], data.offsets).any()


def _changes(
    score: _Score,
    by_query: bool,
    X: np.ndarray,
    scores: np.ndarray,
    i: int,
    j: int,
    reference: np.ndarray,
    names: Sequence[str],
    columns: list[int],
) -> list[Change]:
    """Return single changes of row j in these columns for which it ranks above row i, nearest first."""
    if scores[j] > scores[i]:
        return []
    found = []
    for k in columns:
        column = np.sort(reference[:, k][~np.isnan(reference[:, k])])
        values = np.unique(column)
        most = _FEW_CANDIDATES if by_query else _CANDIDATES
        if len(values) > most:
            values = values[np.linspace(0, len(values) - 1, most).astype(np.int64)]
        values = values[values != X[j, k]]
        if not len(values):
            continue
        rows = np.repeat(X[j][None], len(values), axis=0)
        rows[:, k] = values
        if by_query:
            queries = [np.concatenate([X[:j], row[None], X[j + 1 :]]) for row in rows]
            raised, other = np.array([score(query)[[j, i]] for query in queries]).T
        else:
            raised, other = score(rows), scores[i]
        passed = raised > other
        if not passed.any():
            continue
        low = np.searchsorted(column, np.minimum(values, X[j, k]), side="right")
        high = np.searchsorted(column, np.maximum(values, X[j, k]), side="left")
        share = np.maximum(high - low, 0) / len(column)
        best = min(np.flatnonzero(passed), key=lambda c: (share[c], abs(values[c] - X[j, k])))
        found.append(
            Change(str(names[k]), float(X[j, k]), float(values[best]), float(raised[best]), float(share[best]))
        )
    return sorted(found, key=lambda change: (change.share, change.feature))
