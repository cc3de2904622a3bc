"""Names of columns and keys by role: the query, its text, the document, the grade, and the judge."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any

QUERY = ("queryid", "qid", "queryno", "topicid", "topic", "topicno", "topicnumber", "searchid", "questionid")
TEXT = (
    "query", "querytext", "userquery", "searchquery", "searchterm", "searchterms", "searchphrase", "searchstring",
    "searchtext", "keyword", "keywords", "querystring", "question", "queryterm", "term", "userinput", "q", "input",
)  # fmt: skip
DOCUMENT = (
    "docid", "docno", "documentid", "document", "doc", "corpusid", "productid", "itemid", "passageid", "pid", "sku",
    "asin", "did", "objectid", "articleid", "chunkid", "resultid", "product", "item", "url", "uri",
)  # fmt: skip
GRADE = (
    "rating", "grade", "relevance", "rel", "label", "judgment", "judgement", "escilabel", "relevancelabel",
    "relevancescore", "relevancegrade", "relevancerating", "relevancejudgment", "relevancejudgement", "judgmentscore",
    "judgementscore", "gain", "humanrating", "expectedscore", "verdict", "annotation", "y", "score", "value",
)  # fmt: skip
JUDGE = (
    "judge", "rater", "annotator", "assessor", "reviewer", "useremail", "user", "worker", "labeler", "labeller",
    "evaluator", "judgeid", "raterid", "annotatorid", "assessorid", "workerid", "userid", "judgedby", "ratedby",
)  # fmt: skip
SCORE = ("score", "scores", "similarity", "sim", "modelscore", "retrievalscore")
RANK = ("rank", "position", "pos", "ranking")
LEVELS = (
    {"irrelevant", "notrelevant", "nonrelevant", "bad", "poor", "terrible", "no", "offtopic", "useless", "none",
     "wrong", "fail", "detrimental", "low", "weak", "mismatch", "nomatch", "negative", "reject", "n"},
    {"fair", "partial", "partiallyrelevant", "somewhatrelevant", "marginallyrelevant", "marginal", "slightlyrelevant",
     "related", "complement", "ok", "acceptable", "yes", "pass", "correct", "medium", "moderate", "partialmatch", "y"},
    {"good", "relevant", "substitute", "useful", "fairlyrelevant", "mostlyrelevant", "high", "strong", "match",
     "positive", "accept"},
    {"excellent", "verygood", "highlyrelevant", "veryrelevant", "veryuseful", "exact"},
    {"perfect", "perfectlyrelevant", "vital", "ideal", "essential"},
)  # fmt: skip
"""Words of the usual scales from the worst to the best, for proposals."""
ROLES = {"query": QUERY, "text": TEXT, "document": DOCUMENT, "grade": GRADE, "judge": JUDGE}
_THINGS = (
    r"(doc|document|chunk|passage|paragraph|source|file|page|path|url|note|article|paper|product|item|section|node)"
)
_LISTS = {
    "grade": re.compile(
        r"(?!.*(answer|pattern|fact|theme|keyword|contain|string|phrase|term|tool|strategy|behaviou?r|refus|decision|count"
        r"|pagenum|not(?!e)|exclu|absent))(judge?ment|rating|relevan|doc(ument)?rating|expect(ed)?|groundtruth|positive|gold|qrel"
        r"|label|grade|references?context|correct|target|support|evidence|mustinclude|pos(doc|chunk|passage|id)).*|context|retrievalgts?"
    ),
    "score": re.compile(
        r"results?|docs?|documents?|(top)?hits|outputs?|((doc|document|chunk|passage|context|node|hit)s?)?ids|points|matches|"
        r"ranking|ranked.*|retriev(ed|al(?!gt)).*|contexts|docids|candidates|topk|runs?"
    ),
}
_RANKED = re.compile(r"results?|retriev(ed|al).*|ranking|ranked.*|(top)?hits")
"""Keys of lists of a system's results, in which a score is not a grade."""
_ONE = re.compile(
    rf"(expect(ed)?|gold(en)?|relevant|correct|groundtruth)(top)?((?!page){_THINGS}(id|name|path|url)?|[a-z]*id)"
)
"""Keys of the single relevant document of a query."""
_ANSWER = re.compile("(groundtruth|(expected|reference|gold|ideal)answer|reference|expectedoutput)")
"""Keys of the answer to a question; a document next to such a key contains the answer."""
_OUTER = re.compile(r"^(input|answer|data|rows?|fields|_?source|metadata)\.|_(s|ss|i|l|f|d|t|txt|str)$", re.IGNORECASE)
"""Prefixes and suffixes of names in flattened records (`Input.query`), and suffixes of types in Solr's fields."""
_LIKE = {
    "document": r"^(doc|prod|item|asin|sku|article|page|listing|passage|chunk|result).*(id|no|key|uid|code|url)$|^id$",
    "text": r"query|search|keyword|phrase|question",
    "grade": r"(?!.*(variance|stddev|confidence)$).*(relevan|rating|grade|judge?ment|label|stars)",
    "score": r"score$|similarity$",
    "rank": r"(rank|position)$",
}
"""Fallback names of a role, used if no column has a usual name and only one has a fallback name."""
_OTHER = re.compile(
    r"(?!(user|session|example|row|hit|assignment|task|batch|record|annotation|worker|case|team)id).+id"
)
"""Ids of other things that may be judged."""


@lru_cache(1 << 14)
def plain(name: object) -> str:
    """Return a name in lower case without marks: "productId", "product-id" and "_Product ID" are "productid"."""
    return re.sub(r"[\W_]", "", str(name).lower())


def is_usual(word: str) -> bool:
    """Return whether a word belongs to one of the usual scales.

    >>> is_usual("Not relevant"), is_usual("red")
    (True, False)
    """
    return any(plain(word) in level for level in LEVELS)


def is_ranked(key: str) -> bool:
    """Return whether the value of a key (in plain form) is a system's ranking."""
    return bool(_RANKED.fullmatch(key))


def lists_documents(key: str, value: str = "grade") -> bool:
    """Return whether the value of a key (in plain form) lists the documents of a query, with grades or in a ranking.

    >>> lists_documents("expectedids"), lists_documents("judgmentratings"), lists_documents("queries")
    (True, True, False)
    """
    return bool(_LISTS[value].fullmatch(key))


def listed_alone(record: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON object with a list in place of the single relevant document of a query.

    >>> listed_alone({"question": "what is a pod?", "expected_doc_id": "pods.md"})
    {'question': 'what is a pod?', 'expected_doc_id': ['pods.md']}
    >>> listed_alone({"question": "what is a pod?", "ground_truth": "a group", "chunk_id": "pods-3"})
    {'question': 'what is a pod?', 'ground_truth': 'a group', 'gold_chunk_id': ['pods-3']}
    """
    roles = roles_of(record)
    if not roles.keys() & {"query", "text"} or "grade" in roles:
        return record
    answered = any(_ANSWER.fullmatch(plain(name)) for name, own in record.items() if isinstance(own, str))
    if answered and re.search("(doc|chunk|passage).*id$", plain(name := roles.get("document", ""))):
        record = {f"gold_{key}" if key == name else key: own for key, own in record.items()}
    alone = [name for name, own in record.items() if not isinstance(own, dict | list) and _ONE.fullmatch(plain(name))]
    if not alone:
        return record
    return record | {name: [] if record[name] in (None, "") else [record[name]] for name in alone}


def other_lists(names: Iterable[str], value: str = "grade") -> set[str]:
    """Return the keys that repeat the documents of another list: texts of ids, or documents of chunks.

    >>> sorted(other_lists(["reference_contexts", "reference_context_ids", "response"]))
    ['reference_contexts']
    >>> sorted(other_lists(["ground_truth_context", "ground_truths"]))
    ['ground_truths']
    >>> sorted(other_lists(["gold_doc_ids", "gold_chunk_ids", "gold_answers"]))
    ['gold_doc_ids']
    """
    lists = [name for name in names if lists_documents(plain(name), value)]
    best = lists
    for form in (r"ids?$", rf"{_THINGS}s?$", "context"):
        if found := [name for name in best if re.search(form, plain(name))]:
            best = found
            break
    finest = [name for name in best if re.search("chunk|passage|paragraph|node", plain(name))]
    return {*lists} - {*(finest or best)}


def lists_together(record: Mapping[str, Any]) -> list[str]:
    """Return the keys of several lists of ids, all of which count as relevant documents; [] for a single list.

    >>> lists_together({"query": "tap?", "expected_rules": ["702"], "expected_cards": ["Bolt"]})
    ['expected_rules', 'expected_cards']
    """
    lists = {name: own for name, own in record.items() if isinstance(own, list)}
    same = other_lists(lists)
    ids = [name for name, own in lists.items() if name not in same and any(isinstance(one, str | int) for one in own)]
    found = [name for name in ids if lists_documents(plain(name))]
    return found if len(found) > 1 and roles_of(record).keys() & {"query", "text"} else []


def lists_of_other_kind(record: Mapping[str, Any], value: str = "grade") -> set[str]:
    """Return the keys of results next to relevant documents, or for "score" the keys of the relevant documents.

    >>> record = {"query": "tv", "relevant": ["d1"], "results": [{"id": "d2", "score": 0.9}]}
    >>> lists_of_other_kind(record), lists_of_other_kind(record, "score")
    ({'results'}, {'relevant'})
    """
    names = {key: plain(key) for key, listed in record.items() if isinstance(listed, dict | list)}
    ours = {key for key, name in names.items() if lists_documents(name, value)}
    other = "score" if value == "grade" else "grade"
    return {key for key, name in names.items() if ours and key not in ours and lists_documents(name, other)}


def roles_of(names: Iterable[str], value: str = "grade", *, like: bool = False) -> dict[str, str]:
    """Return the names by role, with the most usual name if several match. With `like`, else the only similar name.

    `value` is "grade" or "score". The text of a query is its id if no other column has an id.

    >>> roles_of(["Query", "query_id", "product_id", "esci_label", "price"])
    {'query': 'query_id', 'text': 'Query', 'document': 'product_id', 'grade': 'esci_label'}
    >>> roles_of(["qid", "docno", "rank", "score", "label"], "score")
    {'query': 'qid', 'document': 'docno', 'score': 'score', 'rank': 'rank'}
    """
    return dict(_roles_of(tuple(names), value, like))


@lru_cache(1 << 12)
def _roles_of(names: tuple[str, ...], value: str, like: bool) -> dict[str, str]:
    known = {plain(_OUTER.sub("", name)): name for name in reversed(names)}
    known |= {plain(name): name for name in reversed(names)}
    if value == "grade":
        known = {short: name for short, name in known.items() if name != "_score"}  # of a search engine
    wanted = ROLES if value == "grade" else ROLES | {"grade": (), "judge": (), "score": SCORE, "rank": RANK}
    found = {}
    for role, usual in wanted.items():
        if name := next((known[name] for name in usual if name in known), None):
            found[role] = name
    if plain(found.get("query", "")) == "topic" and "text" in found and "id" in known:
        del found["query"]  # it is what the query is about
    for role, pattern in _LIKE.items() if like else ():
        if role in found or not wanted.get(role) or (role == "text" and "query" in found):
            continue
        alike = [name for short, name in known.items() if re.search(pattern, short) and name not in found.values()]
        alike = [name for name in alike if plain(name) != "id"] or alike  # it may be the row's
        if len(alike) == 1:
            found[role] = alike[0]
    if like and "document" not in found and found.keys() >= {"query", value}:  # recipe_id
        alike = [name for short, name in known.items() if _OTHER.fullmatch(short) and name not in found.values()]
        found |= {"document": alike[0]} if len(alike) == 1 else {}
    return {role: found[role] for role in wanted if role in found}


def few(names: Iterable[str]) -> str:
    """Return the first names of columns or keys, for messages."""
    return ", ".join(f"{name!r:.40}" for name, _ in zip(names, range(12)))


def usual(role: str) -> str:
    """Return the expected names of a role, for messages."""
    return {"query": "query_id, qid, query", "document": "doc_id, docno, product_id", "score": "score, rank",
            "grade": "grade, rating, relevance, label"}[role]  # fmt: skip


def has(names: Collection[str], *wanted: str) -> bool:
    """Return whether all `wanted` plain names are among the names."""
    return {plain(name) for name in names}.issuperset(wanted)


def role_like(name: str) -> str | None:
    """Return the role that the name of a column suggests; "score" and "rank" are roles, "text" is "query".

    >>> role_like("relevance_grade"), role_like("hit.docno"), role_like("query_type")
    ('grade', 'document', None)
    """
    short = plain(name.rpartition(".")[2])
    names = {"score": SCORE, "rank": RANK, "judge": JUDGE, **ROLES}
    found = next((role for role, own in names.items() if short in own), None)
    if found is None and (_ONE.fullmatch(short) or (short.endswith("ids") and lists_documents(short))):
        return "document"
    if found is None and not re.search("(type|category|lang|language|date|time|count|length|notes?)$|^id$", short):
        patterns = {"judge": "^(judge|rater|annotator|assessor|reviewer|worker|participant|respondent)|by$", **_LIKE}
        patterns["grade"] += "|^(final|consensus|adjudicated)"
        found = next((role for role, own in patterns.items() if re.search(own, short)), None)
    return "query" if found == "text" else found
