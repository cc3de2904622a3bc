"""Which tests need what only POSIX has."""

from __future__ import annotations

import inspect
import re
import types
from typing import Any

_ONLY_POSIX = re.compile(
    r"\b(fork|mkfifo|chmod|SIGKILL|SIGALRM|geteuid|setrlimit|pthread_sigmask|openpty|start_new_session)\b|/dev/(null|full|fd|std)"
)


def needs_posix(function: Any, settings: str, seen: set[str]) -> str | None:
    """Return what a test uses that only POSIX has: itself, its helpers of this project, or a program in its texts."""
    if found := _ONLY_POSIX.search(settings):
        return found.group()
    codes, space = [inspect.unwrap(function).__code__], function.__globals__
    seen.add(function.__qualname__)
    while codes:
        code = codes.pop()
        codes += [part for part in code.co_consts if isinstance(part, types.CodeType)]
        for word in (*code.co_names, *(part for part in code.co_consts if isinstance(part, str))):
            if found := _ONLY_POSIX.search(word):
                return found.group()
            helper = inspect.unwrap(space.get(word)) if callable(space.get(word)) else None
            if not isinstance(helper, types.FunctionType) or helper.__qualname__ in seen:
                continue
            if not helper.__module__.startswith("truerank") and (further := needs_posix(helper, "", seen)):
                return further
    return None
