"""BM25 from OHSUMED's term statistics: by hand on a made-up archive, LETOR's own columns on the real one."""

from __future__ import annotations

import io
import math
import tarfile

import numpy as np
import pytest
from reproductions.adarank.ohsumed_terms import FILE, STREAMS, read_terms, tune

from reproductions import protocol
from truerank.core.errors import DataFileError
from truerank.data.ranking_data import RankingData
from truerank.measures import parse_measure

# Query -> its words' document frequencies; documents -> length and frequencies of the terms, the same in all streams.
QUERIES = {
    "7": ([("x", 10), ("y", 2), ("x", 10)], {"a": (4, [1, 0, 1]), "b": (8, [3, 2, 3])}),
    "8": ([("z", 5)], {"c": (6, [0]), "a": (4, [2])}),
}


def archive(path):
    def streams(text):
        return "".join(f"<stream><streamid>{s}</streamid>{text}</stream>" for s in (1, 2, 3))

    files = {
        "Meta/collectioninfo.xml": "<collection><docnum>100</docnum>"
        + streams("<totaltermnum>500</totaltermnum>")
        + "</collection>"
    }
    for name, (df, documents) in QUERIES.items():
        terms = "".join(
            f"<term><word>{word}</word>{streams(f'<streamfrequency>{x}</streamfrequency>')}</term>" for word, x in df
        )
        text = ""
        for document, (length, tf) in documents.items():
            counts = "".join(f"<term><termfrequency>{x}</termfrequency></term>" for x in tf)
            text += f"<doc><docid>{document}</docid>{streams(f'<length>{length}</length>{counts}')}</doc>"
        files[f"Meta/query-{name}.xml"] = (
            f"<query><id>{name}</id><terminfo>{terms}</terminfo><docinfo>{text}</docinfo></query>"
        )
    with tarfile.open(path, "w:xz") as out:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            out.addfile(info, io.BytesIO(text.encode()))
    return path


def test_bm25_by_hand(tmp_path):
    data = RankingData(np.zeros((4, 1)), [1, 0, 0, 1], [8, 8, 7, 7], doc_ids=["a", "c", "b", "a"])
    terms = read_terms(archive(tmp_path / "meta.tar.xz"), data)
    k1, b, mean = 1.5, 0.5, 5.0

    def part(tf, df, length):
        return math.log((100 - df + 0.5) / (df + 0.5)) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean))

    for stream in STREAMS:
        twice = 2 * 8 / (2 + 7)  # x stands twice in query 7
        expected = [part(2, 5, 4), 0.0, twice * part(3, 10, 8) + part(2, 2, 8), twice * part(1, 10, 4)]
        np.testing.assert_allclose(terms.bm25(stream, k1, b), expected, rtol=1e-14)
    # In query 8 the relevant document stands first whatever k1 and b, in query 7 never.
    found = tune(terms, data, np.array([0]), parse_measure("AP", "ranklib"))
    assert found == {"stream": "title", "k1": 0.4, "b": 0.0, "value": 1.0}


def test_what_is_not_there_is_named(tmp_path):
    path = archive(tmp_path / "meta.tar.xz")
    with pytest.raises(DataFileError, match="expected a file of query 9"):
        read_terms(path, RankingData(np.zeros((1, 1)), [1], [9], doc_ids=["a"]))
    with pytest.raises(DataFileError, match="document z is not in the archive"):
        read_terms(path, RankingData(np.zeros((1, 1)), [1], [8], doc_ids=["z"]))


@pytest.mark.data
def test_letors_own_columns(collections):
    data = protocol.load_collection(collections, "ohsumed-null").data
    terms = read_terms(collections / FILE, data)
    for stream, column in zip(STREAMS, (10, 25, 40)):
        ours, theirs = terms.bm25(stream, 1.2, 0.75), data.X[:, column]
        there = np.isfinite(theirs)  # LETOR prints six digits, and NULL where the stream has no term of the query
        np.testing.assert_allclose(ours[there], theirs[there], rtol=0, atol=1e-5)
        assert there.sum() > 10_000
        assert not ours[~there].any()
