"""Run the notebooks of docs/gallery/ on the shipped sample, keep their outputs, and draw the gallery's small pictures.

python scripts/make_gallery.py         (needs the extras `docs`, `report` and `tables`)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"


def main() -> None:
    os.environ["PYTHONWARNINGS"] = "ignore"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "truerank", "sample", folder], check=True, stdout=subprocess.DEVNULL)
        for path in sorted(GALLERY.glob("*.ipynb")):
            book = nbformat.read(path, as_version=4)
            NotebookClient(book, timeout=600, resources={"metadata": {"path": folder}}).execute()
            for cell in book.cells:
                cell.metadata.pop("execution", None)  # when each cell ran
            path.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            pictures = [
                output["data"]["image/svg+xml"]
                for cell in book.cells
                for output in cell.get("outputs", ())
                if "image/svg+xml" in output.get("data", {})
            ]
            (GALLERY / f"{path.stem}.svg").write_text(pictures[0] + "\n", encoding="utf-8")
            print(f"{path.name}: {len(pictures)} pictures")


if __name__ == "__main__":
    main()
