"""Print the installed size of each layer, and the CPU seconds of its installation in an empty environment.

    python scripts/measure_layers.py [LAYER ...]

Packages come from the registry that pip is set up for. The size is that of all installed files, with their compiled
bytecode; pip itself stays outside of the environment. CPU seconds contain the download and the build of truerank.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAYERS = ("", "train", "tables", "text", "report", "plots", "cluster", "onnx", "tune", "zstd", "all")


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
        return sum(path.stat().st_size for path in files) / 1e6, seconds


def main(layers: list[str]) -> None:
    print("| layer | MB | CPU s |\n| --- | --- | --- |", flush=True)
    for layer in layers or LAYERS:
        size, seconds = measured(layer)
        print(f"| {f'`truerank[{layer}]`' if layer else '`truerank`'} | {size:.0f} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
