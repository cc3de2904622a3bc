"""Fits that happen whole or not at all."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from truerank.core.interrupts import Interruptible

T = TypeVar("T")
Fit = TypeVar("Fit", bound=Callable[..., Any])


@contextmanager
def whole_fit(estimator: T) -> Iterator[T]:
    """A copy of an estimator to fit; its state becomes the estimator's when the block ends without an error.

    Any error or interrupt leaves the estimator as it was, fitted state and all. The copy has attributes of its own but
    shares their values: a block that changes a fitted array in place copies it first.

    Examples
    --------
    >>> class Mean:
    ...     def fit(self, values):
    ...         with whole_fit(self) as fresh:
    ...             fresh.n_ = len(values)
    ...             fresh.mean_ = sum(values) / fresh.n_
    ...         return self
    >>> mean = Mean().fit([1.0, 3.0])
    >>> mean.fit([])
    Traceback (most recent call last):
    ZeroDivisionError: division by zero
    >>> mean.n_, mean.mean_
    (2, 2.0)
    """
    fresh = object.__new__(type(estimator))
    fresh.__dict__.update(estimator.__dict__)
    with Interruptible():
        yield fresh
    estimator.__dict__ = fresh.__dict__


def fits_whole(fit: Fit) -> Fit:
    """Decorator of a method that fits: its whole body in `whole_fit`. The method's result is the estimator."""

    @functools.wraps(fit)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        with whole_fit(self) as fresh:
            fit(fresh, *args, **kwargs)
        return self

    return whole  # type: ignore[return-value]
