from .comparison import (
    MeasuredValues as MeasuredValues,
    compare_measures as compare_measures,
    compare_values as compare_values,
)
from .corrections import (
    Family as Family,
    Simultaneous as Simultaneous,
    benjamini_hochberg as benjamini_hochberg,
    bonferroni as bonferroni,
    divided_step_down as divided_step_down,
    holm as holm,
    simultaneous_intervals as simultaneous_intervals,
    step_down_max_t as step_down_max_t,
)
from .intervals import (
    Interval as Interval,
    Verdict as Verdict,
    mean_interval as mean_interval,
    measure_interval as measure_interval,
    verdict as verdict,
)
from .tables import (
    Comparison as Comparison,
    Influence as Influence,
    PairComparison as PairComparison,
)
from .bayes import (
    Posterior as Posterior,
    Practical as Practical,
    PracticalPair as PracticalPair,
    posterior as posterior,
)
from .hierarchy import (
    Segments as Segments,
    segments_posterior as segments_posterior,
)
from .ranks import (
    groups_alike as groups_alike,
    rank_sets as rank_sets,
)
from .paired import (
    Outcome as Outcome,
    WinLoss as WinLoss,
    paired_differences as paired_differences,
    paired_t as paired_t,
    randomisation as randomisation,
    sign_test as sign_test,
    sign_test_of_counts as sign_test_of_counts,
    wilcoxon as wilcoxon,
    win_loss as win_loss,
)
