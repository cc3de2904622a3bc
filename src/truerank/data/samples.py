"""The small real data set of truerank."""

from __future__ import annotations

from pathlib import Path

from truerank.core.checks import check_choice
from truerank.data.ranking_data import RankingData
from truerank.io.letor.read import read_letor

SAMPLES = {"cranfield": "cranfield.txt.gz", "cranfield-text": "cranfield-text.txt.gz"}
FILES = SAMPLES | {"cranfield-qrels": "cranfield.qrels.gz"}


def sample_path(name: str = "cranfield") -> Path:
    """Return the path of a sample's file.

    Parameters
    ----------
    name : {"cranfield", "cranfield-text", "cranfield-qrels"}, default="cranfield"
        LETOR text, or all judgements of the collection as TREC qrels (LETOR text has only its candidates).

    Examples
    --------
    >>> sample_path().name
    'cranfield.txt.gz'
    """
    check_choice(name, "name", FILES)
    return Path(__file__).parent / "sample" / FILES[name]


def load_sample(name: str = "cranfield") -> RankingData:
    """Return judged rankings of the Cranfield collection: 225 queries, 15,083 rows, 20 features, grades 0 to 4.

    `data/sample/README.md` of the package describes the origin, the terms and the features.

    Parameters
    ----------
    name : {"cranfield", "cranfield-text"}, default="cranfield"
        "cranfield-text" has different candidates, with 20 features of `TextFeatures` (13,298 rows).

    Returns
    -------
    RankingData
        With document ids and feature names.

    Examples
    --------
    >>> data = load_sample()
    >>> data
    RankingData(15083 rows, 225 queries, 20 features)
    >>> data.feature_names[0], float(data.X[0, 0]), data.doc_ids[0], float(data.y[0])
    ('bm25', 16.89, '12', 2.0)
    """
    check_choice(name, "name", SAMPLES)
    return read_letor(sample_path(name))
