"""Make the pages of docs/development/papers/ from templates and from the results that the commands wrote.

A template has the text. It looks up every figure, so that no page can differ from the results or from another page:

* `{{FILE/key/key|FORMAT}}` is a value of `results/FILE.json`, and `{{published:NAME/key|FORMAT}}` of
  `published/NAME.json`. The format is Python's, or `p` for a p-value.
* `{{table FILE/key` and lines up to `}}` are a table: the heading of the first column, then a line `HEADING =
  key/*/key FORMAT` for each column, then a line `- key = TITLE` for each row (without such lines, a row for each key).
  The row's key replaces the star. A value that does not exist is left blank.
* `{{verdicts FILE WORDS | WORDS}}` is a table of the verdicts whose item contains some of the words, `{{counts}}` the
  number of verdicts by result, `{{second-check NAME}}` the second check of a paper, `{{items}}` every item.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from reproductions.slices import SLICES, digest
from truerank import __version__
from truerank.core.files import atomic_write
from truerank.core.printing import plain

HERE = Path(__file__).parent
TEMPLATES, RESULTS, PUBLISHED = HERE / "templates", HERE / "results", HERE / "published"
PAGES = HERE.parent / "docs" / "development" / "papers"
LONGEST_LIST = 60  # longer lists (values by query, by round) are not recorded
VERDICTS = ("reproduced", "undecided", "not reproduced")
_PLACE = re.compile(r"\{\{(.+?)\}\}", re.DOTALL)
_NOT_RECORDED = ("data", "out", "json", "jobs")


def record(name: str, settings: dict[str, Any], rows: list[dict[str, Any]], result: dict[str, Any]) -> Path:
    """Write a result for the pages: version, settings without paths, verdicts, figures. Each seed has its own file."""
    seed = settings.get("seed", 0)
    name_of_file = name + ("-stand-in" if settings.get("stand_in") else "") + (f"-seed-{seed}" if seed else "")
    path = RESULTS / f"{name_of_file}.json"
    content = {
        "experiment": name,
        "version": __version__,
        "commit": _commit(),
        "slice": digest(name, settings["data"]) if settings.get("data") and name in SLICES else "",
        "settings": {key: value for key, value in settings.items() if key not in _NOT_RECORDED},
        "verdicts": rows,
        "figures": _short(plain({key: value for key, value in result.items() if key != "scores"})),
    }
    path.parent.mkdir(exist_ok=True)
    with atomic_write(path, "w") as file:
        file.write(compact_json(content))
    return path


def _commit() -> str:
    found = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=HERE, capture_output=True, text=True, check=False
    )
    return found.stdout.strip()


def compact_json(content: Any) -> str:
    """JSON with each innermost list or object on one line."""
    text = json.dumps(content, indent=1, ensure_ascii=False)
    return re.sub(r'[\[{](?:[^\[\]{}"]|"(?:[^"\\]|\\.)*")*[\]}]', lambda m: re.sub(r"\n\s*", " ", m[0]), text) + "\n"


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
    kind, _, rest = place.partition(" ")
    if kind == "table":
        return value_table(rest)
    if kind == "verdicts":
        return verdict_table(*rest.split(" ", 1))
    if kind == "second-check":
        return second_check_table(rest)
    if kind == "recorded":
        found = _file(RESULTS / f"{rest}.json")
        return f"version {found['version']}" + (f", commit {found['commit']}" if found.get("commit") else "")
    if place in _TABLES:
        return _TABLES[place]()
    return look_up(*place.rsplit("|", 1))


def look_up(path: str, form: str, *, blank: bool = False) -> str:
    """A value of a file as text; with `blank` a missing one is empty."""
    name, *keys = path.split("/")
    if name.startswith("published:"):
        value = _file(PUBLISHED / f"{name.removeprefix('published:')}.json")
    else:
        value = _file(RESULTS / f"{name}.json")["figures"]
    for key in keys:
        if blank and key not in value and not isinstance(value, list):
            return ""
        value = value[int(key)] if isinstance(value, list) else value[key]
    if form == "p":
        return "< 0.0001" if value < 1e-4 else f"{value:.4f}" if value < 0.01 else f"{value:.2f}"
    return format(value, form)


def _markdown(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    header = list(header)
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def value_table(block: str) -> str:
    """The table of a `{{table …}}` block."""
    base, label, *lines = block.splitlines()
    columns = [line.split(" = ", 1) for line in lines if not line.startswith("- ")]
    rows = [line.removeprefix("- ").split(" = ", 1) for line in lines if line.startswith("- ")]
    if not rows:
        name, *keys = base.split("/")
        found = _file(RESULTS / f"{name}.json")["figures"]
        for key in keys:
            found = found[key]
        rows = [[key, key] for key in found]
    values = []
    for key, title in rows:
        places = [path.replace("*", key).rpartition(" ") for _, path in columns]
        values.append([title, *(look_up(f"{base}/{path}".lstrip("/"), form, blank=True) for path, _, form in places)])
    return _markdown([label, *(heading for heading, _ in columns)], values)


def verdict_table(name: str, words: str = "") -> str:
    """The verdicts of the printed claims of a result, or all rows whose item contains some of the groups of words."""
    groups = words.split(" | ")
    rows = _file(RESULTS / f"{name}.json")["verdicts"]
    shown = [row for row in rows if any(one in row["item"] for one in groups) and (words or not row["setting_of"])]
    return _markdown(["item", "published", "ours", "verdict"], map(_cells, shown))


def _cells(row: dict[str, Any]) -> list[str]:
    item = ("setting: " if row["setting_of"] else "") + row["item"]
    cells = [text.replace("**", r"\*\*") for text in (item, row["published"], row["ours"])]
    return [*cells, row["verdict"] + (f" ({row['why']})" if row["why"] else "")]


def claims_table() -> str:
    """Every printed claim of the five sources with its test, verdict, figure and command."""
    tables = []
    for paper in _file(PUBLISHED / "claims.json"):
        rows = []
        if paper["result"]:
            found = _file(RESULTS / f"{paper['result']}.json")["verdicts"]
            rows = [[*_cells(row), paper["test"]] for row in found if not row["setting_of"]]
        rows += [[claim, "", "", f"cannot be tried here: {why}", ""] for claim, why in paper["not tried"]]
        rows = [[item, test, verdict, ours, said] for item, said, ours, verdict, test in rows]
        header = ["claim", "printed test", "verdict", "ours", "published"]
        tables.append(f"## {paper['title']}\n\n`{paper['command']}`\n\n" + _markdown(header, rows))
    return "\n\n".join(tables)


def counts_table() -> str:
    """Verdicts by result: how many items were reproduced, are undecided, were not reproduced."""
    found = {
        path.stem: Counter(row["verdict"] for row in _file(path)["verdicts"] if not row["setting_of"])
        for path in RESULTS.glob("*.json")
    }
    rows = ([name, *(str(found[name][verdict]) for verdict in VERDICTS)] for name in sorted(found) if found[name])
    return _markdown(["result", *VERDICTS], rows)


def second_check_table(name: str) -> str:
    """The drawn verdicts of a paper, with the verdict and our figure under each variation."""
    claims = _file(RESULTS / "second-check.json")["figures"][name]["claims"]
    rows = ([item, *(f"{one['verdict']}: {one['ours']}" for one in found.values())] for item, found in claims.items())
    return _markdown(["item", *next(iter(claims.values()))], rows)


def items_table() -> str:
    """Every item of the five papers: its place in the code, the command that runs it, its status."""
    tables = (
        f"## {paper}\n\n" + _markdown(["item", "where", "command", "status"], rows)
        for paper, rows in _file(PUBLISHED / "items.json").items()
    )
    return "\n\n".join(tables)


_TABLES = {"items": items_table, "counts": counts_table, "claims": claims_table}


@cache
def _file(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
