"""Is a difference between rankers real? Tests, intervals, corrections and tables of wins and losses."""

from truerank.significance.comparison import Comparison, PairComparison, compare_rankers, compare_values
from truerank.significance.corrections import bonferroni, holm
from truerank.significance.intervals import Interval, bootstrap_interval, smallest_detectable_difference
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
    "bonferroni",
    "bootstrap_interval",
    "compare_rankers",
    "compare_values",
    "holm",
    "paired_differences",
    "paired_t",
    "randomisation",
    "rank_sum",
    "sign_test",
    "sign_test_of_counts",
    "smallest_detectable_difference",
    "wilcoxon",
    "win_loss",
]
