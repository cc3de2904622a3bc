"""All that is known of an experiment together: what `truerank report` writes."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.printing import styled_table
from truerank.core.results import Result
from truerank.experiments.experiment import Experiment
from truerank.measures.evaluation import Evaluation
from truerank.significance.ranks import RANKS, ranks_shown


class Evidence(Result):
    """Values of all systems, and their comparisons with the baseline, which comes first.

    Attributes
    ----------
    experiment : Experiment
    evaluations : Evaluations
    compared : dict of measure to Comparison
        Of the measures that are means over queries and have a value; empty for a single system.
    first : str
        The measure that decides the verdict.

    Raises
    ------
    InvalidInputError
        If the first measure is no mean over queries and there are several systems, and on scores that may be ranks.
    """

    KIND = "report"

    def __init__(self, experiment: Experiment) -> None:
        order = sorted(experiment.judged, key=lambda name: name != experiment.baseline)
        self.experiment, self.evaluations = experiment, experiment.evaluate()
        self.systems = order
        self.results: list[Evaluation] = [self.evaluations[name] for name in order]
        self.first = next(iter(experiment.measures))
        self.compared: dict[str, Any] = {}
        if len(order) > 1:
            experiment.measures[self.first].check_mean()
            means = [
                name
                for name, one in experiment.measures.items()
                if one.AGGREGATE == "mean" and np.isfinite(sum(result.per_query[name] for result in self.results)).any()
            ]
            found = experiment.with_measures(means).compare() if means else {}
            self.compared = dict(found)
        if not order:
            raise InvalidInputError("a report needs at least one system")

    @property
    def summary(self) -> str:
        """That of the comparison by the first measure, or of the single system."""
        return self.compared[self.first].summary if self.first in self.compared else self.results[0].summary

    @property
    def remarks(self) -> Any:
        """Those of the experiment and of the comparison by the first measure."""
        return self.compared.get(self.first, self.experiment).remarks

    @property
    def other(self) -> int:
        """The number of the best system apart from the baseline; 0 for a single system."""
        if self.first not in self.compared:
            return 1 if len(self.systems) > 1 else 0
        return self.systems.index(self.compared[self.first].best.a)

    @cached_property
    def rank_sets(self) -> dict[str, tuple[int, int]]:
        """The ranks that each system can have by the first measure, all at once; empty for fewer than three systems."""
        if len(self.systems) < 3 or self.first not in self.compared:
            return {}
        found = self.experiment.with_measures([self.first]).compare(pairs="all")[self.first].rank_sets
        return {name: found[name] for name in self.systems}

    def _figures(self) -> dict[str, Any]:
        evaluations = self.evaluations._figures()
        comparison = {name: one._figures() for name, one in self.compared.items()}
        first = {"summary": self.summary, "baseline": self.experiment.baseline, "rank_sets": self.rank_sets}
        return first | evaluations | {"comparison": comparison}

    def _table(self, style: str) -> str:
        return self.evaluations._table(style)

    def to_markdown(self) -> str:
        """Return the report in Markdown: the summary, remarks, and tables of values and comparisons."""
        parts = [f"**{self.summary}**", self.evaluations._table("markdown")]
        if self.rank_sets:
            rows = [[name, ranks_shown(ranks)] for name, ranks in self.rank_sets.items()]
            parts += [styled_table(rows, ["system", "ranks"], "markdown", f"{RANKS}, by {self.first}, all pairs")]
        parts += [part for one in self.compared.values() for part in (one.finding, one.text("markdown"))]
        parts += [f"* {remark}" for remark in self.remarks]
        return "\n\n".join(parts) + "\n"
