"""The demo is the main job end to end on the shipped sample."""

import json

from truerank import load_model
from truerank.cli import main


def test_demo_trains_compares_and_says_where_things_lie(tmp_path, capsys):
    assert main(["sample", "--demo", str(tmp_path / "out"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary.items() <= printed.items()
    assert set(summary["measures"]["adarank"]) == {"AP", "nDCG@10", "RR", "P@5"}
    model = load_model(summary["model"])
    assert model.feature_weights() == summary["features"]
    text = (tmp_path / "out" / "summary.txt").read_text()
    assert f"{summary['measures']['adarank']['AP']:.4f}" in text
    (comparison,) = summary["comparison"]["pairs"]
    assert comparison["p_adjusted"] < 0.001
    assert comparison["wins"] > 2 * comparison["losses"]
    assert summary["measures"]["adarank"]["AP"] > summary["measures"]["bm25"]["AP"] + 0.03
    assert comparison["wins"] + comparison["losses"] + comparison["ties"] == summary["queries"]["test"]
