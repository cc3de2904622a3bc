import json

import numpy as np

from truerank import load_model, write_letor
from truerank.cli import main
from truerank.data.ranking_data import RankingData


def test_an_imported_model_predicts_and_ranks(tmp_path, capsys):
    (tmp_path / "ranklib.txt").write_text("## Coordinate Ascent\n1:0.75 3:0.25\n")
    rng = np.random.default_rng(0)
    data = RankingData(np.round(rng.normal(size=(30, 4)), 3), rng.integers(0, 3, 30), np.repeat([1, 2, 3], 10))
    write_letor(data, tmp_path / "test.txt")
    model = str(tmp_path / "model.json")
    assert main(["import", str(tmp_path / "ranklib.txt"), "-o", model, "--n-features", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tool"] == "ranklib"
    assert main(["predict", model, str(tmp_path / "test.txt")]) == 0
    scores = [float(line) for line in capsys.readouterr().out.split()]
    np.testing.assert_allclose(scores, 0.75 * data.X[:, 0] + 0.25 * data.X[:, 2])
    (tmp_path / "names").write_text("a\nb\nc\nd\n")
    assert main(["import", str(tmp_path / "ranklib.txt"), "-o", model, "--feature-names", str(tmp_path / "names")]) == 0
    assert load_model(model).feature_names_ == ["a", "b", "c", "d"]
    assert main(["import", str(tmp_path / "names"), "-o", model]) == 1
    assert "format is unknown" in capsys.readouterr().err
