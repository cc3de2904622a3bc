"""Make the sample that ships with truerank: retrieval features of the Cranfield collection, numbers only.

    python scripts/make_sample.py FOLDER_OF_CRANFIELD src/truerank/data/sample

FOLDER_OF_CRANFIELD holds `cran.all.1400.gz`, `cran.qry.gz` and `cranqrel.gz`. The same input gives the same bytes.

Candidates of a query are the union of the best `DEPTH` documents by BM25, TF-IDF cosine and the Dirichlet language
model over the abstract. Judged documents that none of these finds are no candidates: with them among the rows a low
BM25 would be a sign of relevance, since nothing else but a judgment brings such rows in. The qrels file has all
judgments. Formulas: Robertson & Zaragoza 2009 (BM25), Zhai & Lafferty
2004 (smoothing), Amati 2006 (DPH), Rocchio 1971 (feedback).
"""

from __future__ import annotations

import gzip
import math
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from truerank.data.ranking_data import RankingData
from truerank.io.letor.write import write_letor
from truerank.io.trec import Qrels, write_qrels

DEPTH = 50
DIGITS = 4  # significant digits of a value
K1, B = 1.2, 0.75
MU, LAMBDA = 250.0, 0.4  # Dirichlet prior and Jelinek-Mercer weight of the collection
FEEDBACK_DOCUMENTS, FEEDBACK_TERMS, FEEDBACK_WEIGHT = 5, 15, 0.5
WINDOW = 8  # tokens within which two query terms count as near
GRADES = {1: 4, 2: 3, 3: 2, 4: 1, -1: 0}  # Cranfield's best grade is 1
STOP = frozenset(
    word
    for words in (
        "a an and any anyone are as at be been by can could do does for from had has have how if in into is it its",
        "made may not of on or so some such than that the there these they this to under was were what when where",
        "which who with",
    )
    for word in words.split()
)


def tokens(text: str) -> list[str]:
    """Lower-case words without stop words, plurals reduced (Harman's S stemmer)."""
    return [_singular(word) for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in STOP]


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies") and word[-4] not in "ea":
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("es") and word[-3] not in "aeo":
        return word[:-1]
    if len(word) > 3 and word.endswith("s") and word[-2] not in "us":
        return word[:-1]
    return word


def records(path: Path) -> list[dict[str, str]]:
    """Records of a SMART file: its fields by letter."""
    text = gzip.decompress(path.read_bytes()).decode("latin-1")
    result = []
    for record in re.split(r"^\.I ", text, flags=re.M)[1:]:
        fields = re.split(r"^\.([TABW])\s*$", record, flags=re.M)
        result.append({"I": fields[0].strip()} | dict(zip(fields[1::2], fields[2::2])))
    return result


class Field:
    """Counts of one text field of all documents, and its retrieval functions."""

    def __init__(self, documents: list[list[str]]) -> None:
        self.tokens = documents
        self.counts = [Counter(words) for words in documents]
        self.lengths = np.array([len(words) for words in documents], dtype=float)
        self.n, self.mean_length = len(documents), self.lengths.mean()
        self.document_frequency = Counter(word for counts in self.counts for word in counts)
        self.collection = Counter(word for words in documents for word in words)
        self.total = sum(self.collection.values())
        self.norms = np.array(
            [math.sqrt(sum(((1 + math.log(f)) * self.plain_idf(w)) ** 2 for w, f in c.items())) for c in self.counts]
        )

    def idf(self, word: str) -> float:
        """BM25's inverse document frequency, kept positive."""
        df = self.document_frequency[word]
        return math.log(1 + (self.n - df + 0.5) / (df + 0.5))

    def plain_idf(self, word: str) -> float:
        """log(N / df)."""
        return math.log(self.n / max(1, self.document_frequency[word]))

    def bm25(self, query: dict[str, float], d: int) -> float:
        """BM25 with query term weights."""
        norm = K1 * (1 - B + B * self.lengths[d] / self.mean_length)
        counts = self.counts[d]
        return sum(q * self.idf(w) * counts[w] * (K1 + 1) / (counts[w] + norm) for w, q in query.items() if w in counts)

    def cosine(self, query: dict[str, float], d: int) -> float:
        """Cosine of log-tf times idf weights."""
        if not self.norms[d]:
            return 0.0
        counts = self.counts[d]
        weights = {w: (1 + math.log(q)) * self.plain_idf(w) for w, q in query.items()}
        norm = math.sqrt(sum(x * x for x in weights.values())) or 1.0
        dot = sum(x * (1 + math.log(counts[w])) * self.plain_idf(w) for w, x in weights.items() if w in counts)
        return dot / norm / self.norms[d]

    def dirichlet(self, query: dict[str, float], d: int) -> float:
        """Query log-likelihood, Dirichlet smoothing, relative to the collection model."""
        counts, length = self.counts[d], self.lengths[d]
        known = [(w, q) for w, q in query.items() if w in self.collection]
        gain = sum(q * math.log1p(counts[w] / (MU * self.collection[w] / self.total)) for w, q in known)
        return gain + sum(q for _, q in known) * math.log(MU / (MU + length))

    def jelinek_mercer(self, query: dict[str, float], d: int) -> float:
        """Query log-likelihood, Jelinek-Mercer smoothing, relative to the collection model."""
        counts, length = self.counts[d], max(1.0, self.lengths[d])
        return sum(
            q * math.log1p((1 - LAMBDA) * counts[w] / length / (LAMBDA * self.collection[w] / self.total))
            for w, q in query.items()
            if w in counts
        )

    def dph(self, query: dict[str, float], d: int) -> float:
        """Divergence from randomness without parameters."""
        counts, length = self.counts[d], self.lengths[d]
        score = 0.0
        for w, q in query.items():
            tf = counts[w]
            if not tf or tf >= length:
                continue
            f = tf / length
            ratio = tf * self.mean_length / length * self.n / self.collection[w]
            score += q * (1 - f) ** 2 / (tf + 1) * (tf * math.log2(ratio) + 0.5 * math.log2(2 * math.pi * tf * (1 - f)))
        return score

    def coverage(self, query: dict[str, float], d: int) -> float:
        """Share of the query's words that occur."""
        return sum(w in self.counts[d] for w in query) / len(query)


def expanded(query: dict[str, float], body: Field) -> dict[str, float]:
    """The query with the terms that tell its best documents apart."""
    scores = [body.bm25(query, d) for d in range(body.n)]
    best = sorted(range(body.n), key=lambda d: (-scores[d], d))[:FEEDBACK_DOCUMENTS]
    weights: Counter[str] = Counter()
    for d in best:
        for word, count in body.counts[d].items():
            weights[word] += count / body.lengths[d] * body.plain_idf(word)
    top = sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:FEEDBACK_TERMS]
    result = dict(query)
    for word, weight in top:
        result[word] = result.get(word, 0.0) + FEEDBACK_WEIGHT * weight / top[0][1]
    return result


def near_pairs(query: dict[str, float], words: list[str]) -> tuple[int, int]:
    """Pairs of different query words that stand side by side, and within WINDOW tokens."""
    places = [(i, w) for i, w in enumerate(words) if w in query]
    adjacent = near = 0
    for k, (i, w) in enumerate(places):
        for j, v in places[k + 1 :]:
            if j - i > WINDOW:
                break
            if v != w:
                near += 1
                adjacent += j - i == 1
    return adjacent, near


FEATURES = (
    "bm25",
    "bm25_title",
    "tfidf_cosine",
    "tfidf_cosine_title",
    "lm_dirichlet",
    "lm_dirichlet_title",
    "lm_jelinek_mercer",
    "lm_jelinek_mercer_title",
    "dph",
    "bm25_feedback",
    "coverage",
    "coverage_title",
    "idf_coverage",
    "tf_sum",
    "tf_max",
    "adjacent_pairs",
    "near_pairs",
    "first_match",
    "length",
    "length_title",
)


def features(query: dict[str, float], wide: dict[str, float], body: Field, title: Field, d: int) -> list[float]:
    """Values in the order of FEATURES."""
    counts, words = body.counts[d], body.tokens[d]
    matches = [counts[w] for w in query if w in counts]
    adjacent, near = near_pairs(query, words)
    first = next((i for i, w in enumerate(words) if w in query), len(words))
    return [
        body.bm25(query, d),
        title.bm25(query, d),
        body.cosine(query, d),
        title.cosine(query, d),
        body.dirichlet(query, d),
        title.dirichlet(query, d),
        body.jelinek_mercer(query, d),
        title.jelinek_mercer(query, d),
        body.dph(query, d),
        body.bm25(wide, d),
        body.coverage(query, d),
        title.coverage(query, d),
        sum(body.idf(w) for w in query if w in counts) / sum(map(body.idf, query)),
        sum(matches),
        max(matches, default=0),
        adjacent,
        near,
        first,
        body.lengths[d],
        title.lengths[d],
    ]


def write_sample_qrels(judged: dict[int, dict[int, int]], path: Path) -> None:
    """All judgments as TREC qrels."""
    topics = sorted(judged)
    rows = [(d, grade) for q in topics for d, grade in sorted(judged[q].items())]
    offsets = np.cumsum([0] + [len(judged[q]) for q in topics])
    doc_ids = np.array([str(d) for d, _ in rows])
    write_qrels(Qrels(np.array(list(map(str, topics))), offsets, doc_ids, np.array([g for _, g in rows], float)), path)


def main(source: Path, target: Path) -> None:
    """Read the collection, write `cranfield.txt.gz` and `cranfield.qrels.gz`."""
    documents = records(source / "cran.all.1400.gz")
    body, title = Field([tokens(d["W"]) for d in documents]), Field([tokens(d["T"]) for d in documents])
    number = {int(d["I"]): place for place, d in enumerate(documents)}
    judged: dict[int, dict[int, int]] = {}
    for line in gzip.decompress((source / "cranqrel.gz").read_bytes()).decode().splitlines():
        if line.strip():
            q, d, grade = map(int, line.split())
            known = judged.setdefault(q, {})
            known[d] = max(GRADES[grade], known.get(d, 0))
    rows, grades, qid, doc_ids = [], [], [], []
    for q, record in enumerate(records(source / "cran.qry.gz"), 1):
        query = {word: float(count) for word, count in Counter(tokens(record["W"])).items()}
        wide = expanded(query, body)
        pool: set[int] = set()
        for score in (body.bm25, body.cosine, body.dirichlet):
            pool |= set(sorted(number, key=lambda d: (-score(query, number[d]), d))[:DEPTH])
        for d in sorted(pool):
            rows.append([float(f"{x:.{DIGITS}g}") for x in features(query, wide, body, title, number[d])])
            grades.append(judged.get(q, {}).get(d, 0))
            qid.append(q)
            doc_ids.append(str(d))
    data = RankingData(rows, grades, qid, doc_ids=doc_ids, feature_names=FEATURES)
    path = target / "cranfield.txt.gz"
    write_letor(data, path)
    write_sample_qrels(judged, target / "cranfield.qrels.gz")
    print(data, dict(Counter(grades)), f"{path.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
