"""Describe files that contain neither judgements nor a run, and give advice."""

from __future__ import annotations

import re

from truerank.io.judgements.content import Content
from truerank.io.judgements.roles import few, plain, roles_of

_CLICKS = "Read it with `truerank clicks`; clicks are not judgements"
_RUN = "Name it as a run; judgements have a grade for each document"
_ANSWER = 'A run has a line {"query": …, "response": …} for each answer of a search engine'
PAIRWISE = "pairwise labels", "The file compares two documents, but judgements have a grade for each document"
_COMMENTS = r"\A(?:\s*#.*\n|\s*\n)*[ \t]*"
_LOOKS = (
    ("json", r'"(action_name|event_attributes|query_response_hit_ids)"', "UBI events or queries", _CLICKS),
    ("json", r'"impression"[\s\S]*"clicked"', "a click log", _CLICKS),
    ("table", r"doc(id|ument)?(a|1) .*doc(id|ument)?(b|2)\b|better.* worse|chosen.* rejected", *PAIRWISE),
    ("table", r"impression.* clicked|clicked.* impression|actionname", "a click log", _CLICKS),
    ("json", r'"eventType"\s*:\s*"(click|conversion|view)"', "events of a search service", "Clicks are not judgements"),
    ("json", r'"querySetQueries"', "a query set without judgements", "Name the judgement list"),
    ("json", r'"metric_score"', "the answer of _rank_eval", "Name the request, which has the ratings"),
    ("json", r'"error"\s*:[\s\S]*"status"\s*:', "the error answer of a search engine", "Repeat the request"),
    ("json", r'"(tree_info|learner|oblivious_trees|truerank-model)"', "a model", "Pass it where a model is expected"),
    ("json", r'"_ltrlog"', "features that a search engine logged", _ANSWER),
    ("json", r'"(took|responseHeader)"\s*:', "the answer of a search engine", _ANSWER),
    ("json", r'"featuresets?"', "a feature set", "Give it to `truerank features` as its features"),
    ("json", r'\A\s*\{\s*"[^"]*"\s*:\s*\{\s*"[^"]*"\s*:\s*-?\d+\.\d', "a run (scores of a system)", _RUN),
    ("json", r'"results"|"retrieved', "a run (results of a system)", _RUN),
    ("text", r"\A\s*(quer(y|ies)|questions?|keywords?|search.?terms?)\s*$", "queries without documents",
     "Judgements have documents and grades, too"),
    ("text", r"\A\s*([|+]|-[-+]+-\s*$)", "a table that is drawn with lines", "Export it as CSV"),
    ("text", r"\A\s*<(!doctype|html)", "a web page", "The file may be a login page. Export the data again"),
    ("text", r"\A\s*<", "XML or TREC topics", "Topics are queries; judgements have a grade for each document"),
    ("text", _COMMENTS + r"\S+[ \t]+qid:[^#\n]*$", "LETOR features without document ids",
     "Name it as judged rows; qrels need document ids in comments"),
    ("text", _COMMENTS + r"(\S+[ \t]+){5}\S+\s*$", "a TREC run (6 columns)",
     "Name it as a run; qrels have 4 columns 'topic iteration docno grade'"),
    ("text", _COMMENTS + r"(\S+[ \t]+){3}\S+\s*$", "judgements (TREC qrels)", "Name it as judgements"),
    ("text", r"\A\s*[-+.\deE]+\s*$", "a file of scores", "Scores belong to judged rows"),
)  # fmt: skip
_BARE = {
    3: ("triples of a query, a relevant and another document", "Triples train rankers, but have no grades"),
    4: ("candidates of queries with their texts", _RUN),
}
"""Tables of MS MARCO (tabs, no header), by the number of columns."""
_MOST = 1 << 16  # characters that are looked at


def looks_like(content: Content) -> tuple[str, str] | None:
    """Return the description of a known kind of file, and advice; None for a file that only its cells describe."""
    is_table = content.kind == "table"
    text = " ".join(map(plain, content.header)) if is_table else content.text[:_MOST]
    for kind, pattern, looks, advice in _LOOKS:
        if kind == content.kind and re.search(pattern, text, re.IGNORECASE | re.MULTILINE):
            return looks, advice
    if content.kind == "text":
        return f"other text ({' '.join(next(content.lines(), (1, ['no row']))[1])[:60]!r})", ""
    if content.kind == "json" and not content.first():
        return "other JSON (no object)", ""
    roles = roles_of(content.header, "score")
    if is_table and not roles and content.delimiter == "\t" and len(content.header) in _BARE:
        looks, advice = _BARE[len(content.header)]
        return f"{looks}, without names of columns ({few(content.header)})", advice
    if "document" in roles and {"query", "text"} & roles.keys() and {"score", "rank"} & roles.keys():
        return "a run (scores of a system)", _RUN
    return None
