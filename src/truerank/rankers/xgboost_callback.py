"""A callback of the user's own in XGBoost's form, called after each round with what there is."""

from __future__ import annotations

import json
from typing import Any

from truerank.core.errors import InvalidInputError
from truerank.core.rounds import Round
from truerank.rankers.round_results import theirs


class AfterIteration:
    """Calls the `after_iteration(model, epoch, evals_log)` of a `TrainingCallback` after each round.

    `epoch` counts from 0, `evals_log` holds the values so far of the set and the measure that are watched, by XGBoost's
    names, and True stops the fit. The model is a `BoosterSoFar`.

    Raises
    ------
    InvalidInputError
        Where the callback has other steps of its own, which would be given a booster to change.
    """

    def __init__(self, callback: Any) -> None:
        own = [base for base in type(callback).__mro__ if base.__module__.partition(".")[0] != "xgboost"]
        others = ("before_training", "before_iteration", "after_training")
        written = [name for name in others if any(name in vars(base) for base in own)]
        if written:
            raise InvalidInputError(
                f"the callback {type(callback).__name__} has {', '.join(written)}; after_iteration alone is called here"
            )
        self._callback, self._log = callback, dict[str, dict[str, list[float]]]()

    def __call__(self, info: Round) -> bool:
        if info.round == 1:
            self._log = {}
        for name, values in theirs({k: {m: [v] for m, v in own.items()} for k, own in info.measures.items()}).items():
            known = self._log.setdefault(name, {})
            for measure, [value] in values.items():
                known.setdefault(measure, []).append(value)
        return bool(self._callback.after_iteration(BoosterSoFar(info), info.round - 1, self._log))


class BoosterSoFar:
    """What stands for XGBoost's booster in a callback: of all that one can be asked, what rounds tell.

    Examples
    --------
    >>> booster = BoosterSoFar(Round("ObliviousBoosting", 3))
    >>> booster.num_boosted_rounds(), booster.save_config()
    (3, '{"learner": {"objective": {}}}')
    """

    def __init__(self, info: Round) -> None:
        self._info = info

    def num_boosted_rounds(self) -> int:
        """Trees so far."""
        return self._info.round

    def save_config(self) -> str:
        """JSON of what position debiasing has learned, `["learner"]["objective"]["ti+"]` and `"tj-"`, and no more."""
        names = {"click_propensities": "ti+", "skip_propensities": "tj-"}
        objective = {names[name]: values.tolist() for name, values in self._info.arrays.items()}
        return json.dumps({"learner": {"objective": objective}})

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"a callback asks for the booster's {name}, which is not here: it has num_boosted_rounds and save_config; "
            "evals_log holds the measures, and a function of `truerank.core.rounds.Round` is told all that there is"
        )
