"""Errors by their fields: what a test asserts in place of the wording of a message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def refused(
    kind: type[BaseException] | tuple[type[BaseException], ...], *, remedy: dict[str, Any] | None = None, **fields: Any
) -> Iterator[pytest.ExceptionInfo[BaseException]]:
    """Require an error of this class, with these fields; `remedy` has the arguments of one of its remedies."""
    assert fields, "without a field any error of this class would pass"
    with pytest.raises(kind) as caught:
        yield caught
    error: Any = caught.value
    assert {name: getattr(error, name, None) for name in fields} == fields, str(error)
    assert remedy is None or remedy in [own.arguments for own in error.remedies], str(error)
