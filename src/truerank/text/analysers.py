"""Analysers: functions from words to terms, with Porter's stems and without stop words."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from truerank.core.errors import InvalidInputError

ANALYSERS = ("plain", "porter", "porter-stop")
"""The three indexes of Yue et al.: plain words; Porter's stems; Porter's stems without stop words."""

STEMMED_AND_STOPPED = "porter-stop"


def term_of(analyser: str) -> Callable[[Iterable[str]], list[str]]:
    """A function from words (in lower case) to terms, with "" for words that the analyser drops.

    Stems are those of PyStemmer (Snowball's implementation of Porter 1980). Stop words are the 318 English ones of
    scikit-learn, and are removed before stemming.

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
    """The stemmer of this thread. Stemmers are not thread-safe, and creating one is slower than stemming a query."""
    if not hasattr(_held, "stemmer"):
        import Stemmer

        _held.stemmer = Stemmer.Stemmer("porter")
    return _held.stemmer
