"""Where each format of judgements is; without imports, so that help is light."""

PLACES = {
    "qrels": "trec:TREC",
    "ms-marco": "trec:MS_MARCO",
    "ranklib": "trec:RANKLIB",
    "beir": "sets:BEIR",
    "esci": "tables:ESCI_FRAME",
    "quepid": "quepid:CSV",
    "quepid-json": "quepid:JSON",
    "search-relevance": "search_relevance:SEARCH_RELEVANCE",
    "rank-eval": "rank_eval:RANK_EVAL",
    "rre": "rre:RRE",
    "annotations": "annotations:ANNOTATIONS",
    "ranx": "sets:RANX",
    "gold": "sets:GOLD",
    "ratings": "tables:TABLE",
    "json": "tables:JSON",
}
"""Formats by name, in the order in which a file is tried."""
AGGREGATES = ("mean", "median", "majority", "first")
"""How several grades of a document become one."""
