"""Descriptions of files that hold no judgements or run, with advice."""

from __future__ import annotations

import re

from truerank.io.judgements.content import Content
from truerank.io.judgements.roles import few, lists_documents, plain, roles_of

_CLICKS = "Read it with `truerank clicks`; clicks are not judgements"
_RUN = "Name it as a run; judgements have a grade for each document"
NO_QUERY = "Judgements have a column such as 'query'"
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
    ("json", r'"(took|responseHeader)"\s*:', "the answer of a search engine", _RUN),
    ("json", r'"featuresets?"', "a feature set", "Give it to `truerank features` as its features"),
    ("json", r'\A\s*\{\s*"[^"]*"\s*:\s*\{\s*"[^"]*"\s*:\s*-?\d+\.\d', "a run (scores of a system)", _RUN),
    ("json", r'"results"|"retrieved', "a run (results of a system)", _RUN),
    ("json", r'"_?(doc_?)?id"[\s\S]*"(text|title|contents|body)"', "documents or queries (a corpus)", _RUN),
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
    2: ("ids and texts of queries or of documents", _RUN),
    3: ("triples of a query, a relevant and another document", "Triples train rankers, but have no grades"),
    4: ("candidates of queries with their texts", _RUN),
}
"""Tables of MS MARCO (tabs, no header), by the number of columns."""
_MOST = 1 << 16  # characters that are looked at


def looks_like(content: Content) -> tuple[str, str]:
    """Return the description of a file and advice; for unknown files, a description of the content."""
    text = " ".join(map(plain, content.header)) if content.kind == "table" else content.text[:_MOST]
    for kind, pattern, looks, advice in _LOOKS:
        if kind == content.kind and re.search(pattern, text, re.IGNORECASE | re.MULTILINE):
            return looks, advice
    first = content.first()
    if not roles_of(first).keys() & {"query", "text"}:  # what a single list holds
        inside = [own[0] for own in first.values() if isinstance(own, list) and own and isinstance(own[0], dict)]
        first = inside[0] if len(inside) == 1 else first
    if content.kind == "json" and roles_of(first).keys() & {"query", "text"}:
        return f"queries without documents ({few(first)})", 'Expected a list such as "relevant": ["d1", "d2"]'
    lists = [name for name, own in first.items() if isinstance(own, list) and lists_documents(plain(name))]
    if content.kind == "json" and lists:
        return f"documents without queries ({few(first)})", "Each list needs a key such as 'query' next to it"
    if content.kind == "json":
        return f"other JSON ({few(first) or 'no object'})", ""
    if content.kind == "text":
        return f"other text ({' '.join(next(content.lines(), (1, ['no row']))[1])[:60]!r})", ""
    return _table(content)


def _table(content: Content) -> tuple[str, str]:
    roles, shown = roles_of(content.header, like=True), few(content.header)
    if not roles and content.delimiter == "\t" and len(content.header) in _BARE:
        looks, advice = _BARE[len(content.header)]
        return f"{looks}, without names of columns ({shown})", advice
    about = f"(columns {shown})"
    if "document" in roles and {"query", "text"} & set(roles):
        if roles_of(content.header, "score").keys() & {"score", "rank"}:
            return "a run (scores of a system)", _RUN
        return f"a table of features or documents without grades {about}", "Add a column of grades, such as 'rating'"
    if "document" in roles:
        return f"documents without queries {about}", NO_QUERY
    if {"query", "text"} & set(roles):
        return f"queries without documents {about}", "Judgements have a column such as 'doc_id'"
    return f"a table with the columns {shown}", "Judgements have columns of a query, a document and a grade"
