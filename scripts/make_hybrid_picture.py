"""Draw docs/images/hybrid.png, differences to BM25, from the stored figures of the tutorial on hybrid search.

python scripts/make_hybrid_picture.py
"""

from __future__ import annotations

import json
from pathlib import Path

from truerank.core import charts

MEASURE, METHODS = "nDCG@10", {"dense": "dense", "rrf": "rrf", "one-weight": "one weight", "by-query": "by query"}
ROOT = Path(__file__).resolve().parents[1]

found = json.loads((ROOT / "docs/tutorials/hybrid-search.json").read_text(encoding="utf-8"))["collections"]
rows = []
for collection, figures in found.items():
    differences = figures[MEASURE]["against BM25"]
    for key, name in METHODS.items():
        one = differences[key]
        rows.append((f"{collection}, {name}", one["difference"], one["low"], one["high"]))
label = "Four methods on five collections, simultaneous 95 % intervals"
charts.intervals(rows, f"difference in {MEASURE} to BM25", label, zero=True).save(ROOT / "docs/images/hybrid.png")
