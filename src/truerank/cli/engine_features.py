"""`truerank features`: compute features of judged documents in a live search engine.

Compute the features of judged documents in OpenSearch, Elasticsearch or Solr, for `truerank train`. Without --qrels,
create a starting set of features from the fields of the index, print it, and write it to OUT (JSON) for review. With
--qrels, compute the features in the file --features for all judged documents. A judged document that the engine lacks
is left out, and listed in OUT.missing.csv. To continue after an interruption, repeat the command. `truerank deploy`
stores the same features in the engine.
"""

from __future__ import annotations

import json
import os
import shlex
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from truerank.cli import common
from truerank.cli.features import MAPS, Writing, mapped, queries_of, written
from truerank.cli.parser import OutputFile, only, option, refuse
from truerank.core.files import atomic_write

if TYPE_CHECKING:
    from truerank.io.engine import Engine
    from truerank.io.feature_sets import FeatureSet


class Arguments(Writing):
    engine: str = option(
        "address of OpenSearch or Elasticsearch, or of a Solr collection; credentials as for `truerank deploy`", "URL"
    )
    index: str | None = option("index of the documents (for Solr, the address names it)", "NAME")
    qrels: str | None = option("judgements in any format", "FILE")
    definitions: str | None = option(
        "features to compute: JSON, as this command or `GET _ltr/_featureset/NAME` writes",
        "FILE",
        names="--features",
        to="qrels",
    )
    feature_set: str | None = option(
        "feature set of the LTR plugin or store of Solr: the features to compute, or the name of new ones", "NAME"
    )
    put: bool = option(
        "store the features in the LTR plugin or in Solr, if it lacks them",
        to="definitions",
        why="requires --features",
    )
    key: str | None = option("field of the document ids (default: _id, in Solr id)", "FIELD")
    queries: str | None = option(
        "texts of the queries, as for `truerank text search` (default: those in --qrels)", "Q", to="qrels"
    )
    per_query: str | None = option("scale every column within its query", choices=tuple(MAPS), to="qrels")
    output: OutputFile = option("output file: features (JSON), or rows", "OUT")
    RULES = (
        only("grades aggregate", "qrels"),
        only("query_field", "queries"),
        refuse("definitions", "feature_set"),
    )


def run(args: Arguments) -> int:
    """Make features, or compute them."""
    from truerank.io.engine import Engine

    engine = Engine(args.engine, timeout=60.0, retries=5)
    solr = "/solr/" in args.engine
    if args.qrels is None:
        return _proposed(args, engine, solr)
    own = read_features(args, engine, solr)
    if not own.for_solr and own.index is None:
        raise common.UsageError("no index is named. Add --index NAME")
    return _collected(args, engine, own)


def _proposed(args: Arguments, engine: Engine, solr: bool) -> int:
    """Write a starting set of features from the fields of the index."""
    from truerank.io.feature_sets import made_of_index

    if args.index is None and not solr:
        raise common.UsageError("no index is named. Add --index NAME for the documents, and --qrels FILE")
    own, skipped = made_of_index(engine, args.index, args.feature_set, solr=solr)
    own = replace(own, id=args.key)
    with atomic_write(args.output) as stream:
        json.dump(own.as_json(), stream, indent=1, ensure_ascii=False)
    rows = [[one["name"], json.dumps(one.get("template", one.get("params")))[:90]] for one in own.features]
    text = common.table(rows, ["feature", "computed by"])
    if skipped:
        text += f"\nleft out: {', '.join(skipped)}"
    words = ["truerank", "features", "--engine", args.engine, "--features", args.output]
    text += f"\n\nreview {args.output}, then: {shlex.join(words)} --qrels JUDGEMENTS -o rows.parquet"
    return common.show(args, own.as_json() | {"left_out": skipped}, text)


def read_features(args: Arguments, engine: Engine, solr: bool) -> FeatureSet:
    """Return the features of `--features` or `--feature-set`, with `--index` and `--key`."""
    from truerank.io.feature_sets import read_feature_set, stored_set

    own: FeatureSet | None
    if args.definitions is not None:
        own = read_feature_set(args.definitions)
    elif args.feature_set is not None:
        own = stored_set(engine, args.feature_set, solr=solr)
    else:
        raise common.UsageError(
            "no features are named. Add --features FILE, or --feature-set NAME for a set of the engine. Without "
            "--qrels, this command makes a starting set from the index"
        )
    if own is None:
        raise common.InvalidInputError(
            f"{engine.url}: the engine has no feature set {args.feature_set!r}. Name another one, or --features FILE"
        )
    return replace(own, index=args.index or own.index, id=args.key or own.id, name=args.feature_set or own.name)


def _collected(args: Arguments, engine: Engine, own: FeatureSet) -> int:
    """Compute the features of all judged documents; stored answers are not requested again."""
    from truerank.io.engine_features import engine_features
    from truerank.io.feature_sets import agreed
    from truerank.io.judgements.tables import write_csv

    lost = f"{args.output}.missing.csv"
    args.outputs.add(lost)
    qrels = common.qrels_of(args)
    queries = queries_of(args, qrels)
    partial = f"{args.output}.partial"
    spec = own.spec(logged=agreed(engine, own, put=args.put))
    found = engine_features(engine, spec, queries, qrels, resume=partial)
    text = ""
    if found.missing:
        write_csv([["query", "docid"], *map(list, found.missing)], lost)
        shown = common.few([document for _, document in found.missing])
        text = (
            f"\nthe engine lacks {len(found.missing)} judged documents ({shown}), which are left out and listed in "
            f"{lost}. Index them, or remove their judgements"
        )
    if found.unasked:
        text += f"\n{len(found.unasked)} judged queries have no text in {args.queries}: {common.few(found.unasked)}"
    if common.table_kind(args.output):
        text += f"\n\nnext: truerank split {shlex.quote(args.output)} --test 0.2 -o parts"
    more: dict[str, Any] = {"missing_in_engine": len(found.missing), "missing": found.missing, "unasked": found.unasked}
    code = written(args, mapped(found.data, args), text, **more)
    with suppress(FileNotFoundError):  # another run of the same command may have removed it
        os.unlink(partial)
    return code
