"""Thread blocks, random streams and argument checks."""

import builtins
import sys
import threading
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from support.refusals import refused
from truerank.core.checks import (
    as_vector,
    check_choice,
    check_number,
    check_parameters,
    check_plain,
    check_positive_int,
    is_dask,
)
from truerank.core.errors import DataFileError, InvalidInputError, TruerankWarning
from truerank.core.files import read_text
from truerank.core.random_streams import seed_of, stream
from truerank.core.threads import Workers, one_blas_thread, query_blocks, resolve_n_jobs, row_blocks, run_blocks
from truerank.models.registry import RANKERS, ranker_class
from truerank.rankers.adarank import AdaRank
from truerank.rankers.pipeline import RankerPipeline


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 20))
def test_blocks_cover_whole_queries_in_order(sizes, block):
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    blocks = query_blocks(offsets, block)
    assert [i for a, b in blocks for i in range(a, b)] == list(range(len(sizes)))
    for a, b in blocks:
        assert b == a + 1 or offsets[b] - offsets[a] <= block


def test_results_come_back_in_block_order_with_any_number_of_threads():
    blocks = row_blocks(1000, 7)
    one = run_blocks(lambda a, b: (a, b), blocks, 1)
    assert one == run_blocks(lambda a, b: (a, b), blocks, 4) == blocks


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_the_first_block_that_fails_says_why_and_no_other_begins(n_jobs):
    begun = []

    def work(i):
        begun.append(i)
        if i >= 3:
            raise ValueError(f"block {i}")

    with pytest.raises(ValueError, match="block 3"):
        run_blocks(work, [(i,) for i in range(100)], n_jobs)
    assert set(range(4)) <= set(begun)
    assert len(begun) <= 3 + n_jobs


def test_nobody_waits_for_a_thread_that_begins_nothing():
    found = []

    def outer(workers):
        # While both threads are in a block, neither can help with the blocks inside it.
        found.append(workers.run(lambda i: workers.run(lambda j: 10 * i + j, [(0,), (1,), (2,)]), [(1,), (2,)]))

    with Workers(2) as workers:
        thread = threading.Thread(target=outer, args=(workers,), daemon=True)
        thread.start()
        thread.join(20)
        assert found == [[[10, 11, 12], [20, 21, 22]]]


@pytest.mark.parametrize("n_jobs", [0, 1.5, "2", True])
def test_senseless_numbers_of_threads_are_refused(n_jobs):
    with refused(InvalidInputError, argument="n_jobs"):
        resolve_n_jobs(n_jobs)


def test_streams_are_reproducible_and_independent_of_each_other():
    a = stream(5, "bootstrap", 3).random(4)
    assert np.array_equal(a, stream(5, "bootstrap", 3).random(4))
    assert not np.array_equal(a, stream(5, "bootstrap", 4).random(4))
    assert not np.array_equal(a, stream(6, "bootstrap", 3).random(4))


def test_seeds():
    assert seed_of(None) == 0
    assert seed_of(np.int64(7)) == 7
    assert seed_of(np.random.default_rng(1)) == seed_of(np.random.default_rng(1))
    for bad in (-1, "x", 1.5, True):
        with refused(InvalidInputError, argument="random_state"):
            seed_of(bad)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_positive_int(0, "n_estimators"), {"argument": "n_estimators", "value": 0}),
        (lambda: check_positive_int(2.0, "depth"), {"argument": "depth", "value": 2.0}),
        (lambda: check_positive_int(True, "depth"), {"argument": "depth", "value": True}),
        (lambda: check_number("x", "C"), {"argument": "C", "value": "x"}),
        (lambda: check_number(0, "C", "(0, inf)"), {"argument": "C", "value": 0}),
        (lambda: check_number(float("nan"), "C"), {"argument": "C"}),
        (lambda: check_choice("a", "update", ["b", "c"]), {"argument": "update", "value": "a"}),
    ],
)
def test_checks_say_what_came_and_what_was_expected(call, message):
    with refused(InvalidInputError, **message):
        call()


NUMBERS = st.one_of(
    st.integers(-3, 14),
    st.floats(),
    st.booleans(),
    st.sampled_from(["row", "all", "x", None, np.int64(3), np.float32(0.5)]),
)


@given(NUMBERS, st.sampled_from("[("), st.integers(0, 3), st.sampled_from(["2", "12", "inf"]), st.sampled_from("])"))
def test_parameters_fit_the_texts_of_their_class(value, left, low, high, right):
    class Owner:
        allowed: ClassVar = {
            "whole": f"int in {left}{low}, {high}{right} | 'all'?",
            "number": f"float in {left}{low}, {high}{right}",
            "switch unit": "bool | 'row'",
        }

        def __init__(self, name):
            self.whole, self.number, self.switch, self.unit = "all", low + 0.5, True, "row"
            setattr(self, name, value)

    assume(low + 0.5 < float(high))
    is_bool = isinstance(value, bool)
    real = isinstance(value, int | float | np.integer | np.floating) and not is_bool
    inside = real and (value > low if left == "(" else value >= low) and np.isfinite(value)
    inside = inside and (value < float(high) if right == ")" else value <= float(high))
    right_ones = {
        "whole": value is None or value == "all" or (inside and isinstance(value, int | np.integer)),
        "number": inside,
        "unit": is_bool or (isinstance(value, str) and value == "row"),
    }
    for name, fits in right_ones.items():
        if fits:
            check_parameters(Owner(name))
        else:
            with refused(InvalidInputError, argument=name):
                check_parameters(Owner(name))


@pytest.mark.parametrize("name", RANKERS.own)
def test_defaults_of_rankers_are_allowed(name):
    ranker = ranker_class(name)()
    check_parameters(ranker)
    for names in getattr(ranker, "allowed", {}):
        for parameter in names.split():
            broken = type(ranker)(**{parameter: object()})
            with refused(InvalidInputError, argument=parameter):
                check_parameters(broken)


@given(st.lists(st.floats(), max_size=6))
def test_vectors_name_the_first_row_outside(values):
    wrong = [row for row, value in enumerate(values) if not 0 <= value < 1]
    if wrong:
        with pytest.raises(InvalidInputError, match=rf"got \S+ at index {wrong[0]}$"):
            as_vector(values, "p", len(values), "[0, 1)")
    else:
        assert as_vector(values, "p", len(values), "[0, 1)").tolist() == values
    with refused(InvalidInputError, argument="p", code="shape"):
        as_vector(values, "p", len(values) + 1)


def test_file_errors_name_the_place():
    assert str(DataFileError("expected x", "train.txt", 42, 3)) == "train.txt, line 42, column 3: expected x"


def test_blas_runs_on_one_thread_each_time_and_is_as_before_afterwards():
    from threadpoolctl import threadpool_info, threadpool_limits

    def threads():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    for outside in (2, 3):
        with threadpool_limits(outside, "blas"):
            before = threads()
            with one_blas_thread():
                assert set(threads()) <= {1}
            assert threads() == before


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_byte_that_is_not_utf_8_is_named_with_its_line(tmp_path, mark):
    path = tmp_path / "names"
    path.write_bytes(mark + "\u00e9t\u00e9\n".encode())
    assert read_text(path) == "\u00e9t\u00e9\n"
    path.write_bytes(mark + b"ab\n\xff")
    with refused(DataFileError, code="not-utf-8", line=2):
        read_text(path)


@pytest.mark.parametrize(("graph", "expected"), [(None, False), ({}, True)])
def test_an_array_that_could_be_of_dask_is_so_with_a_graph(graph, expected):
    class Labelled:  # as xarray's arrays, which may hold one of Dask
        def __dask_graph__(self):
            return graph

    assert is_dask(Labelled()) is expected
    assert not is_dask(np.zeros(3))
    if expected:
        with refused(InvalidInputError, argument="scores"):
            check_plain(Labelled(), "scores")


def test_a_warning_points_at_the_users_own_line_through_however_many_of_ours():
    with pytest.warns(UserWarning, match="AdaRank") as seen:
        RankerPipeline(["min-max-in-query"], AdaRank()).fit([[1.0], [2.0]], [0, 0], qid=[1, 1])
    assert {one.filename for one in seen} == {__file__}


@pytest.mark.skipif(hasattr(builtins.__import__, "__code__"), reason="the double of Windows imports by a function")
def test_a_warning_while_a_module_is_imported_names_the_line_that_imports_it(tmp_path, monkeypatch):
    import truerank

    (tmp_path / "_outer_.py").write_text("import truerank._inner_\n")
    (tmp_path / "_inner_.py").write_text("from truerank.core.errors import warn\n\nwarn('taught nothing')\n")
    monkeypatch.setattr(truerank, "__path__", [*truerank.__path__, str(tmp_path)])
    with pytest.warns(TruerankWarning, match="taught nothing") as caught:
        import truerank._outer_
    assert caught[0].filename == __file__
    for name in ("_outer_", "_inner_"):
        monkeypatch.delitem(sys.modules, f"truerank.{name}")
        monkeypatch.delattr(truerank, name, raising=False)
