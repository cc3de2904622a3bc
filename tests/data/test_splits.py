import numpy as np

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
