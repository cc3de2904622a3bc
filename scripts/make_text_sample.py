"""Make the sample that the demo trains on: features of the Cranfield collection by `TextFeatures`, numbers only.

    python scripts/make_text_sample.py FOLDER_OF_CRANFIELD src/truerank/data/sample

FOLDER_OF_CRANFIELD holds `cran.all.1400.gz`, `cran.qry.gz` and `cranqrel.gz`. The same input gives the same bytes.

Candidates of a query are those of `TextFeatures(depth=20)`: the union of the best 20 documents by each retrieval
function, by feedback and in the latent space. Columns are those of `COLUMNS`, with four significant digits.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

from truerank.data.ranking_data import RankingData
from truerank.io.documents import read_documents, read_judgements, read_queries
from truerank.io.letor.write import write_letor
from truerank.text.features import TextFeatures
from truerank.text.index import build_index

DEPTH, DIGITS = 20, 4
COLUMNS = (
    "bm25.porter-stop.all",
    "bm25.porter-stop.title",
    "bm25.plain.all",
    "cosine.porter-stop.all",
    "tfidf.porter-stop.all",
    "dirichlet.porter-stop.all",
    "jelinek-mercer.porter-stop.all",
    "xu-li-tf-share-idf.all",
    "rocchio-5",
    "rocchio-20",
    "rm3-10",
    "latent-100",
    "latent-300",
    "latent-feedback-5-100",
    "latent-feedback-5-300",
    "coverage.all",
    "idf-coverage.all",
    "ordered-windows",
    "unordered-windows",
    "length.all",
)


def main(source: Path, target: Path) -> None:
    """Read the collection, write `cranfield-text.txt.gz`."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two documents have no text
        index = build_index(read_documents(source / "cran.all.1400.gz"), f"{folder}/index")
        features = TextFeatures(depth=DEPTH, scaled=False).fit(index)
        data = features.transform(
            read_queries(source / "cran.qry.gz"), index, read_judgements(source / "cranqrel.gz")
        )  # fmt: skip
    assert data.feature_names is not None
    kept = data.X[:, [data.feature_names.index(name) for name in COLUMNS]].astype(np.float64)
    X = np.array([[float(f"{value:.{DIGITS}g}") for value in row] for row in kept.tolist()])
    sample = RankingData.from_grouped(
        X, data.y, data.offsets, data.query_ids, doc_ids=data.doc_ids, feature_names=COLUMNS
    )  # fmt: skip
    path = target / "cranfield-text.txt.gz"
    write_letor(sample, path)
    print(sample, int((sample.y > 0).sum()), "relevant,", path.stat().st_size, "bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
