"""Names inside generated files: names of models, features and runs never become code.

A name enters a file as a string literal from the language's encoder (`json.dumps`, `ascii`), as an identifier
(`identifier`), or in a comment (`comment`).
"""

from __future__ import annotations

import re
import string
import unicodedata

from truerank.core.errors import InvalidInputError

PLAIN = frozenset(string.ascii_letters + string.digits + " _.,:()")


def comment(text: str) -> str:
    """Return `text` for a comment of any language. Characters that could end a comment are written by number.

    Examples
    --------
    >>> print(comment('a */ b'))
    a <U+002A><U+002F> b
    """
    return "".join(c if c in PLAIN else f"<U+{ord(c):04X}>" for c in text)


def identifier(name: str) -> str:
    """Replace everything but ASCII letters, digits and underscores by underscores."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def check_name(name: str, what: str, remedy: str) -> None:
    """Raise for control characters, line ends and lone surrogates, which no engine allows in names."""
    bad = next((c for c in name if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")), None)
    if bad is not None:
        raise InvalidInputError(
            f"the {what} {name!a:.80} contains the character U+{ord(bad):04X}, which engines do not allow. {remedy}"
        )
