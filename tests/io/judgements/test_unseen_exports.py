"""Exports that tools write, in the shapes of their documentation: each is read as it is, or refused by its name."""

import json

import pytest

from support.exports import J, lines, parquet
from truerank import read_qrels, read_ratings
from truerank.cli import main
from truerank.core.errors import DataFileError

# ruff: noqa: E501
TWO = {"red shoes": {"a1": 3, "a2": 0}, "tv": {"a3": 2}}


X = {}
X["quepid detail csv with notes"] = (
    "export.csv",
    'Team Name,Case Name,Case ID,Query Text,Doc ID,Doc Position,Rating,Notes,Information Need,title\nShop,Case 1,17,red shoes,a1,1,3,"good, but late",find shoes,Red Shoe\nShop,Case 1,17,red shoes,a2,2,0,,find shoes,Hat\nShop,Case 1,17,tv,a3,1,2,,,TV\nShop,Case 1,17,tv,a4,2,,,,Radio\n',
    TWO,
)
X["quepid general csv"] = (
    "export.csv",
    "Team Name,Case Name,Case ID,Query Text,Score,Date Last Scored,Count,Information Need,Notes,Options\nShop,Case 1,17,red shoes,0.53,2026-01-03 10:00:00,2,,,{}\n",
    "REFUSE documents",
)
X["quepid snapshot csv"] = (
    "export.csv",
    "Snapshot Name,Snapshot Time,Case ID,Query Text,Doc ID,Doc Position,title,Rating\nFirst,2026-01-02 10:00:00 UTC,17,red shoes,a1,1,Red,3\nFirst,2026-01-02 10:00:00 UTC,17,red shoes,a2,2,Hat,0\nFirst,2026-01-02 10:00:00 UTC,17,tv,a3,1,TV,2\n",
    TWO,
)
X["quepid book csv with explanations"] = (
    "export.csv",
    'query,docid,information_need,Rater ann@x.org,Rater ann@x.org Explanation,Rater bob@x.org,Rater bob@x.org Explanation\nred shoes,a1,,3,"right on",3,\nred shoes,a2,,0,,0,hat\ntv,a3,,2,,,\n',
    TWO,
)
X["SRW list from search hits"] = (
    "export.json",
    J(
        {
            "took": 1,
            "hits": {
                "hits": [
                    {
                        "_id": "j1",
                        "_source": {
                            "id": "j1",
                            "timestamp": "2026-01-01T00:00:00Z",
                            "name": "Imported",
                            "status": "COMPLETED",
                            "type": "IMPORT_JUDGMENT",
                            "metadata": {},
                            "judgmentRatings": [
                                {
                                    "query": "red shoes",
                                    "ratings": [{"docId": "a1", "rating": "3.0"}, {"docId": "a2", "rating": "0.0"}],
                                },
                                {"query": "tv", "ratings": [{"docId": "a3", "rating": "2.0"}]},
                            ],
                        },
                    }
                ]
            },
        }
    ),
    TWO,
)
X["SRW with query customisation"] = (
    "export.json",
    J(
        {
            "name": "j",
            "type": "LLM_JUDGMENT",
            "judgmentRatings": [
                {
                    "query": "red shoes#\nreference: shoes",
                    "ratings": [{"docId": "a1", "rating": "3.000"}, {"docId": "a2", "rating": "0.000"}],
                }
            ],
        }
    ),
    {"red shoes#\nreference: shoes": {"a1": 3, "a2": 0}},
)
X["rank_eval with templates"] = (
    "export.json",
    J(
        {
            "templates": [{"id": "t", "template": {"inline": {"query": {"match": {"title": "{{query_string}}"}}}}}],
            "requests": [
                {
                    "id": "red shoes",
                    "template_id": "t",
                    "params": {"query_string": "red shoes"},
                    "ratings": [
                        {"_index": "shop", "_id": "a1", "rating": 3},
                        {"_index": "shop", "_id": "a2", "rating": 0},
                    ],
                },
                {
                    "id": "tv",
                    "template_id": "t",
                    "params": {"query_string": "tv"},
                    "ratings": [{"_index": "shop", "_id": "a3", "rating": 2}],
                },
            ],
            "metric": {"precision": {"k": 10}},
        }
    ),
    TWO,
)
X["rank_eval answer"] = (
    "export.json",
    J(
        {
            "metric_score": 0.4,
            "details": {
                "red shoes": {
                    "metric_score": 0.6,
                    "unrated_docs": [{"_index": "shop", "_id": "a9"}],
                    "hits": [
                        {"hit": {"_index": "shop", "_id": "a1", "_score": 3.1}, "rating": 3},
                        {"hit": {"_index": "shop", "_id": "a2", "_score": 1.1}, "rating": 0},
                    ],
                },
                "tv": {
                    "metric_score": 1,
                    "hits": [
                        {"hit": {"_index": "shop", "_id": "a3"}, "rating": 2},
                        {"hit": {"_index": "shop", "_id": "a9"}, "rating": None},
                    ],
                },
            },
            "failures": {},
        }
    ),
    "REFUSE _rank_eval",
)
X["search labs judgements"] = (
    "export.csv",
    "query_id,query,doc_id,grade\nqid:5,red shoes,a1,3\nqid:5,red shoes,a2,0\nqid:1,tv,a3,2\n",
    {"qid:5": {"a1": 3, "a2": 0}, "qid:1": {"a3": 2}},
)
X["eland frame json"] = (
    "export.json",
    json.dumps(
        {
            "query_id": {"0": "q5", "1": "q5"},
            "query": {"0": "red shoes", "1": "red shoes"},
            "doc_id": {"0": "a1", "1": "a2"},
            "grade": {"0": 3, "1": 0},
        }
    ),
    {"q5": {"a1": 3, "a2": 0}},
)
X["pandas split json"] = (
    "export.json",
    json.dumps(
        {
            "columns": ["query", "doc_id", "grade"],
            "index": [0, 1, 2],
            "data": [["red shoes", "a1", 3], ["red shoes", "a2", 0], ["tv", "a3", 2]],
        }
    ),
    TWO,
)
X["vespa relevant json"] = (
    "export.json",
    J(
        [
            {
                "query_id": 0,
                "query": "red shoes",
                "relevant_docs": [{"id": "a1", "score": 3}, {"id": "a2", "score": 0}],
            },
            {"query_id": 1, "query": "tv", "relevant_docs": [{"id": "a3", "score": 2}]},
        ]
    ),
    {"0": {"a1": 3, "a2": 0}, "1": {"a3": 2}},
)
X["vespa ids"] = (
    "export.csv",
    "query,document_id,relevance\nred shoes,id:shop:product::a1,3\nred shoes,id:shop:product::a2,0\ntv,id:shop:product::a3,2\n",
    {"red shoes": {"id:shop:product::a1": 3, "id:shop:product::a2": 0}, "tv": {"id:shop:product::a3": 2}},
)
X["RRE several topics"] = (
    "export.json",
    J(
        {
            "tag": "2026",
            "index": "core",
            "corpora_file": "c.json",
            "id_field": "id",
            "topics": [
                {
                    "description": "Shoes",
                    "query_groups": [
                        {
                            "name": "red",
                            "queries": [{"template": "only_q.json", "placeholders": {"$query": "red shoes"}}],
                            "relevant_documents": {"3": ["a1"], "0": ["a2"]},
                        }
                    ],
                },
                {
                    "description": "TV",
                    "query_groups": [
                        {
                            "name": "tvs",
                            "queries": [
                                {"template": "only_q.json", "placeholders": {"$query": "tv"}},
                                {"template": "only_q.json", "placeholders": {"$query": "television"}},
                            ],
                            "relevant_documents": {"2": ["a3"]},
                        }
                    ],
                },
            ],
        }
    ),
    TWO | {"television": {"a3": 2}},
)
X["UBI bulk"] = (
    "export.ndjson",
    lines(
        {"index": {"_index": "ubi_queries"}},
        {
            "application": "shop",
            "query_id": "u1",
            "client_id": "c",
            "user_query": "red shoes",
            "query_attributes": {"k": 1},
            "query_response_id": "r1",
            "query_response_hit_ids": ["a1", "a2"],
            "timestamp": "2026-01-01T00:00:00Z",
        },
        {"index": {"_index": "ubi_events"}},
        {
            "application": "shop",
            "action_name": "click",
            "query_id": "u1",
            "client_id": "c",
            "timestamp": "2026-01-01T00:00:02Z",
            "user_query": "red shoes",
            "message": "x",
            "event_attributes": {
                "object": {"object_id": "a1", "object_id_field": "sku", "description": "Shoe"},
                "position": {"ordinal": 1},
                "session": {"id": "s1"},
            },
        },
    ),
    "REFUSE clicks",
)
X["MS MARCO triples ids"] = ("export.tsv", "1\t10\t20\n1\t10\t21\n2\t30\t31\n", "REFUSE '1', '10'")
X["MS MARCO triples text"] = (
    "export.tsv",
    "red shoes\tRed shoes for men\tBlue hats for all\ntv\tTV 55 inch\tRadio\n",
    "REFUSE triples",
)
X["MS MARCO qidpidtriples"] = (
    "export.dev",
    "1048585\t7187157\twhat is paula deen's brother\tWalking through\n1048585\t7187158\twhat is paula deen's brother\tPaula\n",
    "REFUSE candidates",
)
X["ESCI parquet locales"] = (
    "export.parquet",
    parquet(
        example_id=[0, 1, 2, 3],
        query=["red shoes", "red shoes", "tv", "tv"],
        query_id=[1, 1, 2, 3],
        product_id=["a1", "a2", "a3", "a3"],
        product_locale=["us", "us", "us", "es"],
        esci_label=["E", "I", "S", "C"],
        small_version=[1, 1, 1, 1],
        large_version=[1, 1, 1, 1],
        split=["train", "train", "test", "test"],
    ),
    {"1": {"a1": 3, "a2": 0}, "2": {"a3": 2}, "3": {"a3": 1}},
)
X["google sheet DE"] = (
    "export.csv",
    "Suchanfrage;Produkt-ID;Bewertung\nred shoes;a1;3,0\nred shoes;a2;0,0\ntv;a3;2,0\n",
    "REFUSE 'Suchanfrage'",
)
X["google sheet EN locale ;"] = (
    "export.csv",
    "query;product id;rating (0-3);comment\nred shoes;a1;3,0;ok\nred shoes;a2;0,0;\ntv;a3;2,0;\n",
    TWO,
)
X["tsv bom quotes"] = (
    "export.tsv",
    '\ufeff"query"\t"doc_id"\t"grade"\r\n"red shoes"\t"a1"\t"3"\r\n"red shoes"\t"a2"\t"0"\r\n"tv"\t"a3"\t"2"\r\n',
    TWO,
)
X["tsv utf-16 excel"] = (
    "export.txt",
    "query\tdoc_id\tgrade\r\nred shoes\ta1\t3\r\nred shoes\ta2\t0\r\ntv\ta3\t2\r\n".encode("utf-16"),
    TWO,
)
X["label studio pairwise"] = (
    "export.json",
    J(
        [
            {
                "id": 1,
                "data": {"query": "red shoes", "doc_a_id": "a1", "doc_b_id": "a2", "text1": "Red", "text2": "Hat"},
                "annotations": [
                    {
                        "id": 3,
                        "completed_by": 1,
                        "result": [
                            {
                                "type": "pairwise",
                                "value": {"selected": "left"},
                                "from_name": "pw",
                                "to_name": "text1,text2",
                            }
                        ],
                    }
                ],
            }
        ]
    ),
    "REFUSE compare",
)
X["label studio csv"] = (
    "export.csv",
    "annotation_id,annotator,created_at,doc_id,id,lead_time,query,relevance,updated_at\n1,1,2026-01-01T00:00:00Z,a1,1,3.2,red shoes,3,2026-01-01T00:00:00Z\n2,1,2026-01-01T00:00:00Z,a2,2,2.2,red shoes,0,2026-01-01T00:00:00Z\n3,1,2026-01-01T00:00:00Z,a3,3,2.2,tv,2,2026-01-01T00:00:00Z\n",
    TWO,
)
X["label studio min"] = (
    "export.json",
    J(
        [
            {
                "query": "red shoes",
                "doc_id": "a1",
                "id": 1,
                "relevance": {"rating": 3},
                "annotator": 1,
                "annotation_id": 1,
                "created_at": "2026-01-01T00:00:00Z",
                "updated_at": "2026-01-01T00:00:00Z",
                "lead_time": 3.2,
            },
            {"query": "red shoes", "doc_id": "a2", "id": 2, "relevance": {"rating": 0}, "annotator": 1},
            {"query": "tv", "doc_id": "a3", "id": 3, "relevance": {"rating": 2}, "annotator": 1},
        ]
    ),
    TWO,
)
X["doccano jsonl"] = (
    "export.jsonl",
    lines(
        {"id": 1, "text": "Red Shoe", "query": "red shoes", "doc_id": "a1", "label": ["3"]},
        {"id": 2, "text": "Hat", "query": "red shoes", "doc_id": "a2", "label": ["0"]},
        {"id": 3, "text": "TV", "query": "tv", "doc_id": "a3", "label": ["2"]},
    ),
    TWO,
)
X["solr ranked csv response"] = (
    "export.json",
    J(
        {
            "responseHeader": {"status": 0, "QTime": 1},
            "response": {"numFound": 2, "docs": [{"id": "a1", "score": 2.0}, {"id": "a2", "score": 1.0}]},
        }
    ),
    "REFUSE answer",
)
X["algolia events"] = (
    "export.json",
    J(
        {
            "events": [
                {
                    "eventType": "click",
                    "eventName": "Clicked",
                    "index": "shop",
                    "userToken": "u",
                    "queryID": "43b1",
                    "objectIDs": ["a1"],
                    "positions": [1],
                }
            ]
        }
    ),
    "REFUSE Clicks",
)
X["coveo ratings"] = (
    "export.csv",
    "Query,URI,Rating (1-5),Rater,Timestamp\nred shoes,https://x/a1,3,ann,2026-01-01\nred shoes,https://x/a2,0,ann,2026-01-01\ntv,https://x/a3,2,ann,2026-01-01\n",
    {"red shoes": {"https://x/a1": 3, "https://x/a2": 0}, "tv": {"https://x/a3": 2}},
)
X["mechanical turk"] = (
    "export.csv",
    "HITId,WorkerId,Input.query,Input.doc_id,Input.title,Answer.relevance\nH1,W1,red shoes,a1,Shoe,3\nH1,W2,red shoes,a1,Shoe,3\nH2,W1,red shoes,a2,Hat,0\nH3,W1,tv,a3,TV,2\n",
    TWO,
)
X["wide matrix"] = ("export.csv", "query,a1,a2,a3\nred shoes,3,0,\ntv,,,2\n", "REFUSE documents")
X["ranked list of docs per query"] = (
    "export.csv",
    "query,doc_1,doc_2,doc_3\nred shoes,a1,a5,a6\ntv,a3,,\n",
    "REFUSE documents",
)
X["lucidworks"] = (
    "export.json",
    J(
        [
            {"query_s": "red shoes", "doc_id_s": "a1", "rating_d": 3.0},
            {"query_s": "red shoes", "doc_id_s": "a2", "rating_d": 0.0},
            {"query_s": "tv", "doc_id_s": "a3", "rating_d": 2.0},
        ]
    ),
    TWO,
)
X["hf datasets rows api"] = (
    "export.json",
    J(
        {
            "features": [{"feature_idx": 0, "name": "query-id"}],
            "rows": [
                {"row_idx": 0, "row": {"query-id": "q5", "corpus-id": "a1", "score": 3}, "truncated_cells": []},
                {"row_idx": 1, "row": {"query-id": "q5", "corpus-id": "a2", "score": 0}, "truncated_cells": []},
            ],
            "num_rows_total": 2,
        }
    ),
    {"q5": {"a1": 3, "a2": 0}},
)
X["trec json"] = (
    "export.jsonl",
    lines({"topic": "5", "iter": 0, "docno": "a1", "rel": 3}, {"topic": "5", "iter": 0, "docno": "a2", "rel": 0}),
    {"5": {"a1": 3, "a2": 0}},
)
X["retrieval_gt autorag"] = (
    "export.parquet",
    parquet(
        qid=["q1", "q2"],
        query=["red shoes", "tv"],
        retrieval_gt=[[["a1", "a2"]], [["a3"], ["a4"]]],
        generation_gt=[["x"], ["y"]],
    ),
    {"q1": {"a1": 1, "a2": 1}, "q2": {"a3": 1, "a4": 1}},
)
X["mysql table dump"] = (
    "export.txt",
    "+-----------+--------+-------+\n| query     | doc_id | grade |\n+-----------+--------+-------+\n| red shoes | a1     |     3 |\n| red shoes | a2     |     0 |\n| tv        | a3     |     2 |\n+-----------+--------+-------+\n",
    "REFUSE drawn",
)
X["markdown table"] = (
    "export.md",
    "| query | doc_id | grade |\n|---|---|---|\n| red shoes | a1 | 3 |\n| red shoes | a2 | 0 |\n| tv | a3 | 2 |\n",
    "REFUSE drawn",
)
X["yaml"] = (
    "export.yaml",
    "queries:\n  - query: red shoes\n    ratings:\n      a1: 3\n      a2: 0\n  - query: tv\n    ratings:\n      a3: 2\n",
    {"red shoes": {"a1": 3, "a2": 0}, "tv": {"a3": 2}},
)


@pytest.mark.parametrize("name", X)
@pytest.mark.filterwarnings("ignore")
def test_exports_are_read_or_refused_by_name(tmp_path, name, capsys):
    file, content, expected = X[name]
    path = tmp_path / file
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    if isinstance(expected, dict):
        assert read_qrels(path, aggregate="first").to_dict() == expected
        assert main(["describe", str(path)]) == 0
        assert main(["convert", str(path), str(tmp_path / "out.csv"), "--to", "ratings"]) == 0
        assert read_ratings(tmp_path / "out.csv").qrels("first").to_dict() == expected
        return
    with pytest.raises(DataFileError) as refused:
        read_ratings(path)
    assert expected.removeprefix("REFUSE ").lower() in str(refused.value).lower()
    assert main(["describe", str(path)]) == 1
    assert "truerank-report" not in capsys.readouterr().err  # no error inside
