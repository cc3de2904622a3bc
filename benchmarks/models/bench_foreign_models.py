"""Random models of LightGBM, XGBoost and CatBoost: are imported models equal, refused, or wrong?

    python -m benchmarks models/bench_foreign_models

Each model has random settings, columns (numbers, integers, zeros, constants, categories of texts and numbers), missing
values, and rows to score, also with missing values where the training data had none. A model is "equal" if the scores
of the imported model equal the raw scores of the library within its precision (1e-12 of the largest score, 2e-6 for
XGBoost's float32), and "refused" if the import or the scoring raises an error. Dumps of XGBoost lack the base score, so
their scores are compared up to a constant.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from truerank import import_model
from truerank.core.errors import TruerankError
from truerank.core.printing import table

TRIALS = 200
LISTS: tuple[list[Any], ...] = (
    ["a", "b"], ["red", "green", "blue", "NA", ""], ["é", "日本", "x y", "z"], ["10", "9", "007"], [10, 20, 30, 40],
    [0, 1, 2, 3, 4, 5], [3, -7, 12], [0.5, 2.0, 2.5, 3.0], [1_000_000, 7], [True, False], [5],
    [f"brand{k}" for k in range(60)], list(range(100, 190, 3)),
)  # fmt: skip
Written = tuple[str, Path, Callable[[Any], np.ndarray], bool]  # kind, file, scores, whether up to a constant


def draw_rows(rng: np.random.Generator, *, texts: bool = True) -> tuple[Any, Any, list[str]]:
    """Return a data frame to train on, one to score, and the names of its categorical columns."""
    import pandas as pd

    n, m = int(rng.integers(60, 400)), 60
    missing, new_missing = rng.choice([0.0, 0.0, 0.1, 0.4]), rng.choice([0.0, 0.1])
    columns, chosen = {}, []
    for k in range(int(rng.integers(1, 8))):
        name = rng.choice(["f", "price ", "日"]) + str(k)
        kinds, shares = ["normal", "integer", "zeros", "constant", "large"], [0.45, 0.2, 0.2, 0.06, 0.09]
        kind = str(rng.choice(kinds, p=shares))
        if texts and rng.random() < 0.3:
            kind = "category" if rng.random() < 0.9 else "ordered"
        if kind in ("category", "ordered"):
            listed = LISTS[rng.integers(len(LISTS))]
            order = listed if rng.random() < 0.7 else [listed[i] for i in rng.permutation(len(listed))]
            codes = rng.integers(len(order), size=n + m)
            codes[rng.random(n + m) < missing] = -1
            columns[name] = pd.Categorical.from_codes(codes, order, ordered=kind == "ordered")
            chosen.append(name)
            continue
        values = {
            "normal": rng.normal(size=n + m), "integer": rng.integers(-5, 20, n + m).astype(float),
            "zeros": rng.normal(size=n + m) * (rng.random(n + m) < 0.4), "constant": np.full(n + m, 2.5),
            "large": 1e6 * rng.normal(size=n + m) ** 3,
        }[kind]  # fmt: skip
        values[rng.random(n + m) < missing] = np.nan
        values[n:][rng.random(m) < new_missing] = np.nan
        columns[name] = values
    frame = pd.DataFrame(columns)
    return frame.iloc[:n], frame.iloc[n:].reset_index(drop=True), chosen


def targets(rng: np.random.Generator, frame: Any, kind: str) -> np.ndarray:
    """Return grades, signs, positive or real numbers that depend on the columns."""
    y = 0.3 * rng.normal(size=len(frame))
    for name in frame.columns:
        column = frame[name]
        own = column.cat.codes.to_numpy() * 7 % 5 if hasattr(column, "cat") else np.nan_to_num(column.to_numpy())
        y += rng.normal() * own / (1 + np.abs(own).max())
    if kind == "sign":
        return (y > np.median(y)).astype(float)
    if kind in ("grade", "class"):
        return np.clip(np.digitize(y, np.quantile(y, [0.4, 0.7, 0.9])), 0, 3 if kind == "grade" else 2).astype(float)
    return np.abs(y) + 0.01 if kind == "positive" else y


def other_lists(rng: np.random.Generator, rows: Any, names: list[str]) -> Any:
    """Return rows in which some columns list their categories otherwise: reversed, or without those not in use."""
    rows = rows.copy()
    for name in names:
        if rng.random() < 0.3:
            rows[name] = rows[name].cat.set_categories(list(rows[name].cat.categories)[::-1])
        elif rng.random() < 0.3:
            rows[name] = rows[name].cat.remove_unused_categories()
    return rows


def of_lightgbm(rng: np.random.Generator, folder: Path) -> Iterator[Written | Any]:
    """Train and write a model of LightGBM; yields the rows to score, and each file."""
    import lightgbm

    frame, rows, names = draw_rows(rng)
    objective, kind = [
        ("regression", "real"), ("regression_l1", "real"), ("huber", "real"), ("poisson", "positive"),
        ("binary", "sign"), ("cross_entropy", "sign"), ("lambdarank", "grade"), ("rank_xendcg", "grade"),
        ("tweedie", "positive"), ("multiclass", "class"), ("quantile", "real"),
    ][rng.integers(11)]  # fmt: skip
    params: dict[str, Any] = {
        "verbose": -1, "num_threads": 1, "objective": objective, "num_leaves": int(rng.integers(2, 24)),
        "min_data_in_leaf": int(rng.integers(1, 12)), "min_data_per_group": int(rng.integers(1, 30)),
        "max_cat_to_onehot": int(rng.choice([1, 4, 64])), "cat_smooth": float(rng.choice([1, 10])),
        "zero_as_missing": bool(rng.random() < 0.2), "use_missing": bool(rng.random() < 0.8),
        "boosting": str(rng.choice(["gbdt", "gbdt", "dart", "rf"])), "extra_trees": bool(rng.random() < 0.2),
        "linear_tree": bool(rng.random() < 0.06), "max_bin": int(rng.choice([15, 255])), "seed": int(rng.integers(999)),
        "learning_rate": float(rng.choice([0.05, 0.3])), "path_smooth": float(rng.choice([0, 1])),
        "boost_from_average": bool(rng.random() < 0.7),
    }  # fmt: skip
    if objective == "multiclass":
        params["num_class"] = 3
    if params["boosting"] == "rf":
        params |= {"bagging_freq": 1, "bagging_fraction": 0.6}
    y = targets(rng, frame, kind)
    group = [len(y) // 3, len(y) - len(y) // 3] if kind == "grade" else None
    X: Any = frame
    if not names and rng.random() < 0.4:
        X, rows = frame.to_numpy(), rows.to_numpy()
    some: Any = "auto"
    integers = [k for k, name in enumerate(frame.columns) if name not in names and rng.random() < 0.15]
    if isinstance(X, np.ndarray) and integers:
        X, rows = X.copy(), rows.copy()
        for k in integers:
            X[:, k], rows[:, k] = (np.abs(np.round(np.nan_to_num(part[:, k]))) % 9 for part in (X, rows))
        some = integers
    elif names and rng.random() < 0.15:  # some categories as numbers, and some numbers as categories
        for k in integers:
            name = frame.columns[k]
            X, rows = (part.assign(**{name: np.abs(np.round(part[name].fillna(0))) % 5}) for part in (X, rows))
        some = [name for name in names if rng.random() < 0.7] + [frame.columns[k] for k in integers]
    elif rng.random() < 0.2 and not names:
        params["monotone_constraints"] = rng.integers(-1, 2, frame.shape[1]).tolist()
    data = lightgbm.Dataset(X, y, group=group, categorical_feature=some)
    valid = data.create_valid(X, y, group=group)
    stops = [lightgbm.early_stopping(2, verbose=False)] if rng.random() < 0.2 and params["boosting"] == "gbdt" else []
    booster = lightgbm.train(params, data, int(rng.integers(1, 25)), valid_sets=[valid], callbacks=stops)
    if names:
        rows = other_lists(rng, rows, names)
    yield rows
    booster.save_model(folder / "model.txt")
    (folder / "model.json").write_text(json.dumps(booster.dump_model()), encoding="utf-8")

    def score(rows: Any) -> np.ndarray:
        mean = params["boosting"] == "rf" and objective != "multiclass"
        raw = np.asarray(booster.predict(rows, raw_score=True, num_threads=1))
        return raw / booster.current_iteration() if mean else raw

    yield "LightGBM, text", folder / "model.txt", score, False
    yield "LightGBM, JSON", folder / "model.json", score, False


def of_xgboost(rng: np.random.Generator, folder: Path) -> Iterator[Written | Any]:
    """Train and write a model of XGBoost; yields the rows to score, and each file."""
    import xgboost

    frame, rows, names = draw_rows(rng)
    for name in names:
        if frame[name].cat.categories.dtype == bool:  # an error of XGBoost
            frame, rows = (
                part.assign(**{name: part[name].cat.rename_categories(["no", "yes"])}) for part in (frame, rows)
            )
    objective, kind = [
        ("reg:squarederror", "real"), ("reg:absoluteerror", "real"), ("reg:pseudohubererror", "real"),
        ("count:poisson", "positive"), ("reg:gamma", "positive"), ("reg:tweedie", "positive"),
        ("binary:logistic", "sign"), ("reg:logistic", "sign"), ("binary:logitraw", "sign"), ("binary:hinge", "sign"),
        ("rank:ndcg", "grade"), ("rank:pairwise", "grade"), ("rank:map", "sign"), ("survival:cox", "positive"),
        ("multi:softprob", "class"), ("reg:quantileerror", "real"), ("reg:squaredlogerror", "positive"),
    ][rng.integers(17)]  # fmt: skip
    params: dict[str, Any] = {
        "nthread": 1, "objective": objective, "max_depth": int(rng.integers(1, 7)),
        "booster": str(rng.choice(["gbtree", "gbtree", "gbtree", "dart", "gblinear"])), "tree_method": "hist",
        "grow_policy": str(rng.choice(["depthwise", "lossguide"])), "max_leaves": int(rng.choice([0, 7])),
        "num_parallel_tree": int(rng.choice([1, 1, 3])), "subsample": float(rng.choice([0.6, 1])),
        "max_cat_to_onehot": int(rng.choice([1, 4, 100])), "eta": float(rng.choice([0.1, 1])),
        "gamma": float(rng.choice([0, 1])), "min_child_weight": float(rng.choice([0, 1])), "rate_drop": 0.3,
        "seed": int(rng.integers(999)), "quantile_alpha": 0.4,
    }  # fmt: skip
    if objective == "multi:softprob":
        params["num_class"] = 3
    if params["booster"] == "gblinear":
        frame, rows = (part.drop(columns=names).fillna(0) for part in (frame, rows))
        frame, rows = (part.assign(last=np.arange(len(part)) / len(part)) for part in (frame, rows))
        params, names = {key: params[key] for key in params if key not in ("tree_method", "grow_policy")}, []
    if rng.random() < 0.3:
        params["base_score"] = float(rng.choice([0.25, 0.5, 0.7]))
    if rng.random() < 0.2 and not names:
        params["monotone_constraints"] = tuple(rng.integers(-1, 2, frame.shape[1]).tolist())
    y = targets(rng, frame, kind)
    qid = np.sort(rng.integers(4, size=len(y))) if objective.startswith("rank") else None
    X: Any = frame
    types = None
    if not names and rng.random() < 0.5:
        X, rows = frame.to_numpy(copy=True), rows.to_numpy(copy=True)
        if params["booster"] != "gblinear" and rng.random() < 0.3:  # numbers of categories, without their list
            types = ["c" if rng.random() < 0.5 else "q" for _ in range(X.shape[1])]
            for k, own in enumerate(types):
                if own == "c":
                    X[:, k], rows[:, k] = (np.abs(np.round(part[:, k])) % 9 for part in (X, rows))

    def matrix(rows: Any, y: Any = None, qid: Any = None) -> Any:
        return xgboost.DMatrix(rows, y, qid=qid, feature_types=types, enable_categorical=True, nthread=1)

    data = matrix(X, y, qid)
    stop = 2 if rng.random() < 0.2 and params["booster"] == "gbtree" else None
    booster = xgboost.train(
        params, data, int(rng.integers(1, 20)), evals=[(data, "valid")], early_stopping_rounds=stop, verbose_eval=False
    )
    if rng.random() < 0.2:
        booster.set_attr(remark="kept", best_score="0.5")
    yield other_lists(rng, rows, names) if names else rows

    def score(rows: Any) -> np.ndarray:
        return np.asarray(booster.predict(matrix(rows), output_margin=True), dtype=np.float64)

    for form, name in (("JSON", "model.json"), ("UBJ", "model.ubj")):
        booster.save_model(folder / name)
        yield f"XGBoost, {form}", folder / name, score, False
    # A dump has neither the weights of dart nor the number of outputs, and so cannot be recognised.
    if params["booster"] == "gbtree" and kind != "class":
        booster.dump_model(folder / "dump.json", dump_format="json", with_stats=bool(rng.random() < 0.5))
        yield "XGBoost, JSON dump", folder / "dump.json", score, True


def of_catboost(rng: np.random.Generator, folder: Path) -> Iterator[Written | Any]:
    """Train and write a model of CatBoost; yields the rows to score, and each file."""
    import catboost

    categories = rng.random() < 0.15
    frame, rows, names = draw_rows(rng, texts=categories)
    numbers = frame.copy()
    for name in names:
        frame, rows = (part.assign(**{name: part[name].astype(str).astype(object)}) for part in (frame, rows))
    loss, kind = [
        ("RMSE", "real"), ("MAE", "real"), ("Quantile:alpha=0.3", "real"), ("Logloss", "sign"), ("Poisson", "positive"),
        ("QueryRMSE", "grade"), ("YetiRank", "grade"), ("PairLogit", "grade"), ("MultiClass", "class"),
        ("Tweedie:variance_power=1.5", "positive"), ("CrossEntropy", "sign"),
    ][rng.integers(11)]  # fmt: skip
    params: dict[str, Any] = {
        "iterations": int(rng.integers(1, 20)), "depth": int(rng.integers(1, 6)), "loss_function": loss, "verbose": 0,
        "thread_count": 1, "allow_writing_files": False, "nan_mode": str(rng.choice(["Min", "Max"])),
        "learning_rate": 0.3, "border_count": int(rng.choice([5, 254])), "random_seed": int(rng.integers(999)),
        "boosting_type": "Plain", "bootstrap_type": str(rng.choice(["Bayesian", "Bernoulli", "No"])),
        "grow_policy": str(rng.choice(["SymmetricTree", "SymmetricTree", "Depthwise", "Lossguide"])),
        "boost_from_average": bool(rng.random() < 0.5) if loss in ("RMSE", "MAE", "Logloss") else None,
        "one_hot_max_size": int(rng.choice([2, 50])),
    }  # fmt: skip
    y = targets(rng, numbers, kind)
    query = np.sort(rng.integers(4, size=len(y))) if kind == "grade" else None
    pool = catboost.Pool(frame, y, cat_features=names, group_id=query)
    model = catboost.CatBoost({key: value for key, value in params.items() if value is not None})
    model.fit(pool, eval_set=pool if rng.random() < 0.3 else None, early_stopping_rounds=3, use_best_model=False)
    if loss != "MultiClass" and rng.random() < 0.2:
        model.set_scale_and_bias(1.5, -2.0)
    yield rows
    model.save_model(str(folder / "model.json"), format="json")

    def score(rows: Any) -> np.ndarray:
        pool = catboost.Pool(rows, cat_features=names)
        return np.asarray(model.predict(pool, prediction_type="RawFormulaVal", thread_count=1))

    yield "CatBoost, JSON", folder / "model.json", score, False


MAKERS = {"lightgbm": of_lightgbm, "xgboost": of_xgboost, "catboost": of_catboost}


def trial(library: str, seed: int) -> Iterator[tuple[str, str, str]]:
    """Yield kind, outcome (equal, refused or wrong) and detail of each file of one random model."""
    rng = np.random.default_rng([seed, sum(map(ord, library))])
    tolerance = 2e-6 if library == "xgboost" else 1e-12
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = MAKERS[library](rng, Path(folder))
        try:
            rows = next(made)
        except Exception as error:  # settings that the library itself refuses
            if library not in type(error).__module__:
                raise
            yield library, "none", f"{type(error).__name__}: {error}"[:200]
            return
        for kind, path, score, shifted in made:
            try:
                expected = score(rows)
            except Exception as error:  # rows that the library refuses
                if library not in type(error).__module__:
                    raise
                yield kind, "none", f"{type(error).__name__}: {error}"[:200]
                continue
            try:
                ranker = import_model(path, **_names(rows, shifted))
                own = ranker.predict(rows)
            except TruerankError as error:
                yield kind, "refused", str(error).replace(str(path), "")
                continue
            if own.shape != expected.shape:
                yield kind, "wrong", f"shape {expected.shape}"
                continue
            difference = own - expected
            if shifted:
                difference -= np.median(difference)
            worst = np.abs(difference).max() / max(1.0, np.abs(expected).max())
            yield kind, "equal" if worst <= tolerance else "wrong", f"seed {seed}: {worst:.2g}"


def _names(rows: Any, dump: bool) -> dict[str, Any]:
    """Return the columns, which a dump does not list."""
    if not dump:
        return {}
    return {"feature_names": list(rows.columns)} if hasattr(rows, "columns") else {"n_features": rows.shape[1]}


def run(trials: int = TRIALS) -> None:
    """Print the table, and the reasons of refusals."""
    counts: dict[str, Counter[str]] = {}
    reasons: Counter[str] = Counter()
    for library in MAKERS:
        done = seed = 0
        while done < trials:
            outcomes = list(trial(library, seed))
            seed += 1
            done += outcomes[0][1] != "none"
            for kind, outcome, detail in outcomes:
                if outcome != "none":
                    counts.setdefault(kind, Counter())[outcome] += 1
                if outcome == "wrong":
                    print(f"wrong: {kind}, {detail}", file=sys.stderr)
                elif outcome == "refused":
                    reasons[f"{kind}: {_reason(detail)}"] += 1
    rows = [[kind, *(own[key] for key in ("equal", "refused", "wrong"))] for kind, own in counts.items()]
    print(table(rows, ["model", "equal", "refused", "wrong"]))
    print("\nreasons of refusals")
    print(table([[reason, count] for reason, count in sorted(reasons.items())], ["reason", "models"]))


def _reason(detail: str) -> str:
    """Return the kind of an error, without its places and values."""
    words = ("linear leaves", "outputs a row", "one output a row", "categorical splits", "categorical_features")
    more = (
        "lists of categories for",
        "is not known",
        "ranges of their numbers",
        "number is expected",
        "which is not one of",
    )
    more += ("beyond ASCII", "that are all texts", "is not numeric", "not among the feature names")
    return next((own for own in (*words, *more) if own in detail), detail[:70])
