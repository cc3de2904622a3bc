"""Average precision, and its geometric mean."""

from __future__ import annotations

import numpy as np

from truerank.data.ranking_data import Judgements
from truerank.measures.base import Measure
from truerank.measures.derived import hits_of
from truerank.measures.rank_form import PRECISION, RankForm
from truerank.measures.ranking import Ordered


class AveragePrecision(Measure):
    """The mean precision at the ranks of all relevant documents (average precision); an unranked document adds 0.

    In `AP@k`, ranks beyond k add 0. With a cutoff, `denominator="reachable"` divides by min(R, k), as LightGBM, XGBoost
    and CatBoost do. The default divides by R. `ties="end"` counts every tied document
    at the last rank of its group, as in scikit-learn's `average_precision_score` and
    `label_ranking_average_precision_score`. The mean of AP over queries is MAP.
    """

    NAME = "AP"
    OWN = ("rel", "cutoff", "denominator")
    TIE_AVERAGE = True

    def rank_form(self, judgements: Judgements) -> RankForm:
        hits = hits_of(judgements, self.rel)
        total = hits.total
        if self.cutoff is not None and self.setting("denominator") == "reachable":
            total = np.minimum(total, self.cutoff)
        norm = np.maximum(total, 1).astype(np.float64)
        return RankForm(PRECISION, hits, np.zeros(0), norm, hits.total == 0, limits=self.limits(judgements))

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        # ties="end": the number of hits in and before a group, divided by the last rank of the group.
        form = self.form_of(ordered.judgements)
        assert form is not None  # made above
        hits = form.hits
        before, size = ordered.hit_groups(hits)
        end = before + size
        last = np.empty_like(before)  # ordinal of the last hit of the group of each hit
        for k in range(ordered.k):
            key = end[k] + ordered.judgements.offsets[hits.query]
            last[k] = hits.ordinal[np.searchsorted(key, key, side="right") - 1]
        value = np.where(end > (self.cutoff or np.inf), 0.0, last / end)
        return hits.sum(value) / form.norm, form.empty


class GeometricMAP(AveragePrecision):
    """The geometric mean of AP over queries, with values of at least 0.00001 (trec_eval's gm_map).

    The geometric mean gives more weight to queries with a low AP (Robertson 2006).
    """

    NAME = "GMAP"
    AGGREGATE = "geometric"
