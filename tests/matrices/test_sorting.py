"""The compiled sort against NumPy's stable sort."""

from __future__ import annotations

import numpy as np

from truerank.matrices.sorting import best_first, sort_descending


def test_equals_a_stable_sort_for_every_size_and_from_any_order():
    rng = np.random.default_rng(0)
    for n in range(160):
        for levels in (2, 7, 10**6):
            keys = rng.integers(0, levels, n).astype(np.float64)
            expected = np.argsort(-keys, kind="stable")
            order = np.full(n + 3, -1)
            best_first(keys, order)
            np.testing.assert_array_equal(order[:n], expected)
            assert (order[n:] == -1).all()
            given = rng.permutation(n)
            sort_descending(keys, given, n, np.empty(n, dtype=np.int64))
            np.testing.assert_array_equal(given, expected)
