"""Bodies of `_rank_eval` requests, the ranking evaluation of Elasticsearch and OpenSearch."""

from __future__ import annotations

from truerank.core.errors import InvalidInputError
from truerank.io.judgements.content import Content
from truerank.io.judgements.formats import Format, json_rows, whole, write_json
from truerank.io.judgements.ratings import Ratings

_INDEX = "INDEX"


def _matches(content: Content) -> bool:
    requests = content.first().get("requests")
    return isinstance(requests, list) and any(isinstance(one, dict) and "ratings" in one for one in requests)


def _write(ratings: Ratings, target: object) -> None:
    wrong = next((grade for grade in ratings.grades if grade != int(grade) or grade < 0), None)
    if wrong is not None:
        raise InvalidInputError(f"_rank_eval requires integer grades >= 0, got {wrong:g}")
    requests = [
        {
            "id": query,
            "request": {"query": {"simple_query_string": {"query": ratings.text(query)}}},
            "ratings": [
                {"_index": _INDEX, "_id": ratings.documents[row], "rating": whole(ratings.grades[row])} for row in rows
            ],
        }
        for query, rows in ratings.by_query().items()
    ]
    write_json({"requests": requests, "metric": {"dcg": {"k": 10, "normalize": True}}}, target)


RANK_EVAL = Format("rank-eval", "a _rank_eval request", _matches, json_rows, _write)
