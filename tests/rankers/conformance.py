"""scikit-learn's checks that rankers fail on purpose, each with its reason; `ranker_checks` builds the test.

Use in a ranker's test file:

    test_scikit_learn_conformance = ranker_checks([AdaRank()])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

EXPECTED_FAILURES: dict[str, str] = {
    "check_dataframe_column_names_consistency": "columns of a frame are found by name, so their order may differ"
}


def ranker_checks(estimators: Sequence[Any], expected: dict[str, str] | None = None) -> Callable[..., None]:
    """A pytest function that runs all of scikit-learn's estimator checks on `estimators`."""
    reasons = EXPECTED_FAILURES | (expected or {})

    @parametrize_with_checks(list(estimators), expected_failed_checks=lambda estimator: reasons)
    def test_scikit_learn_conformance(estimator: Any, check: Callable[[Any], None]) -> None:
        check(estimator)

    return test_scikit_learn_conformance
