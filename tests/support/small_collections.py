"""Small made-up collections in the folders of LETOR's OHSUMED and MQ2008."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def write_collections(root: Path, n_documents: int, slopes: tuple[float, ...], digits: int) -> Path:
    """Five parts of four queries for each; a feature rises with the grade by its slope. Returns the folder."""
    rng = np.random.default_rng(0)
    for folder in ("letor3-ohsumed/querylevelnorm", "letor4-mq2008"):
        (root / folder).mkdir(parents=True)
        for part in range(1, 6):
            lines = []
            for query in range(4):
                for document in range(n_documents):
                    grade = int(rng.integers(0, 3))
                    values = np.round(grade * np.array(slopes) + rng.normal(size=len(slopes)), digits)
                    features = " ".join(f"{k + 1}:{v}" for k, v in enumerate(values))
                    lines.append(f"{grade} qid:{part}{query} {features} #docid = {part}{query}{document}\n")
            (root / folder / f"S{part}.txt").write_text("".join(lines))
    return root
