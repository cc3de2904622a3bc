"""Draw docs/images/method-*.png and tutorial-*.svg: run the Python blocks of pages, and examples/methods/

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
TUTORIALS = [DOCS / "tutorials" / f"{name}.md" for name in ("data-scientist", "ir-researcher")]
pages = [
    page
    for page in [*sorted((DOCS / "methods").glob("*.md")), *TUTORIALS]
    if not sys.argv[1:] or page.stem in sys.argv[1:]
]
with tempfile.TemporaryDirectory() as folder:
    assert main(["sample", folder]) == 0
    os.chdir(folder)
    for page in pages:
        names = {"__name__": page.stem}
        for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            exec(compile(block, page.name, "exec"), names)
        drawing = DOCS.parent / "examples" / "methods" / f"{page.stem.replace('-', '_')}.py"
        if drawing.exists():
            exec(compile(drawing.read_text(encoding="utf-8"), drawing.name, "exec"), names)
    for picture in [*Path(folder).glob("method-*.png"), *Path(folder).glob("tutorial-*.svg")]:
        shutil.copy(picture, DOCS / "images" / picture.name)
        print(f"wrote docs/images/{picture.name}")
    os.chdir(DOCS)
