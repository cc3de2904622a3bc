"""Draw docs/images/gain.png, the gain of trees over BM25 by query, and docs/images/report.png, the top of the report.

python scripts/make_readme_picture.py         (needs the extras `train`, `tables` and `report`, and chromium)
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np

from truerank import compare, read_table
from truerank.cli import main

IMAGES = Path(__file__).parents[1] / "docs" / "images"

with tempfile.TemporaryDirectory() as folder:
    table, out = f"{folder}/judgements.parquet", f"{folder}/trees.txt"
    assert main(["sample", folder]) == 0
    assert main(["cross-validate", table, "--set", "leaves=constant", "--scores", out]) == 0
    data = read_table(table)
    scores = {"bm25": data.X[:, 0], "trees": data.grouped(np.loadtxt(out))}
    compare(data, scores, "nDCG@10", baseline="bm25").plot().save(IMAGES / "gain.png")
    systems = ["--scores", out, "--baseline", "bm25.porter-stop.all"]
    assert main(["report", "--data", table, *systems, "-o", f"{folder}/report.html"]) == 0
    words = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,920"]
    place = [f"--user-data-dir={folder}/profile", f"--screenshot={IMAGES / 'report.png'}"]
    subprocess.run([*words, "--virtual-time-budget=8000", *place, f"file://{folder}/report.html"], check=True)
