"""A missing collection is named with its owners' page, and experiments on shipped data need none."""

from __future__ import annotations

import json

import pytest
from reproductions.__main__ import main
from reproductions.collections import SOURCES, where_to_get


@pytest.mark.parametrize(
    ("arguments", "folder"),
    [
        (["adarank", "--data", "nowhere"], "letor3-ohsumed"),
        (["oblivious", "--data", "nowhere", "--collections", "mq2008"], "letor4-mq2008"),
        (["calibration", "--data", "nowhere", "--part", "panels"], "reuters21578"),
        (["svm-map", "--data", "nowhere"], "trec9-web-runs"),
        (["svm-map", "--data", "nowhere", "--stand-in"], "trec3-adhoc-runs"),
        (["stand-ins", "--data", "nowhere"], "npl"),
    ],
)
def test_the_message_says_where_to_get_a_missing_collection(arguments, folder, tmp_path, capsys):
    assert main([*arguments, "--quick", "--out", str(tmp_path / "out")]) == 1
    told = capsys.readouterr().err
    what, page = SOURCES[folder]
    assert what in told
    assert page in told
    assert f"{folder}/ of --data DIR" in told


def test_other_messages_name_no_collection():
    assert where_to_get("alpha must be a number, got 'a/b'") == ""


def test_descent_runs_without_a_collection(tmp_path, capsys):
    assert main(["descent", "--quick", "--json", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    result, _ = json.JSONDecoder().raw_decode(printed.out)
    assert set(result) == {"diabetes", "trivial", "splits"}
    assert "--data DIR" in printed.err


def test_a_record_without_letor_is_refused(tmp_path, capsys):
    assert main(["descent", "--record", "--out", str(tmp_path)]) == 1
    assert "--data DIR" in capsys.readouterr().err
