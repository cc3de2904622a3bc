"""Measure each layer of the installation in an empty environment, and store the figures of the installation page.

    python scripts/measure_layers.py [LAYER ...]

For each layer: the size of the downloaded wheels with truerank's own, the installed size, and CPU seconds. Packages
come from the registry that pip is set up for. The installed size is that of all files, with their compiled bytecode;
pip itself stays outside of the environment. CPU seconds contain the download and the build of truerank. For the base,
the first verdict of `truerank gate` on 200 queries is printed, with its CPU seconds. The figures are stored in
`docs/development/layers.json` after each layer, and the table of the page is printed from all that are stored; a test
holds the page to it.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
STORED = ROOT / "docs" / "development" / "layers.json"
LAYERS = ("", "train", "tables", "text", "report", "cluster", "onnx")


def measured(layer: str) -> dict[str, int]:
    """Return the megabytes (10^6 bytes) of the wheels and of the installed files, and the CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=False)
        wheels, extra = Path(folder, "wheels"), f"[{layer}]" if layer else ""
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*pip, "wheel", "--wheel-dir", str(wheels), f"{ROOT}{extra}"], check=True)
        found = ["--no-index", "--find-links", str(wheels), f"truerank{extra}"]
        subprocess.run([*pip, "--python", folder, "install", *found], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if not layer:
            first_verdict(Path(folder))
        return {"wheels_mb": size(wheels), "installed_mb": size(Path(folder, "lib")), "cpu_s": round(seconds)}


def size(folder: Path) -> int:
    """Return the megabytes of all files in a folder."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return round(sum(path.stat().st_size for path in files) / 1e6)


def first_verdict(environment: Path) -> None:
    """Run the gate of an environment on made results, and print its first line and CPU seconds."""
    rng, queries = random.Random(0), [f"q{k}" for k in range(200)]
    ids = [f"d{k}" for k in range(10)]
    lines = {"gold": [{"query_id": query, "relevant": ["d0", "d1"]} for query in queries]}
    lines |= {
        name: [{"query_id": query, "results": rng.sample(ids, 10)} for query in queries] for name in ("old", "new")
    }
    for name, own in lines.items():
        (environment / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in own))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [environment / "bin" / "truerank", "gate", "new.jsonl", "--baseline", "old.jsonl", "--gold", "gold.jsonl"]
    found = subprocess.run([*words, "--margin", "0.1"], cwd=environment, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"first verdict, {seconds:.1f} CPU s: {(found.stdout or found.stderr).splitlines()[0]}", flush=True)


def table(layers: dict[str, dict[str, int]]) -> str:
    """Return the table of the installation page."""
    rows = ["| layer | download, MB | installed, MB | CPU s |", "| --- | --- | --- | --- |"]
    for layer in filter(layers.__contains__, LAYERS):
        figures = ["" if one is None else one for one in layers[layer].values()]  # None: not measured yet
        rows.append("| {} | {} | {} | {} |".format(f"`truerank[{layer}]`" if layer else "`truerank`", *figures))
    return "\n".join(rows)


def main(layers: list[str]) -> None:
    found = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    for layer in layers or LAYERS:
        found[layer] = measured(layer)
        STORED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(table(found))


if __name__ == "__main__":
    main(sys.argv[1:])
