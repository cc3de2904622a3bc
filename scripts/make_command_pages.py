"""Reference pages of all commands, from their parsers: `python scripts/make_command_pages.py docs/api/commands`."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from truerank.cli import COMMANDS, GROUPS, RARE, command_parser
from truerank.cli.parser import description, finish_help
from truerank.data.remarks import CODES

DOCS = Path(__file__).resolve().parents[1] / "docs"
ERRORS = [
    "",
    "## Errors",
    "",
    "An error is one message on standard error, with what to type. The exit codes are listed with the "
    "[commands](index.md), and warnings and notes on data with the [remarks](remarks.md).",
]


def page(name: str) -> str:
    """The page of a command: what it does, how it is called, and its options by group."""
    summary = COMMANDS[name][1]
    module, parser = command_parser(name)
    finish_help(parser, RARE, True)
    text = description(module, summary).rstrip(".")
    actions = re.split(r"\. (?=[a-z-]+[^.:]*: )", text)
    about = f"{text[:1].upper()}{text[1:]}."
    if len(actions) > 1:
        about = f"{summary[:1].upper()}{summary[1:]}.\n\n" + "\n".join(f"* {text}" for text in actions)
    usage = str(parser.usage).replace("%%", "%")
    lines = [f"# truerank {name}", "", about, "", "## Usage", "", "```text", usage, "```"]
    rare = []
    for group in parser._action_groups:
        actions = [action for action in group._group_actions if action.dest not in ("help", "help_all")]
        rare += [action for action in actions if action.dest in RARE]
        title = str(group.title).replace("positional arguments", "arguments")
        lines += _section(title, [action for action in actions if action.dest not in RARE])
    lines += _section("rare options", rare) + _examples(name) + ERRORS
    return "\n".join(lines) + "\n"


def remarks() -> str:
    """The page of the remarks: severity, meaning and remedy of each code."""
    lines = [
        "# Remarks",
        "",
        "This page lists the remarks of commands and functions by code: what was found, its severity, and what to do.",
        "",
        "| code | severity | found | what to do |",
        "| --- | --- | --- | --- |",
    ]
    for name, code in sorted(CODES.items()):
        remedies = [code.remedy] if isinstance(code.remedy, str) else code.remedy
        texts = "; ".join(map(str, remedies))
        lines.append(f"| `{name}` | {code.severity} | {code.meaning} | {texts} |".replace("||", "\\|"))
    return "\n".join(lines) + "\n"


def _section(title: str, actions: list[argparse.Action]) -> list[str]:
    if not actions:
        return []
    rows = []
    for action in actions:
        names = ", ".join(f"`{option}`" for option in action.option_strings) or f"`{action.metavar or action.dest}`"
        value = ", ".join(map(str, action.choices)) if action.choices else str(action.metavar or "")
        value = "" if action.nargs == 0 or (not action.option_strings and not action.choices) else value
        text = str(action.help or "").replace("%%", "%").replace(f": {value} (", " (")
        text = re.sub(r"(?<![\w`-])(--[a-z][a-z-]+)(?![^`]*`)", r"`\1`", text)
        rows.append([f"{names} {value}".rstrip(), text.replace("\n", " ").replace("|", "\\|")])
    header = ["argument", "meaning"]
    rows = [header, ["---"] * len(header), *rows]
    return ["", f"## {title[:1].upper()}{title[1:]}", "", *("| " + " | ".join(row) + " |" for row in rows)]


def _examples(name: str) -> list[str]:
    """At most three commands of the pages for users, with their output where a page shows it, and links to the pages.

    The tests run these pages, so that the examples are right.
    """
    shown: dict[str, str] = {}
    places = {path.name: path.relative_to(DOCS) for path in sorted(DOCS.rglob("*.md"))}
    for path in [DOCS / place for place in places.values() if not {"development", "api"} & set(place.parts)]:
        for kind, block in re.findall(
            r"^```(sh|console)\n(.*?)^```", path.read_text("utf-8"), re.MULTILINE | re.DOTALL
        ):
            starts = r"^\$ " if kind == "console" else r"^(?=truerank )"
            for part in re.split(starts, block, flags=re.MULTILINE):
                if part.startswith(f"truerank {name} ") and path.name not in shown.values():
                    shown.setdefault(f"$ {part.rstrip()}" if kind == "console" else part.rstrip(), path.name)
    lines, heading = list[str](), ""
    with_output = sorted(
        shown.items(), key=lambda one: (not _has_output(one[0]), "tutorials" not in str(places[one[1]]))
    )
    for text, file in with_output[:3]:
        title = (DOCS / places[file]).read_text("utf-8").partition("\n")[0].removeprefix("# ")
        kind = "console" if text.startswith("$") else "sh"
        before, heading = heading, "Output" if _has_output(text) and not lines else "Examples"
        lines += ["", f"## {heading}"] if heading != before else []
        lines += ["", f"From [{title}](../../{places[file]}):", "", f"```{kind}", text, "```"]
    return lines


def _has_output(text: str) -> bool:
    return text.startswith("$") and any(line != "…" for line in text.replace("\\\n", "").splitlines()[1:])


def main() -> None:
    """Write the pages into the folder that is named."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    listed = ["# Commands\n\nThis page lists the commands by what they are for.\n"]
    grouped = {title: [n for n in COMMANDS if n.partition(" ")[0] in names] for title, names in GROUPS.items()}
    grouped["More"] = [n for n in COMMANDS if not any(n in names for names in grouped.values())]
    for title, names in grouped.items():
        if names:
            listed.append(f"## {title}\n\n| command | purpose |\n| --- | --- |")
            listed += [f"| [{n}]({n.replace(' ', '-')}.md) | {COMMANDS[n][1]} |" for n in names]
            listed.append("")
    listed.append(
        "The exit code is 0 for success, 1 if the input cannot be read or used, 2 for wrong usage, 3 for a decision "
        "that is not made (`gate`, `retrain`), 70 for an internal error and 130 after an interrupt. An error is one "
        "message on standard error that says what to type; with `--json` an object with `error` and `exit_code`.\n"
    )
    listed.append("[Remarks](remarks.md) lists what commands remark on data and evidence, by code.\n")
    (folder / "index.md").write_text("\n".join(listed), encoding="utf-8")
    (folder / "remarks.md").write_text(remarks(), encoding="utf-8")
    for name in COMMANDS:
        (folder / f"{name.replace(' ', '-')}.md").write_text(page(name), encoding="utf-8")


if __name__ == "__main__":
    main()
