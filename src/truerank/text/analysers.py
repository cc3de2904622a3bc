"""Split texts into words, and map words to terms by analysers, such as Porter stems without stop words."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any
from unicodedata import normalize

from truerank.core.errors import InvalidInputError

# A word is a run of letters and digits.
WORD = r"[^\W_]+"
# For topics: words of at least three characters that start with a letter.
TOPIC_WORD = r"[^\W\d_][^\W_]{2,}"
# The three indexes of Yue et al.: plain words; Porter's stems; Porter's stems without stop words.
ANALYSERS = ("plain", "porter", "porter-stop")
STEMMED_AND_STOPPED = "porter-stop"


def folded(text: str) -> str:
    """Return the text in lower case and in Unicode's NFKC form (composed accents, no full-width letters).

    >>> folded("Cafe\\u0301 \\uff34\\uff36") == "caf\\xe9 tv"
    True
    """
    return (text if text.isascii() else normalize("NFKC", text)).lower()


def term_of(analyser: str) -> Callable[[Iterable[str]], list[str]]:
    """Return a function from words (in lower case) to terms, with "" for words that the analyser drops.

    Stems are PyStemmer's (Snowball's implementation of Porter 1980). The stop words are scikit-learn's 318 English stop
    words, and are removed before stemming.

    >>> term_of("porter-stop")(["the", "relational", "flows"])
    ['', 'relat', 'flow']
    """
    if analyser == "plain":
        return list
    if analyser not in ANALYSERS:
        raise InvalidInputError(f"unknown analyser {analyser!r}. Choose among: {', '.join(ANALYSERS)}")
    stem = _stemmer().stemWords
    if analyser == "porter":
        return lambda words: list(stem(list(words)))
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return lambda words: list(stem(["" if word in ENGLISH_STOP_WORDS else word for word in words]))


_held = threading.local()


def _stemmer() -> Any:
    """Return this thread's stemmer. Stemmers are not thread-safe, and creating one is slower than stemming a query."""
    if not hasattr(_held, "stemmer"):
        import Stemmer

        _held.stemmer = Stemmer.Stemmer("porter")
    return _held.stemmer
