"""Measures that count relevant documents among the first k."""

from __future__ import annotations

import numpy as np

from truerank.data.ranking_data import Judgements
from truerank.measures.base import Measure
from truerank.measures.derived import Hits, hits_of, query_of_row
from truerank.measures.rank_form import SUM, RankForm


class _Count(Measure):
    """A measure that is linear in the number of relevant documents at the first ranks."""

    TIE_AVERAGE = True

    def rank_form(self, judgements: Judgements) -> RankForm:
        hits = hits_of(judgements, self.rel)
        norm = self._norm(judgements, hits).astype(np.float64)
        weights = np.ones(judgements.longest)
        return RankForm(SUM, hits, weights, norm, hits.total == 0, limits=self._ranks(judgements, hits))

    def _ranks(self, judgements: Judgements, hits: Hits) -> np.ndarray | None:
        """Ranks that count in each query (m,), None for all."""
        return self.limits(judgements)

    def _norm(self, judgements: Judgements, hits: Hits) -> np.ndarray:
        """What the number of relevant documents found is divided by, (m,): that of all, unless a class says other."""
        return np.maximum(hits.total, 1)


class Precision(_Count):
    """Relevant documents among the first k ranks, over k, also where the list is shorter, as in trec_eval.

    For a query with fewer ranked documents than k, `short="zero"` gives 0, as LETOR 3's script does, and
    `short="shorten"` divides by their number, as XGBoost and CatBoost do.
    """

    NAME = "P"
    OWN = ("rel", "cutoff", "short")
    REQUIRED = ("cutoff",)

    def _norm(self, judgements: Judgements, hits: Hits) -> np.ndarray:
        assert self.cutoff is not None  # REQUIRED is checked before
        sizes, short = judgements.sizes, self.setting("short")
        if short == "shorten":
            return np.clip(sizes, 1, self.cutoff)
        norm = np.full(len(sizes), float(self.cutoff))
        if short == "zero":
            norm[sizes < self.cutoff] = np.inf
        return norm


class Recall(_Count):
    """Relevant documents among the first k ranks, over all relevant documents."""

    NAME = "R"
    OWN = ("rel", "cutoff")
    REQUIRED = ("cutoff",)


class RPrecision(_Count):
    """Relevant documents among the first R ranks, over R, the number of relevant documents."""

    NAME = "Rprec"
    OWN = ("rel",)

    def _ranks(self, judgements: Judgements, hits: Hits) -> np.ndarray:
        return hits.total


class SetPrecision(_Count):
    """Relevant documents among all that were retrieved, over their number: trec_eval's set_P.

    With a cutoff k only the first k of them are taken, and their number is min(n, k), where `P@k` divides by k.
    `relative=True` divides by as many as could have been relevant among them, min(n, R): set_relative_P.
    """

    NAME = "SetP"
    OWN = ("rel", "relative", "cutoff")

    def _norm(self, judgements: Judgements, hits: Hits) -> np.ndarray:
        most = judgements.sizes if self.cutoff is None else np.minimum(judgements.sizes, self.cutoff)
        if self.setting("relative"):
            most = np.minimum(most, hits.total)
        return np.maximum(most, 1)


class SetRecall(_Count):
    """Relevant documents among all that were retrieved, over all relevant documents: trec_eval's set_recall.

    With a cutoff k only the first k are taken, which is `R@k`.
    """

    NAME = "SetR"
    OWN = ("rel", "cutoff")


class SetF(_Count):
    """F of SetP and SetR, (1 + b) P R / (b P + R), b = `beta` (trec_eval's set_F takes it without the square).

    With h relevant documents among n retrieved and T in all it is (1 + b) h / (n + b T) (0 where nothing is found).
    With a cutoff k only the first k are taken: of `SetP@k` and `SetR@k`.
    """

    NAME = "SetF"
    OWN = ("rel", "beta", "cutoff")

    def _norm(self, judgements: Judgements, hits: Hits) -> np.ndarray:
        beta = 1.0 if self.setting("beta") is None else float(self.setting("beta"))
        found = judgements.sizes if self.cutoff is None else np.minimum(judgements.sizes, self.cutoff)
        return np.maximum(found + beta * hits.total, 1) / (1.0 + beta)


class SetAP(_Count):
    """SetP times SetR: trec_eval's set_map."""

    NAME = "SetAP"
    OWN = ("rel",)

    def rank_form(self, judgements: Judgements) -> RankForm:
        hits = hits_of(judgements, self.rel)
        # h²/(n T): every one of the h hits brings h.
        gains = hits.mask * hits.ranked.astype(np.float64)[query_of_row(judgements)]
        norm = np.maximum(judgements.sizes, 1) * np.maximum(hits.total, 1).astype(np.float64)
        return RankForm(SUM, hits, np.ones(judgements.longest), norm, hits.total == 0, gains=gains)
