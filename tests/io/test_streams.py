"""Sources and sinks of bytes."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import random
import sys
from contextlib import redirect_stdout

import pytest

from support.refusals import refused
from truerank.core import printing
from truerank.io import streams
from truerank.io.streams import Source, open_output

TEXT = b"".join(b"line %d %s\n" % (k, b"x" * (k % 97)) for k in range(3000)) + b"no line feed at the end"


@pytest.mark.parametrize("chunk", [1, 7, 64, 1000, 1 << 20])
@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress], ids=["plain", "gzip", "xz"])
def test_line_blocks_are_whole_lines_and_lose_nothing(chunk, compress, monkeypatch):
    text = TEXT if chunk > 64 else TEXT[:3000]
    monkeypatch.setattr(streams, "CHUNK", max(chunk, 16))
    blocks = list(Source(io.BytesIO(compress(text))).line_blocks())
    assert b"".join(blocks) == text
    assert all(block.endswith(b"\n") for block in blocks[:-1])


def test_a_stream_that_gives_what_it_likes():
    class Trickle(io.RawIOBase):
        def __init__(self):
            self.rest, self.rng = b"\xef\xbb\xbf" + TEXT, random.Random(0)

        def read(self, size=-1):
            size = self.rng.randint(1, 3 if len(self.rest) > len(TEXT) else 5000)
            piece, self.rest = self.rest[:size], self.rest[size:]
            return piece

    assert b"".join(Source(Trickle()).line_blocks()) == TEXT


def test_expected_size(tmp_path):
    (tmp_path / "a").write_bytes(TEXT)
    (tmp_path / "b").write_bytes(gzip.compress(TEXT))
    for name in ("a", "b"):
        with Source(tmp_path / name) as source:
            list(source.line_blocks())
            assert source.expected_size == len(TEXT)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("after", "terminal", "shown"), [(0.0, True, True), (60.0, True, False), (0.0, False, False)])
def test_progress_only_on_long_reads_and_terminals(tmp_path, monkeypatch, after, terminal, shown):
    (tmp_path / "big.txt").write_bytes(TEXT * 100)
    stderr = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(printing, "PROGRESS_AFTER", after)
    with Source(tmp_path / "big.txt") as source:
        list(source.line_blocks())
    assert ("reading big.txt" in stderr.getvalue()) is shown
    if shown:
        assert stderr.getvalue().rpartition("\r")[0].rstrip(" ").endswith("\r")  # wiped at the end


@pytest.mark.parametrize("name", ["out", "out.gz", "out.xz", "out.zst"])
def test_a_failure_leaves_the_old_file(tmp_path, name):
    if name.endswith("zst"):
        pytest.importorskip("zstandard")
    path = tmp_path / name
    with open_output(path) as stream:
        stream.write(b"old")
    before = path.read_bytes()
    with pytest.raises(RuntimeError), open_output(path) as stream:
        stream.write(b"new")
        raise RuntimeError
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [name]
    with Source(path) as source:
        assert b"".join(source.line_blocks()) == b"old"


def test_not_a_source():
    for bad in (None, 3, b"bytes"):
        with refused(TypeError, argument="source"):
            Source(bad)


def test_standard_output_may_take_text_alone():
    with redirect_stdout(io.StringIO()) as text, open_output("-") as stream:
        stream.write("1 Q0 é 1 2.0 x\n".encode())
    assert text.getvalue() == "1 Q0 é 1 2.0 x\n"
