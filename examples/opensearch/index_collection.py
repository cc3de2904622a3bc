"""Index documents in OpenSearch or Elasticsearch, for `truerank features`.

    python examples/opensearch/index_collection.py http://127.0.0.1:9200 cranfield cran.all.1400.gz

The fields `title` and `text` are indexed as they are and, as subfields, under Porter's stemmer without stop words, and
under two language models.
"""

from __future__ import annotations

import json
import sys
import urllib.request

from truerank import read_documents

SUBFIELDS = {
    "porter": {"type": "text", "analyzer": "porter"},
    "dirichlet": {"type": "text", "analyzer": "porter", "similarity": "dirichlet"},
    "jelinek_mercer": {"type": "text", "analyzer": "porter", "similarity": "jelinek_mercer"},
}
SETTINGS = {
    "settings": {
        "number_of_shards": 1,
        "number_of_replicas": 0,
        "analysis": {
            "filter": {"porter": {"type": "stemmer", "language": "porter"}},
            "analyzer": {
                "porter": {"type": "custom", "tokenizer": "standard", "filter": ["lowercase", "stop", "porter"]}
            },
        },
        "similarity": {
            "dirichlet": {"type": "LMDirichlet", "mu": 2500},
            "jelinek_mercer": {"type": "LMJelinekMercer", "lambda": 0.4},
        },
    },
    "mappings": {"properties": {field: {"type": "text", "fields": SUBFIELDS} for field in ("title", "text")}},
}


def send(method: str, url: str, body: bytes, kind: str = "application/json") -> dict:
    """The JSON answer to a request."""
    request = urllib.request.Request(url, data=body, method=method, headers={"Content-Type": kind})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.loads(answer.read())


def main(url: str, index: str, documents: str) -> None:
    """Create the index and send the documents in pieces of 500."""
    send("PUT", f"{url}/{index}", json.dumps(SETTINGS).encode())
    lines: list[str] = []
    count = 0
    for document in read_documents(documents):
        lines += [json.dumps({"index": {"_id": document.id}}), json.dumps(document.text)]
        count += 1
        if len(lines) >= 1000:
            send("POST", f"{url}/{index}/_bulk", ("\n".join(lines) + "\n").encode(), "application/x-ndjson")
            lines = []
    if lines:
        send("POST", f"{url}/{index}/_bulk", ("\n".join(lines) + "\n").encode(), "application/x-ndjson")
    send("POST", f"{url}/{index}/_refresh", b"")
    found = send("POST", f"{url}/{index}/_count", b"{}")["count"]
    print(f"{found} of {count} documents are in the index {index}")


if __name__ == "__main__":
    main(*sys.argv[1:4])
