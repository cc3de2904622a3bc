"""The programs that conventions are named for, behind one function each.

A peer returns `{name: values by topic or in order, or one mean}` for a case of `bench_conventions`. It leaves out a
measure, or raises `Refused`, for what the program itself refuses. Programs that are no Python packages are found by
environment variables: TRUERANK_TREC_EVAL is trec_eval 10 (without it, `truerank trec-eval`, which prints the same
bytes), TRUERANK_LETOR_SCRIPTS the folder of `Eval-Score-3.0.pl`, `Eval-Score-4.0.pl` and `eval-score-mslr.pl`, and
TRUERANK_RANKLIB the file of RankLib 2.10.1.
"""

from __future__ import annotations

import os
import pkgutil
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

Values = dict[str, Any]
Peer = Callable[[Any], Values]
# Names that trec_eval reads, names that it prints, and ours.
_TREC = (
    ("map", "map", "AP"),
    ("map_cut.3", "map_cut_3", "AP@3"),
    ("ndcg", "ndcg", "nDCG"),
    ("ndcg_cut.3", "ndcg_cut_3", "nDCG@3"),
    ("recip_rank", "recip_rank", "RR"),
    ("P.3", "P_3", "P@3"),
    ("recall.3", "recall_3", "R@3"),
    ("success.1", "success_1", "Success@1"),
    ("Rprec", "Rprec", "Rprec"),
    ("bpref", "bpref", "Bpref"),
    ("set_P", "set_P", "SetP"),
    ("set_recall", "set_recall", "SetR"),
    ("set_F", "set_F", "SetF"),
    ("set_map", "set_map", "SetAP"),
    ("set_relative_P", "set_relative_P", "SetP(relative=True)"),
    ("infAP", "infAP", "infAP"),
    ("iprec_at_recall.0.30", "iprec_at_recall_0.30", "IPrec@0.3"),
    ("num_ret", "num_ret", "NumRet"),
    ("num_rel", "num_rel", "NumRel"),
    ("num_rel_ret", "num_rel_ret", "NumRelRet"),
)
_PRINTED = {printed: ours for _, printed, ours in _TREC} | {"rbp": "rbp"}


class Missing(Exception):
    """A program that is not installed here."""


class Refused(Exception):
    """An input that the program refuses."""


def _needs(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise Missing(f"{module} is not installed") from error


@contextmanager
def _files(**texts: str) -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: str(Path(folder) / name) for name in texts}
        for name, text in texts.items():
            Path(paths[name]).write_text(text, encoding="utf-8")
        yield paths


def _called(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    if done.returncode:
        raise Refused(done.stderr.decode("utf-8", "replace")[:200])
    return done.stdout.decode("utf-8")


def _qrels_text(qrels: dict) -> str:
    return "".join(f"{topic} 0 {name} {value:g}\n" for topic, row in qrels.items() for name, value in row.items())


def _run_text(run: dict) -> str:
    return "".join(f"{topic} Q0 {name} 1 {value!r} r\n" for topic, row in run.items() for name, value in row.items())


def _by_topic(rows: Iterator[tuple[str, str, float]]) -> Values:
    found: Values = {}
    for name, topic, value in rows:
        found.setdefault(name, {})[topic] = value
    return found


def trec() -> Peer:
    """trec_eval 10, which prints four digits."""
    from truerank.compat.trec_eval import Options, TrecEvalError, TrecEvaluation, read_judgements, read_results

    program = os.environ.get("TRUERANK_TREC_EVAL")
    wanted = [name for name, _, _ in _TREC] + ["rbp"]

    def printed(qrels: str, run: str) -> str:
        if program:
            with _files(qrels=qrels, run=run) as paths:
                return _called([program, "-q", *[f"-m{name}" for name in wanted], paths["qrels"], paths["run"]])
        try:
            evaluation = TrecEvaluation(read_judgements(qrels.encode()), Options(measures=wanted, by_query=True))
            return "".join(evaluation.lines(read_results(run.encode())))
        except (TrecEvalError, ValueError) as error:
            raise Refused(str(error)) from error

    def values(case: Any) -> Values:
        lines = [line.split() for line in printed(_qrels_text(case.qrels), _run_text(case.run)).splitlines()]
        return _by_topic((_PRINTED[name], topic, float(value)) for name, topic, value in lines if topic != "all")

    return values


def _check_judged(case: Any) -> None:
    """Refuse topics with only negative grades: pytrec_eval reads beyond its memory there, crashes or never ends."""
    if any(max(row.values()) < 0 for row in case.qrels.values()):
        raise Refused("a topic has only negative grades")


def trec9() -> Peer:
    """pytrec_eval, whose grades are whole: fractions are truncated first, as trec_eval 9 reads them from files."""
    pytrec_eval = _needs("pytrec_eval")
    wanted = {name for name, _, _ in _TREC}

    def values(case: Any) -> Values:
        _check_judged(case)
        whole = {topic: {name: int(grade) for name, grade in row.items()} for topic, row in case.qrels.items()}
        try:
            found = pytrec_eval.RelevanceEvaluator(whole, wanted).evaluate(case.run)
        except (OverflowError, ValueError, TypeError) as error:
            raise Refused(str(error)) from error
        return _by_topic((_PRINTED[n], topic, row[n]) for topic, row in found.items() for n in row if n in _PRINTED)

    return values


def gdeval() -> Peer:
    """TREC's gdeval.pl, as ir_measures has it, which prints five digits."""
    _needs("ir_measures")
    script = pkgutil.get_data("ir_measures", "bin/gdeval.pl")
    if script is None or shutil.which("perl") is None:
        raise Missing("gdeval.pl needs perl")

    def rows(case: Any) -> Iterator[tuple[str, str, float]]:
        with _files(script=script.decode(), qrels=_qrels_text(case.qrels), run=_run_text(case.run)) as paths:
            for k in (3, 20):
                for line in _called(["perl", paths["script"], paths["qrels"], paths["run"], str(k)]).splitlines()[1:]:
                    _, topic, ndcg, err = line.split(",")
                    yield f"nDCG@{k}", topic, float(ndcg)
                    yield f"ERR@{k}", topic, float(err)

    return lambda case: _by_topic(rows(case))


def ranx() -> Peer:
    """Ranx, whose sort among equal scores is its own: scores of a list differ."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = _needs("ranx")
    names = dict(pair.split("=", 1) for pair in _RANX.split())

    def evaluated(case: Any) -> Values:
        topics = [topic for topic in case.qrels if case.run.get(topic)]
        if not topics:
            raise Refused("no topic has a list")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            objects = [{topic: lists[topic] for topic in topics} for lists in (case.qrels, case.run)]
            found = library.evaluate(*objects, list(names), return_mean=False)
            # Alone: a division by 0 in one topic leaves others of the call without a value.
            pairs = [[{topic: lists[topic]} for lists in objects] for topic in topics]
            bpref = [float(library.evaluate(*pair, "bpref")) for pair in pairs]
        values = {names[name]: dict(zip(topics, one.tolist())) for name, one in found.items()}
        return values | {"Bpref": dict(zip(topics, bpref))}

    return evaluated


_RANX = (
    "hits=NumRelRet hits@3=NumRelRet@3 hit_rate@3=Success@3 precision@3=P@3 recall@3=R@3 f1=SetF r-precision=Rprec "
    "rbp.90=RBP(0.9) mrr=RR mrr@3=RR@3 map=AP map@3=AP@3 dcg=DCG dcg@3=DCG@3 ndcg=nDCG ndcg@3=nDCG@3 "
    "dcg_burges@3=DCG(gain='exponential')@3 ndcg_burges@3=nDCG(gain='exponential')@3"
)


def letor(version: str) -> Peer:
    """An evaluation script of LETOR."""
    folder = os.environ.get("TRUERANK_LETOR_SCRIPTS")
    name = {"letor3": "Eval-Score-3.0.pl", "letor4": "Eval-Score-4.0.pl", "mslr": "eval-score-mslr.pl"}[version]
    if not folder or shutil.which("perl") is None:
        raise Missing(f"TRUERANK_LETOR_SCRIPTS does not name the folder of {name}, or perl is missing")
    script = str(Path(folder) / name)

    def values(case: Any) -> Values:
        comment = "#docid = {} inc = 1 prob = 1" if version != "letor3" else "#docid = {}"
        lines = [f"{g:g} qid:{q} 1:0 {comment.format(i)}\n" for i, (g, q) in enumerate(zip(case.y, case.qid))]
        scores = "".join(f"{score!r}\n" for score in case.scores.tolist())
        with _files(rows="".join(lines), scores=scores, out="") as paths:
            _called(["perl", script, paths["rows"], paths["scores"], paths["out"], "0"])
            text = Path(paths["out"]).read_text()
        if version == "letor3":
            lists = {line.split(":")[0]: line.split()[1:] for line in text.splitlines() if ":" in line}
            found = {f"P@{k + 1}": float(v) for k, v in enumerate(lists["precision"])}
            found |= {f"nDCG@{k + 1}": float(v) for k, v in enumerate(lists["NDCG"])}
            return found | {"AP": float(lists["MAP"][0])}
        means = [line.split()[1:] for line in text.splitlines() if line.startswith("Average")]
        names = [f"P@{k}" for k in range(1, 11)] + ["AP"], [f"nDCG@{k}" for k in range(1, 11)] + ["MeanNDCG"]
        return {name: float(v) for own, row in zip(names, means) for name, v in zip(own, row)}

    return values


def ranklib() -> Peer:
    """RankLib's scorers, which one process of Java calls for one input after another."""
    path = os.environ.get("TRUERANK_RANKLIB")
    if not path or shutil.which("java") is None:
        raise Missing("TRUERANK_RANKLIB does not name RankLib's jar, or java is missing")
    names = {
        "MAP": "AP",
        "NDCG@3": "nDCG@3",
        "DCG@3": "DCG@3",
        "RR@3": "RR@3",
        "P@3": "P(short='shorten')@3",
        "ERR@3": "ERR(max_grade=4)@3",
    }
    command = ["java", "-cp", path, str(Path(__file__).with_name("RankLibMeasures.java")), *names]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def values(case: Any) -> Values:
        found: Values = {}
        for query in range(len(case.sizes)):
            own = case.qid == query
            ranked = case.y[own][np.argsort(-case.scores[own], kind="stable")]
            process.stdin.write(" ".join(map(repr, ranked.tolist())) + "\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
            answer = process.stdout.readline().split()  # type: ignore[union-attr]
            if answer[:1] == ["refused"]:
                raise Refused("RankLib")
            for name, value in zip(names.values(), answer):
                found.setdefault(name, []).append(float(value))
        return found

    return values


def lightgbm() -> Peer:
    """LightGBM's metrics of scores that are given as init_score."""
    library = _needs("lightgbm")

    def metrics(case: Any, objective: str, metric: str) -> Values:
        quiet = {"verbose": -1, "num_threads": 1}
        data = library.Dataset(
            np.zeros((len(case.y), 1)), case.y, group=case.sizes, init_score=case.scores, params=quiet
        )
        settings = {"objective": objective, "metric": metric, "eval_at": [1, 3, 20], **quiet}
        rows = library.Booster(settings, data).eval_train()
        return {row[1].replace("ndcg", "nDCG").replace("map", "AP"): row[2] for row in rows}

    def values(case: Any) -> Values:
        labels = np.all((case.y >= 0) & (case.y <= 30) & (case.y == np.floor(case.y)))  # it refuses others for ndcg
        return (metrics(case, "lambdarank", "ndcg") if labels else {}) | metrics(case, "regression", "map")

    return values


def xgboost() -> Peer:
    """XGBoost's metrics of scores that are given as base_margin; it prints them as float32 or longer."""
    library = _needs("xgboost")

    def metrics(case: Any, names: dict[str, str], **settings: Any) -> Values:
        found = {}
        data = library.DMatrix(np.zeros((len(case.y), 1)), case.y, group=case.sizes, base_margin=case.scores, nthread=1)
        for name, ours in names.items():
            try:
                with library.config_context(verbosity=0):
                    given = {"objective": "rank:pairwise", "eval_metric": name, "nthread": 1, **settings}
                    text = library.train(given, data, 0).eval(data)
            except library.core.XGBoostError:
                continue
            found[ours] = float(text.rsplit(":", 1)[1])
        return found

    names = {"ndcg": "nDCG", "ndcg@3": "nDCG@3", "map": "AP", "map@3": "AP@3", "pre@3": "P@3"}
    linear = {"ndcg@3": "nDCG(gain='linear')@3"}
    return lambda case: metrics(case, names) | metrics(case, linear, objective="rank:ndcg", ndcg_exp_gain=False)


def catboost() -> Peer:
    """CatBoost's `eval_metric`."""
    library = _needs("catboost.utils")
    error = _needs("catboost").CatBoostError
    names = dict(pair.rsplit("=>", 1) for pair in _CATBOOST.split())

    def values(case: Any) -> Values:
        found = {}
        for name, ours in names.items():
            try:
                found[ours] = library.eval_metric(case.y, case.scores, name, group_id=case.qid, thread_count=1)[0]
            except error:
                continue
        return found

    return values


_CATBOOST = (
    "NDCG:top=3=>nDCG@3 NDCG:top=3;type=Exp=>nDCG(gain='exponential')@3 NDCG=>nDCG DCG:top=3=>DCG@3 "
    "DCG:top=3;type=Exp=>DCG(gain='exponential')@3 MAP:top=3=>AP@3 MAP=>AP MAP:top=4;border=1.5=>AP(rel=1.5000001)@4 "
    "MRR:top=3=>RR@3 MRR=>RR PrecisionAt:top=3=>P@3 RecallAt:top=3=>R@3 ERR:top=3=>ERR@3"
)


def sklearn() -> Peer:
    """scikit-learn's functions, query by query."""
    metrics = _needs("sklearn.metrics")

    def one(case: Any, query: int) -> Values:
        own = case.qid == query
        y, scores = case.y[own], case.scores[own]
        binary = (y >= 1).astype(int)
        calls = {
            "nDCG": lambda: metrics.ndcg_score([y], [scores]),
            "nDCG@3": lambda: metrics.ndcg_score([y], [scores], k=3),
            "DCG": lambda: metrics.dcg_score([y], [scores]),
            "DCG@3": lambda: metrics.dcg_score([y], [scores], k=3),
            "AP": lambda: metrics.average_precision_score(binary, scores),
            "ROC": lambda: metrics.roc_auc_score(binary, scores),
        }
        found = {}
        for name, call in calls.items():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found[name] = float(call())
            except ValueError:
                found[name] = None
        return found

    def values(case: Any) -> Values:
        rows = [one(case, query) for query in range(len(case.sizes))]
        return {name: [row[name] for row in rows] for name in rows[0]}

    return values


_OBJECTS = (
    "AP|AP@3|nDCG|nDCG@3|nDCG(dcg='exp-log2')@3|ERR@3|RR|RR@3|RR(rel=2)@3|RR(judged_only=True)|P@3|R@3|Success@3|Rprec|"
    "Bpref|Judged|Judged@3|Accuracy|Accuracy@3|SetP|SetR|SetF|infAP|IPrec@0.3|NumRet|NumRelRet"
)


def ir_measures() -> Peer:
    """ir_measures with the provider that it chooses for each measure."""
    library = _needs("ir_measures")

    def values(case: Any) -> Values:
        found: Values = {}
        _check_judged(case)
        largest = max(grade for row in case.qrels.values() for grade in row.values())
        for name in _OBJECTS.split("|"):
            if largest > 4 and ("ERR" in name or "exp" in name):  # gdeval refuses it, and prints that it does
                continue
            try:
                rows = list(library.iter_calc([library.parse_measure(name)], case.qrels, case.run))
            except (ZeroDivisionError, subprocess.CalledProcessError):  # Accuracy of only relevant ones; gdeval
                continue
            if rows:
                found[name] = {row.query_id: row.value for row in rows}
        return {name: rows for name, rows in found.items() if rows}

    return values


PEERS: dict[str, Callable[[], Peer]] = {
    "trec": trec,
    "trec9": trec9,
    "gdeval": gdeval,
    "letor3": lambda: letor("letor3"),
    "letor4": lambda: letor("letor4"),
    "mslr": lambda: letor("mslr"),
    "ranklib": ranklib,
    "lightgbm": lightgbm,
    "xgboost": xgboost,
    "catboost": catboost,
    "sklearn": sklearn,
    "ranx": ranx,
    "ir_measures": ir_measures,
}
