"""Judgement lists of OpenSearch's Search Relevance Workbench."""

from __future__ import annotations

from truerank.io.judgements.content import Content
from truerank.io.judgements.formats import Format, json_rows, whole, write_json
from truerank.io.judgements.ratings import Ratings


def _matches(content: Content) -> bool:
    return content.kind == "json" and '"judgmentRatings"' in content.text


def _write(ratings: Ratings, target: object) -> None:
    lists = [
        {
            "query": ratings.text(query),
            "ratings": [{"docId": ratings.documents[row], "rating": str(whole(ratings.grades[row]))} for row in rows],
        }
        for query, rows in ratings.by_query().items()
    ]
    write_json({"name": "judgements", "description": "", "type": "IMPORT_JUDGMENT", "judgmentRatings": lists}, target)


SEARCH_RELEVANCE = Format(
    "search-relevance", "a judgement list of the Search Relevance Workbench", _matches, json_rows, _write, texts=False
)
