"""What XGBoost, LightGBM and CatBoost call the arguments of `fit` and `predict`: taken, or explained."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from truerank.compat.foreign_objects import refuse_foreign_data
from truerank.compat.other_names import INSTEAD, SAME, WARNED, asks_for_nothing
from truerank.compat.query_column import without_query_column
from truerank.core.errors import InvalidInputError, warn
from truerank.core.names import nearest
from truerank.core.types import ArrayLike, Scorer
from truerank.data.grouping import queries_of_sizes
from truerank.data.ranking_data import RankingData
from truerank.data.row_source import Blocks, elsewhere

INSTEAD_IN_FIT: dict[str, str] = {
    "init_model": "trees go on from a model (ObliviousBoosting); rankers with warm_start begin at their last fit",
    "xgb_model": "trees go on from a model (ObliviousBoosting); rankers with warm_start begin at their last fit",
    "sample_weight": "it does not weigh single rows; weigh queries with query_weight",
    "init_score": "scores to start from are not taken; add them as a feature",
    "base_margin": "scores to start from are not taken; add them as a feature",
    "base_margin_eval_set": "scores to start from are not taken; add them as a feature",
    "eval_init_score": "scores to start from are not taken; add them as a feature",
    "baseline": "scores to start from are not taken; add them as a feature",
    "pairs": "pairs come from grades; give grades that order these pairs",
    "pairs_weight": "pairs come from grades; give grades that order these pairs",
    "group_weight": "weights of queries go to query_weight, one a query or one a row",
    "feature_name": "names come with a data frame, or RankingData(X, y, qid, feature_names=…)",
    "eval_sample_weight": "validation queries are not weighed",
    "sample_weight_eval_set": "validation queries are not weighed",
}


def settled_fit(ranker: Any, qid: Any, eval_set: Any, other: dict[str, Any]) -> tuple[Any, list[tuple[str, Any]]]:
    """`qid`, and validation sets by name, from the arguments of `fit` as ours or another library names them.

    `eval_set` is RankingData, (X, y, qid), (X, y), or a list or dict of these; `other` has `group`
    (sizes), `group_id`, `eval_qid`, `eval_group`, `eval_names`, `eval_X` with `eval_y` and so on, and is emptied of
    what is known. Each set becomes RankingData or (X, y, qid); the last one chooses. Queries that came twice or are
    missing are an `InvalidInputError`.
    """
    name = type(ranker).__name__
    for alias in ("group_id", "group"):
        given = other.pop(alias, None)
        if given is None:
            continue
        if qid is not None:
            raise InvalidInputError(f"{name}.fit: {alias} and qid both say which rows are a query; give qid alone")
        qid = given if alias == "group_id" else _of_sizes(given, alias)
    eval_qid, eval_group = other.pop("eval_qid", None), other.pop("eval_group", None)
    names = other.pop("eval_names", None)
    eval_set = _pieced_together(name, eval_set, other.pop("eval_X", None), other.pop("eval_y", None))
    if eval_set is None:
        if eval_qid is not None or eval_group is not None:
            raise InvalidInputError(
                f"{name}.fit: eval_qid and eval_group belong to eval_set=[(X, y)], which is missing"
            )
        return qid, []
    if isinstance(eval_set, Mapping):
        names, sets = list(map(str, eval_set)), list(eval_set.values())
    else:
        sets = eval_set if isinstance(eval_set, list) else [eval_set]
        if isinstance(eval_set, list) and len(sets) == 3 and not any(_is_set(one) for one in sets):
            sets = [tuple(sets)]  # [X, y, qid] for (X, y, qid)
    names = [f"valid_{k}" for k in range(len(sets))] if names is None else [str(one) for one in names]
    if len(names) != len(sets) or len(set(names)) < len(names):
        raise InvalidInputError(f"{name}.fit: eval_names must name each of the {len(sets)} sets apart, got {names}")
    queries = _of_each(eval_qid, len(sets), "eval_qid", name)
    sizes = _of_each(eval_group, len(sets), "eval_group", name)
    settled = []
    for label, one, ids, counts in zip(names, sets, queries, sizes):
        refuse_foreign_data(one)
        if isinstance(one, tuple | list) and len(one) == 2 and (ids is not None or counts is not None):
            if ids is not None and counts is not None:
                raise InvalidInputError(f"{name}.fit: give eval_qid or eval_group, not both")
            one = (*one, ids if ids is not None else _of_sizes(counts, "eval_group"))
        elif ids is not None or counts is not None:
            raise InvalidInputError(f"{name}.fit: eval_qid and eval_group go with eval_set=[(X, y)], got more in it")
        if isinstance(one, tuple | list) and len(one) in (2, 3):
            rows, ids = without_query_column(one[0], one[2] if len(one) == 3 else None)
            one = (rows, one[1]) if ids is None and len(one) == 2 else (rows, one[1], ids)
        settled.append((label, one))
    return qid, settled


def _of_sizes(sizes: Any, name: str) -> Any:
    """Query number of each row (n,) from the sizes of consecutive queries; of a Dask collection a Dask array."""
    there = elsewhere(sizes)
    if isinstance(there, Blocks):
        return there.queries(lambda block: queries_of_sizes(block, name, 0))
    return queries_of_sizes(sizes, name, 0)


def _pieced_together(name: str, eval_set: object, X: Any, y: Any) -> Any:
    """LightGBM's `eval_X` and `eval_y`, one array each or tuples of them, as `eval_set`."""
    if X is None and y is None:
        return eval_set
    several = isinstance(X, tuple)
    alike = X is not None and y is not None and isinstance(y, tuple) == several and (not several or len(X) == len(y))
    if eval_set is not None or not alike:
        raise InvalidInputError(
            f"{name}.fit: eval_X and eval_y go together, in place of eval_set: one array each, or a tuple of as many"
        )
    return list(zip(X, y)) if several else [(X, y)]


def check_predict_arguments(ranker: Scorer, other: Mapping[str, Any]) -> None:
    """Refuse what other libraries' `predict` takes and would change the scores.

    Raises
    ------
    InvalidInputError
    """
    trees = getattr(ranker, "n_iter_", None)
    without_effect: dict[str, tuple[Any, ...]] = {
        "num_iteration": (trees, -1),  # LightGBM
        "start_iteration": (0,),
        "iteration_range": ((0, 0), (0, trees)),  # XGBoost
        "ntree_start": (0,),  # CatBoost
        "ntree_end": (0, trees),
        **dict.fromkeys(("output_margin", "raw_score", "validate_features"), (True, False)),
        **dict.fromkeys(("pred_leaf", "pred_contrib"), (False,)),
    }
    for key, value in other.items():
        if value is None or key in ("thread_count", "verbose"):
            continue
        if key == "pred_contrib" and value:
            raise InvalidInputError("predict takes no pred_contrib: explain(ranker, data) says what made each score")
        if key not in without_effect:
            raise InvalidInputError(f"predict takes no {key!r}{nearest(key, ['qid', *without_effect])}")
        if value not in without_effect[key]:
            raise InvalidInputError(
                f"predict takes no {key}={value!r}: it scores by all trees of the model; staged_predict gives the "
                "scores after each"
            )


def weights_by_row(weight: ArrayLike, data: RankingData) -> Any:
    """`sample_weight`; one entry a query is an error that says where it goes."""
    if np.shape(np.asarray(weight)) == (data.n_queries,) != (data.n_rows,):
        raise InvalidInputError(
            f"sample_weight has one entry for each of the {data.n_queries} queries, as XGBoost's; weights of queries "
            f"go to query_weight, and sample_weight has one for each of the {data.n_rows} rows"
        )
    return weight


def _is_set(value: object) -> bool:
    return (isinstance(value, tuple | list) and len(value) in (2, 3) and np.ndim(value[0]) == 2) or hasattr(
        value, "offsets"
    )


def _of_each(values: Any, count: int, name: str, owner: str) -> list[Any]:
    """One entry for each validation set; a single array serves a single set."""
    if values is None:
        return [None] * count
    if count == 1 and (not isinstance(values, list | tuple) or (len(values) and np.ndim(values[0]) == 0)):
        return [values]
    if len(values) != count:
        raise InvalidInputError(f"{owner}.fit: {name} has {len(values)} entries for {count} validation sets")
    return list(values)


def refuse_the_rest(ranker: Any, other: dict[str, Any]) -> None:
    """Settings that other libraries take in `fit`: those of the constructor, and those that are not here.

    Raises
    ------
    InvalidInputError
        On an argument that is not known; of those that ask for nothing `other` is emptied.
    """
    name, known = type(ranker).__name__, ranker.get_params(deep=False)
    for key, value in list(other.items()):
        if value is None or (isinstance(value, str) and value == "auto") or asks_for_nothing(key, value):
            other.pop(key)
            continue
        if key in WARNED:
            warn(f"{name}.fit: {key} has no effect: {WARNED[key]}")
            other.pop(key)
            continue
        if key == "eval_at":
            continue
        if key in INSTEAD_IN_FIT:
            raise InvalidInputError(f"{name}.fit takes no {key}: {INSTEAD_IN_FIT[key]}")
        ours = SAME.get(key, key)
        if ours in known:
            raise InvalidInputError(
                f"{name}.fit takes no {key}: settings go to the constructor, {name}({ours}={value!r:.60})"
            )
        if key in INSTEAD:
            raise InvalidInputError(f"{name}.fit takes no {key}: {INSTEAD[key]}")
        fit = inspect.signature(type(ranker).fit).parameters
        raise InvalidInputError(f"{name}.fit takes no {key!r}{nearest(key, [*fit, 'group', 'eval_qid', 'eval_group'])}")
