"""Print the installed size of each layer, and the CPU seconds of its installation in an empty environment.

    python scripts/measure_layers.py [LAYER ...]

Packages come from the registry that pip is set up for. The size is that of all installed files, with their compiled
bytecode; pip itself stays outside of the environment. CPU seconds contain the download and the build of truerank. For
the base, the first verdict of `truerank gate` on 200 queries is printed, with its CPU seconds.
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
LAYERS = ("", "train", "tables", "text", "report", "cluster", "onnx", "tune", "zstd", "all")


def measured(layer: str) -> tuple[float, float]:
    """Return megabytes (10^6 bytes) and CPU seconds of an installation."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=False)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        target = f"{ROOT}[{layer}]" if layer else str(ROOT)
        pip = [sys.executable, "-m", "pip", "--python", folder, "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, target], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        files = [path for path in Path(folder, "lib").rglob("*") if path.is_file() and not path.is_symlink()]
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if not layer:
            first_verdict(Path(folder))
        return sum(path.stat().st_size for path in files) / 1e6, seconds


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


def main(layers: list[str]) -> None:
    print("| layer | MB | CPU s |\n| --- | --- | --- |", flush=True)
    for layer in layers or LAYERS:
        size, seconds = measured(layer)
        print(f"| {f'`truerank[{layer}]`' if layer else '`truerank`'} | {size:.0f} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
