"""Stand-ins on a small made-up collection in the form of CACM and NPL: features, trials, deals, resuming."""

from __future__ import annotations

import argparse
import gzip

import numpy as np
import pytest

from reproductions import stand_ins, svm_map
from truerank.measures import parse_measure

WORDS = ("heat", "flow", "wing", "shock", "layer", "plate", "speed", "sound", "tube", "jet")


def collection(folder, rng):
    """60 documents of twelve words, 12 queries of two words; documents with both are relevant, and cite each other."""
    texts = [rng.choice(WORDS, 12, p=np.array([3, 3, 3, 1, 1, 1, 1, 1, 1, 1]) / 16) for _ in range(60)]
    asked = [(WORDS[k % 10], WORDS[(k + 3) % 10]) for k in range(12)]
    found = [[d for d, text in enumerate(texts, 1) if {a, b} <= set(text)] for a, b in asked]
    npl, cacm = folder / "npl", folder / "cacm"
    for place in (npl, cacm):
        place.mkdir(parents=True)

    def write(path, text):
        path.write_bytes(gzip.compress(text.encode()))

    write(npl / "doc-text.trec.gz", "".join(
        f"<DOC>\n<DOCNO>{d}</DOCNO>\n{' '.join(text)}\n</DOC>\n" for d, text in enumerate(texts, 1)))  # fmt: skip
    write(npl / "query-text.trec.gz", "".join(
        f"<top>\n<num>{q}</num><title>\n{a} {b}\n</title>\n</top>\n" for q, (a, b) in enumerate(asked, 1)))  # fmt: skip
    write(npl / "qrels.gz", "".join(f"{q} 0 {d} 1\n" for q, some in enumerate(found, 1) for d in some))
    links = [[other for some in found if d in some for other in some] for d in range(1, 61)]
    write(cacm / "cacm.all.gz", "".join(
        f".I {d}\n.T\n{' '.join(text)}\n.X\n" + "".join(f"{other}\t5\t{d}\n" for other in links[d - 1])
        + f"{d}\t6\t{d}\n" for d, text in enumerate(texts, 1)))  # fmt: skip
    write(cacm / "query.text.gz", "".join(f".I {q}\n.W\n{a} {b}\n" for q, (a, b) in enumerate(asked, 1)))
    write(cacm / "qrels.text.gz", "".join(f"{q:02d} {d:4d}  0 0\n" for q, some in enumerate(found, 1) for d in some))
    return found, links


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.setattr(stand_ins, "TOPICS", 10)
    monkeypatch.setattr(svm_map, "GRIDS", {name: grid[2:8:3] for name, grid in svm_map.GRIDS.items()})
    return tmp_path / "data", *collection(tmp_path / "data", np.random.default_rng(0))


def run(root, out):
    parser = argparse.ArgumentParser()
    stand_ins.configure(parser)
    return stand_ins.run(parser.parse_args(["--data", str(root), "--quick", "--out", str(out)]))


def test_all_parts_run_resume_and_print(small, tmp_path, capsys, monkeypatch):
    found = run(small[0], tmp_path / "out")
    assert set(found["functions"]) == {"NPL"}
    assert set(found["boosting"]) == {"NPL", "CACM"}
    assert set(svm_map.METHODS) <= set(found["functions"]["NPL"]["MAP"])
    assert found["functions"]["NPL"]["roles"]["training"] == [0, 1]
    for part in found["boosting"].values():
        assert part["queries"] == 12
        assert set(part["means"]) == set(stand_ins.ROWS)
    stand_ins.print_tables(found)
    assert f"{found['boosting']['CACM']['means']['RankBoost']['AP(rel=2)']['mean']:.4f}" in capsys.readouterr().out
    monkeypatch.setattr(svm_map, "one_trial", lambda *arguments: pytest.fail("computed again"))
    again = run(small[0], tmp_path / "out")
    assert again["functions"]["NPL"]["MAP"] == found["functions"]["NPL"]["MAP"]
    assert again["boosting"]["CACM"]["means"] == found["boosting"]["CACM"]["means"]


def test_rows_are_judged_documents_with_the_best_bm25_of_the_index(small, tmp_path):
    root, relevant, _ = small
    own = stand_ins.TextCollection(str(root), "NPL", str(tmp_path))
    own.data = data = stand_ins.features_of(own)
    assert data.n_features == 7
    assert set(np.unique(data.y)) == {0.0, 2.0}
    for q, (a, b) in enumerate(zip(data.offsets[:-1], data.offsets[1:])):
        grades = dict(zip(data.doc_ids[a:b].tolist(), data.y[a:b].tolist()))
        assert {int(name) for name, grade in grades.items() if grade} == set(relevant[int(data.query_ids[q]) - 1])
        assert list(grades) == sorted(grades, reverse=True)
    scores = own.bm25("text", 1.2, 0.75)
    column = data.X[:, 6]  # ln of BM25, scaled within the query: the same order
    for a, b in zip(data.offsets[:-1], data.offsets[1:]):
        assert (np.argsort(scores[a:b], kind="stable") == np.argsort(column[a:b], kind="stable")).mean() > 0.8
    judged = parse_measure("AP").mean(data.judgements(), scores)
    assert judged > parse_measure("AP").mean(data.judgements(), -scores)


def test_links_make_pages_of_many_citations_important(small, tmp_path):
    root, _, links = small
    own = stand_ins.TextCollection(str(root), "CACM", str(tmp_path))
    data = stand_ins.features_of(own)
    assert data.n_features == 8
    assert data.X.min() == 0.0
    assert data.X.max() == 1.0
    cited = np.array([len({other for other in links[int(d) - 1] if other > int(d)}) for d in data.doc_ids.tolist()])
    first = slice(int(data.offsets[0]), int(data.offsets[1]))
    assert np.corrcoef(cited[first], data.X[first, 7])[0, 1] > 0.5
