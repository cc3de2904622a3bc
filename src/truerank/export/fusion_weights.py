"""Write the weights of a learned fusion for search engines, with a certificate that compares the orders."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from truerank.core.checks import check_choice, check_positive_int
from truerank.core.errors import InvalidInputError, Remedy
from truerank.export.form import comment
from truerank.features.engine_norms import engine_values
from truerank.features.run_features import (
    EngineScores,
    MinMax,
    ReciprocalRank,
    RunFeature,
    Score,
    digits,
    parse_features,
)
from truerank.features.run_pool import RunPool
from truerank.rankers.run_fusion import RunFusion

# Engine -> features of runs that it computes itself.
ENGINES: dict[str, tuple[type[RunFeature], ...]] = {
    "opensearch": (MinMax, EngineScores),
    "elasticsearch": (MinMax, EngineScores),
    "vespa": (MinMax, ReciprocalRank, EngineScores),
    "weaviate": (MinMax, EngineScores),
    "bool-query": (Score,),
}
_NAMES = {
    "opensearch": {"min-max": "min_max", "l2": "l2", "z-score": "z_score"},
    "elasticsearch": {"min-max": "minmax", "l2": "l2_norm"},
}  # of techniques


def export_fusion(
    model: RunFusion, engine: str, *, queries: Mapping[str, Any] | None = None, window: int = 1000
) -> str:
    """Return the engine's configuration for a fusion with one nonnegative weight per run: JSON, or a rank profile.

    Parameters
    ----------
    model : RunFusion fitted with `nonnegative=True`
        Learned on "engine-scores" of this engine, which equal the engine's to float32, or on "min-max", which differs
        where all scores of a list are equal; for Vespa on "reciprocal-rank" too; for "bool-query" on "score".
    engine : {"opensearch", "elasticsearch", "vespa", "weaviate", "bool-query"}
        "opensearch": a search pipeline with the normalization processor, or for "rrf" the score ranker processor, for a
        `hybrid` query with queries in the order of `model.run_names_`. "elasticsearch": a `linear` or `rrf` retriever.
        "vespa": a rank profile whose global phase normalises. "weaviate": `alpha` of a hybrid search of exactly two
        runs, of which the second is the vectors. "bool-query": a query for Elasticsearch and OpenSearch that sums the
        weighted scores of the queries.
    queries : mapping of run name to the engine's query, optional
        Elasticsearch: a retriever; "bool-query": a query; Vespa: an expression such as `bm25(text)`. By default
        placeholders, which you replace.
    window : int, default 1000
        Documents that each query retrieves (Elasticsearch's rank_window_size, Vespa's rerank-count).

    Raises
    ------
    InvalidInputError
        For a fusion without one weight per run, or with features that the engine does not compute.

    Examples
    --------
    >>> runs = {"bm25": {"1": {"a": 3.0, "b": 2.0}}, "dense": {"1": {"b": 0.9, "c": 0.1}}}
    >>> from truerank.io.trec import as_qrels
    >>> model = RunFusion(nonnegative=True).fit(runs, as_qrels({"1": {"a": 1}}))
    >>> export_fusion(model, "weaviate")
    '{"hybrid": {"alpha": 0.0, "fusionType": "relativeScoreFusion"}}'
    """
    feature, weights = _checked(model, engine)
    names = model.run_names_
    window = check_positive_int(window, "window")
    given = {str(name): query for name, query in (queries or {}).items()}
    if set(given) - set(names):
        raise InvalidInputError(
            f"queries names the unknown run {sorted(set(given) - set(names))[0]!r}. The runs are {names}",
            argument="queries",
        )
    if engine == "vespa":
        return _rank_profile(feature, weights, given, window)
    technique, k = feature.technique if isinstance(feature, EngineScores) else "min-max", getattr(feature, "k", 0)
    match = {name: {"match": {f"FIELD OF {name}": "TEXT"}} for name in names}
    value: dict[str, Any]
    if engine == "opensearch":
        own = {"weights": list(weights.values())}
        ranker = {"combination": {"technique": "rrf", "rank_constant": int(k), "parameters": own}}
        parts = {
            "normalization": {"technique": _NAMES[engine].get(technique)},
            "combination": {"technique": "arithmetic_mean", "parameters": own},
        }
        about = f"learned fusion of {', '.join(names)}, in this order of the hybrid query's queries"
        processor = {"score-ranker-processor": ranker} if technique == "rrf" else {"normalization-processor": parts}
        value = {"description": about, "phase_results_processors": [processor]}
    elif engine == "elasticsearch":
        retrievers = [
            {"retriever": given.get(name, {"standard": {"query": match[name]}}), "weight": w}
            | ({} if technique == "rrf" else {"normalizer": _NAMES[engine][technique]})
            for name, w in weights.items()
        ]
        body = {"rank_window_size": window, "retrievers": retrievers}
        value = {"retriever": {"rrf": body | {"rank_constant": int(k)}} if technique == "rrf" else {"linear": body}}
    elif engine == "bool-query":
        clauses = [{"bool": {"must": [given.get(name, match[name])], "boost": w}} for name, w in weights.items()]
        value = {"query": {"bool": {"should": clauses}}}
    else:
        if len(names) != 2:
            raise InvalidInputError(
                f"Weaviate's hybrid search joins two runs, keywords and vectors, got {len(names)}: {', '.join(names)}. "
                "Learn the fusion of two runs",
                code="two-runs",
            )
        value = {"hybrid": {"alpha": weights[names[1]], "fusionType": "relativeScoreFusion"}}
    return json.dumps(value)


def _rank_profile(feature: RunFeature, weights: dict[str, float], given: dict[str, Any], window: int) -> str:
    functions, terms = [], []
    for number, (name, weight) in enumerate(weights.items(), 1):
        expression = given.get(name, f"SCORE OF {comment(name)}")
        functions.append(f"    function run_{number}() {{  # {comment(name)}\n      expression: {expression}\n    }}")
        term = f"normalize_linear(run_{number})"
        if isinstance(feature, ReciprocalRank) or getattr(feature, "technique", "") == "rrf":
            term = f"reciprocal_rank(run_{number}, {digits(feature.k)})"  # type: ignore[attr-defined]
        terms.append(f"{weight!r} * {term}")
    expression = " + ".join(terms)
    return (
        "rank-profile fusion {\n" + "\n".join(functions) + "\n    first-phase {\n      expression: "
        + " + ".join(f"run_{number}" for number in range(1, len(weights) + 1))
        + f"\n    }}\n    global-phase {{\n      rerank-count: {window}\n      expression: {expression}\n    }}\n}}\n"
    )  # fmt: skip


def engine_scores(model: RunFusion, engine: str, pool: RunPool) -> np.ndarray:
    """Return the scores (n,) of a pool's documents under the exported configuration of the engine, in float32.

    The rules follow the engines' sources (`truerank.features.engine_norms`). All engines give 0 to documents that a
    query did not retrieve. Vespa scores every retrieved document with every expression, so each run should contain all.
    """
    return configured_scores(export_fusion(model, engine), engine, model.known_runs(pool))


def configured_scores(text: str, engine: str, pool: RunPool) -> np.ndarray:
    """Return the scores (n,) of a pool's documents under a written configuration, whose queries are the pool's runs."""
    weights, technique, k = _read(text, engine)
    each = pool.scores.astype(np.float32) if technique == "score" else engine_values(pool, engine, technique, k)
    weight = np.array(weights, dtype=np.float32)
    return pool.add_up((each * weight[pool.run_of_entry]).astype(np.float64)).astype(np.float32)


def _read(text: str, engine: str) -> tuple[list[float], str, float]:
    """Return the weights, the technique and k of a configuration."""
    if engine == "vespa":
        (line,) = [line for line in text.splitlines() if "normalize_linear(" in line or "reciprocal_rank(" in line]
        found = re.findall(r"(\S+) \* (normalize_linear|reciprocal_rank)\(run_\d+(?:, (\S+))?\)", line)
        k = next((float(k) for *_, k in found if k), 0.0)
        return [float(weight) for weight, *_ in found], "rrf" if k else "min-max", k
    value = json.loads(text)
    techniques = {name: technique for technique, name in _NAMES.get(engine, {}).items()}
    if engine == "opensearch":
        (processor,) = value["phase_results_processors"]
        (own,) = processor.values()
        weights = own["combination"]["parameters"]["weights"]
        if "score-ranker-processor" in processor:
            return weights, "rrf", own["combination"]["rank_constant"]
        return weights, techniques[own["normalization"]["technique"]], 0
    if engine == "elasticsearch":
        ((kind, own),) = value["retriever"].items()
        weights = [one["weight"] for one in own["retrievers"]]
        if kind == "rrf":
            return weights, "rrf", own["rank_constant"]
        return weights, techniques[own["retrievers"][0]["normalizer"]], 0
    if engine == "weaviate":
        alpha = value["hybrid"]["alpha"]
        return [1.0 - alpha, alpha], "min-max", 0
    return [one["bool"]["boost"] for one in value["query"]["bool"]["should"]], "score", 0


def certify_fusion(model: RunFusion, engine: str, runs: object, *, depth: int = 100) -> dict[str, Any]:
    """Compare the engine's order with the model's on given runs.

    The dict has "format"; "rows", the number of documents; "largest_difference" of scores; "rank_agreement", the share
    of ranks 1 to `depth` with the same document in both orders (ties by descending id); "topics"; and "topics_equal",
    the number of topics with the same first `depth` documents in the same order.
    """
    pool = model.known_runs(runs if isinstance(runs, RunPool) else RunPool(runs))
    ours, theirs = model.pool_scores(pool), engine_scores(model, engine, pool).astype(np.float64)
    feature, _ = _checked(model, engine)
    if isinstance(feature, ReciprocalRank):
        ours = ours / (1.0 + feature.k)  # ours are scaled to 1 at the first rank
    first, second = pool.best(ours, depth), pool.best(theirs, depth)
    same = first == second
    topic = pool.query_of_row[first]
    equal = np.bincount(topic[~same], minlength=pool.n_queries) == 0
    return {
        "format": f"{engine} fusion", "rows": pool.n_rows,
        "largest_difference": float(np.abs(ours - theirs).max(initial=0.0)),
        "rank_agreement": float(same.mean()) if len(same) else 1.0,
        "topics": pool.n_queries, "topics_equal": int(equal.sum()),
    }  # fmt: skip


def _checked(model: RunFusion, engine: str) -> tuple[RunFeature, dict[str, float]]:
    check_choice(engine, "engine", ENGINES)
    if not isinstance(model, RunFusion):
        raise InvalidInputError(
            f"engines require one weight per run, got {type(model).__name__}. Fit RunFusion(nonnegative=True)"
        )
    weights = model.run_weights()
    if not model.nonnegative:
        raise InvalidInputError(
            "engines require weights of at least 0. Fit RunFusion(nonnegative=True)", code="negative-weights"
        )
    feature = parse_features(model.features or "min-max").parts[0]
    if not isinstance(feature, ENGINES[engine]):
        known = " or ".join(kind.NAME for kind in ENGINES[engine])
        raise InvalidInputError(
            f"{engine} supports {known}, but the fusion was learned on {feature}",
            argument="model",
            remedies=[Remedy("and learn the fusion again", features=ENGINES[engine][0].NAME)],
        )
    if isinstance(feature, EngineScores) and feature.engine != engine:
        raise InvalidInputError(
            f"the weights are for the normalisation of {feature.engine}, not of {engine}",
            argument="engine",
            remedies=[f"learn the fusion with engine={engine}"],
        )
    return feature, weights
