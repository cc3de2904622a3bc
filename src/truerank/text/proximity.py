"""Proximity of the query's terms in a document."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truerank.core.kernel import kernel
from truerank.text.index import Index
from truerank.text.retrieval_functions import lucene_idf

WINDOW = 8  # largest distance of near terms, in terms


def proximity(index: Index, terms: Sequence[int], documents: np.ndarray, analyser: str) -> np.ndarray:
    """Ordered and unordered windows (after Metzler & Croft 2005), and the place of the first match.

    For the neighbours (s, t) in the query, with c the number of windows in the document,

        Σ_(s, t) (idf_s + idf_t)/2 · c/(c + 1),    idf = ln(1 + (n - df + ½)/(df + ½))

    Ordered: t follows s immediately. Unordered: s and t are within `WINDOW` terms in either order, and each place of a
    term counts once, with the nearest earlier place of the other term. Words that the analyser drops have no place, and
    places continue from one field to the next. `terms` are the query's in order. The columns of the result, float64
    (documents, 3), are ordered, unordered, and 1/(1 + place of the first query term), or 0 without one.
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
