"""Accept or explain the names of rankers' parameters in XGBoost, LightGBM and CatBoost.

The page `docs/howto/coming-from.md` has a table of the names.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from truerank.compat.name_table import INSTEAD, NEAR, NOTHING_LIKE_IT, OBJECTIVES, SAME, WARNED, WITHOUT_EFFECT
from truerank.core.errors import InvalidInputError, warn
from truerank.core.names import nearest, similar

_CUTOFFS = ("eval_at", "ndcg_eval_at", "ndcg_at", "map_eval_at", "map_at")
_SETTINGS = re.compile(r"top=(\d+)")


def advice(cls: type, name: str) -> str:
    """Return advice on a parameter of another library; "" if the name is unknown.

    >>> from truerank.rankers.adarank import AdaRank
    >>> advice(AdaRank, "early_stopping_rounds"), advice(AdaRank, "num_leaves")
    ('it is called patience here', 'it is depth in other rankers; AdaRank does not have it')
    """
    known = inspect.signature(cls).parameters
    ours = SAME.get(name) or (NEAR[name][0] if name in NEAR else None)
    if ours in known:
        return f"it is called {ours} here"
    if name in INSTEAD or name in WARNED:
        return (INSTEAD | WARNED)[name]
    if name in NOTHING_LIKE_IT:
        return "truerank has no counterpart; omit it"
    if ours is not None:
        return f"it is {ours} in other rankers; {cls.__name__} does not have it"
    return ""


def translated(cls: type, known: Mapping[str, Any], given: Mapping[str, Any], *, begun: bool = False) -> dict[str, Any]:
    """Return the arguments of a ranker's constructor under truerank's names, from names of other libraries.

    One warning lists all approximate names and names without effect, and states the objective unless it was given or
    `begun`. One InvalidInputError lists all names without a counterpart, and proposes a constructor that is accepted.
    """
    result: dict[str, Any] = {}
    notes, refused = list[str](), dict[str, str]()
    for name, value in _settled(known, given, notes).items():
        ours, near = SAME.get(name, "depth" if name == "max_depth" and "depth" in given else ""), NEAR.get(name)
        if name in known:
            result[name] = _objective(value, notes) if name == "objective" else value
        elif ours in known and (ours in given or ours in result):
            raise InvalidInputError(
                f"{cls.__name__}: {name} means {ours}, and both were given. Pass only {ours}", code="given-twice"
            )
        elif ours in known:
            if value is not None:
                result[ours] = _converted(name, ours, value, notes)
        elif asks_for_nothing(name, value):
            continue
        elif near is not None and near[0] in known:
            _approximate(name, value, given, result, notes)
        elif name in WARNED:
            notes.append(f"{name}={value!r:.60} has no effect: {WARNED[name]}")
        else:
            refused[name] = advice(cls, name) or nearest(name, known).lstrip(". ") or "unknown"
    if refused:
        raise InvalidInputError(_refusal(cls, refused, given, result, known), code="unknown-parameter")
    if not begun and "objective" in known and "objective" not in result and not given.keys() <= known.keys():
        notes.append('objective is "mse" here; LGBMRanker and XGBRanker train objective="lambdarank"')
    if notes:
        warn(f"{cls.__name__}: {'; '.join(notes)}")
    return result


def _approximate(name: str, value: Any, given: Mapping[str, Any], result: dict[str, Any], notes: list[str]) -> None:
    """Add truerank's nearest parameter for a parameter of another library unless given, the smaller of two depths."""
    ours, how, difference = NEAR[name]
    found: Any
    if how == "depth":
        found = min(max(round(math.log2(value)), 1), 12) if isinstance(value, int) and value >= 2 else None
    elif how == "limited":
        found = None if value < 1 else min(value, 12)
    else:
        found = 1.0 if how == "one" else np.atleast_1d(value).tolist() if how == "columns" else value
    if found is not None and ours not in given:
        result[ours] = min(found, result[ours]) if how in ("depth", "limited") and ours in result else found
    if how != "limited" or found != value:
        is_ours = f" is {ours}={result[ours]!r:.60} here" if ours in result else " has no effect"
        notes.append(f"{name}={value!r:.60}{is_ours}: {difference}")


def _refusal(
    cls: type, refused: Mapping[str, str], given: Mapping[str, Any], result: Mapping[str, Any], known: Mapping[str, Any]
) -> str:
    """Return a message about all parameters without a counterpart, with a constructor of the accepted parameters."""
    lines = [f"{name}={given[name]!r:.60}: {why}" for name, why in refused.items()]
    about = lines[0] if len(lines) == 1 else "".join(f"\n  {line}" for line in lines)
    kept = dict(result)
    for name in refused:  # a name with a typing error
        if close := similar(name, known):
            kept.setdefault(close, given[name])
    return (
        f"{cls.__name__} does not have {len(lines)} of the parameters: {about}\nWrite: {ready(cls.__name__, kept)}"
        f"\nand: ranker.fit(X, y, qid=qid)"
    )


def ready(name: str, settings: Mapping[str, Any]) -> str:
    """Return a call with keyword arguments, such as `ObliviousBoosting(depth=5)`; long values are names.

    >>> ready("fit", {"qid": [0] * 99, "verbose": 10})
    'fit(qid=qid, verbose=10)'
    """
    shown = []
    for key, value in settings.items():
        text = repr(value) if isinstance(value, str | int | float | list | tuple | dict | None) else key
        shown.append(f"{key}={text if len(text) <= 60 else key}")
    return f"{name}({', '.join(shown)})"


def asks_for_nothing(name: str, value: Any) -> bool:
    """Return whether a setting of another library can be ignored."""
    if value is None and any(name in names for names in (WITHOUT_EFFECT, WARNED, NEAR, INSTEAD, NOTHING_LIKE_IT)):
        return True
    if name == "label_gain":  # 2^grade - 1, the gain of nDCG here
        return np.array_equal(value, [2**grade - 1 for grade in range(np.size(value))])
    if isinstance(value, str) and value == "auto" and name in NEAR:
        return True
    if name in NEAR and NEAR[name][1] == "one" and value in (0, 1):
        return True
    if NEAR.get(name, ("", ""))[1] == "same" and value == 1:
        return True
    if name == "missing":
        return isinstance(value, float) and bool(np.isnan(value))
    if name in ("device", "task_type"):
        return str(value).lower() == "cpu"
    values = WITHOUT_EFFECT.get(name, ())
    return values is None or any(value is one or value == one for one in values)


def _settled(known: Mapping[str, Any], given: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    """Add the measure of XGBoost's `rank:map`, and translate `lambdarank_unbiased`: rows are in display order."""
    settled = dict(given)
    named = next((given[key] for key in ("objective", "loss_function") if isinstance(given.get(key), str)), "")
    if named == "rank:map" and "measure" in known:
        settled.setdefault("measure", "AP")
    if named.startswith("LambdaMart") and (top := _SETTINGS.search(named)) and "measure" in known:
        settled.setdefault("measure", f"nDCG@{top[1]}")
    cutoffs = next((settled.pop(key) for key in _CUTOFFS if settled.get(key) is not None and "metric" in given), None)
    if cutoffs is not None:  # LightGBM's metric="ndcg" with eval_at=[1, 5]
        base = "map" if "map" in str(given["metric"]).lower() else "ndcg"
        settled["metric"] = [f"{base}@{one}" for one in np.atleast_1d(cutoffs)]
    if "objective_params" not in known or settled.get("lambdarank_unbiased") is not True:
        return settled
    del settled["lambdarank_unbiased"]
    named = settled.pop("objective", "rank:ndcg")
    if _objective(named, notes) != "lambdarank":
        raise InvalidInputError(
            f"lambdarank_unbiased requires objective='rank:ndcg' or 'rank:map', got {named!r}",
            argument="lambdarank_unbiased",
        )
    params = {"rows_as_shown": True} | (settled.get("objective_params") or {})
    norm = settled.pop("lambdarank_bias_norm", None)
    if norm is not None:
        params["norm"] = norm
    return settled | {"objective": "unbiased-lambdarank", "objective_params": params}


def _converted(name: str, ours: str, value: Any, notes: list[str]) -> Any:
    if ours == "validation_measure":
        if isinstance(value, str) and "," in value:
            value = [one.strip() for one in value.split(",")]
        if isinstance(value, str) and value.lower() in ("none", "custom", "na"):
            return None
        if name not in ("eval_metric", "metric"):
            value = [f"nDCG@{cutoff}" for cutoff in ([value] if isinstance(value, int) else value)]
        return [measure_of(name, one) for one in value] if isinstance(value, list | tuple) else measure_of(name, value)
    if ours == "objective":
        return _objective(value, notes)
    if ours == "monotone" and isinstance(value, str):
        return [int(sign) for sign in re.findall(r"-?\d+", value)]
    if name == "border_count":
        return value + 1  # borders count parts, one more than cuts
    if ours == "n_jobs" and value in (-1, 0):
        return None
    return value


def measure_of(name: str, value: object) -> Any:
    """Return the truerank name of a measure such as `ndcg@10`, or CatBoost's `NDCG:top=10;type=Exp`."""
    if isinstance(value, str) and OBJECTIVES.get(value) in ("lambdarank", "xe-ndcg"):
        return "ndcg"  # LightGBM's metric="lambdarank"
    if not isinstance(value, str) or ":" not in value:
        return value
    base, _, settings = value.partition(":")
    parts = dict(part.partition("=")[::2] for part in settings.split(";"))
    cutoff = parts.pop("top", None)
    kind = parts.pop("type", None)
    if parts:
        raise InvalidInputError(
            f"{name}: {value!r} sets {', '.join(parts)}, which is not supported. See docs/measures.md"
        )
    gain = {None: "", "Exp": '(gain="exponential")', "Base": '(gain="linear")'}.get(kind)
    if gain is None:
        raise InvalidInputError(f"{name}: the type in {value!r} must be Base or Exp, got {kind!r}")
    return f"{base}{gain}@{cutoff}" if cutoff else f"{base}{gain}"


def _objective(value: object, notes: list[str]) -> Any:
    if not isinstance(value, str):
        return value
    name, _, settings = value.partition(":") if value.partition(":")[0] in OBJECTIVES else (value, "", "")
    if settings or name == "StochasticRank":
        notes.append(
            f"objective={value!r} is {OBJECTIVES[name]!r} here. Pass other settings as objective_params or measure"
        )
    return OBJECTIVES.get(name, name)
