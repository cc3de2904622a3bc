"""A file of JSON lines after kills and damage."""

from __future__ import annotations

import pytest

from support.refusals import refused
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.core.json_lines import JsonLines


def held(path):
    with JsonLines(path, "expected JSON") as lines:
        return lines.held


def test_lines_come_back_and_a_torn_one_is_cut_off_by_the_next(tmp_path):
    path = tmp_path / "lines"
    with JsonLines(path, "expected JSON") as lines:
        lines.append({"a": [1, None, "é"]})
        lines.append(0.1 + 0.2)
    with path.open("ab") as stream:
        stream.write(b'{"a": "\xc3')
    torn = path.read_bytes()
    with JsonLines(path, "expected JSON") as again:
        assert again.held == [{"a": [1, None, "é"]}, 0.1 + 0.2]
        assert path.read_bytes() == torn
        again.append(3)
        again.append(4)
    assert held(path) == [{"a": [1, None, "é"]}, 0.1 + 0.2, 3, 4]
    JsonLines(None, "").append(1)


def test_a_file_has_one_owner_at_a_time(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b'1\n{"torn')
    one = JsonLines(path, "expected JSON")
    with refused(InvalidInputError, code="locked"):
        JsonLines(path, "expected JSON")
    one.append(2)
    del one  # as at the end of a run that closes nothing
    assert held(path) == [1, 2]
    path.write_bytes(b"no JSON\n")
    with pytest.raises(DataFileError):
        JsonLines(path, "expected JSON")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("content", "line"), [(b"1\nnone\n2\n", 2), (b"\xff\n", 1), (b"not a line", 1)])
def test_what_is_no_file_of_lines_is_refused_and_left_alone(tmp_path, content, line):
    path = tmp_path / "other"
    path.write_bytes(content)
    with refused(DataFileError, code="other-lines"):
        JsonLines(path, "expected JSON")
    assert path.read_bytes() == content


def test_entries_of_another_kind_are_named(tmp_path):
    for number, line in enumerate(["5", "[1]", '{"a": 1}', "null"]):
        path = tmp_path / f"{number}.jsonl"
        path.write_text('{"question": "q"}\n' + line + "\n")
        with JsonLines(path, "is no file of fits") as lines, refused(DataFileError, code="not-fits"):
            lines.entries_for("q", {"a", "b"}, "fits", "other fits")
