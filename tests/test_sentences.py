"""Sentences of pages, docstrings, messages and help: constructions that readers stumble over do not occur."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BANNED = {
    "a noun for `others`": r"\b(?:have|are) others\b",
    "`is not one of`": r"\b(?:is|are) none of the\b|\bis none\b(?=\"|$)|\band is none\b",
    "`one for each row`": r"\b(?:one|a line|a value|an array|a number|a byte|a file|a list) an? "
    r"(?:row|query|line|feature|partition|round|document|topic|fold|column|system|level|tree|class|value)\b",
    "`next to` or `apart from`": r"(?<!`)\bbeside\b",
    "`equal` or `similar`": r"\balike\b|\bmanners\b",
    "`again`, `given`": r"\banew\b|\bat hand\b|\b(?:is|are) had\b",
    "`continue`": r"\bgo(?:es)? on\b(?! to)",
    "`is`, `has` or `is written`": r"\bwhat stands\b|\bstands (?:by|at|in|before|after|above|below)\b",
    "`print` or `return`": r"\bmust tell\b|\b(?:is|are) told\b|\btells (?:whether|about|how)\b",
    "the noun itself": r"\bthat which\b|\bthose which\b",
    "no preposition at the end": r"\b(?:to continue|comes?|come|compared|is not) (?:from|with|of)\.(?:\s|$)",
    "the name of what is tied": r"\b(?:of|among) equal(?:ly good)? ones\b",
    "`significant`": r"\b(?:is|are) shown to be\b|\bgains? (?:is|are) shown\b(?= on| and|\.)",
    "`requires`": r"\b(?:is|are) about (?:one|two) (?:system|measure)",
    "the noun after `these`": r"\bThese (?:are ours|need)\b|\bthese data have no\b",
    "each word once": r"\b(?:the the|a a|of of|to to|is is|in in|and and)\b",
    "such rows, these queries": r"\bthey are left out\b",
    "`have`": r"\bbrings? their own\b",
    "`requires` or `applies only to`": r"\bbelongs? to --|\bdoes not go with\b",
    "`guarantee`": r"\b[Pp]romise[sd]?\b",
    "`weight`": r"\bweighs?\b|\bweighed\b",
    "`position`, `rank` or `index`": r"\b(?:its|their) places? (?:in|is|from)\b|\bat the places\b",
    "`not adjacent`": r"\bin (?:several )?pieces (?:and|were)\b",
    "`is not a`": r"(?<!there )\b(?:is|and) no (?:feature|ranker|weak|mistake)\b",
    "`Measure that selects the value`": r"^ +Chooses [A-Zλ]",
    "the general term": r"Beside its peers|What it rests on|can be trusted that|what it is worth|What is odd",
}


def pages() -> list[Path]:
    found = [path for path in (ROOT / "docs").rglob("*.md") if not {"development", "commands"} & set(path.parts)]
    return [*sorted(found), ROOT / "README.md"]


def texts() -> list[tuple[str, str]]:
    """Text without code of each page; docstrings and other texts with a blank of each module."""
    found = [
        (path.name, re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)) for path in pages()
    ]
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                found.append((f"{path.name}:{node.lineno}", node.value))
    return found


def test_no_text_has_a_banned_construction():
    wrong = [
        (place, text[max(0, match.start() - 40) : match.end() + 20], instead)
        for place, text in texts()
        for instead, pattern in BANNED.items()
        for match in re.finditer(pattern, text)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "text", ["but these qrels have others", "a list with an array a partition", "the model that the fit goes on from",
             "'x' is none of the classes", "texts beside ids", "what stands before it",
             "the last of equal ones counts", "These need the base", "power is about two systems",
             "--scores belongs to --data", "keeps a promise", "pairs are not weighed", "its place in the list",
             "came in several pieces and were joined", "the query of each row and no feature"],
)  # fmt: skip
def test_the_patterns_find_what_they_are_for(text):
    assert any(re.search(pattern, text) for pattern in BANNED.values())
