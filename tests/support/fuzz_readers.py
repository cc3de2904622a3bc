"""Fuzz of every reader, with `--guided` by coverage (the extra `fuzz`); the test suite runs the kept inputs.

    PYTHONPATH=src:tests python tests/support/fuzz_readers.py --reader letor --inputs 1000000

Readers: letor, run, qrels, scores, sizes, csv, parquet, arrow, archives (gz, xz, zstd), documents (JSON lines, TREC,
SMART), queries, tables of documents, judgements, links, objects (dicts, frames), model, measure. Each input is either
read or refused with an error of truerank's that is one short line; anything else is a failure, printed with the input.
LETOR text goes through both parsers, which must agree. The process may take 1 GiB beyond what it has when the fuzz
starts, and its growth is printed.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import io
import lzma
import os
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from support.letor_texts import compiled_parser, damaged_text, outcome, python_parser
from truerank import evaluate
from truerank.calibration.base import Calibrator
from truerank.calibration.posteriors import PlattCalibrator
from truerank.core.errors import TruerankError
from truerank.io.documents import read_documents, read_judgements, read_queries
from truerank.io.group_sizes import read_group_sizes
from truerank.io.scores import read_scores
from truerank.io.trec import read_qrels, read_run
from truerank.links.graph import pagerank, read_links, site_parents
from truerank.measures import parse_measure
from truerank.models.model_file import load_model, save_model
from truerank.rankers.adarank import AdaRank
from truerank.rankers.baselines import RidgeRanker
from truerank.rankers.oblivious_boosting import ObliviousBoosting
from truerank.rankers.rank_boost import RankBoost

_FOLDER = Path("/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir())
MEMORY = 1 << 30
"""Bytes that the readers may take beyond what the process has when the fuzz starts."""


def _file(ending: str, text: bytes) -> Path:
    path = _FOLDER / f"truerank-fuzz-{os.getpid()}{ending}"
    path.write_bytes(text)
    return path


def _letor(text: bytes) -> None:
    assert outcome(python_parser, text, True) == outcome(compiled_parser, text, True)


def _table(ending: str, text: bytes) -> None:
    from truerank.io.tables import read_table

    read_table(_file(ending, text))


def _model(text: bytes) -> None:
    """A model that is read scores rows of its width by finite numbers; a calibrator gives probabilities."""
    model = load_model(_file(".json", text))
    if isinstance(model, Calibrator):
        p = model.predict_proba(np.array([-1.0, 0.0, 2.0]))
        assert np.all((p >= 0) & (p <= 1)), p
    elif hasattr(model, "predict") and 0 < (width := getattr(model, "n_features_in_", 0)) < 1000:
        assert np.all(np.isfinite(model.predict(np.outer([-1.0, 0.0, 2.0], np.ones(width)))))


def _saved_models() -> list[bytes]:
    """The files of small models of several kinds."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.random((12, 2)), rng.integers(0, 2, 12), np.repeat([1, 2, 3], 4)
    trees = {"n_estimators": 1, "depth": 2}
    rankers = [RidgeRanker(), AdaRank(n_estimators=2), RankBoost(n_estimators=2)]
    rankers += [ObliviousBoosting(leaves=kind, **trees) for kind in ("constant", "fuzzy", "polynomial")]
    files = []
    for model in [*(ranker.fit(X, y, qid=qid) for ranker in rankers), PlattCalibrator().fit(X[:, 0], y)]:
        path = _file(".json", b"")
        save_model(model, path)
        files.append(path.read_bytes())
    return files


def _documents(text: bytes) -> None:
    for document in read_documents(io.BytesIO(text), bad="skip"):
        assert len(document.id.split()) == 1, document
    for _ in read_documents(io.BytesIO(text)):
        pass


def _document_table(ending: str, text: bytes) -> None:
    for document in read_documents(_file(ending, text), bad="skip"):
        assert len(document.id.split()) == 1, document


def _archive(text: bytes) -> None:
    read_run(io.BytesIO(text))


def _links(text: bytes) -> None:
    graph = read_links(io.BytesIO(text))
    pagerank(graph)
    site_parents(graph.names or [])


_VALUES: tuple[object, ...] = (
    "a", "b", "", " ", "1", 1, 0, -1, 2.5, float("nan"), float("inf"), None, True, b"a", (1,), [1], {"a": 1}, {},
    10**30, "x\ny", "\ud800", object(),
)  # fmt: skip
_COLUMNS = ("query_id", "qid", "query", "doc_id", "docno", "docid", "relevance", "score", "label", "rank", "run", "", 7)


def _objects(text: bytes) -> None:
    """Qrels and runs as nested dicts and as data frames, made of the bytes' numbers."""
    import pandas

    rng = random.Random(text)
    usual = rng.random() < 0.6

    def value(kind: int) -> object:
        if usual and rng.random() < 0.93:
            return rng.choice((("q1", "q2"), ("a", "b", "c"), (0, 1, 2, 0.5))[kind])
        return rng.choice(_VALUES)

    def key(kind: int) -> object:
        one = value(kind)
        return one if getattr(one, "__hash__", None) else str(one)

    def made(last: str) -> object:
        if rng.random() < 0.5:
            return {key(0): {key(1): value(2) for _ in range(rng.randrange(4))} if rng.random() < 0.95 else value(2)
                    for _ in range(rng.randrange(4))}  # fmt: skip
        names = ["query_id", "doc_id", last] if usual else rng.sample(_COLUMNS, rng.randrange(1, 5))
        n = rng.randrange(5)
        return pandas.DataFrame(
            {name: [value(min(k, 2)) for _ in range(n)] for k, name in enumerate(names)}, dtype=object
        )

    evaluate(made("relevance"), made("score"), ["AP", "nDCG@10"]).to_frame()


READERS: dict[str, Callable[[bytes], object]] = {
    "letor": _letor,
    "run": lambda text: read_run(io.BytesIO(text)),
    "qrels": lambda text: read_qrels(io.BytesIO(text)),
    "scores": lambda text: read_scores(io.BytesIO(text)),
    "sizes": lambda text: read_group_sizes(io.BytesIO(text)),
    "csv": functools.partial(_table, ".csv"),
    "parquet": functools.partial(_table, ".parquet"),
    "arrow": functools.partial(_table, ".arrow"),
    "gz": _archive,
    "xz": _archive,
    "zst": _archive,
    "json-lines": _documents,
    "trec": _documents,
    "smart": _documents,
    "queries": lambda text: read_queries(io.BytesIO(text)),
    "document-csv": functools.partial(_document_table, ".csv"),
    "document-parquet": functools.partial(_document_table, ".parquet"),
    "judgements": lambda text: read_judgements(io.BytesIO(text)),
    "links": _links,
    "objects": _objects,
    "model": _model,
    "measure": lambda text: parse_measure(text.decode("utf-8", "replace")),
}

NEEDS_PYARROW = ("csv", "parquet", "arrow", "document-csv", "document-parquet")


def _as_table(ending: str, columns: dict[str, list]) -> bytes:
    """A small table as the bytes of a file; empty without pyarrow."""
    try:
        import pyarrow
        import pyarrow.feather
        import pyarrow.parquet
    except ImportError:
        return b""
    sink = io.BytesIO()
    table = pyarrow.table(columns)
    if ending == "parquet":
        pyarrow.parquet.write_table(table, sink, compression="none")
    else:
        pyarrow.feather.write_feather(table, sink, compression="uncompressed")
    return sink.getvalue()


def _as_zstd(text: bytes) -> bytes:
    try:
        import zstandard
    except ImportError:
        return b""
    return zstandard.ZstdCompressor().compress(text)


_ROWS: dict[str, list] = {"qid": ["1", "1", "2"], "y": [1, 0, 2], "docid": ["a", "b", "a"], "f": [0.5, 1.5, 2.0]}
_TEXTS: dict[str, list] = {
    "id": ["a", "b"],
    "text": ["heat flow", ""],
    "age": [1.5, None],
    "v": [[0.5, 1.0], [1.0, 2.0]],
}
_RUN = b"".join(b"1 Q0 D%d %d %d mine\n" % (i, i, 9 - i) for i in range(1, 7))

# Inputs that a fuzz starts from, and what was once read wrongly.
SEEDS: dict[str, list[bytes]] = {
    "letor": [b"1 qid:1 1:0.5 2:1 # docid = D\n", b"0 qid:a\n\n# x\n2 qid:a 3:nan\r\n"],
    "run": [
        b"query;docid;score\nred shoes;d1;0,5\n",
        b'{"query": "a", "results": [{"id": "d", "score": 1}]}\n{"query": "b"}\n',
        b"1 Q0 D7 1 12.5 mine\n1 Q0 D3 2 11 mine\n",
        b"1 Q0 D7 1 1_0 mine\n",
        b"1 Q0 d 1 nan t\n",
    ],
    "qrels": [
        b"query,docid,Ann,Bo\nred shoes,d1,3,\n",
        b'{"query": "a", "relevant": ["d"]}\n{"query": "b", "ratings": {"d": 2}}\n',
        b'{"queries": [{"query_text": "a", "ratings": [{"doc_id": "d", "rating": "1"}]}]}',
        b"3 qid:1 # d\tred shoes\n",
        b'{"a": {"d": ' + b"9" * 400 + b"}}",
        b"[" * 3000,
        b'{"query": "\\ud800", "relevant": ["d"]}',
        b"1 0 D7 2\n1 0 D1 -1\n",
        b"1 0 D7 inf\n",
        b"1 0 D7 " + b"9" * 400 + b"\n",
    ],
    "scores": [b"1\n-2.5e-3\n.5\n", b"1e400\n", b"1_0\n", b"1 2\n\n", b"inf\n", b"1\x00\n", b"1\n\n2\n"],
    "sizes": [b"2\n1\n3\n", b"9" * 5000 + b"\n", b"0\n", "٣\n".encode()],
    "csv": [b"qid,y,f\n1,0,0.5\n1,1,2\n", b'qid,y,f\n"a""b",0,\n', b"qid\n1\n", b"qid,y,f,f\n1,1,1,1\n"],
    "parquet": [_as_table("parquet", _ROWS)],
    "arrow": [_as_table("arrow", _ROWS)],
    "gz": [gzip.compress(_RUN, mtime=0), gzip.compress(_RUN, mtime=0) * 2, gzip.compress(b"", mtime=0)],
    "xz": [lzma.compress(_RUN), lzma.compress(_RUN) * 2, lzma.compress(b"")],
    "zst": [_as_zstd(_RUN), _as_zstd(_RUN) * 2, _as_zstd(b"")],
    "json-lines": [
        b'{"id": 7, "text": "heat flow", "title": "Flow", "age": 3, "v": [1, 2.5]}\n{"_id": "b", "text": ["a", "b"]}\n',
        b'{"id": ' + b"9" * 5000 + b"}\n",
        b'{"id": 1, "age": NaN}\n{"id": 2, "v": [1e39]}\n{"id": "\\ud800"}\n',
        b'{"id": 1, "text": ' + b"[" * 3000 + b"}\n",
    ],
    "trec": [
        b"<DOC>\n<DOCNO> d1 </DOCNO>\n<TITLE>Heat</TITLE>\n<TEXT>flow &amp; <b>wing</b></TEXT>\n</DOC>\n"
        b"<doc><docno>d2</docno>x</doc>\n",
        b"<DOC><DOCNO>Number:</DOCNO></DOC>\n",
    ],
    "smart": [b".I 1\n.T\nheat\n.W\nflow of heat\n.X\n1 2\n.I 2\n.W\nwing\n", b".I\n.W\n", b".I 1 2\n.W\nx\n"],
    "queries": [
        b'{"id": "q1", "text": "heat"}\n',
        b"<top>\n<num> Number: 301\n<title> Topic: heat flow\n<desc> Description:\nall of it\n</top>\n",
        b".I 001\n.W\nheat\n",
        b"<top>\n<num> Number:\n<title> heat\n</top>\n",
    ],
    "document-csv": [b'id,text,age\n1,heat flow,3\n2,"a ""b""",\n', b"id,text\n1\n", b"id,text\n\n" + b"1,a\n" * 9],
    "document-parquet": [_as_table("parquet", _TEXTS)],
    "judgements": [b"1 184 2\n1 29 -1\n", b" 1 28 0 0.000000\n 1 35 0 0.000000\n", b"1 0 D7 2\n1 0 D1 -1\n"],
    "links": [b"a b\nb c\na b\n", b"# x\nhttp://h/a http://h/b\n", b"http://[h/ b\n"],
    "objects": [b"", b"0", b"1"],
    "model": [
        *_saved_models(),
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


def check(reader: str, text: bytes) -> bool:
    """Whether an input is read; False where it is refused. AssertionError on anything else."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            READERS[reader](text)
        return True
    except (TruerankError, FileNotFoundError, IsADirectoryError) as error:
        message = str(error)
        assert 10 < len(message) < 1000, (reader, text, message)
        assert "Traceback" not in message
        return False
    except AssertionError as error:
        raise AssertionError(f"{reader}: {error} for {text!r}") from error
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

    instrumented = instrument(atheris.instrument_func)
    print(f"{reader}: {instrumented} functions instrumented", flush=True)
    corpus, found = Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())
    for number, seed in enumerate(SEEDS[reader]):
        (corpus / str(number)).write_bytes(seed)
    atheris.Setup([sys.argv[0], f"-runs={inputs}", "-max_len=600", "-verbosity=1", f"-artifact_prefix={found}/",
                   str(corpus)], lambda text: check(reader, text))  # fmt: skip
    atheris.Fuzz()


def instrument(by: Callable[[object], object]) -> int:
    """Hand the readers' functions and methods to atheris, in place; their number."""
    modules = (
        "streams",
        "scores",
        "trec",
        "group_sizes",
        "tables",
        "grammar",
        "model_file",
        "names",
        "documents",
        "graph",
    )
    n = 0
    for module in [m for name, m in sys.modules.items() if name.startswith("truerank.") and name.endswith(modules)]:
        owners = [
            module,
            *(v for v in vars(module).values() if isinstance(v, type) and v.__module__ == module.__name__),
        ]
        for value in [v for owner in owners for v in vars(owner).values()]:
            function = getattr(value, "__func__", value)
            if getattr(function, "__module__", "") == module.__name__ and hasattr(function, "__code__"):
                by(function)
                n += 1
    return n


def bound_memory() -> None:
    """Let an allocation beyond `MEMORY` more than the process has now fail."""
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def resident() -> int:
    """Largest memory of the process so far, in bytes."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--reader", choices=tuple(READERS), action="append", help="default: all, one after the other")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="of each reader, at most")
    parser.add_argument("--seconds", type=float, help="for each reader, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--guided", action="store_true", help="with atheris, of one reader")
    args = parser.parse_args()
    for reader in args.reader or READERS:
        for seed in SEEDS[reader]:
            check(reader, seed)  # what it imports and compiles is no growth
    before, wrong = resident(), 0
    bound_memory()
    if args.guided:
        guided((args.reader or list(READERS))[0], args.inputs)
    for reader in args.reader or READERS:
        rng, start = random.Random(args.seed), time.process_time()
        read = n = 0
        found = ""
        while not found and n < args.inputs and (args.seconds is None or time.process_time() - start < args.seconds):
            try:
                for _ in range(min(200, args.inputs - n)):
                    n += 1
                    read += check(reader, mutated(reader, rng))
            except AssertionError as error:
                found = str(error)
                print(f"  {found}", flush=True)
        wrong += bool(found)
        what = "FAILED" if found else "both parsers agree" if reader == "letor" else f"{read} read, the others refused"
        grown = (resident() - before) / 2**20
        print(
            f"{reader}: {n} inputs, {what}; {time.process_time() - start:.0f} CPU s; memory grew by {grown:.0f} MiB",
            flush=True,
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
