"""Start-up: whole processes beside a bare Python, first use on a new machine beside later uses.

The first round of training is compared with what it cannot avoid: importing `sklearn.base` and loading one cached
kernel, measured in the same run.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import SOURCE, run_process, run_python

ROUNDS = 7
FLOOR = (
    "import sys; sys.path.insert(0, {folder!r}); import sklearn.base, sklearn.utils.validation; import one_kernel; "
    "one_kernel.total(__import__('numpy').zeros(3))"
)
ONE_KERNEL = (
    "import numba\n@numba.njit(cache=True)\ndef total(x):\n    s = 0.0\n    for v in x:\n        s += v\n    return s\n"
)


def run() -> None:
    """Print CPU seconds of each process, medians of rounds taken in turn."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "one_kernel.py").write_text(ONE_KERNEL)
        data, scores = _small_file(folder)
        cache = str(folder / "cache")
        truerank = [sys.executable, "-m", "truerank"]
        train = [*truerank, "train", data, "--ranker", "adarank", "--model", str(folder / "m.json")]
        cold = run_process([*train, "--json"], NUMBA_CACHE_DIR=str(folder / "cold"))
        commands = {
            "bare python": [sys.executable, "-c", "pass"],
            "import truerank": [sys.executable, "-c", "import truerank"],
            "truerank --help": [*truerank, "--help"],
            "evaluate, small file": [
                *truerank, "evaluate", "--data", data, "--scores", scores, "--measures", "AP nDCG@10"],
            "describe, small file": [*truerank, "describe", data],
            "floor of train: sklearn.base and one cached kernel": [
                sys.executable, "-c", FLOOR.format(folder=str(folder))],
            "train adarank, small file, cached kernels": train,
        }  # fmt: skip
        taken: dict[str, list[float]] = {label: [] for label in commands}
        for turn in range(ROUNDS + 1):
            for label, command in commands.items():
                process = run_process(command, NUMBA_CACHE_DIR=cache)
                if process.code:
                    raise RuntimeError(f"{label} failed:\n{process.output}")
                if turn:
                    taken[label].append(process.cpu)
    medians = {label: statistics.median(values) for label, values in taken.items()}
    bare, floor = medians["bare python"], medians["floor of train: sklearn.base and one cached kernel"]
    print(f"\n| process | CPU s, median of {ROUNDS} | above bare python |\n| --- | --- | --- |")
    for label, seconds in medians.items():
        print(f"| {label} | {seconds:.3f} | {seconds - bare:.3f} |")
    print(f"| first train on a new machine (empty kernel cache) | {cold.cpu:.2f} | {cold.cpu - bare:.2f} |")
    later = medians["train adarank, small file, cached kernels"]
    print(
        f"\nfirst compilation: {cold.cpu - later:.2f} CPU s; a later train is {later - floor:.2f} CPU s above its floor"
    )


def _small_file(folder: Path) -> tuple[str, str]:
    code = (
        "from truerank.data.samples import load_sample\n"
        "from truerank.io.letor.write import write_letor\n"
        "data = load_sample().take_queries(range(20))\n"
        f"write_letor(data, {str(folder / 'small.txt')!r})\n"
        f"open({str(folder / 'scores.txt')!r}, 'w').writelines(f'{{s}}\\n' for s in data.X[:, 0].tolist())\n"
    )
    process = run_python(code)
    if process.code:
        raise RuntimeError(process.output)
    return str(folder / "small.txt"), str(folder / "scores.txt")


if __name__ == "__main__":
    sys.path.insert(0, str(SOURCE))
    run()
