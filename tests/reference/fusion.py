"""Fusion of runs as the definitions read: dictionaries, one document at a time."""

from __future__ import annotations

import math
import statistics
import struct


def ranked(documents: dict[str, float]) -> list[str]:
    """Documents by falling score, equal scores by descending id."""
    by_id = sorted(documents, reverse=True)
    return sorted(by_id, key=lambda name: -documents[name])


def min_max(documents: dict[str, float]) -> dict[str, float]:
    low, high = min(documents.values()), max(documents.values())
    return {name: 0.0 if low == high else (score - low) / (high - low) for name, score in documents.items()}


def fused(lists: list[dict[str, float]], method: str, weights=None, k: float = 60) -> dict[str, float]:
    """Score of every document of one topic; a run without the topic is an empty list."""
    union = {name for documents in lists for name in documents}
    scaled = [min_max(documents) if documents else {} for documents in lists]
    ranks = [{name: rank for rank, name in enumerate(ranked(documents), 1)} for documents in lists]
    result = {}
    for name in union:
        s = [one[name] for one in scaled if name in one]
        r = [one[name] for one in ranks if name in one]
        if method == "rrf":
            result[name] = sum(1 / (k + rank) for rank in r)
        elif method == "comb-sum":
            result[name] = sum(s)
        elif method == "comb-mnz":
            result[name] = len(s) * sum(s)
        elif method == "comb-anz":
            result[name] = sum(s) / len(s)
        elif method == "comb-max":
            result[name] = max(s)
        elif method == "comb-min":
            result[name] = min(s)
        elif method == "comb-med":
            result[name] = statistics.median(s)
        elif method in ("borda", "weighted-borda"):
            points = 0.0
            for w, one in zip(weights or [1] * len(lists), ranks):
                points += w * (len(union) - one[name] + 1 if name in one else (len(union) - len(one) + 1) / 2)
            result[name] = points
        elif method == "weighted-sum":
            result[name] = sum(w * one[name] for w, one in zip(weights, scaled) if name in one)
        elif method == "weighted-mnz":
            result[name] = sum(s) * sum(w for w, one in zip(weights, scaled) if name in one)
    return result


def feature(lists: list[dict[str, float]], kind: str, run: int, name: str, k: float = 60) -> float:
    """What run number `run` says of a document, by the feature's definition."""
    documents = lists[run]
    if kind == "agreement":
        return sum(name in one for one in lists) / sum(bool(one) for one in lists)
    scores = list(documents.values())
    if kind == "z-score":
        if not documents or len(set(scores)) == 1:
            return 0.0
        mean, deviation = statistics.fmean(scores), statistics.pstdev(scores)
        return (documents.get(name, min(scores)) - mean) / deviation
    if name not in documents:
        return 0.0
    order = ranked(documents)
    place = order.index(name)
    if kind == "score":
        return documents[name]
    if kind == "min-max":
        return min_max(documents)[name]
    if kind == "reciprocal-rank":
        return (1 + k) / (k + place + 1)
    if kind == "presence":
        return 1.0
    if kind == "percentile":
        tied = [rank for rank, other in enumerate(order, 1) if documents[other] == documents[name]]
        return (len(order) - statistics.fmean(tied) + 1) / len(order)
    assert kind == "gap"
    scaled = min_max(documents)
    return scaled[name] - scaled[order[place + 1]] if place + 1 < len(order) else 0.0


def as_float32(value: float) -> float:
    """The nearest float32."""
    return struct.unpack("f", struct.pack("f", value))[0]


def engine_normalised(documents: dict[str, float], engine: str, technique: str, k: int = 60) -> dict[str, float]:
    """Scores of one list as the documents of OpenSearch, Elasticsearch, Vespa and Weaviate define them."""
    scores = {name: as_float32(score) for name, score in documents.items()}
    low, high, n = min(scores.values()), max(scores.values()), len(scores)
    if technique == "rrf":
        return {name: 1 / (k + rank) for rank, name in enumerate(ranked(documents), 1)}
    if technique == "min-max":
        if low == high:
            return {name: {"opensearch": 1.0, "elasticsearch": s}.get(engine, 0.0) for name, s in scores.items()}
        scaled = {name: (s - low) / (high - low) for name, s in scores.items()}
        return {name: 0.001 if engine == "opensearch" and s == 0 else s for name, s in scaled.items()}
    if technique == "l2":
        norm = math.sqrt(math.fsum(s * s for s in scores.values()))
        return scores if norm == 0 else {name: s / norm for name, s in scores.items()}
    mean = math.fsum(scores.values()) / n
    if as_float32(mean) == high == low:
        return dict.fromkeys(scores, high)
    deviation = math.sqrt(math.fsum((s - mean) ** 2 for s in scores.values()) / (n - 1))
    return {
        name: high if s == as_float32(mean) else max((s - mean) / deviation, 0.001) if s > mean else 0.001
        for name, s in scores.items()
    }
