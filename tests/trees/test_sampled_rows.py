import numpy as np
import pytest

from truerank.core.threads import Workers
from truerank.matrices.binning import CodedMatrix
from truerank.trees.histogram import ROWS, PackedGradients, PackingScales, SampledRows


@pytest.mark.parametrize(
    ("n", "share"), [(2_000, 1.0), (2 * ROWS + 9_001, 1.0), (2 * ROWS + 9_001, 0.7), (2 * ROWS + 9_001, 0.1)]
)
def test_histograms_of_smaller_children(n, share):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (1, n, 8)).astype(np.uint8)
    matrix = CodedMatrix(codes, [np.arange(254.0)] * 8, np.full(8, 255, dtype=np.int32), np.ones(8, dtype=bool))
    rows = np.flatnonzero(rng.random(n) < share).astype(np.int32)
    words = rng.integers(-(2**40), 2**40, len(rows))
    leaf = np.zeros(len(rows), dtype=np.int64)
    with Workers(2) as workers:
        sampled = SampledRows(matrix, PackedGradients(rows, words, PackingScales(20, 1.0, 1.0)), workers)
        for level in range(5):
            count = sampled.ask(level, level, 60 + 40 * level, bool(level % 2))
            column = codes[0, rows, level].astype(int)
            right = (column > 60 + 40 * level) & ((column != 255) | bool(level % 2))
            leaf |= right.astype(np.int64) << level
            np.testing.assert_array_equal(count, np.bincount(leaf, minlength=2 << level))
            np.testing.assert_array_equal(sampled.leaf, leaf)
            small = count[1 << level :] <= count[: 1 << level]
            sampled.gather(level + 1, small)
            assert all(values.flags.c_contiguous for values in sampled._level)  # one layout, compiled once
            parent = leaf & ((1 << level) - 1)
            here = right == small[parent]
            expected = np.zeros((1 << level, 8, 256), dtype=np.int64)
            for j in range(8):
                np.add.at(expected, (parent[here], j, codes[0, rows[here], j]), words[here])
            found = np.zeros((1, 1 << level, 8 * 256), dtype=np.int64)
            sampled.fill(np.array([0]), found, np.array([0]))
            np.testing.assert_array_equal(found[0], expected.reshape(1 << level, -1))
