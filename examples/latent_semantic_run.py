"""A latent-semantic run of a collection: the second run of a hybrid search, where no neural encoder is at hand.

Documents and queries become tf-idf vectors in 150 dimensions of their singular value decomposition (scikit-learn), and
documents are ranked by cosine.

    python examples/latent_semantic_run.py cran.all.1400.gz cran.qry.gz latent.run
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from truerank import read_documents, read_queries, write_run


def main(documents: str, queries: str, output: str, depth: int = 1000) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of documents without text, which no query finds
        read = [(one.id, " ".join(one.text.values())) for one in read_documents(documents)]
    topics = [(one.id, " ".join(one.text.values())) for one in read_queries(queries)]
    words = TfidfVectorizer(sublinear_tf=True, stop_words="english")
    counts = words.fit_transform([text for _, text in read])
    space = TruncatedSVD(150, random_state=0)
    vectors = normalize(space.fit_transform(counts))
    asked = normalize(space.transform(words.transform([text for _, text in topics])))
    scores = asked @ vectors.T
    best = np.argsort(-scores, axis=1)[:, :depth]
    names = np.array([name for name, _ in read])
    offsets = np.arange(len(topics) + 1) * best.shape[1]
    found = np.take_along_axis(scores, best, axis=1).ravel()
    write_run(output, [name for name, _ in topics], offsets, names[best].ravel(), found, tag="latent")


if __name__ == "__main__":
    main(*sys.argv[1:4])
