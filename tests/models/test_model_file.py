import json
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from support.refusals import refused
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.files import atomic_write
from truerank.models.model_file import decode, encode, from_json, load_model, to_json

DTYPES = [np.float64, np.float32, np.int64, np.int32, np.uint8, np.bool_]


@given(st.sampled_from(DTYPES).flatmap(lambda d: hnp.arrays(d, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0))))
def test_arrays_keep_every_bit(array):
    back = decode(from_json(to_json(encode(array))))
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    np.testing.assert_array_equal(back, array)
    if array.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(back[~np.isnan(back)]), np.signbit(array[~np.isnan(array)]))


def test_numbers_strings_and_nested_values_come_back():
    value = {"a": [1, 2.5, None, True, "x"], "b": {"c": float("inf"), "d": -0.0}, "e": np.array(["u", "vw"])}
    back = decode(from_json(to_json(encode(value))))
    assert back["a"] == value["a"]
    assert back["b"]["c"] == float("inf")
    assert str(back["b"]["d"]) == "-0.0"
    assert back["e"].tolist() == ["u", "vw"]


@pytest.mark.parametrize("value", [lambda x: x, {1.5: 2}, {(1, 2): 2}, np.array([1j]), {3, 4}])
def test_what_has_no_form_is_refused(value):
    with refused(InvalidInputError, code="cannot-keep"):
        encode(value)


@pytest.mark.parametrize("value", [{1: 2}, {"$class": "x"}, {"a": {np.int64(3): [0.5]}, "b": 1}])
def test_dicts_of_any_texts_and_numbers_come_back(value):
    assert decode(from_json(to_json(encode(value)))) == value


def test_a_dict_with_keys_of_an_array_of_texts_is_written_as_an_object():
    assert encode({np.str_("a"): [1]}) == {"a": [1]}


ARRAY = {"$array": "float64", "shape": [2], "values": [1.5, "nan"]}


@pytest.mark.parametrize(
    "change",
    [
        {"$array": "float16"}, {"$array": None}, {"shape": [3]}, {"shape": [-1, -2]}, {"shape": "2"}, {"values": None},
        {"values": [1.5, "1.5"]}, {"values": [1.5, True]}, {"values": [1.5, None]}, {"values": [[1.5], 2.0]},
        {"values": [ARRAY, 2.0]}, {"$array": "int64"}, {"$array": "uint8", "values": [1, 256]}, {"$array": "bool"},
        {"$array": "str"}, {"more": 1}, {"$array": ARRAY}, {"shape": [ARRAY]},
    ],
)  # fmt: skip
def test_a_damaged_array_is_refused(change):
    assert decode(from_json(json.dumps(ARRAY)))[0] == 1.5
    with pytest.raises(ModelFileError, match="array"):
        decode(from_json(json.dumps(ARRAY | change)))


@pytest.mark.parametrize("pairs", [1, [[1]], [[[1], 2]], [[None, 2]]])
def test_a_damaged_dict_is_refused(pairs):
    with refused(ModelFileError, code="dict"):
        decode({"$dict": pairs})


def model_text(**changes):
    document = {"format": "truerank-model", "version": 1, "truerank": "0", "model": None}
    return json.dumps(document | changes)


def array(**changes):
    return {"$array": "float64", "shape": [2], "values": [1.0, 2.0]} | changes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no valid JSON"),
        ("{", "no valid JSON"),
        ("[1]", "not a model of truerank"),
        ("\x00\x01", "no valid JSON"),
        ('{"format": "other"}', "not a model of truerank"),
        (model_text(version="1"), '"version" with an integer'),
        (model_text(version=2), "Upgrade truerank"),
        (model_text(model={"$class": "os.system"}), "unknown class"),
        (model_text(model={"$class": ["x"]}), "unknown class"),
        (model_text(model={"$class": "RankBoots", "params": {}, "fitted": {}}), "Did you mean 'RankBoost'"),
        (model_text(model={"$class": "x" * 5000}), "unknown class"),
        (model_text(model=array(values=[1.0])), "2 values in an array, got 1"),
        (model_text(model=array(values=[1.0, "rm"])), 'float64, got "rm"'),
        (model_text(model=array(shape=[-2])), "list of sizes"),
        (model_text(model=array(shape="x")), "list of sizes"),
        (model_text(model={"$array": "object", "shape": [0], "values": []}), "known dtype"),
        (model_text(model={"$array": "uint8", "shape": [1], "values": [300]}), "out of range"),
        (model_text(model={"$array": "int64", "shape": [1], "values": [True]}), "int64, got true"),
        (model_text(model={"$float": "1"}), "expected nan, inf"),
        (model_text(model={"$class": "Pipeline", "steps": [1]}), "pairs"),
        ("[" * 100_000, "no valid JSON"),
    ],
)
def test_damaged_models_are_refused_with_the_file_named(tmp_path, text, message):
    path = tmp_path / "model.json"
    path.write_text(text)
    with pytest.raises(ModelFileError, match=message) as caught:
        load_model(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 1500


@pytest.mark.parametrize(
    ("text", "library"),
    [("tree\nversion=v4\n", "LightGBM"), ('{"learner": {}, "version": [2, 1, 0]}', "XGBoost"),
     ('{"oblivious_trees": []}', "CatBoost"), ('{"name": "tree", "tree_info": []}', "LightGBM")],
)  # fmt: skip
def test_models_of_other_libraries_are_named(tmp_path, text, library):
    (tmp_path / "model").write_text(text)
    with refused(ModelFileError, code="foreign"):
        load_model(tmp_path / "model")


def test_a_failed_write_leaves_the_old_file_whole(tmp_path):
    path = tmp_path / "model.json"
    path.write_text("old")
    with pytest.raises(RuntimeError), atomic_write(path) as stream:
        stream.write("half of the n")
        raise RuntimeError
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["model.json"]


def test_a_kill_in_mid_write_leaves_the_old_file_whole(tmp_path):
    path = tmp_path / "model.json"
    path.write_text("old")
    code = textwrap.dedent(f"""
        import os, signal
        from truerank.core.files import atomic_write
        with atomic_write({str(path)!r}) as stream:
            stream.write("half of the n")
            stream.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    """)
    result = subprocess.run([sys.executable, "-c", code], check=False)
    assert result.returncode == -signal.SIGKILL
    assert path.read_text() == "old"


def test_permissions_of_an_existing_file_are_kept(tmp_path):
    path = tmp_path / "model.json"
    path.write_text("old")
    path.chmod(0o640)
    with atomic_write(path) as stream:
        stream.write("new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
