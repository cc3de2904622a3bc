"""Gold sets as projects keep them in their repositories, rebuilt by hand: read, or refused by what they lack."""

import json

import pytest

from support.refusals import refused
from truerank import read_qrels
from truerank.cli import main
from truerank.core.errors import DataFileError, InvalidInputError, TruerankWarning
from truerank.experiments.gate import gate
from truerank.io.gold_sets import read_gold


def lines(*records):
    return "\n".join(json.dumps(record) for record in records) + "\n"


READ = {
    "the only document": (
        lines(
            {"question": "what is a pod?", "expected_document_id": "pods", "reference_answer": "a group"},
            {"question": "what is a node?", "expected_document_id": "nodes", "reference_answer": "a machine"},
        ),
        {"what is a pod?": {"pods"}, "what is a node?": {"nodes"}},
    ),
    "the only document, or none": (
        lines(
            {"id": "a", "question": "who?", "expect_doc": "keeper.md", "expect_any": ["foot"], "kind": "grounded"},
            {"id": "b", "question": "capital?", "expect_doc": None, "expect_any": [], "kind": "refusal"},
        ),
        {"a": {"keeper.md"}, "b": set()},
    ),
    "the first document": (json.dumps([{"query": "tv", "expect_top_doc": "d1"}]), {"tv": {"d1"}}),
    "a source beside a substring": (
        lines({"query": "form?", "expect_source": "c20.pdf", "expect_substring": "Certificate", "expect_answer": "x"}),
        {"form?": {"c20.pdf"}},
    ),
    "a note beside words": (
        json.dumps([{"id": 1, "query": "auth?", "expect_in_results": ["JWT", "token"], "expect_note": "auth.md"}]),
        {"1": {"auth.md"}},
    ),
    "papers": (json.dumps([{"question": "codes?", "expected_papers": ["p1", "p2"]}]), {"codes?": {"p1", "p2"}}),
    "a topic beside the id": (
        lines(
            {"id": "q1", "query": "keys", "topic": "api", "expected_routes": ["api/keys"]},
            {"id": "q2", "query": "orders", "topic": "api", "expected_routes": ["api/orders"]},
        ),
        {"q1": {"api/keys"}, "q2": {"api/orders"}},
    ),
    "must include and must exclude": (
        lines({"id": "a", "query": "policy", "must_include_ids": ["e1"], "must_exclude_ids": ["e2"]}),
        {"a": {"e1"}},
    ),
    "a row for each grade": (
        lines(
            {"query_id": "s1", "article_id": "a", "relevance": 3},
            {"query_id": "s1", "article_id": "b", "relevance": 1},
        ),
        {"s1": {"a", "b"}},
    ),
    "ids of 64 bits": (lines({"qid": "q", "relevant_ids": [9900365842636515444]}), {"q": {"9900365842636515444"}}),
    "numbers as ids": (json.dumps({"q1": [24, 38], "q2": [], "q3": [140]}), {"q1": {"24", "38"}, "q3": {"140"}}),
    "objects with an id of their own": (
        lines({"query": "notice?", "expected_citations": [{"law_id": "L33", "article": "9"}], "refusal": False}),
        {"notice?": {"L33"}},
    ),
    "documents and their chunks": (
        "query_id,question,gold_doc_ids,gold_paragraph_ids\nq1,how long?,d1,\"d1_p3,d1_p4\"\n",
        {"q1": {"d1_p3", "d1_p4"}},
    ),
    "one chunk of a document": (
        '\ufeffgold_doc_id,name,gold_chunk_id,chunk_text,question_id,question_text\n1,a.pdf,6,"text, b",2,What?\n',
        {"2": {"6"}},
    ),
    "chunks beside their sections and texts": (
        lines(
            {"id": "c", "question": "complies?", "expected_chunk_ids": ["66"], "must_not_contain": ["iso"],
             "ground_truth_reference_chunks": ["a text"], "expected_sections": ["5.2"], "remap_scores": {"66": 4.5}},
        ),
        {"c": {"66"}},
    ),
    "questions of which some lack the list": (
        lines(
            {"id": "a", "product": "AX", "question": "bgp?", "expect_sources": ["a/b.md::RB"]},
            {"id": "b", "product": "AX", "question": "srte?", "expect_status": "not_found"},
        ),
        {"a": {"a/b.md::RB"}, "b": set()},
    ),
    "a source and its page": (
        lines({"question": "premium?", "expected_source": "a.pdf", "expected_page": 4}), {"premium?": {"a.pdf"}},
    ),
    "ids of another name": (
        lines(
            {"query_id": "q", "canonical_id": "f8", "relevance": 1},
            {"query_id": "q", "canonical_id": "76", "relevance": 1},
        ),
        {"q": {"f8", "76"}},
    ),
    "paths and their sections": (
        json.dumps({"questions": [{"id": "q", "question": "r?", "relevant": [{"path": "1.md", "section": "A"}]}]}),
        {"q": {"1.md"}},
    ),
    "names and their kinds": (
        json.dumps([{"query": "ARC", "relevant": [{"fqname": "main", "kind": "m"}, {"fqname": "arc.A", "kind": "c"}]}]),
        {"ARC": {"main", "arc.A"}},
    ),
    "positive chunks in a cell": ("qid,question,answers,pos_chunk_ids\nq1,how?,conda,1_0\n", {"q1": {"1_0"}}),
    "YAML": (
        '# 34 questions\n- id: q1\n  question: "equal?"\n  expected_chunk_ids: [s6, s7]\n\n'
        '- id: r1\n  question: "VAT?"\n  expected_chunk_ids: []\n',
        {"q1": {"s6", "s7"}, "r1": set()},
    ),
    "YAML in an object": (
        'questions:\n  - id: q1\n    question: "citrus?"\n    relevant: ["n/1"]\n  - id: q2\n    question: "space?"\n'
        '    relevant: ["n/2"]\n',
        {"q1": {"n/1"}, "q2": {"n/2"}},
    ),
    "a chunk beside the answer": (
        lines({"query_id": "c1", "query": "X 7", "ground_truth": "SC_1", "source_pdf": "9", "chunk_id": "SC_1_1"}),
        {"c1": {"SC_1_1"}},
    ),
    "documents and themes": (
        json.dumps({"metadata": {"version": "1"}, "queries": [
            {"id": "r", "query": "doubt", "expected_focus_groups": ["fg-3"], "expected_themes": ["doubt", "loss"]},
            {"id": "n", "query": "the moon?", "expected_result": "no_relevant_data"},
        ]}),
        {"r": {"fg-3"}, "n": set()},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_gold_sets_of_projects_are_read(tmp_path, name):
    text, expected = READ[name]
    path = tmp_path / "golden.data"
    path.write_text(text, encoding="utf-8")
    qrels = read_gold(path).qrels
    found = {query: {d for d, grade in own.items() if grade > 0} for query, own in qrels.by_topic(qrels.grades).items()}
    assert {query: found.get(query, set()) for query in expected} == expected
    assert found.keys() <= expected.keys()
    assert set(read_qrels(path).to_dict()) == {query for query, own in expected.items() if own}
    assert main(["describe", str(path)]) == 0
    run = {query: sorted(own) for query, own in expected.items() if own}
    assert gate(path, run, run, "RR").summary.startswith("PASS: the results are identical")


def test_yaml_without_documents_is_refused_as_such(tmp_path):
    path = tmp_path / "golden.yaml"
    path.write_text('name: v1\n\n# samples\nsamples:\n  - query: "purpose?"\n    doc_ids: []\n')
    with refused(DataFileError, code="no-judgements"):
        read_qrels(path)


@pytest.mark.parametrize("names", [
    {"expected_patterns": ["encrypt", "key"]},
    {"expected_facts": [["mode 0", "spi 0"], ["cpol 0"]]},
    {"expected_answer": "14 days", "source": "general"},
    {"expected_not_in_results": ["k8s"]},
    {},
])  # fmt: skip
def test_questions_without_documents_are_refused_as_such(tmp_path, capsys, names):
    path = tmp_path / "golden.jsonl"
    path.write_text(lines({"id": "a", "query": "how?", **names}, {"id": "b", "query": "why?", **names}))
    with refused(DataFileError, code="no-judgements"):
        read_qrels(path)
    assert main(["describe", str(path)]) == 1
    assert "queries without documents" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["| query | doc |\n|---|---|\n| tv | d1 |\n", "<html><body>login</body></html>\n"])
def test_describe_names_what_is_no_table(tmp_path, capsys, text):
    path = tmp_path / "export.md"
    path.write_text(text)
    assert main(["describe", str(path)]) == 1
    assert "looks like" in capsys.readouterr().err


def test_damaged_yaml_is_an_error_with_the_line(tmp_path):
    path = tmp_path / "golden.yaml"
    path.write_text("- id: q1\n  query: tv\n  relevant: [d1\n- id: q2\n")
    with refused(DataFileError, line=4):
        read_qrels(path)


def test_ids_of_another_kind_are_an_error_and_no_pass():
    gold = {"q1": {"guide.md": 1}, "q2": {"faq.md": 1}}
    chunks = {"q1": ["guide.md#3"], "q2": ["faq.md#1"]}
    with pytest.raises(InvalidInputError, match="'guide.md#3'.*'guide.md'") as error:
        gate(gold, chunks, chunks, "RR")
    assert error.value.code == "no-shared-documents"
    assert gate(gold, chunks, chunks, "RR", collapse="#").verdict == "PASS"


def test_queries_without_relevant_documents_are_counted():
    gold = {"q1": {"a": 1}, "q2": {"b": 0}}
    found = gate(gold, {"q1": ["a"]}, {"q1": ["a"]}, "RR")
    assert any("1 query of the gold set without a relevant document" in note for note in found.notes)


def test_questions_in_an_object_count_and_have_segments(tmp_path):
    path = tmp_path / "golden.json"
    queries = [
        {"query_id": "q1", "query": "lamp", "kind": "normal", "relevant_documents": ["lamp.txt"]},
        {"query_id": "q2", "query": "moon", "kind": "none", "relevant_documents": []},
    ]
    path.write_text(json.dumps({"version": "1.0", "queries": queries}))
    run = {"q1": ["lamp.txt"], "q2": ["lamp.txt"]}
    found = gate(path, run, run, "RR", segments="kind")
    assert any("1 query of the gold set without a relevant document" in note for note in found.notes)
    assert read_gold(path).segments["kind"] == {"q1": "normal", "q2": "none"}


def test_lists_that_are_read_together_are_named(tmp_path):
    path = tmp_path / "golden.jsonl"
    path.write_text(lines({"id": "a", "question": "tap?", "expected_rules": ["702"], "expected_cards": ["Bolt"]}))
    with pytest.warns(TruerankWarning, match="'expected_rules' and 'expected_cards'"):
        assert read_qrels(path).to_dict() == {"a": {"702": 1, "Bolt": 1}}


def test_a_question_and_its_answer_without_a_document_stay_refused(tmp_path):
    path = tmp_path / "golden.json"
    path.write_text(json.dumps({"description": "x", "queries": [{"id": "a", "query": "how?", "reference": "two"}]}))
    with refused(DataFileError, code="no-judgements", value="queries without documents"):
        read_qrels(path)
