"""Measures that count relevant documents among the first k."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from truerank.data.ranking_data import Judgements
from truerank.measures.base import Measure
from truerank.measures.derived import Hits, hits_of, query_of_row
from truerank.measures.rank_form import SUM, RankForm


class _Count(Measure):
    """A measure that is linear in the number of relevant documents among the first ranks."""

    TIE_AVERAGE = True

    def rank_form(self, judgements: Judgements) -> RankForm:
        return self._form(judgements, hits_of(judgements, self.rel))

    def _form(self, judgements: Judgements, hits: Hits) -> RankForm:
        norm = self._norm(judgements, hits).astype(np.float64)
        weights = np.ones(judgements.longest)
        return RankForm(SUM, hits, weights, norm, hits.total == 0, limits=self.limits(judgements))

    def _norm(self, judgements: Judgements, hits: Hits) -> np.ndarray:
        """Return the divisor (m,) of the relevant documents found, by default the number of all relevant documents."""
        return np.maximum(hits.total, 1)


class Precision(_Count):
    """The number of relevant documents among the first k ranks, divided by k even for shorter lists (precision).

    If a query has n < k ranked documents, `short="zero"` gives 0 (script of LETOR 3), and `short="shorten"` divides by
    n (XGBoost).
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
    """The share of the relevant documents that are among the first k ranks (recall)."""

    NAME = "R"
    OWN = ("rel", "cutoff")
    REQUIRED = ("cutoff",)


class RPrecision(_Count):
    """The share of relevant documents among the first R ranks, where R is their number in the qrels (R-precision)."""

    NAME = "Rprec"
    OWN = ("rel",)

    def limits(self, judgements: Judgements) -> np.ndarray:
        """Return R, the number of relevant documents."""
        return hits_of(judgements, self.rel).total


class SetPrecision(_Count):
    """The share of relevant documents among the n retrieved documents (trec_eval's set_P).

    With a cutoff k, only the first k documents count, and the divisor is min(n, k), whereas `P@k` divides by k.
    `relative=True` divides by min(n, R), as trec_eval's set_relative_P does.
    """

    NAME = "SetP"
    OWN: ClassVar[tuple[str, ...]] = ("rel", "relative", "cutoff")

    def _norm(self, judgements: Judgements, hits: Hits) -> np.ndarray:
        most = judgements.sizes if self.cutoff is None else np.minimum(judgements.sizes, self.cutoff)
        if self.setting("relative"):
            most = np.minimum(most, hits.total)
        return np.maximum(most, 1)


class SetRecall(_Count):
    """The share of the relevant documents that are retrieved (trec_eval's set_recall).

    With a cutoff k, only the first k documents count, so that the value is `R@k`.
    """

    NAME = "SetR"
    OWN = ("rel", "cutoff")


class SetF(_Count):
    """F of SetP and SetR, (1 + b) P R / (b P + R) with b = `beta`, which is not squared, as in trec_eval's set_F.

    With h relevant documents among n retrieved and T relevant documents in all, F is (1 + b) h / (n + b T), and 0 if h
    is 0. With a cutoff k, the measure is the F of `SetP@k` and `SetR@k`.
    """

    NAME = "SetF"
    OWN = ("rel", "beta", "cutoff")

    def _norm(self, judgements: Judgements, hits: Hits) -> np.ndarray:
        beta = 1.0 if self.setting("beta") is None else float(self.setting("beta"))
        found = judgements.sizes if self.cutoff is None else np.minimum(judgements.sizes, self.cutoff)
        return np.maximum(found + beta * hits.total, 1) / (1.0 + beta)


class SetAP(_Count):
    """The product of SetP and SetR (trec_eval's set_map)."""

    NAME = "SetAP"
    OWN = ("rel",)

    def rank_form(self, judgements: Judgements) -> RankForm:
        form = super().rank_form(judgements)
        # h²/(n T): each of the h hits adds h.
        gains = form.hits.mask * form.hits.ranked.astype(np.float64)[query_of_row(judgements)]
        return replace(form, gains=gains, norm=np.maximum(judgements.sizes, 1) * form.norm)


class JudgedShare(SetPrecision):
    """The share of the first k documents (or of all) that are judged. No query is empty."""

    NAME = "Judged"
    OWN = ("cutoff",)

    @property
    def rises_with_grades(self) -> bool:
        """Return False: unjudged documents have no grade."""
        return False

    def rank_form(self, judgements: Judgements) -> RankForm:
        judged = np.ones(judgements.n_rows, dtype=bool) if judgements.judged is None else judgements.judged
        form = self._form(judgements, Hits(judgements.offsets, judged))
        return replace(form, empty=np.zeros(judgements.n_queries, dtype=bool))
