"""Tests and corrections on AP and nDCG@10 of real runs, against SciPy, statsmodels and ranx."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from truerank import judge_run, read_qrels, read_run
from truerank.measures import AP, nDCG
from truerank.significance import (
    benjamini_hochberg,
    bonferroni,
    holm,
    paired_t,
    randomisation,
    sign_test,
    wilcoxon,
)

RUNS = [
    "CWI0000",
    "Sab9web1",
    "apl9all",
    "att0010gb",
    "dcu00ca",
    "hum9te",
    "iit00t",
    "jscbt9wls1",
    "pir0Wt1",
    "tnout9t2",
]


@pytest.fixture(scope="module")
def values(collections):
    """Values (runs, topics) of AP and nDCG@10."""
    folder = collections / "trec9-web-runs"
    qrels = read_qrels(folder / "qrels.451-500.txt.xz")
    judged = [judge_run(qrels, read_run(folder / "runs" / f"{name}.run.xz")) for name in RUNS]
    measures = (AP(convention="trec"), nDCG(cutoff=10, convention="trec"))
    return [np.array([measure(missing_topics="zero").per_query(*one) for one in judged]) for measure in measures]


def pairs(values):
    return [(one[a], one[b]) for one in values for a in range(len(one)) for b in range(a)]


def test_tests_equal_scipy(values):
    for a, b in pairs(values):
        assert paired_t(a, b).p == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=1e-12)
        if (a != b).all():  # given with zeros, SciPy approximates
            assert wilcoxon(a, b).p == pytest.approx(stats.wilcoxon(a - b).pvalue, rel=1e-12)
        wins, losses = int((a > b).sum()), int((a < b).sum())
        assert sign_test(a, b).p == pytest.approx(stats.binomtest(wins, wins + losses).pvalue, rel=1e-12)


def test_tests_and_corrections_equal_statsmodels(values):
    pytest.importorskip("statsmodels")
    from statsmodels.stats.descriptivestats import sign_test as their_sign_test
    from statsmodels.stats.multitest import multipletests
    from statsmodels.stats.weightstats import DescrStatsW

    found = []
    for a, b in pairs(values):
        found.append(paired_t(a, b).p)
        assert found[-1] == pytest.approx(DescrStatsW(a - b).ttest_mean(0.0)[1], rel=1e-10)
        assert sign_test(a, b).p == pytest.approx(their_sign_test(a - b, 0.0)[1], rel=1e-10)
    for ours, name in ((holm, "holm"), (bonferroni, "bonferroni"), (benjamini_hochberg, "fdr_bh")):
        np.testing.assert_allclose(ours(found), multipletests(found, method=name)[1], rtol=1e-12)


def test_randomisation_agrees_with_ranx(values, monkeypatch):
    monkeypatch.setattr(pytest.importorskip("numba").config, "CACHE_DIR", "")
    pytest.importorskip("ranx")
    from ranx.statistical_tests.fisher_randomization_test import fisher_randomization_test

    for a, b in pairs(values)[:4]:
        theirs, _ = fisher_randomization_test.py_func(a, b, n_permutations=1000)
        assert randomisation(a, b).p == pytest.approx(theirs, abs=0.06)  # four standard errors of theirs at p = .5
