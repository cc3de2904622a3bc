"""Term statistics of LETOR 3.0's OHSUMED (`meta.tar.xz`), for BM25 with any k1 and b.

The archive has a file for each query, with its terms, their document frequencies in each stream (title, abstract, both)
of the 348,566 documents, and the length and the term frequencies of every judged document in each stream.
"""

from __future__ import annotations

import os
import tarfile
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar
from xml.etree import ElementTree

import numpy as np

from reproductions.protocol import rows_of
from truerank import RankingData
from truerank.core.errors import DataFileError

FILE = "letor3-ohsumed/meta.tar.xz"  # below the folder of the collections
STREAMS = ("title", "abstract", "title and abstract")
K1 = (0.4, 0.8, 1.2, 1.6, 2.0, 2.5, 3.0)
B = (0.0, 0.25, 0.5, 0.75, 1.0)
K3 = 7.0  # LETOR's


@dataclass(frozen=True)
class TermStatistics:
    """Term statistics of the judged documents, in the order of the rows of a `RankingData`.

    Attributes
    ----------
    n_documents : int
        Documents of the whole collection.
    mean_length : float64 array (3,)
        Mean number of terms of a document by stream, over the whole collection.
    lengths : float64 array (3, n)
        Number of terms of each row's document.
    frequencies : list of float64 arrays (3, rows of the query, terms of the query)
    containing : list of float64 arrays (3, terms of the query)
        Documents of the collection with the term.
    repeats : list of float64 arrays (terms of the query,)
        Count of the term's word in the query. Each occurrence is a separate term.
    offsets : int64 array (m + 1,)
    """

    streams: ClassVar[tuple[str, ...]] = STREAMS
    n_documents: int
    mean_length: np.ndarray
    lengths: np.ndarray = field(repr=False)
    frequencies: list[np.ndarray] = field(repr=False)
    containing: list[np.ndarray] = field(repr=False)
    repeats: list[np.ndarray] = field(repr=False)
    offsets: np.ndarray = field(repr=False)

    def bm25(self, stream: str, k1: float, b: float) -> np.ndarray:
        """BM25 of every row (n,), summed over the distinct words of the query.

            ln((N - df + ½)/(df + ½)) · tf (k1 + 1)/(tf + k1 (1 - b + b L/avdl)) · q (k3 + 1)/(q + k3)

        q is the count of the word in the query, and k3 = 7. k1 = 1.2 and b = 0.75 give LETOR's columns.
        """
        s = STREAMS.index(stream)
        norm = k1 * (1.0 - b + b * self.lengths[s] / self.mean_length[s])
        result = np.zeros(len(norm))
        for q, (tf, df, repeats) in enumerate(zip(self.frequencies, self.containing, self.repeats)):
            rows = slice(int(self.offsets[q]), int(self.offsets[q + 1]))
            # A repeated word is listed q times, so each occurrence has its share of q (k3 + 1)/(q + k3).
            idf = np.log((self.n_documents - df[s] + 0.5) / (df[s] + 0.5)) * (K3 + 1.0) / (repeats + K3)
            saturated = np.divide(tf[s], tf[s] + norm[rows, None], out=np.zeros_like(tf[s]), where=tf[s] > 0)
            result[rows] = (k1 + 1.0) * (saturated * idf).sum(axis=1)
        return result


def read_terms(path: str | os.PathLike[str], data: RankingData) -> TermStatistics:
    """Read the statistics of the rows of `data`.

    Parameters
    ----------
    path : path
        meta.tar.xz.
    data : RankingData
        OHSUMED with `doc_ids`; in any order.

    Raises
    ------
    DataFileError
        When the archive lacks a query or a document of `data`.
    """
    queries, about = {}, None
    with tarfile.open(path) as archive:
        for member in archive:
            if not member.isfile() or not member.name.endswith(".xml"):
                continue
            content = archive.extractfile(member)
            assert content is not None
            root = ElementTree.fromstring(content.read())
            if root.tag == "query":
                queries[_text(root, "id", path)] = _of_query(root, path)
            else:
                about = root
    if about is None:
        raise DataFileError("expected collectioninfo.xml in the archive", str(path))
    n_documents = int(_text(about, "docnum", path))
    total = np.array([float(_text(stream, "totaltermnum", path)) for stream in about.findall("stream")])
    if len(total) != len(STREAMS):
        raise DataFileError(f"expected the streams {', '.join(STREAMS)}, found {len(total)}", str(path))
    lengths, frequencies, containing, repeats = np.empty((len(STREAMS), data.n_rows)), [], [], []
    assert data.doc_ids is not None
    for q, name in enumerate(data.query_ids.tolist()):
        if str(name) not in queries:
            raise DataFileError(f"expected a file of query {name}; the archive has {len(queries)} queries", str(path))
        df, counts, documents = queries[str(name)]
        rows = range(int(data.offsets[q]), int(data.offsets[q + 1]))
        missing = [data.doc_ids[row] for row in rows if str(data.doc_ids[row]) not in documents]
        if missing:
            raise DataFileError(f"query {name}: document {missing[0]} is not in the archive", str(path))
        found = np.stack([documents[str(data.doc_ids[row])] for row in rows], axis=1)
        lengths[:, rows.start : rows.stop] = found[:, :, 0]
        frequencies.append(np.ascontiguousarray(found[:, :, 1:]))
        containing.append(df)
        repeats.append(counts)
    return TermStatistics(n_documents, total / n_documents, lengths, frequencies, containing, repeats, data.offsets)


def _of_query(root: Any, path: Any) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Document frequencies (3, t) and repeats (t,) of the terms; by document (3, 1 + t) its length and frequencies."""
    terms = root.findall("terminfo/term")
    df = np.array(
        [[float(_text(stream, "streamfrequency", path)) for stream in term.findall("stream")] for term in terms]
    )
    words = [_text(term, "word", path) for term in terms]
    documents = {}
    for document in root.findall("docinfo/doc"):
        rows = [
            [float(_text(stream, "length", path))]
            + [float(_text(term, "termfrequency", path)) for term in stream.findall("term")]
            for stream in document.findall("stream")
        ]
        documents[_text(document, "docid", path)] = np.array(rows)
    return df.T, np.array([float(words.count(word)) for word in words]), documents


def _text(element: Any, name: str, path: Any) -> str:
    found = element.findtext(name)
    if found is None:
        raise DataFileError(f"expected <{name}> in <{element.tag}>", str(path))
    return str(found).strip()


def tune(terms: Any, data: RankingData, queries: np.ndarray, measure: Any) -> dict[str, Any]:
    """The stream, k1 and b with the best `measure` on some queries of `data`; on a tie the first.

    `terms` has the names of its `streams`, and `bm25(stream, k1, b)` of every row of `data`.

    Returns
    -------
    dict
        `stream`, `k1`, `b`, `value`.
    """
    part = data.take_queries(queries)
    judgements, rows = part.judgements(), rows_of(data, queries)
    best: dict[str, Any] = {}
    for stream, k1, b in product(terms.streams, K1, B):
        value = float(measure.mean(judgements, terms.bm25(stream, k1, b)[rows]))
        if not best or value > best["value"]:
            best = {"stream": stream, "k1": k1, "b": b, "value": value}
    return best
