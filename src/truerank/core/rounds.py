"""Rounds of a running fit, for callbacks and progress lines.

A learning loop calls `tell` after each round, and an outer `fitting` registers the callbacks, so that solvers require
no argument for callbacks. An inner fit (of a pipeline or a calibrated ranker) also calls the outer callbacks, unless
`unheard`.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from truerank.core.printing import note

FIRST = 2.0  # seconds after which the progress of a fit is shown
_LONGEST = 60.0


class _Local(threading.local):
    """The running fits of a thread, the outermost first, and the number and stage of the hidden fits (`unheard`)."""

    def __init__(self) -> None:
        self.fits: list[Fit] = []
        self.depth = 0
        self.stage = ""


_local = _Local()
_running: list[Fit] = []  # of all threads, the outermost first
_lock = threading.Lock()
_shown: list[Callable[[str], None]] = []
_thread = threading.Thread()  # that prints the progress


@dataclass(frozen=True)
class Round:
    """The argument of a callback after each round.

    Attributes
    ----------
    ranker : str
        Class name of the ranker.
    round, of : int
        Number of the tree, weak ranker, pass or step, from 1, and the largest possible number, or None.
    measures : dict of dict
        By validation set and measure: the value after this round, ties averaged. Of several sets, only the deciding set
        is included; after the fit, `evals_result_` contains all sets.
    values : dict of float
        Other values of the solver by name, such as "objective" and "gap".
    arrays : dict of arrays
        With unbiased-lambdarank, the current "click_propensities" and "skip_propensities".
    """

    ranker: str
    round: int
    of: int | None = None
    measures: dict[str, dict[str, float]] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    arrays: dict[str, Any] = field(default_factory=dict)

    @property
    def iteration(self) -> int:
        """LightGBM's name of the round, from 0."""
        return self.round - 1

    @property
    def evaluation_result_list(self) -> list[tuple[str, str, float, bool]]:
        """LightGBM's list of validation set, measure, value, and whether higher is better."""
        return [(name, measure, value, True) for name, own in self.measures.items() for measure, value in own.items()]

    def __str__(self) -> str:
        """Return text such as `round 12 of 100, valid_0 nDCG@10 0.4512`."""
        parts = [f"round {self.round}" + (f" of {self.of}" if self.of is not None else "")]
        parts += [f"{name} {m} {value:.4f}" for name, own in self.measures.items() for m, value in own.items()]
        parts += [f"{name} {value:.6g}" for name, value in self.values.items() if value == value]
        return ", ".join(parts)


Callback = Callable[[Round], Any]


@dataclass(eq=False)
class Fit:
    """The state of a running fit."""

    name: str
    callbacks: Sequence[Callback] = ()
    watched: tuple[str, str] = ("valid_0", "validation")  # names of the validation set and its measure
    started: float = field(default_factory=time.monotonic)
    outermost: bool = True
    stage: str = ""
    latest: Round | None = None
    arrays: Callable[[], dict[str, Any]] = dict


@contextmanager
def fitting(name: str, callbacks: Sequence[Callback] = ()) -> Iterator[Fit]:
    """Register a fit and its callbacks for the block; `tell` inside it calls them."""
    global _thread
    stack = _local.fits
    fit = Fit(name, callbacks, outermost=_local.depth == 0, stage=_local.stage)
    stack.append(fit)
    _local.depth += 1
    with _lock:
        _running.append(fit)
        if _shown and not _thread.is_alive():
            _thread = threading.Thread(target=_show, name="progress", daemon=True)
            _thread.start()
    try:
        yield fit
        for one in stack:
            for callback in one.callbacks:
                if isinstance(callback, Lines):
                    callback.finish()
    finally:
        _local.depth -= 1
        stack.remove(fit)
        with _lock:
            _running.remove(fit)


@contextmanager
def unheard(stage: str) -> Iterator[None]:
    """Hide the rounds of the block, which belong to the trial `stage`, from the callbacks of outer fits."""
    outside, _local.fits = _local.fits, []
    before, _local.stage = _local.stage, stage
    try:
        yield
    finally:
        _local.fits, _local.stage = outside, before


def tell(round: int, of: int | None = None, validation: float | None = None, **values: float) -> bool:
    """Call the callbacks with a round. Return True if a callback returns True, which stops the fit.

    An exception of a callback ends the fit and leaves the ranker unchanged.

    Examples
    --------
    >>> heard = []
    >>> with fitting("AdaRank", [lambda info: heard.append(str(info)), lambda info: info.round == 2]):
    ...     tell(1, 10, validation=0.25), tell(2, 10, loss=0.5)
    (False, True)
    >>> heard
    ['round 1 of 10, valid_0 validation 0.2500', 'round 2 of 10, loss 0.5']
    """
    stack = _local.fits
    if not stack:
        return False
    fit = stack[-1]
    measures = {} if validation is None else {fit.watched[0]: {fit.watched[1]: float(validation)}}
    numbers = {}
    for name, value in values.items():
        numbers[name] = float(value)
    fit.latest = Round(fit.name, round, of, measures, numbers, fit.arrays())
    stop = False
    for one in stack:
        for callback in one.callbacks:
            stop = callback(fit.latest) is True or stop
    return stop


def show_arrays(arrays: Callable[[], dict[str, Any]]) -> None:
    """Add the result of `arrays()` to each round of the running fit."""
    for fit in _local.fits[-1:]:
        fit.arrays = arrays


class Lines:
    """A callback that prints every `period`-th round, and the last round, also after early stopping."""

    def __init__(self, period: int) -> None:
        self.period, self.pending = period, ""

    def __call__(self, info: Round) -> None:
        self.pending = f"{info.ranker}: {info}"
        if info.round % self.period == 0:
            self.finish()

    def finish(self) -> None:
        """Print the latest round if it has not been printed."""
        if self.pending:
            note(self.pending)
        self.pending = ""


@contextmanager
def shown_progress(write: Callable[[str], None] = note) -> Iterator[None]:
    """Show the progress of fits of more than two seconds in the block: a bar on a terminal, else rare lines."""
    _shown.append(write)
    try:
        yield
    finally:
        _shown.remove(write)


def show_line(line: str) -> bool:
    """Print a line if progress is shown, and return whether progress is shown."""
    for write in _shown[-1:]:
        write(line)
    return bool(_shown)


def _show() -> None:
    """Show the progress of the running fits until no fit is running."""
    due: dict[int, float] = {}
    shown: Fit | None = None
    bar: Any = None
    while True:
        time.sleep(0.1)
        with _lock:
            ended = not _running or not _shown
            fits, write = list(_running), _shown[-1:]
        if bar is not None and (ended or fits[-1] is not shown):
            bar.close()
            bar = shown = None
        if ended:
            return
        now = time.monotonic()
        fit, outer = fits[-1], fits[0]
        taken = now - outer.started
        due = {id(each): due.get(id(each), FIRST) for each in fits}
        if taken < due[id(outer)]:
            continue
        inside = "" if fit is outer or fit.name == outer.name else f" in {outer.name}"
        name = f"fitting {fit.name}{inside}" + (f", {fit.stage}" if fit.stage else "")
        if write[0] is note and sys.stderr is not None and sys.stderr.isatty():
            if bar is None and fit.latest is not None:
                from tqdm import tqdm

                bar, shown = tqdm(desc=name, total=fit.latest.of, leave=False, file=sys.stderr, unit="round"), fit
            if bar is not None and fit.latest is not None:
                bar.update(fit.latest.round - bar.n)
        else:
            due[id(outer)] = taken + min(_LONGEST, max(FIRST, taken))
            how_far = "" if fit.latest is None else f": {fit.latest}"
            write[0](f"truerank: {name}{how_far} ({taken:.0f} s)")
