"""Settings of pages that the site's generator asks for while it builds."""

import re
from pathlib import Path
from typing import Any

from griffe._internal.docstrings import numpy
from mkdocs.utils import get_relative_url

from truerank.cli import COMMANDS
from truerank.core.printing import fitted_to, wrapped

COLUMNS = 88  # of code on a page

MOVED = {
    "architecture": "development/architecture",
    "calibration": "howto/probabilities",
    "fusion": "howto/fusing-runs",
    "howto/reproduce": "howto/researchers-table",
    "howto/spark-and-ray": "scale-out",
    "howto/tuning": "howto/which-ranker",
    "report": "howto/is-it-better",
    "tree-objectives": "rankers/oblivious-boosting",
    "versioning": "installation",
}  # old address: new address


def on_startup(**given: Any) -> None:
    """Show the types of docstrings as they are written: griffe reads `array-like (n,)` as a difference."""
    numpy.parse_docstring_annotation = lambda annotation, *given, **settings: str(annotation).replace("`", "")
    read = numpy._read_parameters

    def each_by_its_signature(lines: list[str], docstring: Any, **settings: Any) -> tuple[list[Any], int]:
        """Read parameters; griffe gives those of one line the first one's default and type, or the first choice."""
        found, end = read(lines, docstring, **settings)
        declared = {one.name: one for one in getattr(docstring.parent, "parameters", ())}
        lined = [match for line in lines if (match := re.match(r"([\w, ]+) : .*, default[ :=]+(.+)$", line))]
        stated = {match[1]: match[2] for match in lined}  # not of several parameters
        for one in found:
            own = declared.get(one.name)
            one.value = stated.get(one.name, one.value if own is None else own.default)
            if own is not None and any(one.annotation is other.annotation for other in declared.values()):
                one.annotation = own.annotation
        return found, end

    numpy._read_parameters = each_by_its_signature


def on_page_content(html: str, **given: Any) -> str:
    """Leave out the dash and the frame of a description that is empty, because the type says everything."""
    return re.sub(r"\s+–\s*<div class=\"doc-md-description\">\s*</div>", "", html)


def _fitted(block: re.Match[str]) -> str:
    """Break the commands of a block that are wider than the column of a page."""
    with fitted_to(COLUMNS):
        return re.sub(r"^(\$ |)(truerank .*)$", lambda line: line[1] + wrapped(line[2]), block[0], flags=re.MULTILINE)


def on_page_markdown(markdown: str, page: Any, **given: Any) -> str:
    """Break long commands, leave pages for developers out of the search, and link the commands that others name."""
    source = page.file.src_uri
    markdown = re.sub(r"^```(?:sh|console)\n.*?^```", _fitted, markdown, flags=re.MULTILINE | re.DOTALL)
    if source.startswith("development/"):
        page.meta["search"] = {"exclude": True}
    if source.startswith(("development/", "api/", "rankers/", "gallery/")):
        return markdown
    named = set(re.findall(r"\btruerank ((?:text )?[a-z-]+)", markdown.replace("\\\n", " "))) & set(COMMANDS)
    if not named:
        return markdown
    up = "../" * source.count("/")
    links = [f"[{name}]({up}api/commands/{name.replace(' ', '-')}.md)" for name in COMMANDS if name in named]
    return f"{markdown}\n\n---\n\nCommands on this page: {' · '.join(links)}\n"


def on_post_build(config: Any, **given: Any) -> None:
    """Write a page for each address that has moved."""
    for old, new in MOVED.items():
        place = Path(config["site_dir"], old, "index.html")
        assert not place.exists(), f"{old} is a page"
        assert Path(config["site_dir"], new, "index.html").exists(), f"{new} is no page"
        place.parent.mkdir(parents=True, exist_ok=True)
        to = get_relative_url(f"{new}/", f"{old}/")
        place.write_text(
            f'<!doctype html><meta charset="utf-8"><title>Moved</title><link rel="canonical" href="{to}">'
            f'<meta http-equiv="refresh" content="0; url={to}"><a href="{to}">This page has moved.</a>',
            encoding="utf-8",
        )
