"""Conventions by name against the libraries and scripts that they are named for; each skips where it is missing."""

from __future__ import annotations

import csv
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from support.refusals import refused
from truerank import evaluate, judge_run, read_qrels, read_run
from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import RankingData
from truerank.io.letor.read import read_letor
from truerank.io.trec import Qrels, Run
from truerank.measures import Ranking, nDCG, parse_measure, parse_measures
from truerank.measures.conventions import CONVENTIONS
from truerank.measures.names import split_names

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.measures.bench_conventions import compared
from benchmarks.measures.convention_peers import PEERS, Missing, Refused

TREC_NAMES = (
    "map map_cut_5 map_cut_100 ndcg ndcg_cut_5 ndcg_cut_10 recip_rank P_5 P_10 recall_5 recall_100 success_1 "
    "success_10 Rprec bpref"
)


def judged_lists(seed, queries=60, longest=14, grades=3, levels=6):
    """Grades, tied scores and query ids; a query in ten has no relevant document."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, longest, queries)
    qid = np.repeat(np.arange(queries), sizes)
    y = rng.integers(0, grades, len(qid)).astype(float)
    y[qid % 10 == 0] = 0
    return y, rng.integers(0, levels, len(qid)).astype(float), qid, sizes


@pytest.mark.peers
def test_trec_eval_on_random_runs():
    """Ties below float32, negative grades, unjudged and missing documents, topics on one side only, odd ids."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    rng = np.random.default_rng(3)
    pool = [f"d{i}" for i in range(25)] + ["é", "Ω1", "10", "9", "A", "a"]
    qrels_dict = {
        f"t{t}": {d: int(rng.integers(-1, 3)) for d in rng.choice(pool, 15, replace=False)} for t in range(40)
    }
    qrels_dict["none"] = {"d1": 0, "d2": -1}
    run_dict = {}
    for topic in [*list(qrels_dict)[3:], "unjudged"]:
        documents = rng.choice(pool, rng.integers(1, len(pool)), replace=False)
        scores = rng.integers(0, 5, len(documents)) + rng.integers(0, 2, len(documents)) * 1e-9
        run_dict[topic] = {str(d): float(s) for d, s in zip(documents, scores)}

    def flat(table):
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in table.values()])])
        documents = np.array([d for row in table.values() for d in row], dtype=np.dtypes.StringDType())
        return np.array(list(table)), offsets, documents, np.array([v for row in table.values() for v in row.values()])

    names, offsets, documents, values = flat(qrels_dict)
    judgements, scores = judge_run(Qrels(names, offsets, documents, values.astype(float)), Run(*flat(run_dict)))
    wanted = {"map", "map_cut", "ndcg", "ndcg_cut", "recip_rank", "P", "recall", "success", "Rprec", "bpref"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels_dict, wanted).evaluate(run_dict)
    _equals_trec_eval(judgements, scores, theirs)


@pytest.mark.data
@pytest.mark.parametrize("run_name", ["iit00m", "jscbt9wll2", "UCCS3", "apl9all", "pir0Wttd"])
@pytest.mark.peers
def test_trec_eval_on_submitted_runs(collections, run_name):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    folder = collections / "trec9-web-runs"
    qrels = read_qrels(folder / "qrels.451-500.txt.xz")
    run = read_run(folder / "runs" / f"{run_name}.run.xz")
    wanted = {"map", "map_cut", "ndcg", "ndcg_cut", "recip_rank", "P", "recall", "success", "Rprec", "bpref"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels.to_dict(), wanted).evaluate(run.to_dict())
    _equals_trec_eval(*judge_run(qrels, run), theirs)


def _equals_trec_eval(judgements, scores, theirs):
    ranking = Ranking(judgements, scores)
    for name, measure in parse_measures(TREC_NAMES, "trec9").items():
        for topic, value in zip(judgements.query_ids.tolist(), measure.values(ranking).tolist()):
            if topic in theirs:
                assert value == pytest.approx(theirs[topic][name], abs=1e-12), (name, topic)
            else:
                assert np.isnan(value), f"{topic} is missing from the run, and trec_eval skips it"


@pytest.mark.data
def test_map_of_all_runs_as_listed(collections):
    """MAP to four digits as the collection lists it for each run (a few of the 104)."""
    folder = collections / "trec9-web-runs"
    qrels = read_qrels(folder / "qrels.451-500.txt.xz")
    with open(folder / "runs.csv", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows[::15]:
        judgements, scores = judge_run(qrels, read_run(folder / "runs" / f"{row['run']}.run.xz"))
        assert round(parse_measure("map").mean(judgements, scores), 4) == float(row["map"])


@pytest.mark.peers
def test_ir_measures():
    ir_measures = pytest.importorskip("ir_measures")
    y, scores, qid, _ = judged_lists(11)
    documents = np.array([f"d{i:03d}" for i in range(len(y))])
    qrels = [ir_measures.Qrel(str(q), d, int(g)) for q, d, g in zip(qid, documents, y)]
    run = [ir_measures.ScoredDoc(str(q), d, float(s)) for q, d, s in zip(qid, documents, scores)]
    # Not RR@k: it takes that from a script of MS MARCO's, which breaks ties in another way than trec_eval.
    names = "AP AP(rel=2) AP@3 nDCG nDCG@5 RR P@3 P(rel=2)@5 Success@2 R@4 Rprec Judged@5"
    for name in names.split():
        theirs = ir_measures.calc_aggregate([ir_measures.parse_measure(name)], qrels, run)
        ours = evaluate(y, scores, name, qid=qid, doc_ids=documents, convention="trec")
        assert ours[name] == pytest.approx(next(iter(theirs.values())), abs=1e-12), name


def test_ir_measures_form_of_ndcg_names():
    assert parse_measure("nDCG(dcg='exp-log2')@10", "trec") == nDCG(gain="exponential", discount="log2").pinned("trec")(
        cutoff=10
    )


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval is a Perl script")
@pytest.mark.peers
def test_err_of_gdeval():
    ir_measures = pytest.importorskip("ir_measures")
    rng = np.random.default_rng(2)
    y, _, qid, _ = judged_lists(12, grades=5)
    scores = rng.permutation(len(y)).astype(float)
    qrels = [ir_measures.Qrel(str(q + 1), f"d{i}", int(g)) for i, (q, g) in enumerate(zip(qid, y))]
    run = [ir_measures.ScoredDoc(str(q + 1), f"d{i}", float(s)) for i, (q, s) in enumerate(zip(qid, scores))]
    theirs = {m.query_id: m.value for m in ir_measures.iter_calc([ir_measures.parse_measure("ERR@5")], qrels, run)}
    ours = evaluate(y, scores, "ERR(max_grade=4)@5", qid=qid)
    for query, value in zip(ours.query_ids, ours.per_query["ERR(max_grade=4)@5"]):
        assert value == pytest.approx(theirs[str(query + 1)], abs=6e-6)  # it prints five digits


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.peers
def test_lightgbm(seed):
    lightgbm = pytest.importorskip("lightgbm")
    y, scores, qid, sizes = judged_lists(seed, grades=5)
    data = lightgbm.Dataset(np.zeros((len(y), 1)), y, group=sizes, init_score=scores, params={"verbose": -1})
    settings = {"objective": "lambdarank", "metric": ["ndcg", "map"], "eval_at": [1, 3, 5, 10], "verbose": -1}
    theirs = {row[1]: row[2] for row in lightgbm.Booster({**settings, "num_threads": 1}, data).eval_train()}
    for name, value in theirs.items():
        ours = name.replace("ndcg", "nDCG").replace("map", "AP")
        assert evaluate(y, scores, ours, qid=qid, convention="lightgbm")[ours] == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.peers
def test_xgboost(seed):
    xgboost = pytest.importorskip("xgboost")
    y, scores, qid, sizes = judged_lists(seed, grades=5)
    names = {"ndcg@1": "nDCG@1", "ndcg@3": "nDCG@3", "ndcg": "nDCG", "ndcg@3-": "nDCG(empty='zero')@3"}
    _xgboost_equals(xgboost, y, scores, qid, sizes, names)
    names = {"map@3": "AP@3", "map": "AP", "map@3-": "AP(empty='zero')@3", "pre@3": "P@3", "ndcg@5": "nDCG@5"}
    _xgboost_equals(xgboost, (y > 1).astype(float), scores + 1e-9 * y, qid, sizes, names)


def _xgboost_equals(xgboost, y, scores, qid, sizes, names):
    data = xgboost.DMatrix(np.zeros((len(y), 1)), y, group=sizes, base_margin=scores, nthread=1)
    settings = {"objective": "rank:pairwise", "eval_metric": list(names), "nthread": 1}
    text = xgboost.train(settings, data, 0).eval(data)
    theirs = dict(item.removeprefix("eval-").rsplit(":", 1) for item in text.split("\t")[1:])
    for name, ours in names.items():
        found = evaluate(y, scores, ours, qid=qid, convention="xgboost")[ours]
        assert found == pytest.approx(float(theirs[name]), abs=1e-12), name


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.peers
def test_catboost(seed):
    metrics = pytest.importorskip("catboost.utils")
    y, scores, qid, _ = judged_lists(seed, grades=4)
    names = {
        "NDCG:top=3": "nDCG@3",
        "NDCG:top=3;type=Exp": "nDCG(gain='exponential')@3",
        "NDCG": "nDCG",
        "MAP:top=3": "AP@3",
        "MAP": "AP",
        "MAP:top=4;border=1.5": "AP(rel=2)@4",
        "MRR:top=3": "RR@3",
        "MRR": "RR",
        "PrecisionAt:top=3": "P@3",
        "RecallAt:top=3": "R@3",
    }
    for theirs, ours in names.items():
        found = evaluate(y, scores, ours, qid=qid, convention="catboost")[ours]
        expected = metrics.eval_metric(y, scores, theirs, group_id=qid, thread_count=1)[0]
        assert found == pytest.approx(expected, abs=1e-12), theirs


def test_scikit_learn():
    from sklearn.metrics import average_precision_score, label_ranking_average_precision_score, ndcg_score
    from sklearn.metrics import roc_auc_score as roc_auc

    y, scores, qid, _ = judged_lists(5, grades=4)
    names = "nDCG nDCG@3 AP ROC"
    result = evaluate(y, scores, names, qid=qid, convention="sklearn")
    for query in range(60):
        grades, values = y[qid == query], scores[qid == query]
        if len(grades) < 2:
            continue
        ndcg = [ndcg_score([grades], [values]), ndcg_score([grades], [values], k=3)]
        assert result.per_query["nDCG"][query] == pytest.approx(ndcg[0], abs=1e-12)
        assert result.per_query["nDCG@3"][query] == pytest.approx(ndcg[1], abs=1e-12)
        binary = grades >= 1
        if binary.any():
            ap = result.per_query["AP"][query]
            assert ap == pytest.approx(average_precision_score(binary, values), abs=1e-12)
            assert ap == pytest.approx(label_ranking_average_precision_score([binary], [values]), abs=1e-12)
        if binary.any() and not binary.all():
            assert result.per_query["ROC"][query] == pytest.approx(roc_auc(binary, values), abs=1e-12)


@pytest.mark.slow
@pytest.mark.peers
def test_ranx_without_ties(monkeypatch):
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")  # compiled once for good, beside ranx itself
    ranx = pytest.importorskip("ranx")
    y, _, qid, _ = judged_lists(6)
    scores = np.random.default_rng(0).permutation(len(y)).astype(float)
    documents = [f"d{i}" for i in range(len(y))]
    qrels, run = {}, {}
    for q, d, g, s in zip(qid.tolist(), documents, y.tolist(), scores.tolist()):
        qrels.setdefault(f"q{q}", {})[d] = int(g)
        run.setdefault(f"q{q}", {})[d] = s
    names = {"ndcg@5": "nDCG@5", "ndcg_burges@5": "nDCG(gain='exponential')@5", "map": "AP"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        objects = ranx.Qrels(qrels), ranx.Run(run)
        theirs = ranx.evaluate(*objects, list(names))
    ours = evaluate(y, scores, list(names.values()), qid=qid, convention="ranx")
    for name, value in theirs.items():
        assert ours[names[name]] == pytest.approx(value, abs=1e-12), name
    assert dict(evaluate(*objects, "AP nDCG@5")) == pytest.approx(dict(evaluate(qrels, run, "AP nDCG@5")))


def letor_script(y, scores, qid, version):
    """What the LETOR evaluation scripts print, as their text reads: rows by score, file order among ties.

    Both measures are lists over ranks, summed over queries and divided by their number. Version 3's lists end with the
    query's documents, so an absent rank adds 0; version 4 and MSLR fill up P@k's list, but not nDCG@k's.
    """
    gain = {0: 0, 1: 1, 2: 3, 3: 7, 4: 15}
    sums = {"P": [0.0] * 10, "nDCG": [0.0] * 10, "AP": 0.0, "MeanNDCG": 0.0}
    queries = sorted(set(qid.tolist()))
    threshold = 2 if version == "mslr" else 1
    for query in queries:
        rows = [row for row in range(len(y)) if qid[row] == query]
        rates = [int(y[row]) for row in sorted(rows, key=lambda row: -scores[row])]

        def dcg(rates):
            values = [float(gain[rates[0]])]
            for i, rate in enumerate(rates[1:], start=1):
                values.append(values[-1] + (gain[rate] if i < 2 else gain[rate] * np.log(2) / np.log(i + 1)))
            return values

        ndcg = [a / b if b else 0.0 for a, b in zip(dcg(rates), dcg(sorted(rates, reverse=True)))]
        sums["MeanNDCG"] += sum(ndcg) / len(ndcg)
        relevant, total = 0, 0.0
        precisions = []
        for i, rate in enumerate(rates):
            relevant += rate >= threshold
            precisions.append(relevant / (i + 1))
            total += precisions[-1] if rate >= threshold else 0
        sums["AP"] += total / relevant if relevant else 0.0
        if version != "letor3":
            precisions += [relevant / (i + 1) for i in range(len(rates), 10)]
        for i in range(10):
            sums["P"][i] += precisions[i] if i < len(precisions) else 0.0
            sums["nDCG"][i] += ndcg[i] if i < len(ndcg) else 0.0
    count = len(queries)
    return {
        "AP": sums["AP"] / count,
        "MeanNDCG": sums["MeanNDCG"] / count,
        **{f"P@{i + 1}": sums["P"][i] / count for i in range(10)},
        **{f"nDCG@{i + 1}": sums["nDCG"][i] / count for i in range(10)},
    }


@pytest.mark.parametrize("version", ["letor3", "letor4", "mslr"])
def test_letor_scripts(version):
    y, scores, qid, _ = judged_lists(8, grades=5 if version == "mslr" else 3)
    expected = letor_script(y, scores, qid, version)
    found = evaluate(y, scores, list(expected), qid=qid, convention=version)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-12), name


def test_letor_3_script_on_a_short_list():
    """What Eval-Score-3.0.pl itself printed of a list of three documents and one of eleven."""
    y = [1, 0, 2, *(i % 3 for i in range(1, 12))]
    scores = [3, 2, 1, *range(11, 0, -1)]
    printed = {
        "P@2": 0.75,
        "P@3": 0.666666666666667,
        "P@4": 0.375,
        "P@10": 0.35,
        "AP": 0.819264069264069,
        "nDCG@3": 0.614994502066586,
        "nDCG@4": 0.239545457429849,
        "nDCG@10": 0.341713904597061,
    }
    found = evaluate(y, scores, list(printed), qid=[1] * 3 + [2] * 11, convention="letor3")
    for name, value in printed.items():
        assert found[name] == pytest.approx(value, abs=1e-14), name


@pytest.mark.data
def test_letor_2_single_features(collections):
    """Every published measure of ranking OHSUMED by each of the 25 features alone, to the printed digit."""
    folder = collections / "letor2-ohsumed"
    data = RankingData.concatenate([read_letor(folder / f"S{k}.txt.gz") for k in range(1, 6)])
    with open(folder / "single_features.csv", encoding="utf-8") as stream:
        published = list(csv.DictReader(stream))
    judgements = data.judgements()
    columns = np.ascontiguousarray(data.X.T)
    for name in sorted({row["metric"] for row in published}):
        ours = name.replace("NDCG", "nDCG").replace("MAP", "AP").replace("MeannDCG", "MeanNDCG")
        means = parse_measure(ours, "letor3").per_query(judgements, columns).mean(axis=1)
        for row in published:
            if row["metric"] == name:
                assert means[int(row["feature"]) - 1] == pytest.approx(float(row["value"]), abs=5.001e-7), row


@pytest.mark.data
def test_ranklib(collections):
    """What RankLib 2.10.1 printed of a linear model with one weight, on a feature rounded so that most scores tie."""
    data = RankingData.concatenate([read_letor(collections / "letor4-mq2008" / f"S{k}.txt.gz") for k in range(1, 6)])
    printed = {
        "AP": 0.3603,
        "nDCG@3": 0.2881,
        "nDCG@10": 0.3987,
        "P@3": 0.2827,
        "P(short='shorten')@10": 0.234,
        "RR@10": 0.4256,
        "ERR(max_grade=4)@10": 0.0738,
    }
    found = evaluate(data.judgements(), np.round(data.X[:, 24], 1), list(printed), convention="ranklib")
    assert {name: round(value, 4) for name, value in found.items()} == printed


def test_one_ranking_under_every_convention():
    """A list by hand: grades 1 0 2 in ranked order, all scores different."""
    y, scores = [1, 0, 2], [3.0, 2.0, 1.0]
    log = np.log2
    expected = {
        "trec": (1 / 1 + 2 / log(4)) / (2 + 1 / log(3)),
        "letor3": (1 + 3 / log(3)) / (3 + 1),
        "ranklib": (1 + 3 / log(4)) / (3 + 1 / log(3)),
        "lightgbm": (1 + 3 / log(4)) / (3 + 1 / log(3)),
        "catboost": (1 + 2 / log(4)) / (2 + 1 / log(3)),
        "sklearn": (1 + 2 / log(4)) / (2 + 1 / log(3)),
    }
    for convention, value in expected.items():
        assert evaluate(y, scores, "nDCG@3", convention=convention)["nDCG@3"] == pytest.approx(value)
    assert evaluate(y, scores, "nDCG@5", convention="letor4")["nDCG@5"] == 0
    assert evaluate([0, 0], [1, 2], "nDCG@5", convention="xgboost")["nDCG@5"] == 1
    assert evaluate([0, 0], [1, 2], "AP@5", convention="catboost")["AP@5"] == 0


IR_MEASURES = (
    "AP AP(rel=2)@7 AP(judged_only=True) nDCG nDCG@5 nDCG(gains={0:1,1:4})@5 nDCG(judged_only=True)@4 RR RR(rel=2) "
    "RR@3 RR(rel=2)@10 RR(judged_only=True) Bpref Rprec P@5 P(rel=2)@5 P(judged_only=True)@3 R@5 R(rel=2)@5 Success@3 "
    "SetP SetP(judged_only=True) SetR SetF SetAP SetRelP infAP IPrec@0.1 IPrec@0.5 IPrec@1.0 NumRet NumRel NumRelRet "
    "NumRet(rel=1) NumQ Judged Judged@5 Judged@10 Accuracy Accuracy@3 Accuracy@10 Accuracy(rel=2) ERR@3 ERR@20 "
    "nDCG(dcg='exp-log2')@3 nDCG(dcg='exp-log2')@20"
)


@pytest.mark.peers
def test_ir_measures_objects_mean_what_they_mean_there():
    """Every measure of ir_measures' trec_eval, gdeval, judged and accuracy providers, by query and in the aggregate."""
    ir_measures = pytest.importorskip("ir_measures")
    rng = np.random.default_rng(8)
    pool = [f"d{i:02d}" for i in range(40)]
    qrels = {
        str(t): {d: int(rng.integers(-1, 3)) for d in rng.choice(pool, 18, replace=False)} for t in range(101, 126)
    }
    run = {
        topic: {str(d): float(rng.integers(0, 12)) for d in rng.choice(pool, rng.integers(2, 30), replace=False)}
        for topic in list(qrels)[2:]
    }
    refused = []
    for text in split_names(IR_MEASURES):
        theirs = ir_measures.parse_measure(text)
        measure = parse_measure(theirs)
        judgements, scores = judge_run(Qrels(*_flat(qrels, float)), Run(*_flat(run, float)))
        try:
            by_query = {m.query_id: m.value for m in ir_measures.iter_calc([theirs], qrels, run)}
            aggregate = ir_measures.calc_aggregate([theirs], qrels, run)[theirs]
        except Exception as error:  # a provider that needs a program that is missing here
            refused.append(f"{text}: {error}")
            continue
        values = dict(zip(judgements.query_ids.tolist(), measure.per_query(judgements, scores).tolist()))
        tolerance = 2e-5 if text.startswith(("ERR", "nDCG(dcg")) else 1e-9  # gdeval prints five digits
        for topic, value in by_query.items():
            assert values[topic] == pytest.approx(value, abs=tolerance), (text, topic)
        if not text.startswith(("Accuracy", "NumQ")):
            assert measure.mean(judgements, scores) == pytest.approx(aggregate, abs=tolerance), text
    assert not refused


def _flat(table, kind):
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in table.values()])])
    documents = np.array([d for row in table.values() for d in row], dtype=np.dtypes.StringDType())
    return (
        np.array(list(table)),
        offsets,
        documents,
        np.array([v for row in table.values() for v in row.values()], kind),
    )


CONVENTIONS_AND_OBJECTS = [
    pytest.param(name, marks=[pytest.mark.slow] if name == "ranx" else []) for name in (*CONVENTIONS, "ir_measures")
]


def letor_means(version):
    """The scripts as a peer; they read whole grades, and refuse others."""

    def values(case):
        if (case.y < 0).any() or (case.y != np.floor(case.y)).any() or case.y.max() > (4 if version == "mslr" else 2):
            raise Refused(case.kind)
        return letor_script(case.y, case.scores, case.qid, version)

    return values


@pytest.mark.peers
@pytest.mark.parametrize("convention", CONVENTIONS_AND_OBJECTS)
def test_values_of_the_program_on_random_inputs(convention):
    """50 inputs: ties, negative, fractional, large grades, topics on one side only, unjudged documents, one document.

    `python -m benchmarks bench_conventions` tries 2,000.
    """
    try:
        peer = letor_means(convention) if convention in ("letor3", "letor4", "mslr") else PEERS[convention]()
    except Missing as reason:
        pytest.skip(str(reason))
    tally = compared(convention, peer, 50, seed=1)
    assert sum(tally.compared.values()) > 100
    assert not tally.different, tally.first


def test_fractional_grades_are_truncated_as_trec_eval_truncates_them():
    qrels, run = {"1": {"a": 0.5, "b": 1.9, "c": -0.5, "d": 2}}, {"1": {"a": 4.0, "b": 3.5, "c": 2.0, "d": 1.0}}
    whole = {"1": {"a": 0, "b": 1, "c": 0, "d": 2}}
    names = "AP nDCG nDCG@3 DCG@2 Bpref infAP RBP WTA Rndcg"
    for convention in ("trec", "trec9"):
        found = evaluate(qrels, run, names.replace(" Rndcg", ""), convention=convention)
        assert dict(found) == dict(evaluate(whole, run, names.replace(" Rndcg", ""), convention=convention))
        assert "truncates" in found.note
        assert "swapped" not in found.note
        assert found.empty_by_measure()["nDCG"] == 0
    assert evaluate(qrels, run, "Rndcg")["Rndcg"] == evaluate(whole, run, "Rndcg")["Rndcg"]
    assert evaluate({"1": {"a": 0.5}}, {"1": {"a": 1.5}}, "nDCG").empty_by_measure() == {"nDCG": 1}
    assert evaluate({"1": {"a": 0.5}}, {"1": {"a": 1.5}}, "nDCG(grades='any')")["nDCG(grades='any')"] == 1
    assert "swapped" in evaluate(run, whole, "nDCG").note
    assert "RankLib" in evaluate([0.5, 1], [1, 2], "nDCG", qid=[1, 1]).note
    assert evaluate(whole, run, "nDCG").note == ""


def test_grades_that_a_program_evaluates_in_another_way_are_refused():
    for convention, name, grade in (
        ("letor4", "nDCG@3", 3),
        ("letor3", "AP", 4),
        ("mslr", "P@2", 5),
        ("catboost", "nDCG", -1),
        ("xgboost", "nDCG(gain='linear')", -1),
        ("sklearn", "DCG", -1),
        ("catboost", "ERR", 0),
        ("xgboost", "ROC", 1),
    ):
        with refused(InvalidInputError, code="grade"):
            evaluate([grade, 1, 0], [3, 2, 1], name, convention=convention)
        open_name = name.replace(")", ",grades='any')") if ")" in name else name.replace("@", "(grades='any')@")
        open_name = open_name if "grades" in open_name else f"{name}(grades='any')"
        assert evaluate([grade, 1, 0], [3, 2, 1], open_name, convention=convention)


def test_gain_of_rank_biased_precision():
    """Binary, the grade (ranx), or as trec_eval's rbp its share of the highest grade."""
    y, scores = [2, 0, 4, 1], [4, 3, 2, 1]
    for name, convention, gains, p in (
        ("RBP", "ranklib", [1, 0, 1, 1], 0.8),
        ("RBP", "ranx", y, 0.8),
        ("RBP(graded=True)", "trec", y, 0.8),
        ("rbp", "trec", [0.5, 0, 1, 0.25], 0.9),
    ):
        wanted = (1 - p) * sum(gain * p**rank for rank, gain in enumerate(gains))
        assert evaluate(y, scores, name, convention=convention)[name] == pytest.approx(wanted)
