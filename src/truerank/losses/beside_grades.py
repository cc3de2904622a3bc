"""What some objectives read beside the grades: labels by name, and positions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import RankingData
from truerank.losses.mixture import Mixture
from truerank.losses.position_bias import UnbiasedLambdaRank


def take_beside(
    objective: object, labels: Mapping[str, np.ndarray] | None, position: np.ndarray | None, data: RankingData
) -> None:
    """Hand the labels and positions that came beside the grades to the objectives that read them.

    An `InvalidInputError` on labels that no part names, on positions that no part reads, and on a part that lacks its
    own.
    """
    named, readers = _reads(objective)
    unread = sorted(set(labels or {}) - named)
    if unread:
        raise InvalidInputError(
            f"labels {unread} are read by no part of the objective; name them: "
            f'objective=[{{"objective": "softmax", "label": {unread[0]!r}}}, ...]'
        )
    if isinstance(objective, Mixture):
        objective.take_labels(labels or {})
    if position is not None and not readers:
        raise InvalidInputError('position is read by objective="unbiased-lambdarank" only; leave it out, or take that')
    for reader in readers:
        if position is None and reader.rows_as_shown:
            places = np.arange(data.n_rows) - np.repeat(data.offsets[:-1], data.group_sizes)
            reader.take_positions(places + 1, data.row_weight)
        elif position is not None:
            reader.take_positions(position, data.row_weight)


def read_by(objective: object, data: RankingData) -> tuple[dict[str, np.ndarray], np.ndarray | None]:
    """The labels and positions of the data that an objective reads; data may carry more, for others."""
    named, readers = _reads(objective)
    labels = {name: values for name, values in (data.labels or {}).items() if name in named}
    return labels, data.position if readers else None


def _reads(objective: object) -> tuple[set[str], list[Any]]:
    """The names of the labels that an objective reads, and what in it reads positions."""
    parts = objective.parts if isinstance(objective, Mixture) else []
    every = (objective, *(part.objective for part in parts))
    return {part.label for part in parts if part.label is not None}, [o for o in every if hasattr(o, "take_positions")]


def unbiased_part(objective: object) -> UnbiasedLambdaRank | None:
    """The objective, or the part of a mixture, that learns propensities."""
    parts = [part.objective for part in objective.parts] if isinstance(objective, Mixture) else [objective]
    return next((one for one in parts if isinstance(one, UnbiasedLambdaRank)), None)
