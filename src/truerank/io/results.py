"""Read result lists of retrieval pipelines, in which an id may occur several times, as with chunks of a document.

    {"query_id": "q1", "results": ["d3", "d1"]}
    {"query_id": "q2", "results": [{"id": "d7", "score": 0.82}, {"id": "d2", "score": 0.4}]}

`io.judgements.runs` reads results from JSON with any nesting, tables and TREC runs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from truerank.core.errors import InvalidInputError, Remedy, TruerankError
from truerank.core.names import repeated
from truerank.data.grouping import id_text
from truerank.io.first_bytes import is_trec
from truerank.io.lists import as_lists
from truerank.io.streams import Source
from truerank.io.trec import Qrels, Run, as_run, read_run, run_name

if TYPE_CHECKING:
    from truerank.io.judgements.ratings import Row

COLLAPSE = Remedy('if results are chunks, to use the text before "#" as the document id', collapse="#")
ResultLists = dict[str, list[tuple[str, float]]]
"""The ids and scores of the results of each query, best first."""


def read_results(source: object) -> ResultLists:
    """Return the results of each query, best first, from a path, a `Run`, a dict by query, or a data frame.

    Results with scores are sorted by descending score; ties are sorted by descending id, as in trec_eval. Results
    without scores are scored by their rank.

    Raises
    ------
    DataFileError
        For a file without results, with its apparent format; for a score that is not a number.

    Examples
    --------
    >>> lists = read_results({"q1": ["d3", "d1", "d3"], "q2": {"d2": 0.4, "d7": 0.8}})
    >>> {query: [name for name, _ in found] for query, found in lists.items()}
    {'q1': ['d3', 'd1', 'd3'], 'q2': ['d7', 'd2']}
    """
    if isinstance(source, str | os.PathLike):
        with Source(source) as stream:
            if not is_trec(stream.peek(), 6):
                from truerank.io.judgements.runs import score_rows

                return best_first(score_rows(stream))
        source = read_run(source, repeated=True)
    if isinstance(source, Run):
        pairs = list(zip(source.doc_ids.tolist(), source.scores.tolist()))
        return {query: _by_score(pairs[own]) for query, own in source.rows().items()}
    lists = source if isinstance(source, Mapping) else as_lists(source, "score", repeated=True)
    if lists is None:
        raise InvalidInputError(
            f"results must be a path, a run, a dict by query or a frame, got {type(source).__name__}"
        )
    return best_first(row for query, found in lists.items() for row in _rows(query, found))


def _rows(query: object, found: Any) -> list[Row]:
    """Return the rows of a query's results: ids, pairs of id and score, objects, or scores by id."""
    from truerank.io.judgements.nested import rows_of

    if isinstance(found, list | tuple):
        found = [dict(zip(("id", "score"), one)) if isinstance(one, list | tuple) else one for one in found]
    rows = list(rows_of({"query_id": query, "results": found}, None, "score"))
    if isinstance(found, list) and len(rows) < len(found):
        raise InvalidInputError(
            f"query {query!r} has {len(found)} results, but only {len(rows)} ids. Expected ids, pairs of id and "
            "score, or objects with an id"
        )
    return rows


def ranked_scores(lists: Mapping[Any, Any]) -> dict[str, dict[str, float]]:
    """Convert `{query: [id, …]}`, best first, to `{query: {id: score}}`; raise if an id occurs twice in a list."""
    return as_scores(read_results(lists))


def run_of(source: object, tag: str = "", collapse: Any = None) -> Run:
    """Return a run of documents from results; `collapse` maps chunks to documents (`collapsed`).

    Raises
    ------
    TruerankError
        For an id that occurs twice for a query without `collapse`.

    Examples
    --------
    >>> run_of({"q1": {"a#2": 0.9, "b#1": 0.8, "a#1": 0.7}}, collapse="#").to_dict()
    {'q1': {'a': 0.9, 'b': 0.8}}
    """
    if collapse is not None:
        name = run_name(os.fspath(source)) if isinstance(source, str | os.PathLike) else tag
        return as_run(as_scores(collapsed(read_results(source), collapse)), tag or name)
    try:
        return as_run(source, tag)
    except TruerankError as error:
        if error.code == "twice":
            error.add(COLLAPSE)
        raise


def by_id(run: Run, qrels: Qrels) -> Run:
    """Replace query texts by the ids of the qrels in a run whose topics are texts; return any other run unchanged.

    >>> from truerank.io.trec import as_qrels
    >>> qrels = as_qrels({"q1": {"a": 1}})
    >>> qrels.texts = {"q1": "red shoes"}
    >>> by_id(as_run({"red shoes": {"a": 0.9}}), qrels).to_dict()
    {'q1': {'a': 0.9}}
    """
    ids, own = {text: query for query, text in qrels.texts.items()}, set(run.query_ids.tolist())
    if not own.isdisjoint(qrels.query_ids.tolist()) or own.isdisjoint(ids) or len(ids) < len(qrels.texts):
        return run
    names = np.array([ids.get(query, query) for query in run.query_ids.tolist()])
    return Run(names, run.offsets, run.doc_ids, run.scores, run.tag, run.contradicts_ranks)


def best_first(rows: Iterable[Row]) -> ResultLists:
    """Return the lists of rows with scores, best first; raise if a score is not a number."""
    from truerank.io.judgements.ratings import read_grade

    found: ResultLists = {}
    for row in rows:
        score = read_grade(row.grade)
        if score is None:
            raise InvalidInputError(
                f"query {row.query!r}: the score of {row.document!r} is {row.grade!r}. Expected a number for every "
                "result"
            )
        found.setdefault(row.query, []).append((row.document, score))
    return {query: _by_score(own) for query, own in found.items()}


def _by_score(pairs: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    return sorted(pairs, key=lambda pair: (pair[1], pair[0]), reverse=True)


def as_scores(lists: ResultLists) -> dict[str, dict[str, float]]:
    """Convert results to `{query: {id: score}}`; raise if an id occurs twice in a list."""
    for query, own in lists.items():
        if twice := repeated(name for name, _ in own):
            raise InvalidInputError(
                f"query {query!r} has result {twice[0]!r} twice. Keep one of them",
                remedies=[COLLAPSE],
                code="repeated-result",
            )
    return {query: dict(own) for query, own in lists.items()}


def collapsed(lists: ResultLists, how: str | Mapping[str, str] | Callable[[str], str]) -> ResultLists:
    """Return lists of documents from lists of chunks: each document once, at the place of its best chunk.

    Parameters
    ----------
    lists : dict of query to list of (id, score)
    how : str, mapping or function
        A separator ("#": the document is the text before the last one), a regular expression with one group (the
        document), a mapping of chunk to document, or a function. An id that does not match is itself a document.

    Examples
    --------
    >>> lists = read_results({"q1": ["a#2", "b#1", "a#1", "c"]})
    >>> [[name for name, _ in collapsed(lists, how)["q1"]] for how in ("#", "(.*)#", {"a#2": "a", "a#1": "a"})]
    [['a', 'b', 'c'], ['a', 'b', 'c'], ['a', 'b#1', 'c']]
    """
    document_of, result = _document_of(how), {}
    for query, own in lists.items():
        best: dict[str, float] = {}
        for name, score in own:
            best.setdefault(document_of(name), score)
        result[query] = list(best.items())
    return result


def _document_of(how: str | Mapping[str, str] | Callable[[str], str]) -> Callable[[str], str]:
    if isinstance(how, Mapping):
        known = {id_text(chunk): id_text(document) for chunk, document in how.items()}
        return lambda name: known.get(name, name)
    if callable(how):
        return how
    if not how:
        raise InvalidInputError(argument="collapse", expected="a separator or a regular expression", value=how)
    try:
        pattern = re.compile(how)
    except re.error:
        pattern = None
    if pattern is not None and pattern.groups == 1:
        return lambda name: (found[1] or name) if (found := pattern.search(name)) else name
    return lambda name: name.rpartition(how)[0] or name
