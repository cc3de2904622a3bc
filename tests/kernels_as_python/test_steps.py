"""Numbers of steps below a value: those of a comparison with every step, however the steps are spread."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from truerank.core.kernel import kernel
from truerank.matrices.binning import find_borders
from truerank.matrices.steps import StepIndex, count_below, floor_float32


@kernel
def _counts(values, k, index, missing):
    """Steps of feature k below each value, found among other numbers."""
    found = np.zeros(values.size + 4, dtype=np.uint32)
    x = np.zeros(values.size + 4, dtype=values.dtype)
    x[3:-1] = values
    count_below(x, 3, 3 + values.size, index, k, missing, found)
    return found


def counted(index, k, values):
    with np.errstate(all="ignore"):  # a value's cell may be beyond all floats
        found = _counts(values, k, index.of_type(values.dtype), 77_777)
    assert not found[[0, 1, 2, -1]].any()
    return found[3:-1]


any_number = st.one_of(
    st.floats(allow_nan=False, allow_infinity=True),
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308, 1e-40, 1.0, 1.0 + 2.0**-52]),
    st.integers(-9, 9).map(float),
)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(st.lists(hnp.arrays(np.float64, st.integers(0, 40), elements=any_number), min_size=1, max_size=3), st.data())
def test_counts_are_those_of_all_comparisons(dtype, parts, data):
    all_steps = [np.unique(own) for own in parts]
    index = StepIndex.of(all_steps, data.draw(st.sampled_from([0.5, 4.0])))
    drawn = data.draw(hnp.arrays(np.float64, st.integers(1, 30), elements=any_number))
    with np.errstate(over="ignore"):
        near = (
            floor_float32(np.concatenate(all_steps)).astype(dtype) if dtype == np.float32 else np.concatenate(all_steps)
        )
        around = [near, np.nextafter(near, dtype(np.inf)), np.nextafter(near, dtype(-np.inf))]
        values = np.concatenate([drawn.astype(dtype), *around, [dtype(np.nan)]]).astype(dtype)
    for k, own in enumerate(all_steps):
        expected = (values[:, None] > own).sum(axis=1)
        expected[-1] = 77_777
        np.testing.assert_array_equal(counted(index, k, values), expected)


@pytest.mark.parametrize("spread", ["even", "heavy tails", "one far away", "all infinite"])
def test_many_steps_of_any_spread(spread):
    rng = np.random.default_rng(0)
    steps = {
        "even": np.arange(60_000.0),
        "heavy tails": np.unique(np.exp(9 * rng.standard_normal(5000))),
        "one far away": np.append(np.arange(300.0), 1e300),
        "all infinite": np.array([-np.inf, np.inf]),
    }[spread]
    values = np.concatenate([steps, rng.choice(steps, 50) * 1.000001, rng.standard_normal(50)])
    found = counted(StepIndex.of([np.empty(0), steps], 0.5), 1, values)
    np.testing.assert_array_equal(found, np.searchsorted(steps, values))
    assert not counted(StepIndex.of([np.empty(0), steps], 4.0), 0, values).any()


@given(hnp.arrays(np.float64, st.integers(1, 300), elements=st.integers(0, 30).map(float)), st.integers(1, 31))
def test_few_values_have_a_border_each_wherever_they_stand(values, parts):
    values = np.sort(values)
    different = np.unique(values)
    borders = find_borders(values, parts)
    if len(different) <= parts:
        np.testing.assert_array_equal(borders, different[:-1])
    else:
        edges = (np.arange(parts + 1) * len(values)) // parts
        ends = [rank for a, b in zip(edges, edges[1:]) if a < b for rank in (a, b - 1)]
        np.testing.assert_array_equal(borders, [v for v in np.unique(values[ends]) if v < values[-1]])
