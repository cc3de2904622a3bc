"""The evidence of an experiment, which `truerank report` writes."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

import numpy as np

from truerank.core.errors import PYTHON, Wording
from truerank.core.names import resolve
from truerank.core.printing import counted, styled_table
from truerank.core.results import Result
from truerank.data.remarks import FORBIDS
from truerank.experiments.details import Detail, Rankings, details_of, rankings_of
from truerank.experiments.experiment import Experiment
from truerank.measures.evaluation import Evaluation
from truerank.significance.comparison_text import finding
from truerank.significance.paired import LEVEL
from truerank.significance.ranks import RANKS, ranks_shown


class Evidence(Result):
    """Values of all systems, and their comparisons with the baseline, which comes first.

    Attributes
    ----------
    experiment : Experiment
    evaluations : Evaluations
    compared : dict of measure to Comparison
        Comparisons by measure, for measures that are means over queries and have a value; empty for a single system.
    first : str
        The measure that decides the verdict.
    details : dict of str to Detail
        Tables of queries, features, pairs of grades and data.
    rankings : Rankings
        The first documents of some queries.
    wording : Wording
        The front end whose terms remedies use.

    Raises
    ------
    InvalidInputError
        If the first measure is not a mean over queries and there are several systems, or if scores may be ranks.
    """

    KIND = "report"

    def __init__(self, experiment: Experiment, wording: Wording = PYTHON) -> None:
        self.wording = wording
        order = sorted(experiment.judged, key=lambda name: name != experiment.baseline)
        self.experiment, self.evaluations = experiment, experiment.evaluate()
        self.systems = order
        self.results: list[Evaluation] = [self.evaluations[name] for name in order]
        self.first = next(iter(experiment.measures))
        self.compared: Any = {}
        if len(order) > 1:
            experiment.measures[self.first].check_mean()
            means = [
                name
                for name, one in experiment.measures.items()
                if one.AGGREGATE == "mean" and np.isfinite(sum(result.per_query[name] for result in self.results)).any()
            ]
            self.compared = experiment.with_measures(means).compare() if means else {}

    @property
    def summary(self) -> str:
        """The summary of the first comparison, of the `leaders`, or of the single system."""
        if self.leaders:
            best, *alike = self.leaders
            value = self.evaluations[best][self.first]
            text = f"{best} has the best {self.first}, {value:.4f}"
            others = len(self.systems) - len(self.leaders)
            text += f", and is better than {counted(others, 'other system')}" if others else ""
            doubtful = sum(best in (one["a"], one["b"]) for one in self._all_pairs.unjudged[0].get("unjudged", ()))
            if doubtful:
                text += f" (unjudged documents can reverse {doubtful} of its {len(self.systems) - 1} comparisons)"
            if alike:
                shown = ", ".join(alike[:3]) + (f" and {len(alike) - 3} more" if len(alike) > 3 else "")
                text += f". These queries do not show a difference between {best} and {shown}"
            return f"{text}."
        return self.compared[self.first].summary if self.first in self.compared else self.results[0].summary

    @property
    def remarks(self) -> Any:
        """The remarks of the experiment and of all comparisons."""
        return (self.compared or self.experiment).remarks

    @property
    def other(self) -> int:
        """The number of the best system besides the baseline; 0 for a single system."""
        if self.first not in self.compared:
            return 1 if len(self.systems) > 1 else 0
        return self.systems.index(self.compared[self.first].best.a)

    @cached_property
    def _all_pairs(self) -> Any:
        """The comparison of all pairs of several systems by the first measure."""
        if len(self.systems) < 3 or self.first not in self.compared:
            return None
        return self.experiment.with_measures([self.first]).compare(pairs="all")[self.first]

    @cached_property
    def rank_sets(self) -> dict[str, tuple[int, int]]:
        """The simultaneous sets of ranks of all systems by the first measure; empty for fewer than three systems."""
        return {} if self._all_pairs is None else {name: self._all_pairs.rank_sets[name] for name in self.systems}

    @cached_property
    def leaders(self) -> list[str]:
        """Without a stated baseline: the best of several systems, and the systems that do not differ from it.

        All pairs are tested. Empty if a verdict is impossible.
        """
        found = self._all_pairs
        if found is None or self.experiment.states_baseline or any(one.severity == FORBIDS for one in self.remarks):
            return []
        sign = 1.0 if found.higher_is_better else -1.0
        best = max(found.means, key=lambda name: sign * found.means[name])
        pairs = [pair for pair in found.pairs if best in (pair.a, pair.b) and not pair.p_adjusted < LEVEL]
        alike = [pair.b if pair.a == best else pair.a for pair in pairs]
        return [best, *sorted(alike, key=lambda name: -sign * found.means[name])]

    @cached_property
    def details(self) -> dict[str, Detail]:
        """The tables of details by name."""
        return details_of(self)

    @cached_property
    def rankings(self) -> Rankings:
        """The first documents of the queries that differ most, and of a sample."""
        return rankings_of(self)

    def _figures(self) -> dict[str, Any]:
        evaluations = self.evaluations._figures()
        comparison = {name: one._figures() for name, one in self.compared.items()}
        first = {"summary": self.summary, "baseline": self.experiment.baseline, "rank_sets": self.rank_sets}
        first |= {"leaders": self.leaders} if self.leaders else {}
        details = {name: {"columns": one.columns, "rows": one.rows} for name, one in self.details.items()}
        rankings = {"systems": self.rankings.systems, "queries": self.rankings.queries}
        return first | evaluations | {"comparison": comparison, "details": details, "rankings": rankings}

    def _table(self, style: str) -> str:
        return self.evaluations._table(style)

    def in_format(self, ending: str, **page: Any) -> str:
        """Return the report as JSON (".json"), Markdown (".md"), or an HTML page with the settings `page`."""
        if ending == ".json":
            return json.dumps(self.to_dict(), ensure_ascii=False) + "\n"
        if ending == ".md":
            return self.to_markdown()
        return str(resolve("truerank.report.evidence:make_report")(self, **page))

    def to_markdown(self) -> str:
        """Return the report in Markdown: the summary, tables of values and comparisons, remarks, and folded details."""
        parts = [f"**{self.summary}**", self.evaluations._table("markdown")]
        if self.rank_sets:
            rows = [[name, ranks_shown(ranks)] for name, ranks in self.rank_sets.items()]
            parts += [styled_table(rows, ["system", "ranks"], "markdown", f"{RANKS}, by {self.first}, all pairs")]
        parts += [part for one in self.compared.values() for part in (finding(one), one.text("markdown"))]
        parts += [f"* {remark.worded(self.wording)}" for remark in self.remarks]
        for one in self.details.values():
            table = styled_table(one.rows, one.columns, "markdown") if one.rows else ""
            parts += [f"<details><summary>{one.title}</summary>", *filter(None, (table, one.note)), "</details>"]
        return "\n\n".join(parts) + "\n"
