"""Exports scored by the real Java programs where Maven can fetch them; a test that is skipped says why."""

import json
from pathlib import Path

import numpy as np
import pytest

from truerank import AdaRank, CalibratedRanker, ObliviousBoosting, RankBoost, RankingData, export_model
from truerank.export.certificate import constant_left_out
from truerank.export.compared_rows import border_cases, reference_scores
from truerank.export.form import form_of
from truerank.export.formats import FORMATS

PROGRAMS = {
    "painless": "painless",
    "ranklib": "opensearch-ltr",
    "rankymcrankface": "opensearch-ltr",
    "solr": "solr",
    "vespa": "vespa",
}


def made_up():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(200, 6)), 2)
    y = np.clip(np.round(X[:, 0] + X[:, 1] ** 2), 0, 2)
    return RankingData(X, y, np.repeat(np.arange(10), 20))


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_program_itself_scores_the_export(program, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    from benchmarks.export.bench_formats import JavaPrograms

    java = JavaPrograms(tmp_path, (program,))
    if java.missing:
        pytest.skip("left out: " + "; ".join(java.missing))
    data, format = made_up(), PROGRAMS[program]
    models = [AdaRank(measure="AP"), RankBoost(20), ObliviousBoosting(leaves="constant", n_estimators=6, depth=3)]
    if format in ("vespa", "painless"):
        models += [ObliviousBoosting(leaves=leaves, n_estimators=3, depth=2) for leaves in ("fuzzy", "polynomial")]
        models += [CalibratedRanker(AdaRank(measure="AP"), random_state=0)]  # a pool, whose output is a probability
    for model in models[format == "opensearch-ltr" :]:  # whose linear models are not RankLib's text
        form = form_of(model.fit(data))
        own = FORMATS[format]
        rows = np.concatenate([data.X[:40], border_cases(form, data.X, own.float32, "decimal", own.tiny)[:120]])
        text = export_model(model, format, certify=data)
        scores = java.scores(program, str(text), rows, form.names) + constant_left_out(form, format, own)
        tolerance = 1e-12 if format in ("vespa", "painless") else 4e-6
        expected = reference_scores(form, rows)
        if format == "painless":  # which adds a shift, and scores at least 0
            shift = json.loads(text)["script"]["params"]["shift"]
            scores, expected = scores - shift, np.maximum(expected, -shift)
        np.testing.assert_allclose(scores, expected, atol=tolerance * np.abs(scores).max(), rtol=0)
