"""Analysers: how a text becomes terms. Words in lower case; stems by Porter; stop words removed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from truerank.core.errors import InvalidInputError

ANALYSERS = ("plain", "porter", "porter-stop")
"""Yue et al.'s three indexes of a collection: words as they are; Porter's stems; stems of what is no stop word."""

STEMMED_AND_STOPPED = "porter-stop"


def term_of(analyser: str) -> Callable[[Iterable[str]], list[str]]:
    """A function from words (in lower case) to terms, "" for words that the analyser drops.

    Stems are PyStemmer's (Snowball's implementation of Porter 1980), stop words scikit-learn's 318 English ones,
    matched before stemming.

    Examples
    --------
    >>> term_of("porter-stop")(["the", "relational", "flows"])
    ['', 'relat', 'flow']
    """
    if analyser == "plain":
        return list
    if analyser not in ANALYSERS:
        raise InvalidInputError(f"unknown analyser {analyser!r}; known are: {', '.join(ANALYSERS)}")
    stem = _stemmer().stemWords
    if analyser == "porter":
        return lambda words: list(stem(list(words)))
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return lambda words: list(stem(["" if word in ENGLISH_STOP_WORDS else word for word in words]))


_held = threading.local()


def _stemmer() -> Any:
    """This thread's stemmer: one must not be used by two threads, and making it takes longer than a query's words."""
    if not hasattr(_held, "stemmer"):
        import Stemmer

        _held.stemmer = Stemmer.Stemmer("porter")
    return _held.stemmer
