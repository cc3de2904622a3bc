"""Fetch features from a search engine: OpenSearch, Elasticsearch, Solr, and the logs of the LTR plugins.

`FeatureSet.spec` (`feature_sets.py`) creates the specification of the requests. `named-queries` needs no plugin: each
query has a name, and the engine returns for every document the names that matched with their scores
(`include_named_queries_score`; OpenSearch, and Elasticsearch from 8.8). Older engines receive one request for each
feature. The value of a query that does not match is 0. `ltr-log` reads the log of the Elasticsearch and OpenSearch LTR
plugins (`featureset`, `params`), and `solr` the `[features]` transformer (`store`, `efi`). `{{query}}` is its text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from truerank.core.errors import EngineError, InvalidInputError, Remedy
from truerank.core.files import refuse_planted
from truerank.core.json_lines import JsonLines
from truerank.core.names import repeated
from truerank.core.printing import note, progress
from truerank.core.types import PathLike
from truerank.data.ranking_data import RankingData
from truerank.io.documents import Document
from truerank.io.engine import Engine, checked, filled, quoted, told
from truerank.io.trec import Qrels

NAMED_SCORES = "?include_named_queries_score=true"
_OTHER_FILE = (
    "the file was written for other requests (another engine, specification, queries or judgements), or is of another "
    "kind. Delete it to start again"
)


class EngineRows(NamedTuple):
    """Judged pairs with the features of an engine.

    Attributes
    ----------
    data : RankingData
    missing : list of (str, str)
        Judged pairs whose document is not in the engine.
    unasked : list of str
        Judged queries without a known text.
    """

    data: RankingData
    missing: list[tuple[str, str]]
    unasked: list[str]


def engine_features(
    engine: Engine,
    spec: Mapping[str, Any],
    queries: Sequence[Document],
    qrels: Qrels,
    *,
    resume: PathLike | None = None,
) -> EngineRows:
    """Get the feature values of all judged pairs.

    The data have a column for each feature. Documents that the engine lacks, and topics without a query, are left out
    and listed. Negative grades become 0. `resume` is a file that stores the answers; stored answers are not requested
    again. A file of another engine, specification, query file or judgement file is an error. Raises EngineError if the
    engine rejects a request, or does not answer after all tries.
    """
    names = list(spec["features"])
    by_id = {query.id: query for query in queries}
    batches: list[tuple[str, list[str]]] = []
    for topic, own in qrels.rows().items():
        documents = qrels.doc_ids[own].tolist()
        if topic in by_id:
            step = spec["batch"]
            batches += [(topic, documents[start : start + step]) for start in range(0, len(documents), step)]
    if not batches:
        raise InvalidInputError(
            f"no judged topic (such as {', '.join(map(str, list(qrels.rows())[:3]))}) is among the queries (such as "
            f"{', '.join(list(by_id)[:3])}). Check that the ids of both files agree"
        )
    key = hashlib.sha256(
        json.dumps([engine.url, spec, batches, {t: by_id[t].text for t, _ in batches}], sort_keys=True).encode()
    ).hexdigest()
    if resume is not None:
        refuse_planted(resume)
    with JsonLines(resume, _OTHER_FILE) as stored:
        answers = _answers(engine, spec, by_id, batches, stored, key)
    grades = qrels.by_topic(qrels.grades)
    rows, y, qid, doc_ids, missing = [], [], [], [], list[tuple[str, str]]()
    for (topic, documents), answer in zip(batches, answers):
        for document in documents:
            if document not in answer:
                missing.append((topic, document))
                continue
            rows.append(answer[document])
            y.append(max(0.0, grades[topic][document]))
            qid.append(topic)
            doc_ids.append(document)
    if not rows:
        raise InvalidInputError(
            f"{engine.url}: the engine has none of the {len(missing)} judged documents, such as {missing[0][1]!r:.80}. "
            "If their ids are in a field of the documents, name it",
            remedies=[Remedy(key=...)],
            code="no-documents",
        )
    data = RankingData(np.array(rows), y, qid, doc_ids=doc_ids, feature_names=names)
    return EngineRows(data, missing, [topic for topic in grades if topic not in by_id])


def _answers(
    engine: Engine, spec: Mapping[str, Any], queries: Mapping[str, Document], batches: list[tuple[str, list[str]]],
    stored: JsonLines, key: str,
) -> list[dict[str, list[float]]]:  # fmt: skip
    """Return the values of all features by document for each batch, from an earlier run or the engine."""
    names = list(spec["features"])
    if not stored.held:
        stored.append({"key": key})
    answers = _answered(stored, key, batches, len(names))
    if answers:
        note(f"{len(answers)} of {len(batches)} requests were answered in an earlier run")
    for place in progress(range(len(answers), len(batches)), "asking the engine", len(batches) - len(answers)):
        topic, documents = batches[place]
        found = _ask(engine, spec, queries[topic], documents)
        answers.append({name: [float(row.get(n, 0.0)) for n in names] for name, row in found.items()})
        stored.append(answers[-1])
    return answers


def _answered(
    stored: JsonLines, key: str, batches: list[tuple[str, list[str]]], n_features: int
) -> list[dict[str, list[float]]]:
    """Return the answers of an earlier run; raise if they are answers to other requests."""
    header, *answers = stored.held[: len(batches) + 1] or [{"key": key}]
    try:
        whole = checked(header, {"key": str})["key"] == key and all(
            checked(answer, {...: [float]}).keys() <= set(documents)
            and all(len(values) == n_features for values in answer.values())
            for answer, (_, documents) in zip(answers, batches)
        )
    except EngineError:
        whole = False
    if not whole:
        raise InvalidInputError(f"{stored.path}: {_OTHER_FILE}")
    return answers


def _ask(engine: Engine, spec: Mapping[str, Any], query: Document, documents: list[str]) -> dict[str, dict[str, float]]:
    """Request a batch of documents and return their feature values."""
    asked = filled(dict(spec), query.text | {"query": query.text["text"]})
    ask = {"solr": _ask_solr, "ltr-log": _ask_search}.get(spec["kind"], _ask_named)
    found = ask(engine, asked, documents)
    check_unique([name for name, _ in found])
    foreign = dict(found).keys() - set(documents)
    if foreign:
        raise EngineError(f"{engine.url}: the answer has document {told(min(foreign), 80)!r}, which was not requested")
    return dict(found)


def check_unique(names: Sequence[str]) -> None:
    """Raise EngineError if two documents of an answer have the same name."""
    if twice := repeated(names):
        raise EngineError(f"the answer has document {told(twice[0], 80)!r} twice. Keys must be unique")


def _only(asked: dict[str, Any], documents: list[str]) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Return the query that selects the documents, the body without a query, and the form of a hit."""
    if "id" not in asked:
        return {"ids": {"values": documents}}, _body(documents) | {"_source": False}, {"_id": str}
    source = {"_source": {asked["id"]: None}}
    return {"terms": {asked["id"]: documents}}, _body(documents) | {"_source": [asked["id"]]}, source


def _body(documents: list[str]) -> dict[str, Any]:
    return {"size": len(documents), "track_total_hits": False}


def _name_of(answer: dict[str, Any], asked: dict[str, Any]) -> str:
    return str(answer["_source"][asked["id"]]) if "id" in asked else answer["_id"]


def _ask_named(engine: Engine, asked: dict[str, Any], documents: list[str]) -> list[tuple[str, dict[str, float]]]:
    """Request all features at once, or one by one if the engine does not score named queries."""
    if engine.scores_named_queries:
        try:
            return _ask_search(engine, asked, documents)
        except EngineError as error:
            if error.code != "old-engine" and "unrecognized parameter" not in str(error):
                raise
            engine.scores_named_queries = False
    return _ask_each(engine, asked, documents)


def _ask_each(engine: Engine, asked: dict[str, Any], documents: list[str]) -> list[tuple[str, dict[str, float]]]:
    """Request the documents, then the scores of each feature."""
    only, body, hit = _only(asked, documents)
    hits, _ = engine.search(asked["index"], body | {"query": {"bool": {"filter": [only]}}}, hit)
    found: dict[str, dict[str, float]] = {_name_of(answer, asked): {} for answer in hits}
    check_unique([_name_of(answer, asked) for answer in hits])
    for name, each in asked["features"].items():
        query = {"bool": {"filter": [only], "must": [each]}}
        for answer in engine.search(asked["index"], body | {"query": query}, hit | {"_score": float})[0]:
            found[_name_of(answer, asked)][name] = float(answer["_score"])
    return list(found.items())


def _ask_search(engine: Engine, asked: dict[str, Any], documents: list[str]) -> list[tuple[str, dict[str, float]]]:
    only, body, hit = _only(asked, documents)
    is_log = asked["kind"] == "ltr-log"
    if is_log:
        logged = {"featureset": asked["featureset"], "params": asked.get("params", {})}
        if "store" in asked:
            logged["store"] = asked["store"]
        body |= logging_by_plugin(only, logged)
    else:
        named = [{"bool": {"must": [each], "_name": name}} for name, each in asked["features"].items()]
        body["query"] = {"bool": {"filter": [only], "should": named}}
    parameters = "" if is_log else NAMED_SCORES
    found = []
    for answer in engine.search(asked["index"], body, hit, parameters)[0]:
        name = _name_of(answer, asked)
        scores = logged_values(answer, asked["features"]) if is_log else named_scores(answer)
        if other := sorted(scores.keys() - asked["features"]):  # which a feature may hide behind, as 0
            raise EngineError(
                f"the engine scores a query named {told(other[0], 80)!r}, which is not a feature. Remove _name from "
                f"the queries of the specification"
            )
        found.append((name, scores))
    return found


def named_scores(hit: Mapping[str, Any]) -> dict[str, float]:
    """Return the scores of the named queries that a hit matched. Raises EngineError for names without scores."""
    matched = hit.get("matched_queries", {})
    if isinstance(matched, list):
        raise EngineError(
            "the engine returns matched queries without their scores",
            remedies=["use OpenSearch 2.12 or Elasticsearch 8.8"],
            code="old-engine",
        )
    return checked(matched, {...: float})


def logging_by_plugin(query: object, features: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a request that make the LTR plugin log the features of an `sltr` query for `query`."""
    logged = {"sltr": features | {"_name": "logged"}}
    return {
        "query": {"bool": {"must": [query], "filter": [logged]}},
        "ext": {"ltr_log": {"log_specs": {"name": "log", "named_query": "logged"}}},
    }


def logged_values(hit: object, names: Sequence[str]) -> dict[str, float]:
    """Return the values that the LTR plugin logged for a hit, 0 for a feature that does not match the document."""
    logged = checked(hit, {"fields": {"_ltrlog": [{"log": [{"name": str, "value?": float}]}]}})["fields"]["_ltrlog"]
    entries = [(entry["name"], entry.get("value", 0.0)) for own in logged[:1] for entry in own["log"]]
    return _known(entries, names, "the LTR plugin", "feature set")


def dense_values(text: str, names: Sequence[str]) -> dict[str, float]:
    """Return the values that Solr logged for a document in its dense format, `name=value,…`."""
    entries: list[tuple[str, Any]] = []
    for part in text.split(",") if text else []:
        name, _, value = part.rpartition("=")
        try:
            if "_" in value:  # which Python's numbers may hold
                raise ValueError
            entries.append((name, checked(float(value), float, f"feature {name}")))
        except ValueError:
            raise EngineError(f"Solr logs {told(part, 80)!r}, expected name=value") from None
    return _known(entries, names, "Solr", "feature store")


def _known(entries: list[tuple[str, Any]], names: Sequence[str], engine: str, place: str) -> dict[str, float]:
    """Return the values of the features `names`; raise EngineError if a feature was not logged once."""
    logged = dict(entries)
    if twice := repeated(name for name, _ in entries):
        raise EngineError(f"{engine} logs the feature {told(twice[0], 80)!r} twice for one document")
    lacking = [name for name in names if name not in logged]
    if lacking:
        raise EngineError(
            f"{engine} logs no feature {lacking[0]!r}. Its {place} must have {', '.join(names)}", code="no-feature"
        )
    return {name: float(logged[name]) for name in names}


def _ask_solr(engine: Engine, asked: dict[str, Any], documents: list[str]) -> list[tuple[str, dict[str, float]]]:
    field = asked.get("id", "id")
    efi = "".join(f" efi.{key}={_quoted(str(value))}" for key, value in asked.get("efi", {}).items())
    store = f" store={asked['store']}" if "store" in asked else ""
    parameters = {
        "q": "*:*",
        "fq": f"{{!terms f={field} separator='\t'}}" + "\t".join(documents),
        "fl": f"{field},features:[features format=dense{store}{efi}]",
        "rows": len(documents),
    }
    path = f"{quoted(asked['index'])}/select?wt=json" if asked.get("index") else "select?wt=json"
    found, _ = select(engine, parameters, {field: None, "features": str}, path)
    return [(str(document[field]), dense_values(document["features"], asked["features"])) for document in found]


def select(
    engine: Engine, parameters: dict[str, Any], document: object, path: str = "select"
) -> tuple[list[Any], float]:
    """Return Solr's documents, each of the form `document`, and the milliseconds that Solr reports.

    Raises EngineError as `Engine.request` does, and if the answer is partial, or has too many documents.
    """
    header = {"QTime?": float, "partialResults?": bool}
    form = {"response": {"docs": [document]}, "responseHeader?": header}
    answer = engine.request("POST", path, {"params": parameters}, form=form)
    stated, documents = answer.get("responseHeader", {}), answer["response"]["docs"]
    if stated.get("partialResults"):
        raise EngineError(f"{engine.url}: the engine returned a partial answer")
    if len(documents) > parameters["rows"]:
        raise EngineError(
            f"{engine.url}: the answer has {len(documents)} documents, expected at most {parameters['rows']}"
        )
    return documents, float(stated.get("QTime", "nan"))


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
