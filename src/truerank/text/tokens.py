"""Words of a text and their counts by document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

# A word is a run of letters and digits; everything else separates.
WORD = r"[^\W_]+"
# The same without numbers and without words of one or two letters: for classification of topics.
TOPIC_WORD = r"[^\W\d_][^\W_]{2,}"


def word_counts(
    train: Iterable[str], *others: Iterable[str], min_documents: int = 3, word: str = WORD
) -> tuple[list[Any], np.ndarray]:
    """Counts of words for training documents and, over the same vocabulary, for others.

    Parameters
    ----------
    train : iterable of str
        Texts that settle the vocabulary.
    *others : iterables of str
        Texts that do not (test documents); their unknown words are dropped.
    min_documents : int, default 3
        A word must stand in so many training documents.
    word : str
        Regular expression of a word, matched in the text in lower case.

    Returns
    -------
    matrices : list of CSR matrices (documents, words), int64
        One for `train` and one for each of `others`.
    vocabulary : array (words,) of str
        In alphabetical order.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(token_pattern=word, min_df=min_documents)
    matrices = [vectorizer.fit_transform(train)]
    matrices += [vectorizer.transform(texts) for texts in others]
    return matrices, vectorizer.get_feature_names_out()
