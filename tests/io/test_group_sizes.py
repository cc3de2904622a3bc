"""Sizes of queries in a file of their own."""

import json

from truerank.cli import main


def test_sizes_in_a_file_beside_the_rows(tmp_path, capsys):
    """LightGBM's and XGBoost's habit: `rank.train` without query ids, `rank.train.query` with the sizes."""
    rows = tmp_path / "rank.train"
    rows.write_text("# rows\n1 1:2 3:1\n0 2:1\n2 1:1\n")
    assert main(["describe", str(rows)]) != 0
    assert "expected 'qid:<id>'" in capsys.readouterr().err
    for ending in ("query", "group"):
        beside = tmp_path / f"rank.train.{ending}"
        beside.write_text("2\n1\n")
        assert main(["describe", "--json", str(rows)]) == 0
        assert json.loads(capsys.readouterr().out)["queries"] == 2
        beside.write_text("2\n2\n")
        assert main(["describe", str(rows)]) != 0
        assert "3 rows, but the group sizes sum to 4" in capsys.readouterr().err
        beside.unlink()
    rows.write_text("1 qid:a 1:2\n0 qid:b 1:1\n")
    (tmp_path / "rank.train.query").write_text("7\n")  # of no use: the rows say it
    assert main(["describe", "--json", str(rows)]) == 0
    assert json.loads(capsys.readouterr().out)["queries"] == 2
