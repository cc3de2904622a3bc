"""α-nDCG and ERR-IA: against loops by hand, ndeval where it is installed, files, ties and errors."""

from __future__ import annotations

import numpy as np
import pytest

from reference.diversity import values
from support.refusals import refused
from truerank import Experiment, diversity
from truerank.core.errors import DataFileError, InvalidInputError

KINDS = ("alpha_DCG", "alpha_nDCG", "ERR_IA", "nERR_IA")


def drawn(seed):
    """Lines of subtopic judgements, subtopics by document, and scores of a run with many ties."""
    rng = np.random.default_rng(seed)
    documents, n_subtopics = int(rng.integers(1, 30)), int(rng.integers(1, 6))
    lines, relevant = [], {}
    for s in range(n_subtopics):
        for d in rng.permutation(documents)[: rng.integers(1, documents + 1)]:
            grade = int(rng.integers(0, 3))
            lines.append(("1", f"s{s}", f"d{d:02d}", grade))
            relevant.setdefault(f"d{d:02d}", set()).update({f"s{s}"} if grade else set())
    ranked = [f"d{d:02d}" for d in rng.permutation(documents + 5)[: rng.integers(1, documents + 6)]]
    scores = rng.integers(0, 6, len(ranked)) if seed % 2 else rng.permutation(len(ranked))
    alpha = float(rng.choice([0.5, 0.2, 0.0, 1.0, rng.random()]))
    return lines, relevant, dict(zip(ranked, scores.astype(float).tolist())), alpha, int(rng.integers(1, 21))


def found_for(relevant, run, alpha, k):
    result = diversity({"1": relevant}, {"1": run}, [f"{kind}@{k}" for kind in KINDS], alpha=alpha)
    return list(result.means.values())


def test_values_are_those_of_loops():
    for seed in range(300):
        _, relevant, run, alpha, k = drawn(seed)
        np.testing.assert_allclose(found_for(relevant, run, alpha, k), values(relevant, run, alpha, k), atol=1e-12)


def test_values_are_those_of_ndeval():
    pyndeval = pytest.importorskip("pyndeval")
    for seed in range(1_000):
        lines, relevant, run, alpha, k = drawn(seed)
        names = [f"{kind.replace('_', '-')}@{k}" for kind in KINDS]
        evaluator = pyndeval.RelevanceEvaluator(lines, names, alpha=alpha, beta=alpha)
        theirs = evaluator.evaluate([("1", document, score) for document, score in run.items()])["1"]
        shown = [theirs[name] for name in names]
        if k == 1:  # ndeval does not divide alpha-DCG@1 and ERR-IA@1 by the number of subtopics
            every = len(set().union(*relevant.values()))
            shown = [value / every if every and place % 2 == 0 else value for place, value in enumerate(shown)]
        np.testing.assert_allclose(found_for(relevant, run, alpha, k), shown, atol=1e-9)


def test_a_file_a_missing_topic_and_a_topic_without_relevant_documents(tmp_path):
    (tmp_path / "q").write_text("1 a d1 1\n1 b d2 2\n1 b d3 0\n\n2 a d1 1\n3 a d9 0\n")
    run = {"1": {"d1": 2.0, "d2": 1.0}, "3": {"d9": 1.0}}
    result = diversity(tmp_path / "q", run, "alpha_nDCG@5")
    assert result.query_ids == ["1", "2", "3"]
    assert result.per_query["alpha_nDCG@5"].tolist() == [1.0, 0.0, 0.0]
    assert result.to_dict()["means"] == {"alpha_nDCG@5": pytest.approx(1 / 3)}
    other = diversity(tmp_path / "q", {"2": {"d1": 1.0}}, "alpha_nDCG@5")
    both = {name: one.per_query["alpha_nDCG@5"] for name, one in (("a", result), ("b", other))}
    assert Experiment.of_values(both).compare(test="t").pairs[0].difference == 0.0


def test_what_is_not_understood_is_refused(tmp_path):
    with refused(InvalidInputError, argument="measures", value="alpha_nDCG"):
        diversity({"1": {"d": "a"}}, {"1": {"d": 1.0}}, "alpha_nDCG")
    with refused(InvalidInputError, argument="alpha"):
        diversity({"1": {"d": "a"}}, {"1": {"d": 1.0}}, alpha=1.5)
    for text in ("1 a d1\n", "1 a d1 x\n"):
        (tmp_path / "q").write_text("1 a d1 1\n" + text)
        with refused(DataFileError, line=2):
            diversity(tmp_path / "q", {"1": {"d": 1.0}})
