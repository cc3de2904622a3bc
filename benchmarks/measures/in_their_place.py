"""truerank under the names of a peer, so that the peer's own tests run on it; `replace(PEER)` puts it there."""

from __future__ import annotations

import re
from typing import Any

import numpy as np


def replace(peer: str) -> None:
    """Put truerank in the place of one peer's functions, in this process."""
    {"pytrec_eval": _pytrec_eval, "ir_measures": _ir_measures, "ranx": _ranx, "scikit-learn": _scikit_learn}[peer]()


def _pytrec_eval() -> None:
    import pytrec_eval

    from truerank import judge_run
    from truerank.compat.trec_eval import NICKNAMES, wanted_measures
    from truerank.io.trec import as_qrels, as_run
    from truerank.measures import parse_measure

    class RelevanceEvaluator:
        """Measures of version 9 by query, of topics that both hold, as pytrec_eval gives them."""

        def __init__(self, qrels: dict, measures: Any, relevance_level: int = 1) -> None:
            theirs = pytrec_eval.supported_measures
            own = [re.sub(r"^([A-Za-z_]+)_(\d[\d,]*)$", r"\1.\2", name) for name in measures]
            merged: dict[str, list[str]] = {}
            for name in own:
                root, _, parameters = name.partition(".")
                merged.setdefault(root, []).extend(parameters.split(",") if parameters else [])
            arguments = [f"{root}.{','.join(dict.fromkeys(p))}" if p else root for root, p in merged.items()]
            self.names = [
                name
                for wanted in (wanted_measures(arguments) if arguments else [])
                if wanted.root in theirs or wanted.root in ("num_q",)
                for name in wanted.names
                if wanted.root not in ("runid", "relstring")
            ]
            self.qrels, self.level = qrels, relevance_level
            assert set(NICKNAMES) >= {"official", "set", "all_trec"}

        def evaluate(self, run: dict) -> dict:
            shared = [topic for topic in run if topic in self.qrels]
            values: dict[str, dict[str, float]] = {topic: {} for topic in shared}
            full = [topic for topic in shared if self.qrels[topic]]
            if not full or not self.names:
                return values
            lists = {topic: run[topic] for topic in full}
            judgements, scores = judge_run(as_qrels({t: self.qrels[t] for t in full}), as_run(lists))
            for name in self.names:
                measure = parse_measure(name, "trec9")(missing_topics="zero")
                if "rel" in measure.OWN and self.level != 1:
                    measure = measure(rel=self.level)
                found = measure.per_query(judgements, scores)
                if measure.AGGREGATE == "geometric":
                    found = np.log(np.maximum(found, 1e-5))
                for topic, value in zip(judgements.query_ids.tolist(), found.tolist()):
                    values[topic][name] = value
            return values

    pytrec_eval.RelevanceEvaluator = RelevanceEvaluator


def _ir_measures() -> None:
    import ir_measures

    from truerank.measures.ir_measures_provider import provider

    for name in ("pytrec_eval", "ranx", "judged", "accuracy", "trectools"):
        if hasattr(ir_measures, name):
            setattr(ir_measures, name, provider())
    ir_measures.gdeval = provider("gdeval")


def _ranx() -> None:
    import ranx.metrics

    from truerank.measures import parse_measure

    def measured(name: str, cut: bool) -> Any:
        def compute(qrels: Any, run: Any, k: int = 0, *rest: Any) -> np.ndarray:
            pairs = [[row.tolist() for row in one] for one in (qrels, run)]
            lists = [{str(i): {str(int(d)): float(v) for d, v in one} for i, one in enumerate(both)} for both in pairs]
            from truerank import judge_run
            from truerank.io.trec import as_qrels, as_run

            lists[1] = {i: {d: -float(rank) for rank, d in enumerate(one)} for i, one in lists[1].items()}
            judgements, scores = judge_run(as_qrels(lists[0]), as_run(lists[1]))
            text = f"rbp.{str(k).partition('.')[2]}" if name == "rbp" else f"{name}@{k}" if cut and k else name
            return parse_measure(text, "ranx").per_query(judgements, scores)

        return compute

    names = {
        "hits": "hits", "hit_rate": "hit_rate", "precision": "precision", "recall": "recall", "f1": "f1",
        "average_precision": "map", "reciprocal_rank": "mrr", "r_precision": "r-precision", "bpref": "bpref",
        "rank_biased_precision": "rbp", "dcg": "dcg", "dcg_burges": "dcg_burges", "ndcg": "ndcg",
        "ndcg_burges": "ndcg_burges",
    }  # fmt: skip
    for theirs, ours in names.items():
        setattr(ranx.metrics, theirs, measured(ours, cut=ours not in ("r-precision", "bpref")))


def _scikit_learn() -> None:
    import sklearn.calibration
    from sklearn.svm import LinearSVC

    from truerank import CalibratedClassifier

    class CalibratedClassifierCV(CalibratedClassifier):
        """Its arguments and defaults; the classifier is refitted once, whatever `ensemble` says."""

        def __init__(self, estimator=None, *, method="sigmoid", cv=None, n_jobs=None, ensemble="auto"):
            super().__init__(estimator, method, cv, n_jobs)
            self.ensemble = ensemble

        def fit(self, X, y, sample_weight=None, **parameters):
            given = self.estimator, self.method, self.cv
            self.estimator = LinearSVC(random_state=0) if self.estimator is None else self.estimator
            self.method = {"sigmoid": "platt"}.get(self.method, self.method)
            self.cv = 5 if self.cv is None else self.cv
            try:
                return super().fit(X, y, sample_weight, **parameters)
            finally:
                self.estimator, self.method, self.cv = given

    sklearn.calibration.CalibratedClassifierCV = CalibratedClassifierCV
