"""alpha-DCG, alpha-nDCG, ERR-IA and nERR-IA of one topic, from their formulas."""

from __future__ import annotations

import math


def gain(document, before, relevant, alpha):
    """The sum over the document's subtopics of (1 - alpha)^(how many documents before it have the subtopic)."""
    total = 0.0
    for subtopic in sorted(relevant.get(document, ())):
        total += (1 - alpha) ** sum(subtopic in relevant.get(other, ()) for other in before)
    return total


def values(relevant, run, alpha, k):
    """The four values at cut-off k; `relevant` has subtopics by document, `run` scores by document."""
    subtopics = {one for own in relevant.values() for one in own}
    if not subtopics:
        return [0.0] * 4
    order = sorted(run, key=lambda document: (-run[document], document))[:k]
    best = []
    for _ in range(min(k, len(relevant))):
        left = sorted((document for document in relevant if document not in best), reverse=True)
        best.append(max(left, key=lambda document: gain(document, best, relevant, alpha)))
    found = []
    for discount in (lambda rank: math.log2(1 + rank), float):

        def total(documents):
            return sum(
                gain(document, documents[: rank - 1], relevant, alpha) / discount(rank)  # noqa: B023
                for rank, document in enumerate(documents, 1)
            )

        everything = sum(len(subtopics) * (1 - alpha) ** (rank - 1) / discount(rank) for rank in range(1, k + 1))
        found += [total(order) / everything, total(order) / total(best)]
    return found
