import numpy as np
import pytest

from support.refusals import refused
from truerank.core.errors import InvalidInputError
from truerank.data.splits import QueryKFold, query_folds


def test_folds_are_a_partition_of_the_queries():
    folds = query_folds(17, 5, random_state=3)
    assert sorted(np.concatenate(folds).tolist()) == list(range(17))
    assert {len(fold) for fold in folds} == {3, 4}


def test_a_query_is_never_torn():
    rng = np.random.default_rng(0)
    qid = rng.integers(0, 13, 200)
    for train, test in QueryKFold(4).split(np.zeros((200, 1)), qid=qid):
        assert not set(qid[train]) & set(qid[test])
        assert sorted([*train, *test]) == list(range(200))


def test_the_same_seed_gives_the_same_folds():
    qid = np.arange(20)
    a = [test.tolist() for _, test in QueryKFold(random_state=7).split(qid, qid=qid)]
    b = [test.tolist() for _, test in QueryKFold(random_state=7).split(qid, groups=qid)]
    c = [test.tolist() for _, test in QueryKFold(random_state=8).split(qid, groups=qid)]
    assert a == b
    assert a != c


def test_without_query_ids_the_error_names_the_remedy():
    with refused(InvalidInputError, argument="qid"):
        next(QueryKFold().split(np.zeros((3, 1))))
    with refused(InvalidInputError, code="too-few-queries"):
        next(QueryKFold(5).split(np.zeros((3, 1)), qid=[1, 2, 3]))


def test_folds_are_drawn_by_name_and_not_by_place():
    qid = np.repeat([f"q{k}" for k in range(20)], 3)
    order = np.random.default_rng(0).permutation(60)
    first = [frozenset(qid[test]) for _, test in QueryKFold(4).split(qid, qid=qid)]
    moved = [frozenset(qid[order][test]) for _, test in QueryKFold(4).split(qid, qid=qid[order])]
    assert first == moved
    tuples = [("a", 1), ("a", "1"), ("b", 1)] * 2
    assert len(list(QueryKFold(3).split(np.zeros(6), qid=tuples))) == 3


def test_successive_halving_accepts_the_folds():
    pytest.importorskip("sklearn")
    import sklearn
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingGridSearchCV

    from truerank import ObliviousBoosting, load_sample

    data = load_sample().take_queries(range(12))
    with sklearn.config_context(enable_metadata_routing=True):
        search = HalvingGridSearchCV(
            ObliviousBoosting(leaves="constant"), {"depth": [1, 2]}, cv=QueryKFold(3), resource="n_estimators",
            min_resources=1, max_resources=2, factor=2,
        ).fit(data.X, data.y, qid=data.qid)  # fmt: skip
    assert search.best_params_["depth"] in (1, 2)
