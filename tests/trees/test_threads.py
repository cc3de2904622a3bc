"""Same seed, same bits, any number of threads; blocks are made small so that there are many of them."""

import numpy as np
import pytest

from support.refusals import refused
from truerank import ObliviousBoosting
from truerank.core.errors import InvalidInputError
from truerank.core.threads import row_blocks
from truerank.data.samples import load_sample
from truerank.losses import protocols as objectives
from truerank.losses.protocols import FunctionObjective
from truerank.matrices import binning as borders
from truerank.trees import ensemble, grower, histogram, rows_in_parts
from truerank.trees.leaves import constant, fuzzy, polynomial


class ByRow(FunctionObjective):
    by_row = True


@pytest.fixture
def small_blocks(monkeypatch):
    for module in (borders, rows_in_parts, constant, ensemble, fuzzy, grower, histogram, polynomial):
        monkeypatch.setattr(module, "row_blocks", lambda n, block=0: row_blocks(n, 97))
    monkeypatch.setattr(
        objectives, "query_blocks", lambda offsets, block: [(i, i + 1) for i in range(len(offsets) - 1)]
    )


@pytest.mark.parametrize("leaves", ["constant", "fuzzy", "polynomial"])
@pytest.mark.parametrize("objective", ["mse", "lambdarank", "softmax", "pairwise-logistic", "yetirank"])
def test_one_two_and_four_threads(small_blocks, leaves, objective):
    data = load_sample()
    train, valid = data.take_queries(range(60)), data.take_queries(range(60, 80))
    models = [
        ObliviousBoosting(
            leaves, objective=objective, n_estimators=4, depth=3, bootstrap="row", random_state=2, n_jobs=n
        ).fit(train, eval_set=valid)
        for n in (1, 2, 4)
    ]
    for model in models[1:]:
        for name in ("tree_features_", "tree_borders_", "tree_values_", "tree_gains_", "validation_scores_"):
            np.testing.assert_array_equal(getattr(model, name), getattr(models[0], name))
        np.testing.assert_array_equal(model.predict(valid), models[0].predict(valid))
    assert np.ptp(models[0].predict(valid)) > 0


def test_a_gradient_that_is_not_finite_is_found_in_any_block(small_blocks):
    def of_rows(y, scores, offsets):
        return np.where(y > 3, np.inf, y), np.broadcast_to(1.0, y.shape)

    y = np.zeros(300)
    y[[150, 250]] = 4
    for n_jobs in (1, 2):
        with refused(InvalidInputError, code="objective-finite"):
            ObliviousBoosting("constant", objective=ByRow(of_rows), n_jobs=n_jobs).fit(
                np.arange(300.0)[:, None], y, qid=np.zeros(300)
            )
