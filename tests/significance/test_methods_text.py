"""The paragraph of a paper says what the comparison did, whatever its settings."""

from __future__ import annotations

import re

import numpy as np
import pytest

from truerank import Experiment
from truerank.significance.comparison import CORRECTIONS
from truerank.significance.paired import OF_MEANS, TESTS

QRELS = {f"{t}": {"a": 2, "b": 0, "c": 1} for t in range(12)}


def runs(k):
    rng = np.random.default_rng(0)
    return {f"s{n}": {t: {d: float(rng.random()) for d in "abc"} for t in QRELS} for n in range(k)}


@pytest.mark.parametrize("pairs", ["baseline", "all"])
@pytest.mark.parametrize("correction", [None, *CORRECTIONS])
@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("k", [2, 4])
def test_every_setting_has_its_sources(test, correction, pairs, k):
    if correction == "max-t" and test not in OF_MEANS:
        pytest.skip("refused")
    experiment = Experiment(QRELS, runs(k), "nDCG@2 AP" if k == 4 else "RBP")
    settings = {"test": test, "correction": correction, "pairs": pairs}
    text = experiment.methods_text(**settings)
    assert text == experiment.compare(**settings).methods_text(0)
    cited = {key for group in re.findall(r"\\cite\{([^}]*)\}", text) for key in group.split(",")}
    assert cited == set(re.findall(r"@\w+\{(\w+),", text))
    assert "truerank" in cited
    paragraph = text.split("\n\n")[0]
    assert "12 queries" in paragraph
    assert {"randomisation": "randomisation", "t": "t-test", "wilcoxon": "Wilcoxon", "sign": "sign"}[test] in paragraph
    assert ("corrected for" in paragraph) == (k == 4)
    assert ("not corrected" in paragraph) == (k == 4 and correction == "none")
    assert "None" not in text
