"""Run benchmarks by name: `python -m benchmarks`, `python -m benchmarks measures`, `… bench_evaluate`.

A benchmark is a file `benchmarks/**/bench_*.py` with a function `run()` that prints its tables. A name selects every
file whose path contains it; no name selects all. The package is taken from `src/` if it is not installed.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module, util
from pathlib import Path

FOLDER = Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure truerank beside its peers.")
    parser.add_argument("names", nargs="*", help="parts of the paths of the benchmarks to run; all if none is given")
    parser.add_argument("--list", action="store_true", help="print the benchmarks' names and what each measures")
    args = parser.parse_args()
    if util.find_spec("truerank") is None:
        sys.path.insert(0, str(FOLDER.parent / "src"))
    from benchmarks import harness

    paths = {path.relative_to(FOLDER).with_suffix("").as_posix(): path for path in sorted(FOLDER.rglob("bench_*.py"))}
    chosen = [name for name in paths if not args.names or any(part in name for part in args.names)]
    if not chosen:
        print(f"no benchmark is called {' or '.join(args.names)}; there are: {', '.join(paths)}", file=sys.stderr)
        return 2
    if not args.list:
        print(harness.machine())
    for name in chosen:
        module = import_module("benchmarks." + name.replace("/", "."))
        print(f"\n## {name}\n{(module.__doc__ or '').strip().splitlines()[0]}", flush=True)
        if not args.list:
            module.run()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
