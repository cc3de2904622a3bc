"""Links: PageRank against networkx, HostRank and propagation against equations solved whole."""

from __future__ import annotations

import io

import numpy as np
import pytest

from support.refusals import refused
from truerank.cli import main
from truerank.core.errors import DataFileError, InvalidInputError, TruerankWarning
from truerank.io.documents import Document
from truerank.links.graph import LinkGraph, hostrank, pagerank, read_links, site_parents, steps_of
from truerank.links.propagation import ALONG_LINKS, VARIANTS, propagate, propagated_run
from truerank.text.index import build_index
from truerank.text.retrieval import retrieve


def random_graph(n, edges, seed=0):
    draw = np.random.default_rng(seed)
    sources, targets = draw.integers(0, n * 3 // 4, edges), draw.integers(0, n, edges)  # a quarter has no links
    return sources, targets, LinkGraph(sources, targets, n)


def test_pagerank_solves_its_equations():
    n = 40
    sources, targets, graph = random_graph(n, 150)
    links = np.zeros((n, n))
    links[targets, sources] = 1
    out = links.sum(axis=0)
    matrix = np.where(out > 0, links / np.maximum(out, 1), 1 / n)
    wanted = np.linalg.solve(np.eye(n) - 0.85 * matrix, np.full(n, 0.15 / n))
    assert pagerank(graph, tol=1e-14) == pytest.approx(wanted, abs=1e-13)
    assert np.abs(pagerank(graph, tol=1e-6) - wanted).sum() <= 1e-6 * 0.85 / 0.15


@pytest.mark.peers
def test_pagerank_equals_networkx():
    networkx = pytest.importorskip("networkx")
    sources, targets, graph = random_graph(2000, 12_000)
    theirs = networkx.DiGraph()
    theirs.add_nodes_from(range(2000))
    theirs.add_edges_from(zip(sources.tolist(), targets.tolist()))
    wanted = networkx.pagerank(theirs, alpha=0.85, tol=1e-15, max_iter=1000)
    assert pagerank(graph, tol=1e-13) == pytest.approx([wanted[k] for k in range(2000)], abs=1e-9 / 2000)


def test_an_iteration_that_is_cut_short_says_so():
    _, _, graph = random_graph(40, 150)
    with pytest.warns(TruerankWarning, match="stopped after 3 rounds"):
        pagerank(graph, max_iter=3)


def test_hostrank_by_hand():
    urls = ["http://a/", "http://a/x/y", "http://B/", "http://b/z"]
    graph = LinkGraph([0, 0, 2, 1], [2, 3, 1, 0])
    # Hosts: a → b twice, b → a once, so that both rank ½. Shares: a: 1·1 and .36·2; b: 1·2 and .6·2.
    wanted = [0.5 * 1 / 1.72, 0.5 * 0.72 / 1.72, 0.5 * 2 / 3.2, 0.5 * 1.2 / 3.2]
    assert hostrank(graph, urls) == pytest.approx(wanted)
    with refused(InvalidInputError, argument="urls"):
        hostrank(graph, urls[:2])


def test_parents_in_the_tree_of_a_site():
    urls = ["h/a/index.html", "h/a/b?x=1", "h/a/b", "h/", "g/a/b", "http://h/a/c/d"]
    assert site_parents(urls).tolist() == [3, 2, 0, -1, -1, 0]


def slow_propagation(S, way, links, parents, alpha):
    """h by the formulas, page after page, round after round."""
    n = len(S)
    h = list(S)
    for _ in range(300):
        new = []
        for p in range(n):
            if way == "weighted-in-link":
                near = [q for q in range(n) if links[p, q]]
                mix = [h[q] * S[p] / t if (t := sum(S[r] for r in range(n) if links[r, q])) else 0 for q in near]
            elif way == "weighted-out-link":
                near = [q for q in range(n) if links[q, p]]
                mix = [h[q] * S[p] / t if (t := sum(S[r] for r in range(n) if links[q, r])) else 0 for q in near]
            elif way == "uniform-out-link":
                near = [q for q in range(n) if links[q, p]]
                mix = [h[q] / len(near) for q in near]
            else:
                near = [c for c in range(n) if parents[c] == p]
                total = len(near) if way == "uniform-child" else sum(S[c] for c in near)
                mix = [h[c] * (1 if way == "uniform-child" else S[c]) / total if total else 0 for c in near]
            new.append(alpha * S[p] + (1 - alpha) * sum(mix) if near else S[p])
        h = new
    return h


@pytest.mark.parametrize("way", [*ALONG_LINKS, "uniform-child", "weighted-child"])
def test_propagation_by_its_formulas(way):
    draw = np.random.default_rng(2)
    _, _, graph = random_graph(12, 30, seed=4)
    S = draw.random(12) * (draw.random(12) < 0.8)
    parents = np.array([-1, 0, 0, 1, 1, 2, -1, 6, 6, 8, 8, 8])
    ours = propagate(S, way, links=graph.into, parents=parents, alpha=0.7)
    assert ours == pytest.approx(slow_propagation(S, way, graph.into.toarray(), parents, 0.7), abs=1e-9)


@pytest.fixture
def pages(tmp_path):
    texts = ["heat flow", "flow", "heat", "wing lift", "heat heat wing flow flow"]
    documents = [Document(f"http://h/{'a/' * (k % 3)}{k}", {"text": text}, {}, {}) for k, text in enumerate(texts)]
    return build_index(documents, tmp_path / "index"), tmp_path


def test_runs_of_all_variants(pages):
    index, _ = pages
    graph = LinkGraph([0, 1, 2, 4], [1, 2, 0, 0], 5)
    parents = site_parents(index.document_ids().tolist())
    first = retrieve(index, {"q": "heat flow", "none": "zebra"}, "bm25").to_dict()
    runs = {v: propagated_run(index, {"q": "heat flow", "none": "zebra"}, graph, v, parents=parents) for v in VARIANTS}
    assert len(runs) == 10
    for run in runs.values():
        assert set(run.to_dict()["q"]) == set(first["q"])
        assert run.to_dict()["none"] == {}
        assert (np.diff(run.scores) <= 0).all()
    # The whole share for the page itself leaves every variant at BM25.
    for variant in VARIANTS:
        alone = propagated_run(index, {"q": "heat flow"}, graph, variant, parents=parents, alpha=1.0).to_dict()["q"]
        assert alone == pytest.approx(first["q"])
    with refused(InvalidInputError, argument="parents"):
        propagated_run(index, {"q": "heat"}, graph, "score-uniform-child")


def test_bad_edges_are_named():
    with refused(DataFileError, code="columns", line=3):
        read_links(io.BytesIO(b"# links\na b\na b c\n"))
    with refused(DataFileError, code="no-rows"):
        read_links(io.BytesIO(b"\n"))
    with refused(InvalidInputError, code="node-numbers"):
        LinkGraph([0], [5], 2)


def test_names_that_are_not_utf_8_are_refused_rather_than_made_one():
    with refused(DataFileError, line=2, column=2):
        read_links(io.BytesIO(b"a b\nz\xe8 b\nz\xe9 b\n"))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64, np.int32])
def test_any_integers_number_nodes(dtype):
    ends = np.array([0, 200], dtype=dtype)
    graph, same = LinkGraph(ends, ends[::-1]), LinkGraph([0, 200], [200, 0])
    assert (graph.into != same.into).nnz == 0


def test_the_command_writes_a_table_and_runs(pages, capsys):
    index, folder = pages
    names = index.document_ids().tolist()
    (folder / "edges").write_text(f"{names[0]} {names[1]}\n{names[1]}\t{names[4]}\n")
    assert main(["text", "links", str(folder / "edges"), "-o", str(folder / "ranks.csv")]) == 0
    rows = [line.split(",") for line in (folder / "ranks.csv").read_text().splitlines()]
    assert rows[0] == ["id", "pagerank", "hostrank"]
    assert sum(float(row[1]) for row in rows[1:]) == pytest.approx(1.0)
    (folder / "q.jsonl").write_text('{"id": "1", "text": "heat"}')
    words = ["text", "links", str(folder / "edges"), "--index", str(index.path), "--queries", str(folder / "q.jsonl")]
    assert main([*words, "-o", str(folder / "runs")]) == 0
    assert sorted(path.stem for path in (folder / "runs").iterdir()) == sorted(VARIANTS)
    assert main(words) == 2
    (folder / "urls").write_text("one\u3000page http://x\n", encoding="utf-8")  # not a blank of the format
    assert main(["text", "links", str(folder / "edges"), "--urls", str(folder / "urls")]) == 1
    assert "node 'http://h/0' has no URL (3 are missing)" in capsys.readouterr().err
    (folder / "urls").write_text("a http://x\na http://x\na http://y\n")
    assert main(["text", "links", str(folder / "edges"), "--urls", str(folder / "urls")]) == 1
    assert "line 3: 'a' occurs twice, with 'http://x'" in capsys.readouterr().err


def test_an_address_within_an_address_is_not_its_host():
    for url in ("h.org/go?to=http://other.org/x", "http://h.org/go?to=http://other.org/x", "//h.org/go?to=http://o/x"):
        assert (steps_of(url)[0], len(steps_of(url))) == ("h.org", 3)
