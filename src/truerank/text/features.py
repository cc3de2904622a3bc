"""Features of (query, document) pairs from an index: features of two papers, feedback, latent space and more."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY
from functools import partial
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.kernel import kernel
from truerank.core.parameters import parameters
from truerank.core.printing import progress
from truerank.core.threads import resolve_n_jobs, run_blocks
from truerank.core.types import ArrayLike
from truerank.data.grouping import offsets_of
from truerank.data.ranking_data import RankingData
from truerank.features.per_query import MinMaxInQuery
from truerank.io.documents import Document
from truerank.io.trec import Qrels, judge_lists
from truerank.text.analysers import STEMMED_AND_STOPPED
from truerank.text.feedback import feedback_scores, relevance_model_scores
from truerank.text.index import ALL, Index
from truerank.text.latent import DIMENSIONS, add_documents, cosines, document_vectors, query_vector
from truerank.text.retrieval import all_scores, as_documents, best_documents, best_of
from truerank.text.retrieval_functions import BM25, FUNCTIONS, RetrievalFunction, lucene_idf, query_terms, term_weights

FAMILIES: dict[str, str] = {
    "functions": "five retrieval functions under each analyser (Yue et al. 2007, section 4.1), of each field",
    "xu-li": "the seven term features of Xu & Li (2007), table 2, of each field",
    "feedback": "BM25 after Rocchio over the best 5, 10 and 20 documents, RM3 over the best 10",
    "latent": "latent semantic cosines of 100, 200 and 300 dimensions",
    "latent-feedback": "latent cosines with the best 5 and 10 documents after Rocchio added to the query",
    "coverage": "share of the query's terms that occur in the document, plain and weighted by idf, of each field",
    "proximity": "ordered and unordered windows, position of the first match",
    "lengths": "ln(1 + terms), of each field",
    "numbers": "numeric fields of the documents",
    "vectors": "cosines of vectors in the documents and queries",
}
PAPERS = ("functions", "xu-li")  # the families of the two papers
ROCCHIO_DOCUMENTS = (5, 10, 20)
RM3_DOCUMENTS = 10
LATENT_FEEDBACK_DOCUMENTS = (5, 10)
LATENT_DIMENSIONS = (100, 200, 300)
WINDOW = 8  # largest distance of near terms, in terms
XU_LI = ("tf", "icf", "idf", "tf-share", "tf-share-idf", "tf-lift", "bm25")


@parameters
class TextFeatures(BaseEstimator):
    """Features of the candidates of each query, from which a ranker learns.

    Candidates are the union of the best `depth` documents of each retrieval function over all fields and, if these
    families are selected, of feedback and the latent space. All features are computed for all candidates.

    Parameters
    ----------
    families : sequence of str, default all
        Some of `FAMILIES`. `PAPERS` lists the families of the papers.
    depth : int, default 1000
        Number of best documents of each function.
    scaled : bool, default True
        Whether to add each column scaled to [0, 1] within the query, with the suffix `.scaled` in the name.
    n_jobs : int, optional
        Number of threads over queries; None means 1. Values do not depend on the number of threads.

    Attributes
    ----------
    feature_names_ : list of str
        `NAME.ANALYSER.FIELD`, in the order of the columns.
    fields_ : list of str
        Text fields of the index of `fit`; the index of `transform` must have them.

    Notes
    -----
    Xu & Li's features are sums over the query's terms in the document, q_t times, after stemming and without stop
    words. Their idf is n/df, |C| counts tokens, and ln x is 0 for x <= 0. A document without any of the query's terms
    has tf = 0 in a language model, and the value 0 in other functions. A missing number is replaced by the lowest
    number among the query's candidates. Features do not depend on judgements. Cost of a query: two passes over the
    postings of its terms and O(n_documents) for each function, and O(candidates · 300) for the latent space, which the
    index computes once and stores.

    Examples
    --------
    >>> import tempfile
    >>> from truerank.text.index import build_index
    >>> documents = [Document("a", {"text": "heat flow"}, {}, {}), Document("b", {"text": "flow"}, {}, {})]
    >>> index = build_index(documents, tempfile.mkdtemp() + "/index")
    >>> features = TextFeatures(families=["coverage"], scaled=False).fit(index)
    >>> data = features.transform({"q": "flow of heat"}, index)
    >>> data.doc_ids.tolist(), data.feature_names, data.X[:, 0].tolist()
    (['a', 'b'], ['coverage.all', 'idf-coverage.all'], [1.0, 0.5])
    """

    model_attributes: ClassVar[dict[str, str]] = {"feature_names_": "list[] of str", "fields_": "list[] of str"}

    families: Sequence[str] = tuple(FAMILIES)
    _: KW_ONLY
    depth: int = 1000
    scaled: bool = True
    n_jobs: int | None = None

    def fit(self, index: Index, y: ArrayLike | None = None) -> TextFeatures:
        """Determine the columns from the index. `y` is not used."""
        families = self._families()
        check_positive_int(self.depth, "depth")
        if STEMMED_AND_STOPPED not in index.analysers:
            raise InvalidInputError(
                f"{index.path}: the index has the analysers {', '.join(index.analysers)}; features require "
                f"{STEMMED_AND_STOPPED!r}."
                f" Build the index with it",
                code="analysers",
            )
        names = [name for family in families for name in _NAMES[family](index)]
        if not names:
            raise InvalidInputError(f"the families {', '.join(families)} have no column for this index")
        self.fields_ = list(index.fields)
        self.feature_names_ = names + [f"{name}.scaled" for name in names] * bool(self.scaled)
        return self

    def transform(
        self, queries: Iterable[Document] | Mapping[str, str], index: Index, qrels: Qrels | None = None
    ) -> RankingData:
        """Return candidates and features (float32) of each query; queries without candidates are left out.

        Parameters
        ----------
        queries : iterable of Document, or dict of id to text
        index : Index
            The index of `fit`, or another index with the same fields.
        qrels : Qrels, optional
            Grades of the rows, and of judged documents that no function found, which measures count.
        """
        check_is_fitted(self, "feature_names_")
        families = self._families()
        names = [name for family in families for name in _NAMES[family](index)]
        if names != self.feature_names_[: len(names)]:
            missing = [name for name in self.feature_names_[: len(names)] if name not in names][:3]
            raise InvalidInputError(
                f"{index.path}: the features of this index differ from the index of fit, which had the fields "
                f"{', '.join(self.fields_)}{'. It lacks ' + ', '.join(missing) if missing else ''}",
                code="other-index",
            )
        asked = as_documents(queries)
        _prepare(index, families)
        work = partial(_rows, index, families, self.depth, bool(self.scaled))
        if resolve_n_jobs(self.n_jobs) == 1:
            found = [work(query) for query in progress(asked, "features", len(asked))]
        else:
            found = run_blocks(work, [(query,) for query in asked], self.n_jobs)
        kept = [number for number, (documents, _) in enumerate(found) if len(documents)]
        if not kept:
            raise InvalidInputError(
                "no query finds a document. Pass queries with words of this collection", code="no-document"
            )
        offsets = offsets_of([len(found[number][0]) for number in kept])
        doc_ids = index.document_ids(np.concatenate([found[number][0] for number in kept]))
        X = np.concatenate([found[number][1] for number in kept])
        del found[:]
        ids = np.array([asked[number].id for number in kept])
        data = RankingData.from_grouped(X, None, offsets, ids, doc_ids=doc_ids, feature_names=self.feature_names_)
        return data if qrels is None else data.with_judgements(judge_lists(qrels, ids, doc_ids, offsets))

    def _families(self) -> list[str]:
        given = [self.families] if isinstance(self.families, str) else list(self.families)
        unknown = [family for family in given if family not in FAMILIES]
        if unknown or not given:
            raise InvalidInputError(
                f"families must be some of {', '.join(FAMILIES)}, got {unknown[:1] or given}", argument="families"
            )
        return [family for family in FAMILIES if family in given]


class _Query:
    """The terms of a query under each analyser, and scores that several families use."""

    def __init__(self, index: Index, query: Document) -> None:
        self.document = query
        self.text = query.text["text"]
        terms = {name: index.terms(self.text, name) for name in index.analysers}
        self.weights = {name: term_weights(found) for name, found in terms.items()}
        self.terms = terms[STEMMED_AND_STOPPED]
        self.scores: dict[str, np.ndarray] = {}


def _rows(
    index: Index, families: Sequence[str], depth: int, scaled: bool, query: Document
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the candidates, best BM25 first, and their features (n, p), also scaled if requested."""
    shared = _Query(index, query)
    candidates = _candidates(index, shared, families, depth)
    bm25 = _scores_of(index, BM25(STEMMED_AND_STOPPED), shared.weights[STEMMED_AND_STOPPED], candidates)
    candidates = candidates[np.lexsort((candidates, -bm25))]
    X = np.column_stack([_COLUMNS[family](index, shared, candidates) for family in families]).astype(np.float32)
    if scaled and len(X):
        X = np.hstack([X, MinMaxInQuery().fit_transform(X, qid=np.zeros(len(X))).astype(np.float32)])
    return candidates, X


def _candidates(index: Index, query: _Query, families: Sequence[str], depth: int) -> np.ndarray:
    found = [best_of(index, f, depth, query.weights[f.analyser])[0] for f in _all_functions(index, ALL)]
    weights = query.weights[STEMMED_AND_STOPPED]
    if not weights:
        return np.unique(np.concatenate(found))

    def take(name: str, scores: np.ndarray, eligible: np.ndarray) -> None:
        query.scores[name] = scores
        found.append(best_documents(scores, eligible.astype(np.uint8), depth)[0])

    if "feedback" in families:
        for n_documents in ROCCHIO_DOCUMENTS:
            scores = feedback_scores(index, weights, n_documents, STEMMED_AND_STOPPED)
            take(f"rocchio-{n_documents}", scores, scores > 0)
        scores = relevance_model_scores(index, weights, RM3_DOCUMENTS, STEMMED_AND_STOPPED)
        take(f"rm3-{RM3_DOCUMENTS}", scores, np.ones(index.n_documents))
    if {"latent", "latent-feedback"} & set(families):
        vector, rows = query_vector(index, weights, STEMMED_AND_STOPPED), document_vectors(index, STEMMED_AND_STOPPED)
    if "latent" in families:
        for dimensions in LATENT_DIMENSIONS:
            scores = cosines(rows[:, :dimensions], vector[:dimensions])
            take(f"latent-{dimensions}", scores, scores > 0)
    if "latent-feedback" in families:
        first = query.scores.get(f"rocchio-{ROCCHIO_DOCUMENTS[0]}")
        if first is None:
            first = feedback_scores(index, weights, ROCCHIO_DOCUMENTS[0], STEMMED_AND_STOPPED)
        for n_documents in LATENT_FEEDBACK_DOCUMENTS:
            best = best_documents(first, (first > 0).astype(np.uint8), n_documents)[0]
            for dimensions in LATENT_DIMENSIONS:
                grown = add_documents(vector[:dimensions], rows[best, :dimensions])
                scores = cosines(rows[:, :dimensions], grown)
                take(f"latent-feedback-{n_documents}-{dimensions}", scores, scores > 0)
    return np.unique(np.concatenate(found))


def _fields(index: Index) -> list[str]:
    return [ALL, *index.fields] if len(index.fields) > 1 else [ALL]


def _all_functions(index: Index, field: str) -> list[RetrievalFunction]:
    """Return every retrieval function with default parameters, under every analyser."""
    return [function(analyser, field) for analyser in index.analysers for function in FUNCTIONS.values()]


def _scores_of(
    index: Index, function: RetrievalFunction, weights: Mapping[int, float], documents: np.ndarray
) -> np.ndarray:
    """Return scores of some documents (n,); a document without the query's terms has tf = 0."""
    return all_scores(index, function, weights, documents)[0][documents]


def _functions(index: Index, query: _Query, candidates: np.ndarray) -> np.ndarray:
    functions = [function for field in _fields(index) for function in _all_functions(index, field)]
    return np.column_stack([_scores_of(index, f, query.weights[f.analyser], candidates) for f in functions])


def _xu_li(index: Index, query: _Query, candidates: np.ndarray) -> np.ndarray:
    columns, weights = [], query.weights[STEMMED_AND_STOPPED]
    for field in _fields(index):
        postings = index.postings(STEMMED_AND_STOPPED, field)
        sums = np.zeros((index.n_documents, 6))
        for documents, counts, weight, occurrences in query_terms(postings, weights):
            idf, rarity = index.n_documents / len(documents), postings.n_tokens / occurrences
            _add_xu_li(documents, counts, postings.lengths, weight, idf, rarity, sums)
        bm25 = _scores_of(index, BM25(STEMMED_AND_STOPPED, field), weights, candidates)
        columns += [sums[candidates], np.log(bm25, out=np.zeros(len(bm25)), where=bm25 > 0)[:, None]]
    return np.hstack(columns)


def _from_scores(family: str, index: Index, query: _Query, candidates: np.ndarray) -> np.ndarray:
    nothing = np.zeros(index.n_documents)
    return np.column_stack([query.scores.get(name, nothing)[candidates] for name in _NAMES[family](index)])


def _coverage(index: Index, query: _Query, candidates: np.ndarray) -> np.ndarray:
    columns, terms = [], query.weights[STEMMED_AND_STOPPED]
    everywhere = index.postings(STEMMED_AND_STOPPED)
    idf = {term: lucene_idf(index.n_documents, everywhere.documents_with(term)) for term in terms}
    total = math.fsum(idf.values()) or 1.0
    for field in _fields(index):
        postings = index.postings(STEMMED_AND_STOPPED, field)
        shares, weighted = np.zeros(index.n_documents), np.zeros(index.n_documents)
        for term in terms:
            there, _ = postings.of(term)
            shares[there] += 1 / len(terms)
            weighted[there] += idf[term] / total
        columns += [shares[candidates], weighted[candidates]]
    return np.column_stack(columns)


def _lengths(index: Index, query: _Query, candidates: np.ndarray) -> np.ndarray:
    lengths = [index.postings(STEMMED_AND_STOPPED, field).lengths[candidates] for field in _fields(index)]
    return np.log1p(np.column_stack(lengths).astype(np.float64))


def _numbers(index: Index, query: _Query, candidates: np.ndarray) -> np.ndarray:
    columns = [np.asarray(values[candidates]) for values in index.numbers.values()]
    for values in columns:
        values[np.isnan(values)] = np.nanmin(values) if not np.isnan(values).all() else 0.0
        np.clip(values, -np.finfo(np.float32).max, np.finfo(np.float32).max, out=values)
    return np.column_stack(columns) if columns else np.zeros((len(candidates), 0))


def _vectors(index: Index, query: _Query, candidates: np.ndarray) -> np.ndarray:
    columns = []
    for name, rows in index.vectors.items():
        vector = np.asarray(query.document.vectors.get(name, []), dtype=np.float64)
        if len(vector) != rows.shape[1]:
            raise InvalidInputError(
                f"query {query.document.id!r}: its vector {name!r} has {len(vector)} dimensions; expected the "
                f"{rows.shape[1]} of the documents' vectors. Add such a vector to each query, or omit the family",
                argument="query",
            )
        columns.append(cosines(rows[candidates], vector))
    return np.column_stack(columns) if columns else np.zeros((len(candidates), 0))


def proximity(index: Index, terms: Sequence[int], documents: np.ndarray, analyser: str) -> np.ndarray:
    """Return ordered and unordered windows (after Metzler and Croft 2005), and the position of the first match.

    For the neighbours (s, t) in the query, with c the number of windows in the document,

        Σ_(s, t) (idf_s + idf_t)/2 · c/(c + 1),    idf = ln(1 + (n - df + ½)/(df + ½))

    Ordered: t follows s immediately. Unordered: s and t are within `WINDOW` terms in either order, and each position of
    a term counts once, with the nearest earlier position of the paired term. Words that the analyser drops have no
    position, and positions continue from one field to the next. `terms` are the terms of the query in order. The
    columns of the result, float64 (documents, 3), are ordered, unordered, and 1/(1 + position of the first query term),
    or 0 without one.
    """
    values, different = np.zeros((len(documents), 3)), list(dict.fromkeys(terms))
    pairs = list(dict.fromkeys((s, t) for s, t in zip(terms, terms[1:]) if s != t))
    if not different:
        return values
    postings, n = index.postings(analyser), index.n_documents
    idf = [lucene_idf(n, postings.documents_with(term)) for term in different]
    slot = {term: number for number, term in enumerate(different)}
    sides = np.array([(slot[s], slot[t]) for s, t in pairs], dtype=np.int64).reshape(-1, 2)
    weights = np.array([(idf[s] + idf[t]) / 2 for s, t in sides.tolist()])
    slots = np.full(index.n_terms(analyser), -1, dtype=np.int32)
    slots[different] = np.arange(len(different))
    _windows(
        index.tokens, index.ends, index.term_of_word(analyser), slots, sides, weights, WINDOW,
        np.ascontiguousarray(documents, dtype=np.int64), np.zeros((2, len(pairs))),
        np.zeros(len(different), dtype=np.int64), values,
    )  # fmt: skip
    return values


_NAMES: dict[str, Callable[[Index], list[str]]] = {
    "functions": lambda index: [
        f"{f}.{a}.{field}" for field in _fields(index) for a in index.analysers for f in FUNCTIONS
    ],
    "xu-li": lambda index: [f"xu-li-{name}.{field}" for field in _fields(index) for name in XU_LI],
    "feedback": lambda index: [*(f"rocchio-{n}" for n in ROCCHIO_DOCUMENTS), f"rm3-{RM3_DOCUMENTS}"],
    "latent": lambda index: [f"latent-{n}" for n in LATENT_DIMENSIONS],
    "latent-feedback": lambda index: [
        f"latent-feedback-{k}-{n}" for k in LATENT_FEEDBACK_DOCUMENTS for n in LATENT_DIMENSIONS
    ],
    "coverage": lambda index: [f"{c}.{field}" for field in _fields(index) for c in ("coverage", "idf-coverage")],
    "proximity": lambda index: ["ordered-windows", "unordered-windows", "first-match"],
    "lengths": lambda index: [f"length.{field}" for field in _fields(index)],
    "numbers": lambda index: [f"number.{name}" for name in index.numbers],
    "vectors": lambda index: [f"vector.{name}" for name in index.vectors],
}
_COLUMNS: dict[str, Callable[[Index, _Query, np.ndarray], np.ndarray]] = {
    "functions": _functions,
    "xu-li": _xu_li,
    "feedback": partial(_from_scores, "feedback"),
    "latent": partial(_from_scores, "latent"),
    "latent-feedback": partial(_from_scores, "latent-feedback"),
    "coverage": _coverage,
    "proximity": lambda index, query, rows: proximity(index, query.terms, rows, STEMMED_AND_STOPPED),
    "lengths": _lengths,
    "numbers": _numbers,
    "vectors": _vectors,
}


def _prepare(index: Index, families: Sequence[str]) -> None:
    """Compute the norms and vectors that the threads share."""
    none = np.zeros(0, dtype=np.int64)
    for function in (function for field in _fields(index) for function in _all_functions(index, field)):
        _scores_of(index, function, {}, none)
    if {"latent", "latent-feedback"} & set(families):
        document_vectors(index, STEMMED_AND_STOPPED)
        query_vector(index, {}, STEMMED_AND_STOPPED)
    assert max(LATENT_DIMENSIONS) <= DIMENSIONS


@kernel
def _add_xu_li(documents, counts, lengths, weight, idf, rarity, sums):
    """Add the first six features of table 2 for one term: idf = n/df, rarity = |C|/cf."""
    for i in range(len(documents)):
        d = documents[i]
        tf = float(counts[i])
        share = tf / lengths[d]
        sums[d, 0] += weight * math.log(tf + 1.0)
        sums[d, 1] += weight * math.log(rarity + 1.0)
        sums[d, 2] += weight * math.log(idf)
        sums[d, 3] += weight * math.log(share + 1.0)
        sums[d, 4] += weight * math.log(share * idf + 1.0)
        sums[d, 5] += weight * math.log(share * rarity + 1.0)


@kernel
def _windows(tokens, ends, of, slots, sides, weights, window, documents, counts, last, values):
    """Fill `values` (documents, 3); `counts` (2, pairs) and `last` (slots,) are scratch arrays."""
    for row in range(len(documents)):
        d = documents[row]
        counts[:] = 0.0
        last[:] = -window - 1
        place = 0
        first = -1
        for token in range(ends[d], ends[d + 1]):
            term = of[tokens[token]]
            if term < 0:
                continue
            slot = slots[term]
            if slot >= 0:
                if first < 0:
                    first = place
                for pair in range(len(weights)):
                    other = -1
                    if sides[pair, 1] == slot:
                        other = sides[pair, 0]
                        if last[other] == place - 1:
                            counts[0, pair] += 1.0
                    elif sides[pair, 0] == slot:
                        other = sides[pair, 1]
                    if other >= 0 and place - last[other] < window:
                        counts[1, pair] += 1.0
                last[slot] = place
            place += 1
        for pair in range(len(weights)):
            for kind in range(2):
                values[row, kind] += weights[pair] * counts[kind, pair] / (counts[kind, pair] + 1.0)
        if first >= 0:
            values[row, 2] = 1.0 / (1.0 + first)
