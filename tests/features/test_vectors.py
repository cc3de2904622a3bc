"""Vectors of documents and queries: files, exhaustive retrieval against float64, and features against formulas."""

import json
import struct
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.refusals import refused
from truerank import RankingData, read_run, read_vectors, retrieve_vectors, vector_features
from truerank.cli import main
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.features import vectors as under_test

RNG = np.random.default_rng(5)


def safetensors(path, arrays):
    kinds = {"float16": "F16", "float32": "F32", "float64": "F64", "int32": "I32"}
    header, start = {"__metadata__": {"format": "pt"}}, 0
    for name, one in arrays.items():
        header[name] = {"dtype": kinds[str(one.dtype)], "shape": one.shape, "data_offsets": [start, start + one.nbytes]}
        start += one.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(one.tobytes() for one in arrays.values()))


def every_form(folder, values, ids):
    """The same vectors in each kind of file, by name."""
    for name in ("a.npy", "a.safetensors"):
        (folder / f"{name}.ids").write_text("\n".join(ids) + "\n")
    np.save(folder / "a.npy", values)
    safetensors(folder / "a.safetensors", {"embeddings": values, "bias": values[0]})
    rows = values.astype(np.float32).tolist()
    kinds = {"fixed": pa.list_(pa.float32(), values.shape[1]), "list": pa.list_(pa.float64())}
    for name, kind in kinds.items():
        table = pa.table({"doc_id": ids, "text": ["x"] * len(ids), "vector": pa.array(rows, type=kind)})
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=7)
        with pa.OSFile(str(folder / f"{name}.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=5)
    return [
        folder / name
        for name in ("a.npy", "a.safetensors", *(f"{k}{e}" for k in kinds for e in (".parquet", ".arrow")))
    ]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_every_file_holds_the_same_vectors(tmp_path, dtype):
    values, ids = RNG.normal(size=(23, 6)).astype(dtype), [f"d{k}" for k in range(23)]
    for path in every_form(tmp_path, values, ids):
        found = read_vectors(str(path))
        assert found.ids.texts.tolist() == ids
        assert np.array_equal(np.asarray(found.values, dtype=np.float32), values.astype(np.float32))
        if path.suffix in (".npy", ".safetensors"):
            assert isinstance(found.values, np.memmap)


def brute(documents, queries, similarity):
    scores = queries @ documents.T
    if similarity == "cosine":
        norms = np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(documents, axis=1)
        scores = np.divide(scores, norms, out=np.zeros_like(scores), where=norms > 0)
    return scores


@pytest.mark.parametrize("similarity", ["inner-product", "cosine"])
@pytest.mark.parametrize(("n", "m", "p", "depth"), [(1, 1, 1, 5), (300, 40, 8, 7), (500, 3, 17, 500), (90, 70, 4, 1)])
def test_retrieval_is_that_of_float64(monkeypatch, similarity, n, m, p, depth):
    monkeypatch.setattr(under_test, "_ROWS", 64)
    monkeypatch.setattr(under_test, "_QUERIES", 32)
    documents, queries = RNG.normal(size=(n, p)), RNG.normal(size=(m, p))
    documents[::11] = documents[0]  # equal documents keep their order
    if n > 50:
        documents[13] = 0.0
    run = retrieve_vectors(
        read_vectors(documents, [f"d{k}" for k in range(n)]), read_vectors(queries, [f"q{k}" for k in range(m)]),
        depth=depth, similarity=similarity,
    )  # fmt: skip
    expected = brute(documents, queries, similarity)
    assert run.query_ids.tolist() == [f"q{k}" for k in range(m)]
    for q, own in enumerate(run.rows().values()):
        order = np.argsort(-np.round(expected[q], 12), kind="stable")[:depth]
        assert run.doc_ids[own].tolist() == [f"d{k}" for k in order]
        assert run.scores[own] == pytest.approx(expected[q][order], abs=1e-12)


def test_scores_do_not_depend_on_the_other_queries():
    documents = {f"d{k}": row for k, row in enumerate(RNG.normal(size=(400, 33)))}
    queries = {f"q{k}": row for k, row in enumerate(RNG.normal(size=(50, 33)))}
    whole = retrieve_vectors(documents, queries, depth=20).to_dict()
    for name in list(queries)[:5]:
        assert retrieve_vectors(documents, {name: queries[name]}, depth=20).to_dict()[name] == whole[name]


def test_order_of_near_scores_is_that_of_float64():
    """Scores that are equal in float32 and differ in float64."""
    base = np.ones((40, 3))
    base[:, 0] += np.arange(40)[::-1] * 1e-10
    found = retrieve_vectors({f"d{k}": row for k, row in enumerate(base)}, {"q": [1.0, 0.0, 0.0]}, depth=24)
    assert found.doc_ids.tolist() == [f"d{k}" for k in range(24)]


def test_memory_is_bounded(tmp_path):
    """A file of 230 MB is searched with much less memory of the process's own."""
    rows = 150_000
    held = np.lib.format.open_memmap(tmp_path / "d.npy", "w+", np.float32, (rows, 384))
    for start in range(0, rows, 10_000):
        held[start : start + 10_000] = RNG.normal(size=(10_000, 384))
    del held
    (tmp_path / "d.npy.ids").write_text("\n".join(map(str, range(rows))))
    code = (
        "import sys, numpy as np, truerank\n"
        "from truerank.features import vectors\n"
        "vectors._ROWS = 1024\n"
        "def own(): return int(open('/proc/self/status').read().split('RssAnon:')[1].split()[0])\n"
        "held = truerank.read_vectors(sys.argv[1])\n"
        "before = own()\n"
        "queries = {str(k): row for k, row in enumerate(np.random.default_rng(0).normal(size=(20, 384)))}\n"
        "truerank.retrieve_vectors(held, queries, depth=100)\n"
        "print(own() - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "d.npy")], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 100_000  # kB


@pytest.mark.parametrize(
    ("values", "code"), [([[np.nan, 1.0]], "not-finite"), ([[np.inf, 1.0]], "not-finite"), ([[1.0]], "length")]
)
def test_vectors_that_cannot_be_compared(values, code):
    for documents, queries in (({"a": values[0]}, {"q": [1.0, 0.0]}), ({"a": [1.0, 0.0]}, {"q": values[0]})):
        with pytest.raises(InvalidInputError) as caught:
            retrieve_vectors(documents, queries)
        assert caught.value.code == code


def test_damaged_files_are_refused(tmp_path):
    values, ids = RNG.normal(size=(9, 3)).astype(np.float32), [f"d{k}" for k in range(9)]
    for path in every_form(tmp_path, values, ids):
        whole = path.read_bytes()
        for length in (0, 5, 20, len(whole) // 2):
            path.write_bytes(whole[:length])
            with pytest.raises((DataFileError, InvalidInputError)):
                read_vectors(str(path))
    np.save(tmp_path / "pickled.npy", np.array([{}, []], dtype=object), allow_pickle=True)
    safetensors(tmp_path / "two.safetensors", {"a": values, "b": values})
    safetensors(tmp_path / "int.safetensors", {"a": values.astype(np.int32)})
    np.save(tmp_path / "flat.npy", values[0])
    (tmp_path / "x.bin").write_bytes(b"x")
    ragged = pa.table({"doc_id": ["a", "b"], "v": [[1.0], [1.0, 2.0]]})
    pq.write_table(ragged, tmp_path / "ragged.parquet")
    even = pa.table({"doc_id": ["a", "b"], "v": [[1.0], [1.0, 2.0, 3.0]]})
    pq.write_table(even, tmp_path / "even.parquet")
    names = ("pickled.npy", "two.safetensors", "int.safetensors", "flat.npy", "x.bin", "ragged.parquet", "even.parquet")
    for name in names:
        with pytest.raises((DataFileError, InvalidInputError)):
            read_vectors(str(tmp_path / name), ids)
    assert read_vectors(str(tmp_path / "two.safetensors"), ids, column="b").values.shape == (9, 3)
    np.save(tmp_path / "a.npy", values)
    for wrong in (ids[:-1], [*ids[:-1], ids[0]], [*ids[:-1], ""]):
        with pytest.raises(InvalidInputError):
            read_vectors(str(tmp_path / "a.npy"), wrong)
    (tmp_path / "b.npy").write_bytes((tmp_path / "a.npy").read_bytes())
    with pytest.raises(InvalidInputError) as caught:
        read_vectors(str(tmp_path / "b.npy"))
    assert caught.value.argument == "ids"


def test_features_equal_their_formulas():
    documents = {f"d{k}": RNG.normal(size=4) for k in range(30)}
    queries = {f"q{k}": RNG.normal(size=4) for k in range(6)}
    documents["d3"] = documents["d4"]
    data = RankingData(
        RNG.normal(size=(60, 2)), RNG.integers(0, 2, 60), np.repeat(list(queries), 10),
        doc_ids=[f"d{k}" for _ in queries for k in RNG.permutation(31)[:10]],
    )  # fmt: skip
    before = data.X.copy()
    pair = documents, queries
    halves = {name: row[:2] for name, row in documents.items()}, {name: row[:2] for name, row in queries.items()}
    found = vector_features(data, {"one": pair, "half": halves})
    assert np.array_equal(data.X, before)
    assert found.n_features == 12
    for (held, asked), first in ((pair, 2), (halves, 7)):
        for start, stop, query in zip(found.offsets, found.offsets[1:], found.query_ids.tolist()):
            names = found.doc_ids[start:stop].tolist()
            inner = np.array([held[name] @ asked[query] if name in held else np.nan for name in names])
            norm = [np.linalg.norm(held.get(name, [np.nan])) * np.linalg.norm(asked[query]) for name in names]
            cosine = inner / norm
            inner, cosine = (np.where(np.isnan(one), np.nanmin(one), one) for one in (inner, cosine))
            rank = [(inner > one).sum() + 1 + ((inner == one).sum() - 1) / 2 for one in inner]
            gap = [one - max(rest, default=one) for k, one in enumerate(inner)
                   for rest in [[x for j, x in enumerate(inner) if x < one or (x == one and j > k)]]]  # fmt: skip
            z = (inner - inner.mean()) / inner.std()
            expected = np.column_stack([inner, cosine, rank, gap, z])
            assert found.X[start:stop, first : first + 5] == pytest.approx(expected, abs=1e-6)
    with pytest.raises(InvalidInputError):
        vector_features(data, {"one": (documents, {"q0": queries["q0"]})})


def test_commands(tmp_path, capsys):
    documents, queries = RNG.normal(size=(40, 5)).astype(np.float32), RNG.normal(size=(6, 5)).astype(np.float32)
    ids, names = [f"d{k}" for k in range(40)], [f"q{k}" for k in range(6)]
    for name, values, own in (("docs", documents, ids), ("queries", queries, names)):
        np.save(tmp_path / f"{name}.npy", values)
        (tmp_path / f"{name}.txt").write_text("\n".join(own))
    words = [
        "--vectors",
        "docs.npy",
        "--ids",
        "docs.txt",
        "--query-vectors",
        "queries.npy",
        "--query-ids",
        "queries.txt",
    ]
    words = [word if word[0] == "-" else str(tmp_path / word) for word in words]
    run, out = str(tmp_path / "dense.run"), str(tmp_path / "rows.csv")
    assert main(["text", "search", *words, "--depth", "9", "-o", run]) == 0
    expected = retrieve_vectors(read_vectors(documents, ids), read_vectors(queries, names), depth=9)
    assert read_run(run).to_dict() == expected.to_dict()
    for name in ("docs", "queries"):
        (tmp_path / f"{name}.txt").rename(tmp_path / f"{name}.npy.ids")
    vectors = ["--vectors", words[1], "--query-vectors", words[5]]
    assert main(["text", "features", "--runs", run, *vectors, "-o", out]) == 0
    assert "docs.z-score" in (tmp_path / "rows.csv").read_text().splitlines()[0]
    assert main(["text", "search", *words[:2], "-o", run]) == 2
    assert main(["text", "search", "index", "queries", *words, "-o", run]) == 2
    assert main(["text", "search", "-o", run]) == 2
    assert main(["text", "features", "--runs", run, *vectors[:2], "-o", out]) == 2
    capsys.readouterr()


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1.0, 1e30, 1e200])
def test_the_cosine_does_not_depend_on_the_length_of_vectors(scale):
    rng = np.random.default_rng(0)
    documents, queries = rng.normal(size=(300, 6)), rng.normal(size=(3, 6))
    lengths = np.sqrt((documents**2).sum(axis=1, keepdims=True))
    expected = np.argsort(-(documents / lengths) @ queries.T, axis=0, kind="stable")[:5].T
    held = dict(zip(map(str, range(300)), scale * documents))
    found = retrieve_vectors(held, dict(zip("abc", queries / scale)), depth=5, similarity="cosine").to_dict()
    assert [list(map(int, one)) for one in found.values()] == expected.tolist()


@pytest.mark.parametrize("similarity", ["inner-product", "cosine"])
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_the_vector_that_is_not_finite_is_named(similarity, wrong):
    held = {f"d{k}": [1.0, float(k)] for k in range(4)}
    for documents, query, name in ((held | {"d2": [1.0, wrong]}, [1.0, 1.0], "'d2'"), (held, [1.0, wrong], "'q'")):
        with refused(InvalidInputError, code="not-finite") as caught:
            retrieve_vectors(documents, {"q": query}, similarity=similarity)
        assert name in str(caught.value)


def test_what_is_no_table_of_vectors_is_refused_and_a_series_is_one():
    frame = pd.DataFrame({"id": ["a", "b"], "vector": [[1.0, 2.0], [3.0, 4.0]]})
    assert read_vectors(frame.set_index("id")["vector"]).ids.texts.tolist() == ["a", "b"]
    with refused(InvalidInputError, argument="source"):
        read_vectors(frame)
    for values, ids in ((np.zeros((0, 3)), []), ([[1.0], [1.0, 2.0]], "ab")):
        with refused(InvalidInputError, code="shape"):
            read_vectors(values, list(ids))
    with refused(InvalidInputError, code="id"):
        read_vectors(np.ones((3, 2)), ["a", "b", "a"])
