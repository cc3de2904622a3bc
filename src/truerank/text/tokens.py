"""Words of a text."""

from __future__ import annotations

from unicodedata import normalize

# A word is a run of letters and digits.
WORD = r"[^\W_]+"
# For topics: words of at least three characters that start with a letter.
TOPIC_WORD = r"[^\W\d_][^\W_]{2,}"


def folded(text: str) -> str:
    """The text in lower case and in Unicode's NFKC form (composed accents, no full-width letters).

    >>> folded("Cafe\\u0301 \\uff34\\uff36") == "caf\\xe9 tv"
    True
    """
    return (text if text.isascii() else normalize("NFKC", text)).lower()
