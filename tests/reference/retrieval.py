"""Retrieval functions by their formulas, one document and one term after another."""

from __future__ import annotations

import math
import re
from collections import Counter


class Collection:
    """Counts of plain words of all documents."""

    def __init__(self, texts: list[str]) -> None:
        self.documents = [Counter(re.findall(r"[^\W_]+", text.lower())) for text in texts]
        self.n = len(texts)
        self.length = [sum(counts.values()) for counts in self.documents]
        self.mean_length = sum(self.length) / self.n
        self.df = Counter(word for counts in self.documents for word in counts)
        self.cf = sum(self.documents, Counter())
        self.total = sum(self.length)

    def scores(self, query: str, formula, **parameters) -> dict[int, float]:
        """Scores of the documents that have a word of the query."""
        words = Counter(word for word in re.findall(r"[^\W_]+", query.lower()) if word in self.df)
        return {
            d: formula(self, words, d, **parameters)
            for d in range(self.n)
            if any(word in self.documents[d] for word in words)
        }


def bm25(c, query, d, k1=1.2, b=0.75, k3=7.0, idf="lucene"):
    total = 0.0
    for word, q in query.items():
        tf, df = c.documents[d][word], c.df[word]
        weight = {
            "lucene": math.log(1 + (c.n - df + 0.5) / (df + 0.5)),
            "robertson": math.log((c.n - df + 0.5) / (df + 0.5)),
            "atire": math.log(c.n / df),
        }[idf]
        norm = k1 * (1 - b + b * c.length[d] / c.mean_length)
        total += weight * tf * (k1 + 1) / (tf + norm) * q * (k3 + 1) / (q + k3)
    return total


def tfidf(c, query, d, k1=1.2, b=0.75):
    norm = k1 * (1 - b + b * c.length[d] / c.mean_length)
    return sum(
        q * k1 * c.documents[d][w] / (c.documents[d][w] + norm) * math.log(c.n / c.df[w]) ** 2 for w, q in query.items()
    )


def cosine(c, query, d):
    def vector(counts):
        return {w: (1 + math.log(x)) * (1 + math.log(c.n / c.df[w])) for w, x in counts.items()}

    a, b = vector(query), vector(c.documents[d])
    length = math.sqrt(sum(x * x for x in a.values())) * math.sqrt(sum(x * x for x in b.values()))
    return sum(x * b.get(w, 0.0) for w, x in a.items()) / length


def dirichlet(c, query, d, mu=2500.0):
    return sum(
        q * math.log((c.documents[d][w] + mu * c.cf[w] / c.total) / (c.length[d] + mu)) for w, q in query.items()
    )


def jelinek_mercer(c, query, d, lam=0.4):
    return sum(
        q * math.log((1 - lam) * c.documents[d][w] / c.length[d] + lam * c.cf[w] / c.total) for w, q in query.items()
    )


FORMULAS = {"bm25": bm25, "tfidf": tfidf, "cosine": cosine, "dirichlet": dirichlet, "jelinek-mercer": jelinek_mercer}


def xu_li(c, query, d, k1=1.2, b=0.75):
    """Table 2 of Xu & Li (2007): sums over the query's words that stand in the document."""
    values = [0.0] * 7
    for word, q in query.items():
        tf = c.documents[d][word]
        if not tf:
            continue
        idf = c.n / c.df[word]
        for place, argument in enumerate(
            (
                tf + 1,
                c.total / c.cf[word] + 1,
                idf,
                tf / c.length[d] + 1,
                tf / c.length[d] * idf + 1,
                tf * c.total / (c.length[d] * c.cf[word]) + 1,
            )
        ):
            values[place] += q * math.log(argument)
    score = bm25(c, query, d, k1, b)
    values[6] = math.log(score) if score > 0 else 0.0
    return values


def windows(terms: list[str], words: list[str], window: int = 8) -> dict[tuple[str, str], tuple[int, int]]:
    """Ordered and unordered windows of each pair of neighbours in a query, by looking at every pair of places."""
    found = {}
    for s, t in zip(terms, terms[1:]):
        if s == t:
            continue
        ordered = sum(words[i] == s and words[i + 1] == t for i in range(len(words) - 1))
        near = 0
        for i, word in enumerate(words):
            other = {s: t, t: s}.get(word)
            near += other is not None and other in words[max(0, i - window + 1) : i]
        found[s, t] = (ordered, near)
    return found


def rocchio(c, query, documents, terms=40, share=0.5):
    """The query that grew by the best terms of some documents."""
    gains = Counter()
    for d in documents:
        for word, tf in c.documents[d].items():
            norm = 1.2 * (0.25 + 0.75 * c.length[d] / c.mean_length)
            gains[word] += tf * 2.2 / (tf + norm) * math.log(1 + (c.n - c.df[word] + 0.5) / (c.df[word] + 0.5))
    best = dict(sorted(gains.items(), key=lambda item: -item[1])[:terms])
    return {
        word: (1 - share) * query.get(word, 0) / sum(query.values()) + share * best.get(word, 0) / sum(best.values())
        for word in {*query, *best}
    }
