"""The shipped sample."""

from __future__ import annotations

import numpy as np
import pytest

from truerank.core.errors import InvalidInputError
from truerank.data.samples import load_sample, sample_path


def test_the_sample_is_what_its_page_says():
    data = load_sample()
    assert (data.n_rows, data.n_queries, data.n_features) == (8554, 225, 20)
    assert np.bincount(data.y.astype(int)).tolist() == [6942, 363, 734, 387, 128]
    assert len(data.feature_names) == 20
    assert np.isfinite(data.X).all()
    assert data.order is None
    assert sample_path().stat().st_size < 1_000_000
    assert (sample_path().parent / "README.md").is_file()


def test_its_retrieval_functions_find_relevant_documents():
    data = load_sample()
    relevant = data.y > 0
    for name in ("bm25", "tfidf_cosine", "lm_dirichlet", "dph", "bm25_feedback"):
        column = data.X[:, data.feature_names.index(name)]
        better = np.mean(column[relevant][:, None] > column[~relevant][None, ::7])
        assert better > 0.6, name


def test_unknown_samples_are_refused():
    with pytest.raises(InvalidInputError, match="'cranfield'"):
        load_sample("other")
