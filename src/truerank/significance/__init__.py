"""Is a difference between rankers real? Tests, intervals, corrections and tables of wins and losses."""

from truerank.significance.comparison import MeasuredValues, compare_measures, compare_rankers, compare_values
from truerank.significance.corrections import Family, benjamini_hochberg, bonferroni, holm, step_down_max_t
from truerank.significance.intervals import Interval, Verdict, mean_interval, measure_interval, verdict
from truerank.significance.tables import Comparison, Influence, PairComparison, groups_alike
from truerank.significance.two_samples import (
    Outcome,
    WinLoss,
    paired_differences,
    paired_t,
    randomisation,
    sign_test,
    sign_test_of_counts,
    wilcoxon,
    win_loss,
)

__all__ = [
    "Comparison",
    "Family",
    "Influence",
    "Interval",
    "MeasuredValues",
    "Outcome",
    "PairComparison",
    "Verdict",
    "WinLoss",
    "benjamini_hochberg",
    "bonferroni",
    "compare_measures",
    "compare_rankers",
    "compare_values",
    "groups_alike",
    "holm",
    "mean_interval",
    "measure_interval",
    "paired_differences",
    "paired_t",
    "randomisation",
    "sign_test",
    "sign_test_of_counts",
    "step_down_max_t",
    "verdict",
    "wilcoxon",
    "win_loss",
]
