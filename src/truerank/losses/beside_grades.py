"""What some objectives read beside the grades: labels by name, and positions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import RankingData
from truerank.losses.mixture import Mixture
from truerank.losses.position_bias import UnbiasedLambdaRank


def in_data_order(values: Any, data: RankingData) -> dict[str, Any]:
    """Arrays by name (n,) in the caller's row order, as float64 in the data's order; None stays None."""
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise InvalidInputError(f"labels must be a dict of names to arrays, got {type(values).__name__}")
    result: dict[str, Any] = {}
    for name, given in values.items():
        if given is None:
            result[name] = None
            continue
        try:
            column = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"{name} must hold numbers: {error}") from error
        if column.shape != (data.n_rows,):
            raise InvalidInputError(
                f"{name} must have one value for each of the {data.n_rows} rows, got {column.shape}"
            )
        if not np.isfinite(column).all():
            raise InvalidInputError(f"{name} must be finite, got {column[~np.isfinite(column)][0]}")
        result[name] = data.grouped(column)
    return result


def take_beside(
    objective: Any, labels: Mapping[str, np.ndarray] | None, position: np.ndarray | None, data: RankingData
) -> None:
    """Hand the labels and positions that came beside the grades to the objectives that read them.

    An `InvalidInputError` on labels that no part names, on positions that no part reads, and on a part that lacks its
    own.
    """
    parts = objective.parts if isinstance(objective, Mixture) else []
    named = {part.label for part in parts if part.label is not None}
    unread = sorted(set(labels or {}) - named)
    if unread:
        raise InvalidInputError(
            f"labels {unread} are read by no part of the objective; name them: "
            f'objective=[{{"objective": "softmax", "label": {unread[0]!r}}}, ...]'
        )
    if isinstance(objective, Mixture):
        objective.take_labels(labels or {})
    readers = [one for one in (objective, *(part.objective for part in parts)) if hasattr(one, "take_positions")]
    if position is not None and not readers:
        raise InvalidInputError('position is read by objective="unbiased-lambdarank" only; leave it out, or take that')
    for reader in readers:
        if position is None and reader.rows_as_shown:
            places = np.arange(data.n_rows) - np.repeat(data.offsets[:-1], data.group_sizes)
            reader.take_positions(places + 1, data.row_weight)
        elif position is not None:
            reader.take_positions(position, data.row_weight)


def unbiased_part(objective: Any) -> UnbiasedLambdaRank | None:
    """The objective, or the part of a mixture, that learns propensities."""
    parts = [part.objective for part in objective.parts] if isinstance(objective, Mixture) else [objective]
    return next((one for one in parts if isinstance(one, UnbiasedLambdaRank)), None)
