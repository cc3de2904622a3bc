"""The compiled sort against NumPy's stable sort."""

from __future__ import annotations

import numpy as np

from truerank.matrices.sorting import best_first, room_to_sort, sort_descending


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
            sort_descending(keys, given, n, room_to_sort(n))
            np.testing.assert_array_equal(given, expected)


def test_keys_may_be_whole_numbers_of_64_bits_and_no_numbers_stay_items():
    keys = np.array([2**53 + 1, 2**63, 2**53, 2**53 + 1, 0], dtype=np.uint64)
    order = np.array([4, 3, 2, 1, 0])
    sort_descending(keys, order, 5, room_to_sort(5))
    assert order.tolist() == [1, 0, 3, 2, 4]
    for n in (3, 64, 200):
        order = np.arange(n)
        values = np.where(np.arange(n) % 3 == 1, np.nan, np.arange(n))
        sort_descending(values, order, n, room_to_sort(n))
        assert sorted(order.tolist()) == list(range(n))
