"""Cranfield in Solr, started inside a Java program: features logged, models uploaded, test queries reranked by {!ltr}.

    python -m benchmarks.export.solr_in_process CRANFIELD_FOLDER

Needs Maven and a JDK, which fetch and run Solr 8.11.4; models are trained on the odd queries.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.export.bench_formats import JAVA, JavaPrograms
from benchmarks.export.opensearch import grades_of, read_smart
from truerank import AdaRank, ObliviousBoosting, RankBoost, RankingData, RidgeRanker, export_model
from truerank.core.printing import table
from truerank.export.certificate import compare_orders, constant_left_out
from truerank.export.form import form_of
from truerank.export.formats import FORMATS

FEATURES = {
    "text": "{!dismax qf=text mm=1}${query}",
    "title": "{!dismax qf=title mm=1}${query}",
    "author": "{!dismax qf=author mm=1}${query}",
    "text_stems": "{!dismax qf=text_stems mm=1}${query}",
    "title_stems": "{!dismax qf=title_stems mm=1}${query}",
    "text_half": "{!dismax qf=text mm=50%}${query}",
    "title_half": "{!dismax qf=title mm=50%}${query}",
    "both": "{!dismax qf='title text' tie=1 mm=1}${query}",
    "phrase": "{!dismax qf=text pf=text ps=50 mm=1}${query}",
    "length": None,
}
_SOLRCONFIG = """<config>
  <luceneMatchVersion>8.11.4</luceneMatchVersion>
  <schemaFactory class="ClassicIndexSchemaFactory"/>
  <requestHandler name="/select" class="solr.SearchHandler"/>
  <queryParser name="ltr" class="org.apache.solr.ltr.search.LTRQParserPlugin"/>
  <transformer name="features" class="org.apache.solr.ltr.response.transform.LTRFeatureLoggerTransformerFactory">
    <str name="fvCacheName">QUERY_DOC_FV</str>
  </transformer>
  <query><cache name="QUERY_DOC_FV" class="solr.CaffeineCache" size="4096"/></query>
</config>
"""
_SCHEMA = """<schema name="documents" version="1.6">
  <fieldType name="string" class="solr.StrField"/>
  <fieldType name="words" class="solr.TextField" positionIncrementGap="100"><analyzer>
    <tokenizer class="solr.StandardTokenizerFactory"/><filter class="solr.LowerCaseFilterFactory"/>
  </analyzer></fieldType>
  <fieldType name="stems" class="solr.TextField" positionIncrementGap="100"><analyzer>
    <tokenizer class="solr.StandardTokenizerFactory"/><filter class="solr.LowerCaseFilterFactory"/>
    <filter class="solr.PorterStemFilterFactory"/>
  </analyzer></fieldType>
  <field name="id" type="string" indexed="true" stored="true" required="true"/>
  <field name="title" type="words" indexed="true" stored="true"/>
  <field name="text" type="words" indexed="true" stored="true"/>
  <field name="author" type="words" indexed="true" stored="true"/>
  <field name="title_stems" type="stems" indexed="true" stored="false"/>
  <field name="text_stems" type="stems" indexed="true" stored="false"/>
  <copyField source="title" dest="title_stems"/>
  <copyField source="text" dest="text_stems"/>
  <uniqueKey>id</uniqueKey>
</schema>
"""


def make_home(home: Path) -> None:
    """Solr's folder: one core with the LTR module's parser and transformer, and the features to upload."""
    files = {
        "solr.xml": "<solr/>",
        "documents/core.properties": "name=documents\n",
        "documents/conf/solrconfig.xml": _SOLRCONFIG,
        "documents/conf/schema.xml": _SCHEMA,
    }
    features: list[dict[str, Any]] = []
    for name, query in FEATURES.items():
        kind, params = ("SolrFeature", {"q": query}) if query else ("FieldLengthFeature", {"field": "text"})
        features.append({"name": name, "class": f"org.apache.solr.ltr.feature.{kind}", "params": params})
    for path, text in (files | {"features.json": json.dumps(features)}).items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)


def answers(path: Path) -> dict[str, list[list[str]]]:
    """The lines of a file of answers by query."""
    found = defaultdict(list)
    for line in path.read_text().splitlines():
        query, *rest = line.split("\t")
        found[query].append(rest)
    return found


def main(folder: str) -> None:
    """Index, log, train on odd queries, upload, rerank even ones, print."""
    warnings.simplefilter("ignore")
    documents = read_smart(Path(folder) / "cran.all.1400.gz")
    texts = [re.sub(r"[^a-z0-9]+", " ", own["W"].lower()).strip() for own in read_smart(Path(folder) / "cran.qry.gz")]
    grades = grades_of(Path(folder))
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        java = JavaPrograms(place, ("solr",))
        if java.missing:
            print("left out: " + "; ".join(java.missing))
            return
        path, home = java.paths["solr"], place / "home"
        make_home(home)
        subprocess.run(
            ["javac", "-cp", path, "-d", place / "solr", JAVA / "SolrRerank.java"], check=True, capture_output=True,
            timeout=300,
        )  # fmt: skip

        def run(*arguments: Any) -> None:
            command = ["java", "-Xmx1g", "-cp", path, "SolrRerank", home, *arguments]
            done = subprocess.run(command, capture_output=True, text=True, timeout=600)
            if done.returncode:
                raise RuntimeError(done.stderr[-3000:] + done.stdout[-2000:])

        lines = ("\t".join([str(k), *(own.get(f, "") for f in "TWA")]) for k, own in enumerate(documents, 1))
        (place / "documents").write_text("\n".join(lines) + "\n")
        (place / "all").write_text("".join(f"{k}\t{text}\n" for k, text in enumerate(texts, 1)))
        (place / "test").write_text("".join(f"{k}\t{text}\n" for k, text in enumerate(texts, 1) if k % 2 == 0))
        run("index", place / "documents")
        run("log", place / "all")
        logged = answers(place / "all.log")
        names = list(FEATURES)
        X, y, qid, ids = [], [], [], []
        for query, rows in logged.items():
            for document, _, text in rows:
                values = dict(part.split("=") for part in text.split(","))
                X.append([float(values[name]) for name in names])
                y.append(grades.get((int(query), document), 0))
                qid.append(int(query))
                ids.append(document)
        data = RankingData(np.array(X), np.array(y), np.array(qid), doc_ids=ids, feature_names=names)
        odd = np.flatnonzero(data.query_ids.astype(int) % 2 == 1)
        train, test = data.take_queries(odd), data.take_queries(np.setdiff1d(np.arange(data.n_queries), odd))
        models = {
            "AdaRank": AdaRank(measure="AP"),
            "ridge": RidgeRanker(),
            "RankBoost, 300 stumps": RankBoost(300),
            "100 plain trees": ObliviousBoosting(n_estimators=100, leaves="constant"),
        }
        shifts, files, factors = {}, {}, {}
        for number, (title, model) in enumerate(models.items()):
            model.fit(train)
            files[title] = place / f"model{number}"
            text = export_model(model, "solr", names, name=f"model{number}", certify=test, force=True)
            files[title].write_text(text)
            factors[title] = text.certificate.policy.get("times", 1.0)
            shifts[title] = constant_left_out(form_of(model), "solr", FORMATS["solr"])
        run("rerank", place / "test", *files.values())
        rows = []
        for title, model in models.items():
            orders = answers(Path(f"{files[title]}.orders"))
            ours = np.asarray(model.predict(test.X))
            equal = same_order = 0
            difference = 0.0
            for q in range(test.n_queries):
                start, stop = test.offsets[q : q + 2]
                known = test.doc_ids[start:stop].tolist()
                found = orders[str(test.query_ids[q])]
                if sorted(document for document, *_ in found) != sorted(known):
                    continue
                at = np.array([start + known.index(document) for document, *_ in found])
                theirs = np.array([float(score) for _, score, *_ in found]) / factors[title]
                difference = max(difference, float(np.abs(theirs + shifts[title] - ours[at]).max()))
                by_rank = -np.arange(len(at), dtype=np.float64)
                equal += not compare_orders(ours[at], by_rank, np.array([0, len(at)]), rows_in_order=False)[0][0]
                # Equal scores: Solr takes the document that was indexed first.
                expected = np.lexsort((np.array(known, dtype=int), -ours[start:stop]))
                same_order += [known[k] for k in expected] == [document for document, *_ in found]
            rows.append([
                title, f"{equal} / {test.n_queries}", f"{same_order} / {test.n_queries}", test.n_rows,
                f"{difference / np.abs(ours).max():.1e}",
            ])  # fmt: skip
        print(table(rows, ["model", "no pair reversed", "same documents at all ranks", "documents", "difference"]))
        print("difference: the largest, as a share of the largest score")


if __name__ == "__main__":
    main(sys.argv[1])
