"""The interpreters here against scores that the real programs gave; `golden/make.py` made the files."""

import json
from pathlib import Path

import numpy as np
import pytest

from truerank.models.foreign.model import Reader
from truerank.models.foreign.read import read_foreign

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("kind", ["linear", "stumps", "trees"])
@pytest.mark.parametrize("program", ["ranklib", "rankymcrankface", "solr"])
def test_the_mimic_scores_as_the_program_does(program, kind):
    own = json.loads((GOLDEN / f"{program}.json").read_text())[kind]
    names = [f"f{k + 1}" for k in range(6)]
    mimic = read_foreign(own["text"], Reader(program), names).score(np.array(own["rows"]))
    np.testing.assert_allclose(mimic, own["scores"], rtol=3e-7, atol=1e-7)
