"""Score binning and the matrix of its codes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from support.refusals import refused
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.schema import check_model
from truerank.data.ranking_data import RankingData
from truerank.features.score_binning import ScoreBinning
from truerank.matrices.binned import BinnedMatrix
from truerank.models.model_file import load_model, save_model


@parametrize_with_checks([ScoreBinning(), ScoreBinning(3, strategy="quantile")])
def test_scikit_learn_conformance(estimator, check):
    check(estimator)


@pytest.mark.parametrize("strategy", ["geometric", "quantile", "uniform"])
def test_binary_features_are_strict_comparisons(strategy):
    rng = np.random.default_rng(1)
    X = np.round(rng.random((200, 3)), 2)
    X[rng.random(X.shape) < 0.2] = np.nan
    binning = ScoreBinning(9, strategy=strategy, output="binned").fit(X)
    matrix = binning.transform(X)
    dense = matrix.to_csr().toarray()
    column = 0
    for j, edges in enumerate(binning.edges_):
        assert np.array_equal(dense[:, column], ~np.isnan(X[:, j]))
        for t, edge in enumerate(edges, 1):
            assert np.array_equal(dense[:, column + t], X[:, j] > edge)
        column += len(edges) + 1
    assert dense.shape == (200, matrix.n_binary)
    sparse = ScoreBinning(9, strategy=strategy).fit_transform(X)
    assert np.array_equal(sparse.toarray(), dense)
    assert len(binning.get_feature_names_out()) == matrix.n_binary
    assert matrix.nbytes == 600


def test_thresholds():
    uniform = ScoreBinning(50, strategy="uniform").fit([[3.0]]).edges_[0]
    assert len(uniform) == 50
    assert uniform[0] == pytest.approx(1 / 51)
    assert uniform[-1] == pytest.approx(50 / 51)
    X = np.arange(10_000.0)[:, None]
    geometric = ScoreBinning(50).fit(X).edges_[0]
    shares = [(edge < X).mean() for edge in geometric]
    assert shares[-1] == pytest.approx(0.001, abs=2e-4)
    assert shares[0] == pytest.approx(0.95, abs=2e-4)
    ratios = np.array(shares[:-5]) / np.array(shares[1:-4])
    np.testing.assert_allclose(ratios, 950 ** (1 / 49), rtol=0.05)
    assert ScoreBinning(5, strategy="quantile").fit([[1.0], [1.0], [2.0]]).edges_[0].tolist() == [1.0]
    assert ScoreBinning().fit([[float("nan")]]).edges_[0].tolist() == []


def test_parameters_and_codes_out_of_range():
    for settings in ({"n_thresholds": 255}, {"n_thresholds": 0}, {"strategy": "even"}, {"top": 0.0}, {"high": -1.0}):
        with pytest.raises(InvalidInputError):
            ScoreBinning(**settings).fit([[1.0]])
    with refused(InvalidInputError, code="codes"):
        BinnedMatrix(np.array([[3]], dtype=np.uint8), [[0.5]])
    for edges in ([0.5, 0.5], [1.0, 0.0], [np.inf], [[1.0]]):
        with refused(InvalidInputError, argument="edges"):
            BinnedMatrix(np.zeros((1, 1), dtype=np.uint8), [edges])
    for codes in (np.zeros((1, 1)), np.zeros(3, dtype=np.uint8)):
        with refused(InvalidInputError, argument="codes"):
            BinnedMatrix(codes, [[0.5]])


def test_rows_columns_and_ranking_data():
    X = np.array([[0.1, 5.0], [0.9, np.nan], [0.5, 7.0]])
    matrix = BinnedMatrix.from_values(X, [[0.3, 0.6], [6.0]])
    assert matrix.codes.tolist() == [[1, 1], [3, 0], [2, 2]]
    assert len(matrix) == 3
    assert matrix.shape == (3, 2)
    assert matrix[1:].codes.tolist() == [[3, 0], [2, 2]]
    assert matrix[np.array([2, 0])].codes.tolist() == [[2, 2], [1, 1]]
    with refused(InvalidInputError, code="index"):
        matrix[0]
    data = RankingData(matrix, [1, 0, 1], qid=["a", "b", "a"])
    assert data.X.codes.tolist() == [[1, 1], [2, 2], [3, 0]]
    joined = RankingData.concatenate([data.take_queries([1]), data.take_queries([0])])
    assert joined.X.codes.tolist() == [[3, 0], [1, 1], [2, 2]]
    with refused(InvalidInputError, code="different-edges"):
        BinnedMatrix.concatenate([matrix, BinnedMatrix.from_values(X, [[0.3], [6.0]])])
    assert repr(matrix) == "BinnedMatrix(3 rows, 2 columns, 5 binary features)"


def test_model_file(tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 2))
    binning = ScoreBinning(5, output="binned").fit(X)
    save_model(binning, tmp_path / "bins.json")
    loaded = load_model(tmp_path / "bins.json")
    assert np.array_equal(loaded.transform(X).codes, binning.transform(X).codes)
    loaded.edges_ = loaded.edges_[:1]
    with refused(ModelFileError, argument="edges_", code="shape"):
        check_model(loaded)
