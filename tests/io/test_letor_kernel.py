"""The compiled parser against the plain one, which is its reference."""

from __future__ import annotations

import io
import random
import struct

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.fuzz_letor import fuzz
from support.letor_texts import compiled_parser, damaged_text, outcome, python_parser, random_text
from support.refusals import refused
from truerank import read_letor
from truerank.core.errors import DataFileError
from truerank.io.letor import read as letor


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("make", [random_text, damaged_text])
def test_both_parsers_say_the_same_of_random_texts(make, seed):
    rng = random.Random(seed)
    legal = 0
    for _ in range(400):
        text, missing_nan = make(rng), rng.random() < 0.5
        expected = outcome(python_parser, text, missing_nan)
        assert outcome(compiled_parser, text, missing_nan) == expected, text
        legal += expected[0] != "refused"
    assert legal > 40


def values_of(texts: list[str]) -> list[float]:
    line = "0 qid:1 " + " ".join(f"{k}:{text}" for k, text in enumerate(texts, 1))
    return compiled_parser(line.encode(), False).values.tolist()


def same_bits(a: float, b: float) -> bool:
    return struct.pack("d", a) == struct.pack("d", b)


@settings(max_examples=400)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
@example([5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -0.0])
def test_shortest_decimals_come_back_with_the_same_bits(numbers):
    assert all(map(same_bits, values_of([repr(number) for number in numbers]), numbers))


@settings(max_examples=400)
@given(
    st.lists(
        st.tuples(st.integers(0, 10**21), st.integers(0, 25), st.integers(-330, 280), st.sampled_from(["", "-", "+"])),
        min_size=1,
        max_size=20,
    )
)
def test_decimals_are_rounded_as_python_rounds_them(parts):
    texts = []
    for mantissa, point, exponent, sign in parts:
        digits = str(mantissa).zfill(point + 1)
        texts.append(f"{sign}{digits[: len(digits) - point]}.{digits[len(digits) - point :]}e{exponent}")
    numbers = [float(text) for text in texts]
    assert all(map(same_bits, values_of(texts), numbers))


@settings(max_examples=300)
@given(st.integers(2**52, 2**53 - 1), st.integers(-60, 60), st.integers(-2, 2))
def test_decimals_next_to_the_middle_of_two_numbers(mantissa, power, nudge):
    # The middle between two neighbouring float64 is m + 1/2 ulp, exactly a decimal; nudged by its last digits.
    middle = 2 * mantissa + 1
    exact = middle << power if power >= 0 else middle * 5**-power
    text = f"{exact + nudge}e{min(power, 0)}"
    assert same_bits(values_of([text])[0], float(text))
    short = f"{str(exact)[:18]}e{min(power, 0) + max(0, len(str(exact)) - 18)}"
    assert same_bits(values_of([short])[0], float(short))


def test_real_files_are_read_alike(collections, monkeypatch):
    for name, missing in (
        ("letor4-mq2008/S1.txt.gz", "error"),
        ("letor4-mq2008-agg/A1.txt.gz", "nan"),
        ("letor3-ohsumed/min/S1.txt.gz", "error"),
        ("letor3-ohsumed/null/S2.txt.gz", "nan"),
        ("letor2-ohsumed/S1.txt.gz", "error"),
        ("mslr-web10k-sample/fold1.train.5k.txt.gz", "error"),
    ):
        both = []
        for after in (10**12, 0):
            monkeypatch.setattr(letor, "KERNEL_AFTER", after)
            monkeypatch.setattr(letor, "KERNEL_AFTER_LOADED", after)
            both.append(read_letor(collections / name, missing=missing))
        plain, compiled = both
        assert plain.X.tobytes() == compiled.X.tobytes()
        assert plain.y.tobytes() == compiled.y.tobytes()
        assert np.array_equal(plain.offsets, compiled.offsets)
        assert np.array_equal(plain.query_ids, compiled.query_ids)
        for a, b in ((plain.doc_ids, compiled.doc_ids), (plain.comments, compiled.comments)):
            assert (a is None) == (b is None)
            assert a is None or np.array_equal(a, b)


def test_an_error_far_down_names_its_line(monkeypatch):
    line = b"0 qid:1 1:0.25 2:1e-3 # docid = D\n"
    text = line * 100_000 + b"0 qid:1 1:0.25 2:x\n" + line * 10
    with refused(DataFileError, code="not-a-number", line=100001):
        read_letor(io.BytesIO(text))
    text = line * 100_000 + b"0 qid:1 1:12345678901234567890e500\n" + line * 10 + b"broken"
    with refused(DataFileError, code="too-large", line=100001):
        read_letor(io.BytesIO(text))


def test_very_long_comments_and_lines():
    text = b"0 qid:1 1:1 # " + b"word " * 500_000 + b"\n" + b"0 qid:1 1:1\n" * 50
    assert outcome(compiled_parser, text, False) == outcome(python_parser, text, False)
    text = b"0 qid:1 " + b" ".join(b"%d:%d" % (k, k % 10) for k in range(1, 300_000)) + b"\n"
    data = read_letor(io.BytesIO(text * 3), sparse=True)
    assert data.X.shape == (3, 299_999)
    assert data.X.sum() == 3 * sum(k % 10 for k in range(1, 300_000))


@pytest.mark.parametrize("seed", range(2))
def test_the_first_inputs_of_the_fuzz_run(seed):
    legal, through = fuzz(seed, 300)
    assert legal > 50
    assert through > 5
