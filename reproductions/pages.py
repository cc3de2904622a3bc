"""The pages of docs/development/papers/, made from templates and the results that the commands wrote.

A template has the text; every figure in it is looked up, so that no page can differ from the results or from another
page:

* `{{FILE/key/key|FORMAT}}`: a value of `results/FILE.json`, or of `published/NAME.json` as `{{published:NAME/key|…}}`;
  the format is Python's, and `p` prints a p-value.
* `{{items}}`: the table of all items of the five papers, `published/items.json`.
* `{{verdicts FILE [words]}}`: the verdicts of a result whose item contains the words, as a table.
* `{{second-check NAME}}`: what the second check found for a paper, as a table.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from truerank import __version__
from truerank.core.files import atomic_write
from truerank.core.printing import plain

HERE = Path(__file__).parent
TEMPLATES, RESULTS, PUBLISHED = HERE / "templates", HERE / "results", HERE / "published"
PAGES = HERE.parent / "docs" / "development" / "papers"
LONGEST_LIST = 60  # longer ones (values by query, by round) stay in the experiment's own folder
_PLACE = re.compile(r"\{\{(.+?)\}\}")


def record(name: str, settings: dict[str, Any], rows: list[dict[str, Any]], result: dict[str, Any]) -> Path:
    """Write a result for the pages: settings without paths, version, verdicts, figures; another seed's has its own."""
    seed = settings.get("seed", 0)
    path = RESULTS / (f"{name}.json" if not seed else f"{name}-seed-{seed}.json")
    kept = {
        key: value for key, value in settings.items() if key not in ("data", "out", "runs", "qrels", "json", "manual")
    }
    content = {"experiment": name, "version": __version__, "settings": kept, "verdicts": rows,
               "figures": _short(plain({key: value for key, value in result.items() if key != "scores"}))}  # fmt: skip
    path.parent.mkdir(exist_ok=True)
    with atomic_write(path, "w") as file:
        file.write(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return path


def _short(value: Any) -> Any:
    """The value without its long lists, numbers to ten digits."""
    if isinstance(value, dict):
        return {k: _short(v) for k, v in value.items() if not (isinstance(v, list) and len(v) > LONGEST_LIST)}
    if isinstance(value, list):
        return [_short(v) for v in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


def write_pages() -> int:
    """Write every page."""
    PAGES.mkdir(exist_ok=True)
    for template in sorted(TEMPLATES.glob("*.md")):
        with atomic_write(PAGES / template.name, "w") as file:
            file.write(render(template))
    return 0


def render(template: Path) -> str:
    """A page's text."""
    return _PLACE.sub(lambda match: _value(match[1]), template.read_text(encoding="utf-8"))


def _value(place: str) -> str:
    if place.startswith("verdicts "):
        _, name, *words = place.split(" ", 2)
        return verdict_table(name, words[0] if words else "")
    if place.startswith("second-check "):
        return second_check_table(place.split(" ")[1])
    if place == "items":
        return items_table()
    path, _, form = place.partition("|")
    value: Any = None
    name, *keys = path.split("/")
    value = _file(PUBLISHED / f"{name.removeprefix('published:')}.json" if ":" in name else RESULTS / f"{name}.json")
    if ":" not in name:
        value = value["figures"]
    for key in keys:
        value = value[int(key)] if isinstance(value, list) else value[key]
    if form == "p":
        return "< 0.0001" if value < 1e-4 else f"{value:.4f}" if value < 0.01 else f"{value:.2f}"
    return format(value, form)


def verdict_table(name: str, words: str = "") -> str:
    """The verdicts of a result as a table of Markdown."""
    rows = [row for row in _file(RESULTS / f"{name}.json")["verdicts"] if words in row["item"]]
    lines = ["| item | published | ours | verdict |", "| --- | --- | --- | --- |"]
    for row in rows:
        why = f" ({row['why']})" if row["why"] else ""
        item, published, ours = (re.sub(r"\*\*", r"\\*\\*", row[key]) for key in ("item", "published", "ours"))
        lines.append(f"| {item} | {published} | {ours} | {row['verdict']}{why} |")
    return "\n".join(lines)


def second_check_table(name: str) -> str:
    """The claims of a paper that were drawn, with the verdict and our figure under each variation, as Markdown."""
    claims = _file(RESULTS / "second-check.json")["figures"][name]["claims"]
    first = next(iter(claims.values()))
    lines = [f"| claim | {' | '.join(first)} |", "| --- |" + " --- |" * len(first)]
    for item, found in claims.items():
        cells = [f"{one['verdict']}: {one['ours']}" for one in found.values()]
        lines.append(f"| {item} | {' | '.join(cells)} |")
    return "\n".join(lines)


def items_table() -> str:
    """Every item of the five papers: its place in the code, what runs it, and its status."""
    lines: list[str] = []
    paper = ""
    for row in _file(PUBLISHED / "items.json"):
        if row["paper"] != paper:
            paper = row["paper"]
            lines += ["", f"## {paper}", "", "| item | where | command | status |", "| --- | --- | --- | --- |"]
        lines.append(f"| {row['item']} | {row['where']} | {row['command']} | {row['status']} |")
    return "\n".join(lines).strip()


@cache
def _file(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
