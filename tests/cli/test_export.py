import json

import numpy as np

from truerank import ObliviousBoosting, RankingData, save_model, write_letor
from truerank.cli import main
from truerank.export import formats


def test_export_with_a_certificate(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(formats._SETTINGS, "n_estimators", 20)
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(200, 4)), 3)
    data = RankingData(X, (X[:, 0] > 0).astype(int), np.repeat(np.arange(10), 20))
    write_letor(data, tmp_path / "test.txt")
    model, out = str(tmp_path / "model.json"), tmp_path / "solr.json"
    save_model(ObliviousBoosting(leaves="constant", n_estimators=5, depth=2).fit(data), model)
    line = ["export", model, "--to", "solr", "-o", str(out), "--certify", str(tmp_path / "test.txt")]
    assert main([*line, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["format"], report["rows"], report["rank_agreement"]) == ("solr", 200, 1.0)
    assert report["largest_difference"] < 1e-5
    assert report["policy"]["missing"] == "zero"
    assert json.loads(out.read_text())["name"] == "model"
    assert main([*line, "--name", "mine"]) == 0
    assert "0 of 10 queries change their order, 0 their first" in capsys.readouterr().err
    save_model(ObliviousBoosting(leaves="fuzzy", n_estimators=5, depth=2).fit(data), model)
    assert main(line) == 1
    assert "distil" in capsys.readouterr().err
    assert main([*line, "--distil", str(tmp_path / "test.txt")]) == 0
    assert "distilled to" in capsys.readouterr().err
    request = ["--to", "painless", "--show-request"]
    save_model(ObliviousBoosting(leaves="constant", n_estimators=5, depth=2).fit(data), model)
    assert main(["export", model, "-o", str(out), *request]) == 0
    shown, said = capsys.readouterr()
    script = json.loads(out.read_text())["script"]
    rescore = json.loads(shown)["rescore"]["query"]["rescore_query"]
    assert rescore["script_score"]["script"] == script  # the model travels with it
    assert f"each search request has {len(json.dumps(json.loads(shown))) / 1000:.1f} kB" in said
    assert "warning" not in said
    save_model(ObliviousBoosting(leaves="constant", n_estimators=300, depth=7).fit(data), model)
    assert main(["export", model, "-o", str(out), "--to", "painless", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["request_bytes"] > 200_000
    assert main(["export", model, "-o", str(out), "--to", "painless"]) == 0
    assert "requests above 200 kB slow every search down" in capsys.readouterr().err
    assert main(["export", model, "-o", str(out), "--to", "opensearch-ltr", "--name", "films", "--show-request"]) == 0
    assert json.loads(capsys.readouterr().out)["rescore"]["query"]["rescore_query"]["sltr"]["model"] == "films"
    assert main(["export", model, "-o", str(out), "--to", "c", "--show-request"]) == 2


def test_statistics_go_to_a_file_of_their_own(tmp_path, capsys):
    model, out = str(tmp_path / "model.json"), str(tmp_path / "out.json")
    line = ["export", model, "--to", "xgboost", "-o", out, "--statistics"]
    assert main([*line, str(tmp_path / "." / "out.json")]) == 2
    assert "must be different files" in capsys.readouterr().err
