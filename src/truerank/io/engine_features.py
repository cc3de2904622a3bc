"""Get features from a live search engine: OpenSearch, Elasticsearch, Solr, and the logs of the LTR plugins.

A specification (YAML or JSON) defines the requests:

    kind: named-queries        # or ltr-log, solr
    index: articles            # for Solr: the collection
    features:                  # named-queries: a query for each feature; {{query}} is the query's text
      title: {match: {title: "{{query}}"}}
      phrase: {match_phrase: {text: {query: "{{query}}", slop: 2}}}

`named-queries` needs no plugin: each query has a name, and the engine returns for every document the names that matched
with their scores (`include_named_queries_score`; OpenSearch, and Elasticsearch from 8.8). A query that does not match
has the value 0. `ltr-log` reads the log of the Elasticsearch and OpenSearch LTR plugins (`featureset`, `params`), and
`solr` the `[features]` transformer (`store`, `efi`). There the engine defines the features, and `features` lists those
to keep. `{{NAME}}` is replaced by that text field of the query in every string of the specification.
"""

from __future__ import annotations

import collections
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from truerank.core.errors import DataFileError, EngineError, InvalidInputError
from truerank.core.files import read_text, refuse_planted
from truerank.core.json_lines import JsonLines
from truerank.core.printing import note, progress
from truerank.core.types import PathLike
from truerank.data.ranking_data import RankingData
from truerank.io.documents import Document
from truerank.io.engine import Engine, checked, filled, quoted, told
from truerank.io.trec import Qrels

NAMED_SCORES = "?include_named_queries_score=true"
KINDS = ("named-queries", "ltr-log", "solr")
_OTHER_FILE = (
    "the file is for other requests (another engine, specification, queries or judgements), or of another kind. "
    "Delete it to start again"
)


def read_spec(path: PathLike) -> dict[str, Any]:
    """Read and check a specification in YAML, or in JSON if the name ends in `.json`.

    DataFileError: a file that cannot be parsed, an unknown kind or key, or missing features.
    """
    name = os.fspath(path)
    text = read_text(name)
    if name.endswith(".json"):
        try:
            spec = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataFileError(f"not JSON ({error})", name) from error
    else:
        import yaml

        try:
            spec = yaml.safe_load(text)
        except (yaml.YAMLError, RecursionError) as error:
            raise DataFileError(f"not YAML ({error})", name, code="not-yaml") from error
    if not isinstance(spec, dict):
        raise DataFileError("expected a mapping with index and features", name)
    spec.setdefault("kind", "named-queries")
    known = {"kind", "index", "features", "featureset", "store", "params", "efi", "id", "batch"}
    unknown = sorted(set(spec) - known)
    if unknown:
        raise DataFileError(
            f"unknown key {unknown[0]!r}; known are: {', '.join(sorted(known))}", name, code="unknown-key"
        )
    if spec["kind"] not in KINDS:
        raise DataFileError(f"kind must be one of {', '.join(KINDS)}, got {spec['kind']!r}", name)
    wanted = dict if spec["kind"] == "named-queries" else list
    if not isinstance(spec.get("index"), str) or not isinstance(spec.get("features"), wanted) or not spec["features"]:
        form = "a mapping of name to query" if wanted is dict else "a list of names"
        raise DataFileError(f"expected index: NAME and features: {form}", name, code="lost-key")
    parts = {"id": str, "store": str, "featureset": str, "efi": dict, "params": dict}
    for key, kind in parts.items():
        if key in spec and not isinstance(spec[key], kind):
            raise DataFileError(f"{key} must be a {'name' if kind is str else 'mapping'}, got {spec[key]!r}", name)
    if not all(isinstance(feature, str) for feature in spec["features"]):
        raise DataFileError("the names of the features must be text; write numbers in quotes", name)
    try:
        json.dumps(spec, allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        raise DataFileError(f"a value has no form in JSON ({error}); write dates in quotes", name) from error
    if spec["kind"] == "ltr-log" and not isinstance(spec.get("featureset"), str):
        raise DataFileError("ltr-log needs featureset: NAME", name, code="lost-key")
    batch = spec.setdefault("batch", 200)
    if not isinstance(batch, int) or not 1 <= batch <= 10_000:
        raise DataFileError(f"batch must be an integer in 1 … 10000, got {batch!r}", name, code="batch")
    return spec


def engine_features(
    engine: Engine,
    spec: Mapping[str, Any],
    queries: Sequence[Document],
    qrels: Qrels,
    *,
    resume: PathLike | None = None,
) -> tuple[RankingData, int]:
    """Get the feature values of all judged pairs.

    Returns data with a column for each feature, and the number of documents that the engine does not have, which are
    left out. Negative grades become 0, and topics without a query are left out. `resume` is a file that stores the
    answers; stored answers are not requested again. A file that belongs to another engine, specification, query file or
    judgement file is an error. EngineError: the engine refuses a request, or does not answer after all tries.
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
        raise InvalidInputError("none of the judged topics is among the queries; do their ids agree?")
    key = hashlib.sha256(
        json.dumps([engine.url, spec, batches, {t: by_id[t].text for t, _ in batches}], sort_keys=True).encode()
    ).hexdigest()
    if resume is not None:
        refuse_planted(resume)
    with JsonLines(resume, _OTHER_FILE) as stored:
        answers = _answers(engine, spec, by_id, batches, stored, key)
    grades = qrels.by_topic(qrels.grades)
    rows, y, qid, doc_ids, missing = [], [], [], [], 0
    for (topic, documents), answer in zip(batches, answers):
        for document in documents:
            if document not in answer:
                missing += 1
                continue
            rows.append(answer[document])
            y.append(max(0.0, grades[topic][document]))
            qid.append(topic)
            doc_ids.append(document)
    if not rows:
        raise InvalidInputError(f"{engine.url}: the engine has none of the {missing} judged documents; do ids agree?")
    return RankingData(np.array(rows), y, qid, doc_ids=doc_ids, feature_names=names), missing


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
        note(f"{len(answers)} of {len(batches)} requests were answered before")
    for place in progress(range(len(answers), len(batches)), "asking the engine", len(batches) - len(answers)):
        topic, documents = batches[place]
        found = _ask(engine, spec, queries[topic], documents)
        answers.append({name: [float(row.get(n, 0.0)) for n in names] for name, row in found.items()})
        stored.append(answers[-1])
    return answers


def _answered(
    stored: JsonLines, key: str, batches: list[tuple[str, list[str]]], n_features: int
) -> list[dict[str, list[float]]]:
    """Return the answers of an earlier run."""
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
    """Return feature values by document."""
    asked = filled(dict(spec), query.text | {"query": query.text["text"]})
    found = _ask_solr(engine, asked, documents) if spec["kind"] == "solr" else _ask_search(engine, asked, documents)
    check_unique([name for name, _ in found])
    foreign = dict(found).keys() - set(documents)
    if foreign:
        raise EngineError(f"{engine.url}: the answer has document {told(min(foreign), 80)!r}, which was not requested")
    return dict(found)


def check_unique(names: Sequence[str]) -> None:
    """Raise EngineError if an answer has two documents of the same name."""
    if len(set(names)) < len(names):
        twice = collections.Counter(names).most_common(1)[0][0]
        raise EngineError(f"the answer has document {told(twice, 80)!r} twice; its key must be unique")


def _ask_search(engine: Engine, asked: dict[str, Any], documents: list[str]) -> list[tuple[str, dict[str, float]]]:
    only: Any = {"terms": {asked["id"]: documents}} if "id" in asked else {"ids": {"values": documents}}
    body: dict[str, Any] = {"size": len(documents), "track_total_hits": False}
    body["_source"] = [asked["id"]] if "id" in asked else False
    hit: dict[str, Any] = {"_source": {asked["id"]: None}} if "id" in asked else {"_id": str}
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
        name = str(answer["_source"][asked["id"]]) if "id" in asked else answer["_id"]
        scores = logged_values(answer, asked["features"]) if is_log else named_scores(answer)
        if other := sorted(scores.keys() - asked["features"]):  # which a feature may hide behind, as 0
            raise EngineError(
                f"the engine scores a query named {told(other[0], 80)!r}, which is not a feature. If a query of the "
                "specification has a _name of its own, remove it"
            )
        found.append((name, scores))
    return found


def named_scores(hit: Mapping[str, Any]) -> dict[str, float]:
    """Return the scores of the named queries that a hit matched. Raises EngineError for names without scores."""
    matched = hit.get("matched_queries", {})
    if isinstance(matched, list):
        raise EngineError(
            "the engine returns the queries that matched without their scores",
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
    """Return what the LTR plugin logged for a hit; a feature that the document does not match has the value 0."""
    logged = checked(hit, {"fields": {"_ltrlog": [{"log": [{"name": str, "value?": float}]}]}})["fields"]["_ltrlog"]
    entries = [(entry["name"], entry.get("value", 0.0)) for own in logged[:1] for entry in own["log"]]
    return _known(entries, names, "the LTR plugin", "feature set")


def dense_values(text: str, names: Sequence[str]) -> dict[str, float]:
    """Return what Solr logged for a document in its dense format, `name=value,…`."""
    entries: list[tuple[str, Any]] = []
    for part in text.split(",") if text else []:
        name, _, value = part.rpartition("=")
        try:
            if "_" in value:  # which Python's numbers may hold
                raise ValueError
            entries.append((name, checked(float(value), float, f"feature {name}")))
        except ValueError:
            raise EngineError(f"Solr logs {told(part, 80)!r}; expected name=value") from None
    return _known(entries, names, "Solr", "feature store")


def _known(entries: list[tuple[str, Any]], names: Sequence[str], engine: str, place: str) -> dict[str, float]:
    """The values of the features `names`. Raises EngineError if a feature was not logged, or was logged twice."""
    logged = dict(entries)
    if len(logged) < len(entries):
        twice = collections.Counter(name for name, _ in entries).most_common(1)[0][0]
        raise EngineError(f"{engine} logs the feature {told(twice, 80)!r} twice for one document")
    lacking = [name for name in names if name not in logged]
    if lacking:
        raise EngineError(
            f"{engine} logs no feature {lacking[0]!r}; its {place} must have {', '.join(names)}", code="no-feature"
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
    found, _ = select(engine, parameters, {field: None, "features": str}, f"{quoted(asked['index'])}/select?wt=json")
    return [(str(document[field]), dense_values(document["features"], asked["features"])) for document in found]


def select(
    engine: Engine, parameters: dict[str, Any], document: object, path: str = "select"
) -> tuple[list[Any], float]:
    """Return Solr's documents, each of the form `document`, and the milliseconds of its answer.

    EngineError: as `Engine.request`, and if the answer is only a part, or has too many documents.
    """
    header = {"QTime?": float, "partialResults?": bool}
    form = {"response": {"docs": [document]}, "responseHeader?": header}
    answer = engine.request("POST", path, {"params": parameters}, form=form)
    stated, documents = answer.get("responseHeader", {}), answer["response"]["docs"]
    if stated.get("partialResults"):
        raise EngineError(f"{engine.url}: the engine answered in part only")
    if len(documents) > parameters["rows"]:
        raise EngineError(
            f"{engine.url}: the answer has {len(documents)} documents; expected at most {parameters['rows']}"
        )
    return documents, float(stated.get("QTime", "nan"))


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
