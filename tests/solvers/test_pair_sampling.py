"""What is drawn, and how often."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reference.pairs import pair_probabilities
from support.made_up_rows import judged
from truerank.solvers.pair_sampling import SAMPLINGS, Blocks, make_sampler


@pytest.mark.parametrize("weight", [[1.0], [1, 2, 3, 4, 0, 10], [1e-9, 1, 1e9], [0.0, 5.0, 0.0]])
def test_blocks_are_drawn_by_their_weight(weight):
    weight = np.array(weight, dtype=float)
    ranges = np.column_stack([np.arange(len(weight))] * 4)
    blocks = Blocks(ranges, weight)
    u = (np.arange(100_000) + 0.5) / 100_000
    drawn = np.bincount(blocks.draw(u)[:, 0], minlength=len(weight))
    np.testing.assert_allclose(drawn / 100_000, weight / weight.sum(), atol=2e-5)
    ends = blocks.draw(np.array([0.0, np.nextafter(1.0, 0.0)]))[:, 0]
    assert ends.tolist() == [np.flatnonzero(weight)[0], np.flatnonzero(weight)[-1]]


def test_draws_at_once_are_those_of_single_calls():
    _, y, offsets, _ = judged(3)
    for sampling in SAMPLINGS:
        sampler = make_sampler(sampling, y, offsets, None, 0.3)
        whole, pieces = np.random.default_rng(5), np.random.default_rng(5)
        a, b = sampler.draw(whole, 50)
        parts = [sampler.draw(pieces, n) for n in (20, 1, 29)]
        assert np.array_equal(np.concatenate([part[0] for part in parts]), a)
        assert np.array_equal(np.concatenate([part[1] for part in parts]), b)
        other = np.random.default_rng(5)
        other.bit_generator.advance(20 * sampler.n_numbers)
        assert np.array_equal(sampler.draw(other, 30)[0], a[20:])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sampling", ["rank", "row-norm-rank", "query-norm-rank"])
def test_pairs_are_drawn_with_their_exact_probabilities(sampling, weighted):
    _, y, offsets, _ = judged(3)
    weight = np.array([1.0, 0.5, 3.0, 0.0, 2.0]) if weighted else None
    probabilities = pair_probabilities(sampling, y, offsets, weight)
    a, b = make_sampler(sampling, y, offsets, weight).draw(np.random.default_rng(1), 200_000)
    codes, counts = np.unique(a * 1000 + b, return_counts=True)
    drawn = {(int(code) // 1000, int(code) % 1000): int(count) for code, count in zip(codes, counts)}
    assert set(drawn) == set(probabilities)  # every pair, and nothing else
    observed = np.array([drawn[pair] for pair in probabilities])
    assert stats.chisquare(observed, 200_000 * np.array(list(probabilities.values()))).pvalue > 1e-3


def test_index_of_many_grades_lists_blocks_of_the_same_total():
    rng = np.random.default_rng(5)
    y, offsets = rng.permutation(500).astype(float), np.array([0, 200, 500])
    sampler = make_sampler("rank", y, offsets, None)
    assert sampler.pairs.weight == 200 * 199 / 2 + 300 * 299 / 2
    a, b = sampler.draw(np.random.default_rng(2), 5000)
    assert np.all(y[a] > y[b])
    assert np.array_equal(a < 200, b < 200)


def test_single_rows_and_pairs_of_combined_ranking():
    _, y, offsets, _ = judged(4)
    a, b = make_sampler("combined-ranking", y, offsets, None, 0.25).draw(np.random.default_rng(4), 40_000)
    assert stats.binomtest(int(np.sum(b >= 0)), 40_000, 0.25).pvalue > 1e-3
    assert np.all(y[a[b >= 0]] > y[b[b >= 0]])
    assert stats.chisquare(np.bincount(a[b < 0], minlength=len(y))).pvalue > 1e-3
    weight = np.array([1.0, 0.0, 5.0, 1.0, 1.0])
    a, _ = make_sampler("combined-ranking", y, offsets, weight, 0.0).draw(np.random.default_rng(5), 30_000)
    query = np.searchsorted(offsets, a, side="right") - 1
    share = weight * np.diff(offsets)
    assert stats.chisquare(np.bincount(query)[share > 0], 30_000 * share[share > 0] / share.sum()).pvalue > 1e-3
