"""Run validations by name: `python -m validation max_t`, `… --replications 200`; `python -m validation page`."""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module, util
from pathlib import Path

FOLDER = Path(__file__).parent
SHARED = {"__init__", "__main__", "harness", "page"}


def main() -> int:
    names = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in SHARED)
    parser = argparse.ArgumentParser(prog="python -m validation", description="Simulate truerank's error rates.")
    parser.add_argument(
        "names", nargs="+", choices=[*names, "all", "page"], help="modules of validation/, all, or page"
    )
    parser.add_argument("--replications", type=int, metavar="N", help="(default: the module's own, else 2000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="random seed (default: 0)")
    parser.add_argument("--no-write", action="store_true", help="print the rows and leave the stored results")
    args = parser.parse_args()
    if util.find_spec("truerank") is None:
        sys.path.insert(0, str(FOLDER.parent / "src"))
    from validation import harness

    chosen = names if "all" in args.names else [name for name in args.names if name != "page"]
    for name in chosen:
        module = import_module(f"validation.{name}")
        start = time.process_time()
        rows = module.run(args.replications or getattr(module, "REPLICATIONS", 2_000), args.seed)
        print(f"## {name}\n\n{module.PROMISE}\n\n{harness.table(rows)}\n", flush=True)
        print(f"{time.process_time() - start:.0f} CPU seconds\n", file=sys.stderr)
        if not args.no_write:
            harness.write(name, module.PROMISE, rows, args.seed)
    if "page" in args.names:
        from validation import page

        page.write()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
