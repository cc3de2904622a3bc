"""Retrieval functions against Lucene's scores of the same documents (`golden/lucene.json`, float32)."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest

from truerank import retrieve
from truerank.io.documents import Document
from truerank.text.index import build_index

GOLDEN = json.loads((Path(__file__).parent / "golden" / "lucene.json").read_text())
MU, LAMBDA = 2500.0, 0.4


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    documents = [Document(name, {"text": text}, {}, {}) for name, text in GOLDEN["documents"].items()]
    return build_index(documents, tmp_path_factory.mktemp("lucene") / "index", analysers=["plain"])


@pytest.fixture(scope="module")
def shares():
    """Share of each word in the collection."""
    counts = Counter(" ".join(GOLDEN["documents"].values()).split())
    return {word: count / counts.total() for word, count in counts.items()}


def ours(index, function):
    return retrieve(
        index, GOLDEN["queries"], f"{function}(analyser=plain{', k3=inf' if function == 'bm25' else ''})"
    ).to_dict()


def test_bm25_is_lucenes_apart_from_its_constant(index):
    for query, scores in ours(index, "bm25").items():
        assert {name: score / 2.2 for name, score in scores.items()} == pytest.approx(
            GOLDEN["scores"]["bm25"][query], rel=1e-6
        )


def test_jelinek_mercer_is_lucenes_beside_what_all_documents_have(index, shares):
    for query, scores in ours(index, "jelinek-mercer").items():
        constant = sum(math.log(LAMBDA * shares[word]) for word in GOLDEN["queries"][query].split() if word in shares)
        assert {name: score - constant for name, score in scores.items()} == pytest.approx(
            GOLDEN["scores"]["jelinek-mercer"][query], rel=1e-5, abs=1e-6
        )


def test_dirichlet_is_lucenes_where_it_cuts_nothing_off(index, shares):
    """Lucene leaves out words that a document lacks and parts below 0: compared where there are neither."""
    compared = 0
    for query, scores in ours(index, "dirichlet").items():
        words = [word for word in GOLDEN["queries"][query].split() if word in shares]
        constant = sum(math.log(shares[word]) for word in words)
        for name, score in scores.items():
            text = GOLDEN["documents"][name].split()
            shrunk = math.log(MU / (len(text) + MU))
            if all(math.log1p(text.count(word) / (MU * shares[word])) + shrunk > 0 and word in text for word in words):
                assert score - constant == pytest.approx(GOLDEN["scores"]["dirichlet"][query][name], rel=1e-4, abs=1e-6)
                compared += 1
    assert compared > 50
