"""Is a difference between rankers real? Tests, intervals, corrections and tables of wins and losses."""

from truerank.significance.comparison import Comparison, PairComparison, compare_rankers, compare_values
from truerank.significance.corrections import benjamini_hochberg, bonferroni, holm
from truerank.significance.intervals import (
    Interval,
    bootstrap_interval,
    detectable_against_another,
    measure_interval,
    smallest_detectable_difference,
)
from truerank.significance.pairwise import (
    effect_size,
    groups_alike,
    pairwise_bootstrap,
    pairwise_randomisation,
    tukey_hsd,
)
from truerank.significance.two_samples import (
    Outcome,
    WinLoss,
    paired_differences,
    paired_t,
    randomisation,
    rank_sum,
    sign_test,
    sign_test_of_counts,
    wilcoxon,
    win_loss,
)

__all__ = [
    "Comparison",
    "Interval",
    "Outcome",
    "PairComparison",
    "WinLoss",
    "benjamini_hochberg",
    "bonferroni",
    "bootstrap_interval",
    "compare_rankers",
    "compare_values",
    "detectable_against_another",
    "effect_size",
    "groups_alike",
    "holm",
    "measure_interval",
    "paired_differences",
    "paired_t",
    "pairwise_bootstrap",
    "pairwise_randomisation",
    "randomisation",
    "rank_sum",
    "sign_test",
    "sign_test_of_counts",
    "smallest_detectable_difference",
    "tukey_hsd",
    "wilcoxon",
    "win_loss",
]
