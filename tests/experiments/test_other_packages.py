"""The gate over gold sets and results in the shapes that other packages write, rebuilt from their documentation."""

import json

import pandas as pd
import pytest

from support.exports import J, lines, parquet
from truerank import read_ratings
from truerank.core.errors import DataFileError
from truerank.experiments.gate import gate

# ruff: noqa: E501


G = {}
# Two queries. New: reciprocal ranks 0.5 and 1. Old: 1 and 1/3.
N = {"q1": ["d2", "d1"], "q2": ["d3", "d8"]}
OLD = {"q1": ["d1", "d2"], "q2": ["d9", "d7", "d4"]}
REL = {"q1": ["d1"], "q2": ["d3", "d4"]}
TXT = {"q1": "red shoes", "q2": "tv 55"}


def both(f):
    return f(N), f(OLD)


# field.md's four
G["rag-eval-gate"] = (
    "g.jsonl",
    lines(*({"id": q, "query": TXT[q], "relevant_doc_ids": REL[q], "lang": "ko"} for q in REL)),
    "jsonl",
    both(
        lambda R: lines(
            *({"query": TXT[q], "results": [{"docId": d, "score": 1 / (k + 1)} for k, d in enumerate(R[q])]} for q in R)
        )
    ),
)
G["rag-eval-gate by qrels"] = (
    "g.tsv",
    "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td3\t1\nq2\td4\t1\n",
    "trec",
    both(lambda R: "".join(f"{q} Q0 {d} {k + 1} {9 - k} bm25\n" for q in R for k, d in enumerate(R[q]))),
)
G["toolkit-rag"] = (
    "g2.jsonl",
    lines(
        {"id": "q1", "query": "red shoes", "relevant_ids": ["d1"]},
        {"id": "q2", "relevance": {"d3": 1, "d4": 1, "d5": 0}},
    ),
    "jsonl",
    both(lambda R: lines(*({"id": q, "retrieved_ids": R[q]} for q in R))),
)
G["rankkit"] = (
    "g3.jsonl",
    lines(*({"qid": q, "ranking": ["d1"], "relevance": dict.fromkeys(REL[q], 1)} for q in REL)),
    "jsonl",
    both(lambda R: lines(*({"qid": q, "ranking": R[q], "relevance": dict.fromkeys(REL[q], 1)} for q in R))),
)
G["rankkit flat"] = (
    "g3b.jsonl",
    lines(*({"qid": q, "ranking": ["d1"], "relevance": REL[q]} for q in REL)),
    "jsonl",
    both(lambda R: lines(*({"qid": q, "ranking": R[q], "relevance": REL[q]} for q in R))),
)
G["rag-evaluation-harness"] = (
    "g4.jsonl",
    lines(
        *(
            {"id": q, "relevant_document_ids": REL[q], "retrieved_document_ids": OLD[q], "cited_document_ids": ["d1"]}
            for q in REL
        )
    ),
    "jsonl",
    both(
        lambda R: lines(
            *(
                {"id": q, "relevant_document_ids": REL[q], "retrieved_document_ids": R[q], "cited_document_ids": ["d1"]}
                for q in R
            )
        )
    ),
)
# real projects
G["langsmith jsonl"] = (
    "lc.jsonl",
    lines(
        *(
            {
                "id": f"ex-{q}",
                "inputs": {"question": TXT[q]},
                "outputs": {"expected_doc_ids": REL[q]},
                "metadata": {"split": "test"},
            }
            for q in REL
        )
    ),
    "jsonl",
    both(
        lambda R: lines(
            *(
                {
                    "inputs": {"question": TXT[q]},
                    "outputs": {
                        "documents": [
                            {"page_content": "x " + d, "metadata": {"id": d, "source": "s.md"}, "type": "Document"}
                            for d in R[q]
                        ]
                    },
                }
                for q in R
            )
        )
    ),
)
G["langchain documents id"] = (
    "lc2.jsonl",
    lines(*({"question": TXT[q], "ground_truth_ids": REL[q]} for q in REL)),
    "jsonl",
    both(
        lambda R: lines(
            *(
                {
                    "question": TXT[q],
                    "documents": [
                        {"id": d, "metadata": {"source": "x.md"}, "page_content": "x", "type": "Document"} for d in R[q]
                    ],
                }
                for q in R
            )
        )
    ),
)
G["llamaindex"] = (
    "li.json",
    J({"queries": TXT, "corpus": {"d1": "x"}, "relevant_docs": REL, "mode": "text"}),
    "csv",
    both(
        lambda R: pd.DataFrame(
            {
                "query": [TXT[q] for q in R],
                "expected_ids": [str(REL[q]) for q in R],
                "retrieved_ids": [str(R[q]) for q in R],
                "mrr": [0.5, 1.0],
            }
        ).to_csv(index=False)
    ),
)
G["llamaindex results json"] = (
    "li2.json",
    J({"queries": TXT, "corpus": {"d1": "x"}, "relevant_docs": REL, "mode": "text"}),
    "json",
    both(
        lambda R: J(
            [
                {
                    "query": TXT[q],
                    "expected_ids": REL[q],
                    "expected_texts": None,
                    "retrieved_ids": R[q],
                    "retrieved_texts": ["x"] * len(R[q]),
                    "mode": "text",
                    "metric_dict": {"mrr": {"score": 1.0, "metadata": {}}},
                }
                for q in R
            ]
        )
    ),
)
G["haystack"] = (
    "hs.json",
    J(
        {
            "questions": list(TXT.values()),
            "ground_truth_documents": [[{"id": d, "content": "c", "meta": {}} for d in REL[q]] for q in REL],
        }
    ),
    "json",
    both(
        lambda R: J(
            {
                "questions": list(TXT.values()),
                "retrieved_documents": [
                    [{"id": d, "content": "c", "meta": {}, "score": 0.9 - k / 10} for k, d in enumerate(R[q])]
                    for q in R
                ],
            }
        )
    ),
)
G["promptfoo"] = (
    "pf.csv",
    'query,__expected,correct_chunks\nred shoes,is-json,"[""d1""]"\ntv 55,,"[""d3"", ""d4""]"\n',
    "json",
    both(
        lambda R: J(
            {
                "evalId": "eval-1",
                "results": {
                    "version": 3,
                    "timestamp": "2026-01-01",
                    "prompts": [],
                    "results": [
                        {
                            "testIdx": k,
                            "promptIdx": 0,
                            "vars": {"query": TXT[q], "correct_chunks": json.dumps(REL[q])},
                            "response": {"output": R[q]},
                            "success": True,
                            "score": 1,
                        }
                        for k, q in enumerate(R)
                    ],
                },
            }
        )
    ),
)
G["trulens"] = (
    "tl.json",
    J(
        [
            {
                "query": TXT[q],
                "query_id": q,
                "expected_response": "x",
                "expected_chunks": [{"text": d, "title": "t", "expected_score": 1.0} for d in REL[q]],
            }
            for q in REL
        ]
    ),
    "jsonl",
    both(lambda R: lines(*({"input": TXT[q], "query_id": q, "retrieved_chunks": R[q]} for q in R))),
)
G["phoenix"] = (
    "px.csv",
    "context.trace_id,input,document_id,relevance\nt1,red shoes,d1,relevant\nt1,red shoes,d2,unrelated\nt2,tv 55,d3,relevant\nt2,tv 55,d4,relevant\n",
    "csv",
    both(
        lambda R: (
            "context.span_id,document_position,context.trace_id,input,document_id,document_score\n"
            + "".join(f"s,{k},t,{TXT[q]},{d},{0.9 - k / 10}\n" for q in R for k, d in enumerate(R[q]))
        )
    ),
    {"grades": "relevant=1 unrelated=0"},
)
G["beir jsonl"] = (
    "bj.jsonl",
    lines(*({"query-id": q, "corpus-id": d, "score": 1} for q in REL for d in REL[q])),
    "json",
    both(lambda R: J({q: {d: 1.5 - k for k, d in enumerate(R[q])} for q in R})),
)
G["mteb predictions"] = (
    "bm.parquet",
    parquet(**{"query-id": ["q1", "q2", "q2"], "corpus-id": ["d1", "d3", "d4"], "score": [1, 1, 1]}),
    "json",
    both(
        lambda R: J(
            {
                "mteb_model_meta": {"model_name": "m", "revision": "1"},
                "default": {"test": {q: {d: 1.5 - k for k, d in enumerate(R[q])} for q in R}},
            }
        )
    ),
)
G["autorag"] = (
    "ar.parquet",
    parquet(
        qid=["q1", "q2"],
        query=list(TXT.values()),
        retrieval_gt=[[["d1"]], [["d3"], ["d4"]]],
        generation_gt=[["x"], ["y"]],
    ),
    "parquet",
    both(
        lambda R: parquet(
            qid=list(R),
            query=list(TXT.values()),
            retrieved_contents=[["x"] * len(R[q]) for q in R],
            retrieved_ids=[R[q] for q in R],
            retrieve_scores=[[0.9 - k / 10 for k in range(len(R[q]))] for q in R],
            generated_texts=["a", "b"],
        )
    ),
)
G["ranx parquet"] = (
    "rx.parquet",
    parquet(q_id=["q1", "q2", "q2"], doc_id=["d1", "d3", "d4"], score=[1, 1, 1]),
    "parquet",
    both(
        lambda R: parquet(
            q_id=[q for q in R for _ in R[q]],
            doc_id=[d for q in R for d in R[q]],
            score=[0.9 - k / 10 for q in R for k in range(len(R[q]))],
        )
    ),
)
G["ragas"] = (
    "ra.jsonl",
    lines(
        *(
            {
                "user_input": TXT[q],
                "reference_context_ids": REL[q],
                "reference_contexts": ["c"] * len(REL[q]),
                "retrieved_context_ids": OLD[q],
                "retrieved_contexts": ["x"] * len(OLD[q]),
                "response": "r",
                "reference": "f",
            }
            for q in REL
        )
    ),
    "jsonl",
    both(
        lambda R: lines(
            *(
                {
                    "user_input": TXT[q],
                    "reference_context_ids": REL[q],
                    "retrieved_context_ids": R[q],
                    "retrieved_contexts": ["x"] * len(R[q]),
                    "response": "r",
                }
                for q in R
            )
        )
    ),
)
G["remem golden"] = (
    "gm.json",
    J(
        {
            "version": "1",
            "description": "d",
            "queries": [{"id": q, "query": TXT[q], "expected": REL[q], "slice": "s" + q} for q in REL],
        }
    ),
    "json",
    both(
        lambda R: J({"run": "x", "results": [{"id": q, "query": TXT[q], "hits": R[q], "latency_ms": 3.2} for q in R]})
    ),
)
G["rig"] = (
    "rg.jsonl",
    lines(
        *(
            {"query_id": q, "query": TXT[q], "relevant_docs": dict.fromkeys(REL[q], 1), "reference_answer": "a"}
            for q in REL
        )
    ),
    "jsonl",
    both(
        lambda R: lines(
            *({"query_id": q, "hits": [{"doc_id": d, "score": 0.9 - k / 10} for k, d in enumerate(R[q])]} for q in R)
        )
    ),
)
G["langfuse items"] = (
    "lf.json",
    J(
        {
            "data": [
                {
                    "id": q,
                    "datasetId": "x",
                    "input": {"question": TXT[q]},
                    "expectedOutput": {"document_ids": REL[q]},
                    "metadata": {"lang": "de"},
                }
                for q in REL
            ]
        }
    ),
    "jsonl",
    both(lambda R: lines(*({"input": {"question": TXT[q]}, "output": {"document_ids": R[q]}} for q in R))),
)
G["elastic answers"] = (
    "ea.json",
    J([{"query": TXT[q], "relevant": REL[q]} for q in REL]),
    "jsonl",
    both(
        lambda R: lines(
            *(
                {
                    "query": TXT[q],
                    "response": {
                        "took": 2,
                        "hits": {
                            "total": {"value": 2},
                            "max_score": 9.0,
                            "hits": [
                                {"_index": "i", "_id": d, "_score": 9.0 - k, "_source": {"title": "t"}}
                                for k, d in enumerate(R[q])
                            ],
                        },
                    },
                }
                for q in R
            )
        )
    ),
)
G["qdrant"] = (
    "qd.json",
    J([{"query": TXT[q], "relevant": REL[q]} for q in REL]),
    "jsonl",
    both(
        lambda R: lines(
            *(
                {
                    "query": TXT[q],
                    "result": {
                        "points": [
                            {"id": d, "version": 1, "score": 0.9 - k / 10, "payload": {"t": 1}}
                            for k, d in enumerate(R[q])
                        ]
                    },
                    "status": "ok",
                }
                for q in R
            )
        )
    ),
)
G["pinecone"] = (
    "pc.json",
    J([{"query": TXT[q], "relevant": REL[q]} for q in REL]),
    "jsonl",
    both(
        lambda R: lines(
            *(
                {
                    "query": TXT[q],
                    "matches": [
                        {"id": d, "score": 0.9 - k / 10, "values": [], "metadata": {}} for k, d in enumerate(R[q])
                    ],
                    "namespace": "",
                }
                for q in R
            )
        )
    ),
)
G["chroma"] = (
    "ch.json",
    J([{"query": TXT[q], "relevant": REL[q]} for q in REL]),
    "jsonl",
    both(
        lambda R: lines(
            *(
                {
                    "query": TXT[q],
                    "ids": [R[q]],
                    "distances": [[0.1 * k for k in range(len(R[q]))]],
                    "documents": [["t"] * len(R[q])],
                    "metadatas": [[{}] * len(R[q])],
                }
                for q in R
            )
        )
    ),
)
G["msmarco run"] = (
    "mm.tsv",
    "q1\t0\td1\t1\nq2\t0\td3\t1\nq2\t0\td4\t1\n",
    "tsv",
    both(lambda R: "".join(f"{q}\t{d}\t{k + 1}\n" for q in R for k, d in enumerate(R[q]))),
)
G["list strings csv"] = (
    "ls.csv",
    "question,relevant_ids\nred shoes,d1\ntv 55,d3|d4\n",
    "csv",
    both(lambda R: "question,retrieved_ids\n" + "".join(f"{TXT[q]},{'|'.join(R[q])}\n" for q in R)),
)
G["mteb result scores"] = (
    "ms.jsonl",
    lines({"query": "a", "relevant": ["d1"]}),
    "json",
    (
        J(
            {
                "dataset_revision": "1",
                "task_name": "SciFact",
                "mteb_version": "2",
                "scores": {"test": [{"ndcg_at_10": 0.6, "hf_subset": "default", "main_score": 0.6}]},
            }
        ),
    )
    * 2,
    "REFUSE",
)
G["truescore"] = (
    "ts.csv",
    "example_id,judge_passed,human_passed\ne1,1,1\ne2,0,\n",
    "csv",
    ("example_id,judge_passed\ne1,1\n",) * 2,
    "REFUSE",
)
G["toolkit report"] = (
    "tk.jsonl",
    lines({"query": "a", "relevant": ["d1"]}),
    "json",
    (
        J(
            {
                "_type": "https://in-toto.io/Statement/v1",
                "subject": [{"name": "run.jsonl"}],
                "predicate": {
                    "kind": "rag.score",
                    "summary": {"k": 5},
                    "details": {"per_query": [{"id": "q1", "recall": 1.0}]},
                },
            }
        ),
    )
    * 2,
    "REFUSE",
)


@pytest.mark.parametrize("name", G)
@pytest.mark.filterwarnings("ignore")
def test_the_gate_reads_what_other_packages_write(tmp_path, name):
    file, gold, ending, (new, old), *more = G[name]
    paths = [tmp_path / file, tmp_path / f"new.{ending}", tmp_path / f"old.{ending}"]
    for path, content in zip(paths, (gold, new, old)):
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    if "REFUSE" in more:
        with pytest.raises(DataFileError, match="expected (a run|judgements), but this looks like"):
            gate(*paths, "RR", inconclusive="pass")
        return
    judged = read_ratings(paths[0], **more[0]).qrels() if more else paths[0]
    found = gate(judged, paths[1], paths[2], "RR", inconclusive="pass").lines[0]
    assert (found.new, found.old) == pytest.approx((0.75, 2 / 3))
