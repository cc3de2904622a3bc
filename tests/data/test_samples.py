"""The shipped sample."""

from __future__ import annotations

import numpy as np

from support.refusals import refused
from truerank import read_qrels
from truerank.core.errors import InvalidInputError
from truerank.data.samples import load_sample, sample_path


def test_the_sample_is_what_its_page_says():
    data = load_sample()
    assert (data.n_rows, data.n_queries, data.n_features) == (15_083, 225, 20)
    assert np.bincount(data.y.astype(int)).tolist() == [14_076, 197, 457, 253, 100]
    assert len(data.feature_names) == 20
    assert np.isfinite(data.X).all()
    assert data.order is None
    qrels = read_qrels(sample_path("cranfield-qrels"))
    assert (qrels.n_queries, qrels.n_rows) == (225, 1837)
    judged = qrels.to_dict()
    assert all(
        judged[str(q)].get(d, 0) == grade
        for q, d, grade in zip(data.qid.tolist(), data.doc_ids.tolist(), data.y.tolist())
    )
    assert sample_path().stat().st_size < 1_000_000
    assert (sample_path().parent / "README.md").is_file()


def test_its_retrieval_functions_find_relevant_documents():
    data = load_sample()
    for name in ("bm25", "tfidf_cosine", "lm_dirichlet", "dph", "bm25_feedback"):
        column = data.X[:, data.feature_names.index(name)]
        shares = []
        for start, stop in zip(data.offsets, data.offsets[1:]):
            scores, relevant = column[start:stop], data.y[start:stop] > 0
            if relevant.any() and not relevant.all():
                shares.append(np.mean(scores[relevant][:, None] > scores[~relevant][None]))
        assert np.mean(shares) > 0.65, (name, np.mean(shares))


def test_unknown_samples_are_refused():
    with refused(InvalidInputError, argument="name"):
        load_sample("other")
