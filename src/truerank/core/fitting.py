"""Leave an estimator unchanged if its fit fails."""

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
    """Return a copy of an estimator for a fit; the estimator receives its state if the block ends without an error.

    An error or an interrupt leaves the estimator unchanged. The copy shares the values of the attributes: copy a fitted
    array before changing it in place.

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
    """Decorate a method that fits: its body runs in `whole_fit`, and it returns the estimator."""

    @functools.wraps(fit)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        with whole_fit(self) as fresh:
            fit(fresh, *args, **kwargs)
        return self

    return whole  # type: ignore[return-value]
