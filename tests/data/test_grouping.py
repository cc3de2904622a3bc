import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.refusals import refused
from truerank import compare, evaluate
from truerank.calibration.decisions import expected_relevant
from truerank.calibration.posteriors import PlattCalibrator
from truerank.core.errors import InvalidInputError
from truerank.data.grouping import group_rows
from truerank.data.ranking_data import Judgements, RankingData
from truerank.features.per_query import MinMaxInQuery
from truerank.measures import AP
from truerank.rankers.baselines import SingleFeature

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")

QIDS = [
    [3, 3, 1, 1, 3],
    ["b", "b", "a", "a", "b"],
    [("x", 1), ("x", 1), ("y", 2), ("y", 2), ("x", 1)],
    [2.5, 2.5, 1.5, 1.5, 2.5],
    [1, 1.0, 2.5, 2.5, 1],
    [2**70, 2**70, -1, -1, 2**70],
    np.array([3, 3, 1, 1, 3], dtype=np.uint8),
]


@pytest.mark.parametrize("qid", QIDS, ids=lambda q: str(q)[:25])
def test_any_hashable_names_a_query(qid):
    grouping = group_rows(qid)
    assert grouping.offsets.tolist() == [0, 3, 5]
    assert grouping.order.tolist() == [0, 1, 4, 2, 3]
    assert grouping.n_joined == 1
    assert list(grouping.query_ids) == [qid[0], qid[2]]


@given(st.lists(st.integers(-3, 3), max_size=30))
def test_grouping_is_stable_and_in_order_of_first_appearance(qid):
    grouping = group_rows(np.array(qid, dtype=np.int64))
    order = np.arange(len(qid)) if grouping.order is None else grouping.order
    expected = [row for name in dict.fromkeys(qid) for row in range(len(qid)) if qid[row] == name]
    assert order.tolist() == expected
    assert list(grouping.query_ids) == list(dict.fromkeys(qid))
    assert np.diff(grouping.offsets).tolist() == [qid.count(name) for name in dict.fromkeys(qid)]
    assert (grouping.order is None) == (expected == sorted(expected))


@pytest.mark.parametrize(
    ("qid", "message"),
    [
        ([1, None], "row 2"),
        ([1.0, float("nan")], "row 2"),
        ([[1], [2]], "row 1: a list is not an id"),
        ([1, "1"], "1 in row 1 .number. and '1' in row 2 .text."),
        ([b"a", b"\xff"], "row 2: .*not UTF-8"),
        ([(1, []), (2, [])], "row 1: a tuple is not an id .unhashable"),
        (np.zeros((2, 2)), "one-dimensional"),
        ([1, 2, 3], "each of the 2 rows, got 3"),
    ],
)
def test_bad_query_ids_are_named(qid, message):
    with pytest.raises(InvalidInputError, match=message):
        group_rows(qid, 2)


def test_grouped_rows_are_not_copied():
    X, y = np.zeros((4, 2)), np.zeros(4)
    data = RankingData(X, y, [1, 1, 2, 2])
    assert np.shares_memory(data.X, X)
    assert np.shares_memory(data.y, y)
    assert data.order is None


def test_callers_arrays_are_never_changed_and_restore_inverts():
    X = np.arange(10.0).reshape(5, 2)
    before = X.copy()
    data = RankingData(X, [0, 1, 2, 0, 1], ["b", "a", "b", "a", "c"], doc_ids=list("uvwxy"))
    assert np.array_equal(X, before)
    assert data.doc_ids[:].tolist() == list("uwvxy")
    assert np.array_equal(data.restore(data.X), X)
    assert data.qid.tolist() == ["b", "b", "a", "a", "c"]


def test_taking_queries_keeps_rows_together():
    data = RankingData(np.arange(6.0)[:, None], np.arange(6), [1, 1, 2, 3, 3, 3], query_weight=[1, 2, 3])
    part = data.take_queries([2, 0, 2])
    assert part.X[:, 0].tolist() == [3, 4, 5, 0, 1, 3, 4, 5]
    assert part.offsets.tolist() == [0, 3, 5, 8]
    assert part.query_weight.tolist() == [3, 1, 3]
    assert RankingData.concatenate([part, data]).n_queries == 6


def test_query_weights_by_row_must_be_constant_in_a_query():
    data = RankingData(np.zeros((3, 1)), [0, 1, 0], [1, 2, 1], query_weight=[2.0, 5.0, 2.0])
    assert data.query_weight.tolist() == [2, 5]
    with refused(InvalidInputError, argument="query_weight"):
        RankingData(np.zeros((3, 1)), [0, 1, 0], [1, 2, 1], query_weight=[2.0, 5.0, 1.0])


def test_one_query_and_no_rows():
    assert group_rows(None, 3).offsets.tolist() == [0, 3]
    assert group_rows(None, 0).offsets.tolist() == [0]
    assert RankingData(np.zeros((0, 2)), [], []).n_queries == 0


def test_judgements_from_labels_group_like_the_data():
    judgements, grouping = Judgements.from_labels([0, 1, 2], ["b", "a", "b"])
    assert judgements.grades.tolist() == [0, 2, 1]
    assert grouping.order.tolist() == [0, 2, 1]


@pytest.mark.parametrize("queries", [[-1], [-2, 0], [-1, 0], [-2, -1], [1, 1, 0], [0, 1], []])
def test_queries_are_taken_by_number_as_numpy_takes_them(queries):
    offsets = np.array([0, 2, 2, 5])
    data = RankingData.from_grouped(np.arange(10.0).reshape(5, 2), np.arange(5) % 2, offsets, np.array(["a", "b", "c"]))
    data = data.with_judgements(
        Judgements(data.y, offsets, missing_grades=np.array([1.0, 2.0, 3.0]), missing_offsets=np.array([0, 1, 1, 3]))
    )
    expected = [range(3)[k] for k in queries]
    rows = [row for k in expected for row in range(offsets[k], offsets[k + 1])]
    taken = data.take_queries(queries)
    assert taken.X.tolist() == data.X[rows].tolist()
    assert np.diff(taken.offsets).tolist() == [offsets[k + 1] - offsets[k] for k in expected]
    assert taken.query_ids.tolist() == [data.query_ids[k] for k in expected]
    assert taken.missing_grades.tolist() == [g for k in expected for g in ([1.0], [], [2.0, 3.0])[k]]


def test_a_query_that_there_is_not_is_refused():
    data = RankingData([[1.0], [2.0]], [1, 0], [1, 2])
    for queries in ([2], [0, 2], [-3]):
        with pytest.raises(IndexError, match="out of bounds"):
            data.take_queries(queries)


def test_names_beyond_the_largest_signed_integer_stay_what_they_are():
    names = [2**63 + 7, 5, 2**63 + 1, 2**63 + 7]
    grouping = group_rows(np.array(names, dtype=np.uint64))
    assert grouping.query_ids.tolist() == [2**63 + 7, 5, 2**63 + 1]
    assert grouping.restore(grouping.qid).tolist() == names


def test_what_is_missing_is_refused_as_a_query_and_no_text_as_a_document():
    pandas = pytest.importorskip("pandas")
    with refused(InvalidInputError, argument="qid"):
        group_rows(pandas.array(["a", None], dtype="string"))
    for missing in (None, float("nan"), pandas.NA, pandas.NaT):
        ids = np.array(["d1", missing], dtype=object)
        data = RankingData([[1.0], [2.0]], [1, 0], doc_ids=ids, comments=ids)
        assert data.doc_ids.tolist() == data.comments.tolist() == ["d1", ""]


@pytest.mark.parametrize("ids", [[1.0, None, 3.0], pl.Series([1, None, 3]), pa.array([1, None, 3])])
def test_ids_of_a_column_with_gaps_are_the_integers_that_they_were(ids):
    data = RankingData([[1.0], [2.0], [3.0]], [1, 0, 2], [1, 1, 1], doc_ids=ids)
    assert data.doc_ids.tolist() == ["1", "", "3"]


@pytest.mark.parametrize("encoded", [False, True])
def test_arrow_arrays_are_columns_too(encoded):
    names = pa.array(["b", "a", "b"])
    data = RankingData(
        [[1.0], [2.0], [3.0]], pa.array([1, 0, 2]), names.dictionary_encode() if encoded else names, doc_ids=names
    )
    assert (data.query_ids.tolist(), data.y.tolist(), data.doc_ids.tolist()) == (["b", "a"], [1, 2, 0], ["b", "b", "a"])
    with refused(InvalidInputError, argument="y"):
        RankingData([[1.0], [2.0]], pa.array([1, None]), [1, 1])
    assert RankingData([[1.0], [2.0]], pa.table({"grade": [1, 0]}), [1, 1]).y.tolist() == [1, 0]


def test_small_floats_name_queries():
    assert group_rows(np.array([1, 2, 1], dtype=np.float16)).query_ids.tolist() == [1, 2]


DATES = np.array(["2020-01-01", "NaT"], dtype="M8[ns]")
MASKED = np.ma.array([1.0, 2.0], mask=[False, True])


@pytest.mark.parametrize(
    ("values", "what"),
    [
        (DATES, "dates or durations"),
        (DATES - DATES[0], "dates or durations"),
        (MASKED, "masked"),
        ([1j, 2], "real|Real"),
    ],
)
@pytest.mark.parametrize("argument", ["X", "y", "sample_weight", "query_weight", "scores"])
def test_what_is_no_number_is_not_made_one(argument, values, what):
    """NumPy turns dates into nanoseconds, and leaves out masks and imaginary parts."""
    given = {"X": [[1.0], [2.0]], "y": [1, 0], "qid": [1, 2]}
    given[argument] = np.ma.reshape(values, (2, 1)) if argument == "X" and values is MASKED else values
    if argument == "X" and values is not MASKED:
        given["X"] = np.reshape(values, (2, 1))
    with pytest.raises(InvalidInputError, match=what):
        if argument == "scores":
            evaluate([1, 0], values, "AP", qid=[1, 2])
        else:
            RankingData(**given)


@pytest.mark.parametrize(("values", "what"), [(DATES, "dates or durations"), (MASKED, "masked")])
def test_learners_take_no_dates_and_no_masks(values, what):
    with refused(InvalidInputError, argument="scores"):
        PlattCalibrator().fit(values, [1, 0])
    column = np.ma.reshape(values, (2, 1)) if values is MASKED else np.reshape(values, (2, 1))
    with refused(InvalidInputError, argument="X"):
        SingleFeature().fit(column, [1, 0], qid=[1, 1])
    if values is DATES:
        frame = pd.DataFrame({"age": [1, 2], "day": values})
        with refused(InvalidInputError, argument="X"):
            SingleFeature().fit(frame, [1, 0], qid=[1, 1])


def test_a_masked_id_is_refused():
    ids = np.ma.array([1, 2], mask=[False, True])
    for argument, names in (("qid", {"qid": ids}), ("doc_ids", {"qid": [1, 1], "doc_ids": ids})):
        with refused(InvalidInputError, argument=argument):
            RankingData([[1.0], [2.0]], [1, 0], **names)


def test_parts_with_other_columns_are_not_put_together():
    a = RankingData([[1.0, 2.0]], [1], ["q"], feature_names=["bm25", "age"])
    b = RankingData([[2.0, 1.0]], [0], ["r"], feature_names=["age", "bm25"])
    with refused(InvalidInputError, argument="parts"):
        RankingData.concatenate([a, b])
    unnamed = RankingData([[3.0, 4.0]], [2], ["s"])
    assert RankingData.concatenate([unnamed, a]).feature_names == ["bm25", "age"]


def test_positions_stay_with_their_rows():
    X = np.arange(12.0).reshape(6, 2)
    data = RankingData(X, np.zeros(6), list("abacba")).with_position(X[:, 1])
    parts = [data.take_queries([2, 0]), data.take_queries(data.query_ids == "b")]
    for part in (data, *parts, RankingData.concatenate(parts), data.replaced(order=None)):
        np.testing.assert_array_equal(part.position, part.X[:, 1])
    assert RankingData.concatenate([parts[0], parts[1].replaced(position=None)]).position is None
    for wrong in ([1.0] * 5, [np.nan] * 6, ["x"] * 6):
        with refused(InvalidInputError, argument="position"):
            data.with_position(wrong)


def test_parts_without_weights_weigh_1():
    one = RankingData([[1.0], [2.0]], [1, 0], ["q", "q"], query_weight=[5.0], sample_weight=[2.0, 3.0])
    whole = RankingData.concatenate([one, RankingData([[3.0]], [1], ["r"])])
    assert whole.query_weight.tolist() == [5.0, 1.0]
    assert whole.sample_weight.tolist() == [2.0, 3.0, 1.0]
    assert RankingData.concatenate([whole, whole]).n_rows == 6


FORGOTTEN = np.arange(1_001)


@pytest.mark.parametrize(
    "call",
    [
        lambda: evaluate(FORGOTTEN % 2, FORGOTTEN, ["AP"]),
        lambda: evaluate(FORGOTTEN % 2, FORGOTTEN, [AP], doc_ids=FORGOTTEN.astype(str)),
        lambda: compare(FORGOTTEN % 2, {"a": FORGOTTEN, "b": -FORGOTTEN}),
        lambda: Judgements.from_labels(FORGOTTEN % 2),
        lambda: RankingData(FORGOTTEN[:, None], FORGOTTEN % 2),
        lambda: MinMaxInQuery().fit(FORGOTTEN[:, None]).transform(FORGOTTEN[:, None]),
        lambda: expected_relevant(FORGOTTEN / 1_001, 10),
        lambda: SingleFeature(0).fit([[0.0], [1.0]], [0, 1]).score(FORGOTTEN[:, None], FORGOTTEN % 2),
        lambda: SingleFeature(0).fit([[0.0], [1.0]], [0, 1]).rank(FORGOTTEN[:, None]),
    ],
)
def test_a_forgotten_qid_is_an_error_wherever_rows_are_ranked(call):
    with refused(InvalidInputError, argument="qid"):
        call()


def test_one_long_query_is_said_or_needs_none():
    assert evaluate(FORGOTTEN % 2, -FORGOTTEN, ["RR"], qid=np.zeros(1_001))["RR"] == 0.5
    assert evaluate(FORGOTTEN[:1_000] % 2, -FORGOTTEN[:1_000], ["RR"])["RR"] == 0.5
    assert RankingData(FORGOTTEN[:, None]).n_queries == 1  # rows to be scored, which belong to no query
