"""Fuzz of every reader, with `--guided` by coverage (the extra `fuzz`); the test suite runs the kept inputs.

    PYTHONPATH=src:tests python tests/support/fuzz_readers.py --reader letor --inputs 1000000

Readers: letor, run, qrels, scores, sizes, csv, model, measure. Each input is either read or refused with an error of
truerank's that is one short line; anything else is a failure, printed with the input. LETOR text goes through both
parsers, which must agree.
"""

from __future__ import annotations

import argparse
import io
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from support.letor_texts import compiled_parser, damaged_text, outcome, python_parser
from truerank.core.errors import TruerankError
from truerank.io.group_sizes import read_group_sizes
from truerank.io.scores import read_scores
from truerank.io.trec import read_qrels, read_run
from truerank.measures import parse_measure
from truerank.models.model_file import load_model

_FOLDER = Path(tempfile.gettempdir())


def _letor(text: bytes) -> None:
    assert outcome(python_parser, text, True) == outcome(compiled_parser, text, True)


def _csv(text: bytes) -> None:
    from truerank.io.tables import read_table

    path = _FOLDER / "truerank-fuzz.csv"
    path.write_bytes(text)
    read_table(path)


def _model(text: bytes) -> None:
    path = _FOLDER / "truerank-fuzz.json"
    path.write_bytes(text)
    load_model(path)


READERS: dict[str, Callable[[bytes], object]] = {
    "letor": _letor,
    "run": lambda text: read_run(io.BytesIO(text)),
    "qrels": lambda text: read_qrels(io.BytesIO(text)),
    "scores": lambda text: read_scores(io.BytesIO(text)),
    "sizes": lambda text: read_group_sizes(io.BytesIO(text)),
    "csv": _csv,
    "model": _model,
    "measure": lambda text: parse_measure(text.decode("utf-8", "replace")),
}

# Inputs that a fuzz starts from, and what was once read wrongly.
SEEDS: dict[str, list[bytes]] = {
    "letor": [b"1 qid:1 1:0.5 2:1 # docid = D\n", b"0 qid:a\n\n# x\n2 qid:a 3:nan\r\n"],
    "run": [b"1 Q0 D7 1 12.5 mine\n1 Q0 D3 2 11 mine\n", b"1 Q0 D7 1 1_0 mine\n", b"1 Q0 d 1 nan t\n"],
    "qrels": [b"1 0 D7 2\n1 0 D1 -1\n", b"1 0 D7 inf\n", b"1 0 D7 " + b"9" * 400 + b"\n"],
    "scores": [b"1\n-2.5e-3\n.5\n", b"1e400\n", b"1_0\n", b"1 2\n\n", b"inf\n", b"1\x00\n", b"1\n\n2\n"],
    "sizes": [b"2\n1\n3\n", b"9" * 5000 + b"\n", b"0\n", "٣\n".encode()],
    "csv": [b"qid,y,f\n1,0,0.5\n1,1,2\n", b'qid,y,f\n"a""b",0,\n', b"qid\n1\n", b"qid,y,f,f\n1,1,1,1\n"],
    "model": [
        b'{"format":"truerank-model","version":1,"model":{"$class":"PlattCalibrator","params":{},"fitted":{}}}',
        b'{"format":"truerank-model","version":1,"model":null}',
        b'{"format":"truerank-model","version":1,"model":' + b"9" * 5000 + b"}",
        b"[" * 5000,
    ],
    "measure": [
        b"nDCG(gain='linear')@10",
        b"AP",
        b"map",
        b"P@5",
        b"AP(rel=2)",
        b"RBP(p=0.8)@10",
        b"nDCG@" + b"9" * 5000,
        b"AP(" + b"\0" * 150 + b"rel=3)",
    ],
}
MAGIC = (b"\x1f\x8b", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd")  # archives are fuzzed as text: what they hold


def check(reader: str, text: bytes) -> bool:
    """Whether an input is read; False where it is refused. AssertionError on anything else."""
    if text.startswith(MAGIC):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            READERS[reader](text)
        return True
    except TruerankError as error:
        message = str(error)
        assert 10 < len(message) < 1000, (reader, text, message)
        assert "Traceback" not in message
        return False
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(f"{reader}: {type(error).__name__}: {error} for {text!r}") from error


def mutated(reader: str, rng: random.Random) -> bytes:
    """An input near a seed: bytes changed, taken out, doubled, spliced with another seed."""
    if reader == "letor" and rng.random() < 0.5:
        return damaged_text(rng)
    text = bytearray(rng.choice(SEEDS[reader]))
    for _ in range(rng.choice((0, 1, 1, 2, 3, 6))):
        place = rng.randrange(len(text) + 1)
        action = rng.randrange(6)
        if action == 0:
            text[place:place] = rng.choice(_PIECES)
        elif action == 1:
            del text[place : place + rng.choice((1, 1, 2, 8))]
        elif action == 2 and place < len(text):
            text[place] = rng.randrange(256)
        elif action == 3:
            stop = place + rng.choice((1, 4, 16))
            text[place:place] = text[place:stop] * rng.choice((1, 2, 9))
        elif action == 4:
            text[place:] = rng.choice(SEEDS[reader])[place:]
        elif place < len(text):
            text[place] ^= 1 << rng.randrange(8)
    return bytes(text)


_PIECES = (
    b"\n", b"\r\n", b"\r", b"\0", b" ", b"\t", b"#", b":", b",", b'"', b"-", b".", b"e", b"_", b"nan", b"inf", b"NULL",
    b"1e400", b"1e-400", b"0x1", b"999999999999999999999", b"\xff", "é".encode(), "٣".encode(), b"qid:", b"{}", b"[]",
    b"null", b"true", b"@", b"(", b")", b"=", b"'", b"$class", b"\xef\xbb\xbf", b"\x85", b"\xc2\xa0",
)  # fmt: skip


def guided(reader: str, inputs: int) -> None:
    """Fuzz with atheris, which looks at what each input reaches."""
    import atheris

    modules = ("streams", "scores", "trec", "group_sizes", "tables", "grammar", "model_file", "names")
    for module in [m for name, m in sys.modules.items() if name.startswith("truerank.") and name.endswith(modules)]:
        for value in vars(module).values():
            if callable(value) and getattr(value, "__module__", "") == module.__name__ and hasattr(value, "__code__"):
                atheris.instrument_func(value)
    corpus, found = Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())
    for number, seed in enumerate(SEEDS[reader]):
        (corpus / str(number)).write_bytes(seed)
    atheris.Setup([sys.argv[0], f"-runs={inputs}", "-max_len=600", "-verbosity=0", f"-artifact_prefix={found}/",
                   str(corpus)], lambda text: check(reader, text))  # fmt: skip
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--reader", choices=tuple(READERS), required=True)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--guided", action="store_true", help="with atheris, after the random ones")
    args = parser.parse_args()
    rng, start = random.Random(args.seed), time.process_time()
    read = sum(check(args.reader, mutated(args.reader, rng)) for _ in range(args.inputs))
    seconds = time.process_time() - start
    what = "both parsers agree" if args.reader == "letor" else f"{read} read, the others refused"
    print(f"{args.reader}: {args.inputs} inputs, {what}; {seconds:.0f} CPU s", flush=True)
    if args.guided:
        guided(args.reader, args.inputs)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
