"""Convert a calibrator to a formula of the score, for formats with formulas.

    P(relevant) = min over grades of Σ_m share_m P_m(score)

A member P_m is the logistic function of pieces of at most degree two between knots of the score (densities, Platt,
spline, …), the logistic function of beta calibration's two logarithms, or pieces of probability (isotonic regression).
A pool has several members, and P(grade ≥ g) is the least over the grades up to g.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from truerank.calibration.densities import DensityCalibrator
from truerank.calibration.pool import PooledCalibrator
from truerank.calibration.posteriors import (
    BetaCalibrator,
    IdentityCalibrator,
    IsotonicCalibrator,
    LogisticCalibrator,
    SplineCalibrator,
    TemperatureCalibrator,
)
from truerank.core.errors import InvalidInputError
from truerank.data.grouping import offsets_of

LOG_ODDS, BETA, PROBABILITY = 0, 1, 2


class Member(NamedTuple):
    """One calibrator. Piece k is for scores above `knots[k - 1]` and up to `knots[k]`; d is score - `centres[k]`.

    `(quadratic d + linear) d + constant` is the log-odds with the kind LOG_ODDS, and the probability with PROBABILITY.
    With BETA there is one piece: the log-odds are `quadratic log p - linear log(1 - p) + constant`, where p is the
    logistic function of the score.
    """

    kind: int
    knots: np.ndarray
    centres: np.ndarray
    quadratic: np.ndarray
    linear: np.ndarray
    constant: np.ndarray


@dataclass(frozen=True)
class Calibration:
    """The members of P(grade ≥ g) with their shares, by grade; the result is the least of these probabilities."""

    grades: tuple[tuple[tuple[float, Member], ...], ...]

    def members(self) -> Iterator[tuple[float, Member, bool]]:
        """Yield share, member, and whether it is the last of its grade."""
        for own in self.grades:
            for place, (share, member) in enumerate(own):
                yield share, member, place == len(own) - 1

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the members as concatenated arrays.

        Member m has the knots from `member_starts[m]` to `member_starts[m + 1]`; its pieces start at
        `member_starts[m] + m`.
        """
        shares, members, closes = zip(*self.members())
        kinds, *pieces = zip(*members)
        return {
            "member_kinds": np.array(kinds, dtype=np.int64),
            "member_shares": np.array(shares),
            "member_closes": np.array(closes, dtype=np.int64),
            "member_starts": offsets_of([len(member.knots) for member in members]),
        } | dict(zip(Member._fields[1:], map(np.concatenate, pieces)))


def calibration_of(model: Any) -> Calibration:
    """Return the calibration of a fitted `CalibratedRanker`.

    Raises
    ------
    InvalidInputError
        If the probability depends on the other documents of the query, or the calibrator is not one of truerank's.
    """
    if len(model.statistics_coef_):
        raise InvalidInputError(
            "with query_statistics a probability depends on the other documents of the query, but an engine scores one "
            "document at a time. Calibrate without query_statistics, or export the ranker alone (ranker_)",
            code="query-statistics",
        )
    relevant = model.calibrators_[: model.place_of_rel() + 1]
    return Calibration(tuple(tuple(_members(own)) for own in relevant))


def _members(calibrator: Any) -> Iterator[tuple[float, Member]]:
    parts = [(1.0, _member(calibrator))] if not isinstance(calibrator, PooledCalibrator) else [
        (weight * share, member)
        for weight, own in zip(calibrator.weights_.tolist(), calibrator.calibrators_)
        for share, member in _members(own)
    ]  # fmt: skip
    for share, member in parts:
        unit = getattr(calibrator, "unit_", 1.0)
        if unit != 1.0 and member.kind == BETA:
            raise InvalidInputError(
                f"beta calibration has no formula for scores that are divided by {unit:g}. Use another method, such as "
                "platt, or rescale the ranker's scores"
            )
        knots, centres = member.knots * unit, member.centres * unit
        yield share, Member(member.kind, knots, centres, member.quadratic / unit**2, member.linear / unit, member[-1])


def _member(calibrator: object) -> Member:
    if isinstance(calibrator, LogisticCalibrator):
        return _lines([], [calibrator.centre_], [calibrator.b_], [calibrator.level_])
    if isinstance(calibrator, IdentityCalibrator):
        return _lines([], [0.0], [1.0], [0.0])
    if isinstance(calibrator, TemperatureCalibrator):
        return _lines([], [0.0], [calibrator.slope_], [0.0])
    if isinstance(calibrator, SplineCalibrator):
        low, high = calibrator.centred_knots_ + calibrator.centre_
        width = calibrator.centred_knots_[1] - calibrator.centred_knots_[0]
        level, slopes = calibrator.level_, calibrator.slopes_
        return _lines([low, high], [low, low, high], slopes, [level, level, level + slopes[1] * width])
    if isinstance(calibrator, BetaCalibrator):
        numbers = np.array([[0.0], [calibrator.a_], [calibrator.b_], [calibrator.c_]])
        return Member(BETA, np.empty(0), *numbers)
    if isinstance(calibrator, IsotonicCalibrator):
        return _between_corners(PROBABILITY, calibrator.scores_, calibrator.probabilities_)
    if isinstance(calibrator, DensityCalibrator):
        if len(calibrator.monotone_scores_):
            corners = calibrator.monotone_scores_ + calibrator.centre_
            return _between_corners(LOG_ODDS, corners, calibrator.monotone_log_odds_)
        return _of_densities(calibrator)
    raise InvalidInputError(
        f"{type(calibrator).__name__} has no formula that another program can compute. Use a method of `truerank "
        "calibrate`: pool, platt, isotonic, beta, …"
    )


def _lines(knots: Any, centres: Any, slopes: Any, levels: Any) -> Member:
    own = [np.array(part, dtype=np.float64) for part in (knots, centres, slopes, levels)]
    return Member(LOG_ODDS, own[0], own[1], np.zeros(len(own[1])), own[2], own[3])


def _between_corners(kind: int, scores: np.ndarray, values: np.ndarray) -> Member:
    """Return pieces that are linear between the corners and constant outside, like `numpy.interp`."""
    kept = np.concatenate([[True], np.diff(scores) > 0])
    x, v = scores[kept], values[kept]
    slopes = np.concatenate([[0.0], np.diff(v) / np.diff(x), [0.0]])
    centres, constant = np.concatenate([x[:1], x]), np.concatenate([v[:1], v])
    return Member(kind, x, centres, np.zeros(len(slopes)), slopes, constant)


def _of_densities(calibrator: Any) -> Member:
    """Return the log ratio of two densities, each with one parabola on either side of its mode."""
    sides, (low, high) = calibrator.predictive_, calibrator.flat_
    # If a density jumps at its mode, the mode has its own value.
    jumps = [mode for mode, _, left, _, _, right, _, _ in sides if left != right]
    knots = np.unique(np.concatenate([sides[:, 0], np.nextafter(jumps, -np.inf), [low, high]]))
    knots = knots[(knots >= low) & (knots <= high)]
    home = float(np.clip(sides[:, 0].mean(), low, high))
    edges = np.concatenate([[-np.inf], knots, [np.inf]])
    pieces = []
    for a, z in zip(edges[:-1], edges[1:]):
        if not np.isfinite(z - a) or np.nextafter(a, z) == z:
            point = z if np.isfinite(z) else a
            pieces.append([point, 0.0, 0.0, float(calibrator._free_log_odds(np.array([point]))[0])])
            continue
        centre = float(np.clip(home, a, z))
        total = np.array([centre, 0.0, 0.0, np.log(calibrator.prior_[1] / calibrator.prior_[0])])
        for sign, (mode, _, *own) in zip((-1.0, 1.0), sides):
            norm, slope, square = own[3:] if a >= mode else (own[0], -own[1], own[2])
            d = centre - mode
            # norm - slope (x - mode) - square (x - mode)², about the centre
            total[1:] -= sign * np.array([square, slope + 2.0 * square * d, (slope + square * d) * d - norm])
        pieces.append(total.tolist())
    centres, quadratic, linear, constant = np.array(pieces).T
    return Member(LOG_ODDS, knots + calibrator.centre_, centres + calibrator.centre_, quadratic, linear, constant)
