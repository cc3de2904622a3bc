"""Random models of the libraries score as there, or are refused: the trials of `benchmarks models`, in small."""

from collections import Counter

import pytest

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost"])
def test_random_models_are_equal_or_refused(library):
    pytest.importorskip(library)
    pytest.importorskip("pandas")
    from benchmarks.models.bench_foreign_models import trial

    found = [outcome for seed in range(1000, 1050) for outcome in trial(library, seed)]
    assert [own for own in found if own[1] == "wrong"] == []
    for kind in {own[0] for own in found if own[1] != "none"}:
        counts = Counter(own[1] for own in found if own[0] == kind)
        assert counts["equal"] >= (6 if "dump" in kind else 25), (kind, counts)
