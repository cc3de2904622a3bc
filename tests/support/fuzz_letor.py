"""A long fuzz run of the LETOR reader; the test suite runs the first seeds of it.

    PYTHONPATH=src:tests python tests/support/fuzz_letor.py --seeds 0 100 --inputs 10000

Of each seed, `inputs` texts are made, sound and damaged ones. The compiled parser must say of each exactly what the
plain one says: the same bits, or the same refusal with the same line and column. Nothing but a refusal may be raised.
One text in sixteen also goes through `read_letor` in blocks of a few bytes, with either parser, and must give what it
gives whole.
"""

from __future__ import annotations

import argparse
import io
import random
import time
import warnings
from unittest import mock

import numpy as np

from support.letor_texts import compiled_parser, damaged_text, outcome, python_parser
from truerank import read_letor
from truerank.core.errors import DataFileError
from truerank.io import streams
from truerank.io.letor import read as letor


def fuzz(seed: int, inputs: int) -> tuple[int, int]:
    """Run one seed; (texts that were legal, texts that went through the reader). AssertionError on a difference."""
    rng = random.Random(seed)
    legal = through = 0
    for _ in range(inputs):
        text, missing_nan = damaged_text(rng), rng.random() < 0.5
        expected = outcome(python_parser, text, missing_nan)
        found = outcome(compiled_parser, text, missing_nan)
        assert found == expected, (seed, text, missing_nan, found, expected)
        legal += expected[0] != "refused"
        if rng.random() < 1 / 16:
            through += 1
            missing = "nan" if missing_nan else "error"
            whole = _read(text, missing, streams.CHUNK, 10**12)
            for after in (0, 10**12):
                size = rng.randint(1, 80)
                parts = _read(text, missing, size, after)
                assert parts == whole, (seed, text, missing, size, after, parts, whole)
    return legal, through


def _read(text: bytes, missing: str, chunk: int, after: int) -> tuple:
    """What `read_letor` says of a text; of refusals only that there is one, since blocks are checked in turn."""
    with (
        mock.patch.object(streams, "CHUNK", chunk),
        mock.patch.object(letor, "KERNEL_AFTER", after),
        mock.patch.object(letor, "KERNEL_AFTER_LOADED", after),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            data = read_letor(io.BytesIO(text), missing=missing, sparse=True)
        except DataFileError:
            return ("refused",)
    X = data.X
    nan = np.isnan(X.data)
    return (
        np.where(nan, 0, X.data).tobytes(), nan.tolist(), X.indices.tolist(), X.indptr.tolist(), X.shape,
        data.y.tobytes(), data.offsets.tolist(), data.query_ids.tolist(), data.feature_names,
        None if data.order is None else data.order.tolist(),
        *(None if column is None else column.tolist() for column in (data.doc_ids, data.comments)),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 100), metavar=("FROM", "TO"))
    parser.add_argument("--inputs", type=int, default=10_000, help="texts of each seed")
    args = parser.parse_args()
    started, total = time.process_time(), [0, 0]
    for seed in range(*args.seeds):
        legal, through = fuzz(seed, args.inputs)
        total = [total[0] + legal, total[1] + through]
        print(f"seed {seed}: {args.inputs} texts, {legal} legal; {time.process_time() - started:.0f} CPU s", flush=True)
    count = (args.seeds[1] - args.seeds[0]) * args.inputs
    print(f"{count} texts, {total[0]} legal, {total[1]} also through read_letor in small blocks: no difference")


if __name__ == "__main__":
    main()
