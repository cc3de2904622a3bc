"""Draw docs/images/method-*.png: run the Python blocks of docs/methods/*.md on the sample, and examples/methods/*.py.

python scripts/make_method_pictures.py [PAGE …]
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import matplotlib

from truerank.cli import main

matplotlib.use("Agg")
DOCS = Path(__file__).resolve().parents[1] / "docs"
pages = [page for page in sorted((DOCS / "methods").glob("*.md")) if not sys.argv[1:] or page.stem in sys.argv[1:]]
with tempfile.TemporaryDirectory() as folder:
    assert main(["sample", folder]) == 0
    os.chdir(folder)
    for page in pages:
        names = {"__name__": page.stem}
        for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            exec(compile(block, page.name, "exec"), names)
        drawing = DOCS.parent / "examples" / "methods" / f"{page.stem.replace('-', '_')}.py"
        exec(compile(drawing.read_text(encoding="utf-8"), drawing.name, "exec"), names)
    for picture in Path(folder).glob("method-*.png"):
        shutil.copy(picture, DOCS / "images" / picture.name)
        print(f"wrote docs/images/{picture.name}")
    os.chdir(DOCS)
