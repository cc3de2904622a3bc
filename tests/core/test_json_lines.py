"""A file of JSON lines after kills and damage."""

from __future__ import annotations

import pytest

from truerank.core.errors import DataFileError
from truerank.core.json_lines import JsonLines


def test_lines_come_back_and_a_torn_one_is_cut_off_by_the_next(tmp_path):
    path = tmp_path / "lines"
    lines = JsonLines(path, "expected JSON")
    lines.append({"a": [1, None, "é"]})
    lines.append(0.1 + 0.2)
    with path.open("ab") as stream:
        stream.write(b'{"a": "\xc3')
    torn = path.read_bytes()
    again = JsonLines(path, "expected JSON")
    assert again.held == [{"a": [1, None, "é"]}, 0.1 + 0.2]
    assert path.read_bytes() == torn
    again.append(3)
    again.append(4)
    assert JsonLines(path, "expected JSON").held == [{"a": [1, None, "é"]}, 0.1 + 0.2, 3, 4]
    JsonLines(None, "").append(1)


def test_of_two_runs_on_a_torn_file_neither_cuts_the_lines_of_the_other(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b'1\n{"torn')
    one, other = JsonLines(path, "expected JSON"), JsonLines(path, "expected JSON")
    one.append(2)
    one.append(3)
    other.append(4)
    assert JsonLines(path, "expected JSON").held == [1, 2, 3, 4]


@pytest.mark.parametrize(("content", "line"), [(b"1\nnone\n2\n", 2), (b"\xff\n", 1), (b"not a line", 1)])
def test_what_is_no_file_of_lines_is_refused_and_left_alone(tmp_path, content, line):
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=f"line {line}: expected JSON"):
        JsonLines(path, "expected JSON")
    assert path.read_bytes() == content
