"""Is a difference between rankers real? Tests, intervals, corrections and tables of wins and losses."""

from truerank.significance.comparison import (
    Comparison,
    Influence,
    MeasuredValues,
    PairComparison,
    compare_measures,
    compare_rankers,
    compare_values,
)
from truerank.significance.corrections import benjamini_hochberg, bonferroni, holm
from truerank.significance.families import Family, step_down_max_t
from truerank.significance.intervals import Interval, mean_interval, measure_interval
from truerank.significance.pairwise import groups_alike
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
from truerank.significance.verdicts import Verdict, verdict

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
