"""Locations of the formats of judgements, without imports, so that help starts quickly."""

PLACES = {
    "qrels": "trec:TREC",
    "ms-marco": "trec:MS_MARCO",
    "ranklib": "trec:RANKLIB",
    "beir": "sets:BEIR",
    "esci": "tables:ESCI_FRAME",
    "quepid": "search_tools:QUEPID",
    "quepid-json": "search_tools:QUEPID_JSON",
    "search-relevance": "search_tools:SEARCH_RELEVANCE",
    "rank-eval": "search_tools:RANK_EVAL",
    "rre": "search_tools:RRE",
    "annotations": "annotations:ANNOTATIONS",
    "ranx": "sets:RANX",
    "gold": "sets:GOLD",
    "ratings": "tables:TABLE",
    "json": "tables:JSON",
}
"""Formats by name, in the order of detection."""
AGGREGATES = ("mean", "median", "majority", "first")
"""Rules that combine several grades of a document."""
