"""Write the weights of a learned fusion for search engines, with a certificate that compares the orders."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from truerank.core.checks import check_choice, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.export.form import comment
from truerank.features.run_features import MinMax, ReciprocalRank, RunFeature, Score, digits, parse_features
from truerank.features.run_pool import RunPool
from truerank.rankers.run_fusion import RunFusion

# Engine -> features of runs that it computes itself.
ENGINES: dict[str, tuple[type[RunFeature], ...]] = {
    "opensearch": (MinMax,),
    "elasticsearch": (MinMax,),
    "vespa": (MinMax, ReciprocalRank),
    "weaviate": (MinMax,),
    "bool-query": (Score,),
}
_LOWEST = np.float32(0.001)  # what OpenSearch gives to the last document of a list in place of 0


def export_fusion(
    model: RunFusion, engine: str, *, queries: Mapping[str, Any] | None = None, window: int = 1000
) -> str:
    """Return the engine's configuration for a fusion with one nonnegative weight per run: JSON, or a rank profile.

    Parameters
    ----------
    model : RunFusion fitted with `nonnegative=True`
        On "min-max"; for Vespa on "reciprocal-rank" too; for "bool-query" on "score".
    engine : {"opensearch", "elasticsearch", "vespa", "weaviate", "bool-query"}
        "opensearch": a search pipeline with the normalization processor, for a `hybrid` query with queries in the
        order of `model.run_names_`. "elasticsearch": a `linear` retriever. "vespa": a rank profile whose global phase
        normalises. "weaviate": `alpha` of a hybrid search of exactly two runs, of which the second is the vectors.
        "bool-query": a query for Elasticsearch and OpenSearch that sums the weighted scores of the queries.
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
            f"queries: no run is called {sorted(set(given) - set(names))[0]!r}; runs are {names}", argument="queries"
        )
    if engine == "vespa":
        return _rank_profile(feature, weights, given, window)
    match = {name: {"match": {f"FIELD OF {name}": "TEXT"}} for name in names}
    value: dict[str, Any]
    if engine == "opensearch":
        parts = {
            "normalization": {"technique": "min_max"},
            "combination": {"technique": "arithmetic_mean", "parameters": {"weights": list(weights.values())}},
        }
        about = f"learned fusion of {', '.join(names)}, in this order of the hybrid query's queries"
        value = {"description": about, "phase_results_processors": [{"normalization-processor": parts}]}
    elif engine == "elasticsearch":
        own = {name: given.get(name, {"standard": {"query": match[name]}}) for name in names}
        retrievers = [{"retriever": own[name], "weight": w, "normalizer": "minmax"} for name, w in weights.items()]
        value = {"retriever": {"linear": {"rank_window_size": window, "retrievers": retrievers}}}
    elif engine == "bool-query":
        clauses = [{"bool": {"must": [given.get(name, match[name])], "boost": w}} for name, w in weights.items()]
        value = {"query": {"bool": {"should": clauses}}}
    else:
        if len(names) != 2:
            raise InvalidInputError(
                f"Weaviate's hybrid search joins two runs, keywords and vectors; got {len(names)}: {', '.join(names)}",
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
        if isinstance(feature, ReciprocalRank):
            term = f"reciprocal_rank(run_{number}, {digits(feature.k)})"
        terms.append(f"{weight!r} * {term}")
    expression = " + ".join(terms)
    return (
        "rank-profile fusion {\n" + "\n".join(functions) + "\n    first-phase {\n      expression: "
        + " + ".join(f"run_{number}" for number in range(1, len(weights) + 1))
        + f"\n    }}\n    global-phase {{\n      rerank-count: {window}\n      expression: {expression}\n    }}\n}}\n"
    )  # fmt: skip


def engine_scores(model: RunFusion, engine: str, pool: RunPool) -> np.ndarray:
    """Return the scores (n,) of a pool's documents under the engine's rule, in float32.

    The rules follow the engines' sources. If all scores of a list are equal, OpenSearch gives 1, Elasticsearch the raw
    score and Weaviate 0. OpenSearch gives 0.001 in place of 0. All three give 0 to documents that a query did not
    retrieve. Vespa scores every retrieved document with every expression, so each run should contain all.
    """
    feature, weights = _checked(model, engine)
    pool = model.known_runs(pool)
    if isinstance(feature, ReciprocalRank):
        each = (1.0 / (feature.k + pool.ranks)).astype(np.float32)
    else:
        scores = pool.scores.astype(np.float32)
        if isinstance(feature, Score):
            each = scores
        else:
            low = pool.per_list(np.minimum, scores).astype(np.float32)
            width = pool.per_list(np.maximum, scores).astype(np.float32) - low
            apart = pool.spread(width) > 0
            each = (scores - pool.spread(low)) / pool.spread(np.where(width > 0, width, np.float32(1)))
            if engine == "opensearch":
                each = np.where(apart, np.where(each == 0, _LOWEST, each), np.float32(1))
            elif engine == "elasticsearch":
                each = np.where(pool.spread(width) < 1e-6, scores, each)
            else:
                each = np.where(apart, each, np.float32(0))
    weight = np.array(list(weights.values()), dtype=np.float32)
    return pool.add_up((each * weight[pool.run_of_entry]).astype(np.float64)).astype(np.float32)


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
            f"engines need one weight per run, from a RunFusion with nonnegative=True; got a {type(model).__name__}"
        )
    weights = model.run_weights()
    if not model.nonnegative:
        raise InvalidInputError(
            "engines need weights of at least 0: fit RunFusion(nonnegative=True)", code="negative-weights"
        )
    feature = parse_features(model.features or "min-max").parts[0]
    if not isinstance(feature, ENGINES[engine]):
        known = " or ".join(kind.NAME for kind in ENGINES[engine])
        raise InvalidInputError(
            f"{engine} computes {known} itself, not {feature}",
            argument="model",
            remedies=["learn the fusion with other features"],
        )
    return feature, weights
