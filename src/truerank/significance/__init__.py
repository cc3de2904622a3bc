"""Is a difference between rankers real? Tests, intervals, corrections and tables of wins and losses."""

from truerank.significance.comparison import (
    Comparison as Comparison,
    PairComparison as PairComparison,
    compare_rankers as compare_rankers,
    compare_values as compare_values,
)
from truerank.significance.corrections import (
    benjamini_hochberg as benjamini_hochberg,
    bonferroni as bonferroni,
    holm as holm,
)
from truerank.significance.intervals import (
    Interval as Interval,
    bootstrap_interval as bootstrap_interval,
    detectable_against_another as detectable_against_another,
    measure_interval as measure_interval,
    smallest_detectable_difference as smallest_detectable_difference,
)
from truerank.significance.pairwise import (
    effect_size as effect_size,
    groups_alike as groups_alike,
    pairwise_bootstrap as pairwise_bootstrap,
    pairwise_randomisation as pairwise_randomisation,
    tukey_hsd as tukey_hsd,
)
from truerank.significance.two_samples import (
    Outcome as Outcome,
    WinLoss as WinLoss,
    paired_differences as paired_differences,
    paired_t as paired_t,
    randomisation as randomisation,
    rank_sum as rank_sum,
    sign_test as sign_test,
    sign_test_of_counts as sign_test_of_counts,
    wilcoxon as wilcoxon,
    win_loss as win_loss,
)
