"""Evidence for rankers of texts: values of every system are of the same queries."""

from __future__ import annotations

import io
import random

import numpy as np
import pytest

from support.refusals import refused
from truerank import RidgeRanker, TextFeatures, TextRanker
from truerank.core.errors import InvalidInputError
from truerank.inspection.text_evidence import cross_validate_text
from truerank.io.documents import Document, read_judgements
from truerank.text.index import build_index

WORDS = [f"w{number}" for number in range(40)]


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    draw = random.Random(5)
    texts = [
        " ".join(draw.choices(WORDS, [1 / (1 + k) for k in range(40)], k=draw.randrange(3, 30))) for _ in range(60)
    ]
    queries = [Document(f"q{k}", {"text": " ".join(draw.choices(WORDS, k=3))}, {}, {}) for k in range(12)]
    index = build_index(
        [Document(f"d{k}", {"text": t}, {}, {}) for k, t in enumerate(texts)], tmp_path_factory.mktemp("i")
    )
    lines = [f"{query.id} 0 d{k} {int(query.text['text'].split()[0] in text.split())}"
             for query in queries for k, text in enumerate(texts)]  # fmt: skip
    return index, queries, read_judgements(io.BytesIO("\n".join(lines).encode()))


def test_the_order_of_queries_changes_no_pair(collection):
    index, queries, qrels = collection
    features = TextFeatures(["functions"], scaled=False).fit(index)
    data = features.transform(queries, index, qrels)
    model = TextRanker(RidgeRanker(), features)
    found = [
        cross_validate_text(model, data, index, own, qrels, cv=3)
        for own in (queries, random.Random(0).sample(queries, len(queries)))
    ]
    for name, values in found[0].comparison.per_query.items():
        np.testing.assert_array_equal(values, found[1].comparison.per_query[name])
    with refused(InvalidInputError, argument="queries"):
        cross_validate_text(model, data, index, queries[1:], qrels, cv=3)
    with refused(InvalidInputError, argument="cv"):
        cross_validate_text(model, data, index, queries, qrels, cv=2)
