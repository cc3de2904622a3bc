"""Pool bias: the loss of each group's runs if the group had not contributed to the pool of judged documents."""

from __future__ import annotations

import csv
import io
import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.core.files import read_text
from truerank.core.printing import counted, styled_table
from truerank.core.results import Result, data_frame
from truerank.core.types import MeasureLike, PathLike
from truerank.io.trec import Run, as_qrels, judge_run
from truerank.judging.sums import in_ranked_order
from truerank.measures.base import Measure
from truerank.measures.evaluation import runs_by_name
from truerank.measures.names import parse_measures
from truerank.significance.intervals import Interval, mean_interval


class RunLoss(NamedTuple):
    """The values of a run with all judgements, and without the judgements that only its group contributed."""

    run: str
    group: str
    value: float
    reduced: float
    loss: Interval  # value - reduced, with Student's interval over topics
    rank: int  # among all runs, which keep their values
    reduced_rank: int


class GroupLoss(NamedTuple):
    """The judgements that only one group contributed, and the loss of its runs without them."""

    group: str
    unique: int  # judged documents that only the group's runs rank to the depth
    relevant: int  # of them
    runs: list[RunLoss]

    @property
    def worst(self) -> RunLoss:
        """The run with the largest loss."""
        return max(self.runs, key=lambda one: one.loss.estimate)


@dataclass(repr=False, eq=False)
class PoolBias(Result):
    """The result of `pool_bias`, with the largest loss of a group first."""

    measure: str
    convention: str
    depth: int
    topics: int
    groups: list[GroupLoss] = field(repr=False)

    KIND: ClassVar[str] = "pool-bias"

    @property
    def summary(self) -> str:
        """A sentence on the largest loss, which approximately bounds the loss of runs outside the pool."""
        worst = self.groups[0].worst
        if worst.loss.estimate <= 0:
            return "No run loses without the documents that only its group contributed."
        share = f" ({100 * worst.loss.estimate / worst.value:.2g} % of {worst.value:.4f})" if worst.value else ""
        return (
            f"Without the documents that only its group contributed, {worst.run} of {worst.group} loses most: "
            f"{worst.loss.estimate:.4f}{share}, rank {worst.rank} to {worst.reduced_rank}."
        )

    def _figures(self) -> dict[str, Any]:
        groups = [
            one._asdict() | {"runs": [run._asdict() | {"loss": run.loss._asdict()} for run in one.runs]}
            for one in self.groups
        ]
        about = {"measure": self.measure, "convention": self.convention, "depth": self.depth, "topics": self.topics}
        return about | {"groups": groups}

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each run."""
        return data_frame([
            run._asdict() | {"loss": run.loss.estimate, "low": run.loss.low, "high": run.loss.high,
                             "unique": one.unique, "relevant": one.relevant}
            for one in self.groups for run in one.runs
        ])  # fmt: skip

    def _table(self, style: str) -> str:
        header = ["group", "runs", "only here", "relevant", "mean loss", "largest", "95%", "run", "rank", "without"]
        rows = []
        for one in self.groups:
            worst, mean = one.worst, float(np.mean([run.loss.estimate for run in one.runs]))
            ends = "" if np.isnan(worst.loss.low) else f"[{worst.loss.low:.4f}, {worst.loss.high:.4f}]"
            counts = [len(one.runs), one.unique, one.relevant]
            row = [mean, worst.loss.estimate, ends, worst.run, worst.rank, worst.reduced_rank]
            rows.append([one.group, *counts, *row])
        caption = (
            f"{self.measure}, convention {self.convention}, {counted(self.topics, 'topic')}. Each group is evaluated "
            f"without the judged documents that only its own runs rank among the first {self.depth} (`only here`); "
            f"`largest`: the largest loss of a run, with its ranks among all runs, and its interval without a "
            f"correction for the selection"
        )
        return styled_table(rows, header, style, caption)


def pool_bias(
    qrels: object, runs: object, groups: Mapping[str, str] | PathLike, measure: MeasureLike = "AP", *,
    depth: int = 100, convention: str = "trec",
) -> PoolBias:  # fmt: skip
    """Return the loss of each group's runs without the judgements that only the group contributed.

    If a group had not taken part, its own documents would not have been judged. The loss shows how reliable the
    judgements are for systems that did not contribute to the pool.

    Parameters
    ----------
    qrels : qrels
    runs : dict or list of runs
        The runs that contributed to the pool, from at least two groups. A topic that a run lacks counts 0.
    groups : dict of run to group, or path
        A CSV file has the columns run and group.
    measure, convention
        A mean over topics, by default AP with the convention "trec".
    depth : int, default 100
        Depth of the pool: a document is unique to a group if no run of another group ranks it within this depth. Only
        the given runs are known: if a document of a missing run counts as unique, losses are too large.

    Raises
    ------
    InvalidInputError, DataFileError
        For a run without a group, fewer than two groups, or a file without the columns.

    References
    ----------
    Zobel: How reliable are the results of large-scale information retrieval experiments? SIGIR 1998. Buckley, Dimmick,
    Soboroff, Voorhees: Bias and the limits of pooling for large collections. Information Retrieval 10 (2007), 491-508.

    Examples
    --------
    >>> qrels = {"1": {"x": 1, "y": 1}}
    >>> runs = {"a": {"1": {"x": 2.0, "z": 1.0}}, "b": {"1": {"y": 2.0, "z": 1.0}}}
    >>> found = pool_bias(qrels, runs, {"a": "A", "b": "B"})
    >>> [(one.group, one.relevant, one.worst.value, one.worst.reduced) for one in found.groups]
    [('A', 1, 0.5, 0.0), ('B', 1, 0.5, 0.0)]
    """
    ((label, by),) = parse_measures(measure, convention).items()
    by = by.check_mean()(missing_topics="zero")
    depth = check_positive_int(depth, "depth")
    named = runs_by_name(runs) or {}
    group_of = _groups(groups, named)
    known, found = as_qrels(qrels), defaultdict[tuple[str, str], set[str]](set)
    for name, run in named.items():
        for key in _first(run, by, depth):
            found[key].add(group_of[name])
    grades = known.by_topic(known.grades)
    values = {name: _values(known, run, by) for name, run in named.items()}
    means = {name: float(own.mean()) for name, own in values.items()}
    sign = 1.0 if by.higher_is_better else -1.0

    def rank(mean: float, name: str) -> int:
        return 1 + sum(sign * other > sign * mean for own, other in means.items() if own != name)

    made = []
    for group in sorted(set(group_of.values())):
        unique = {(t, d) for (t, d), own in found.items() if own == {group} and d in grades.get(t, {})}
        left = {topic: {d: g for d, g in own.items() if (topic, d) not in unique} for topic, own in grades.items()}
        without = as_qrels(left)
        losses = []
        for name in [name for name in named if group_of[name] == group]:
            reduced = _values(without, named[name], by, known.query_ids.tolist())
            loss = Interval(*mean_interval(sign * (values[name] - reduced)))
            mean = float(reduced.mean())
            losses.append(RunLoss(name, group, means[name], mean, loss, rank(means[name], name), rank(mean, name)))
        relevant = sum(grades[t][d] >= by.rel for t, d in unique)
        made.append(GroupLoss(group, len(unique), relevant, losses))
    made.sort(key=lambda one: -one.worst.loss.estimate)
    return PoolBias(label, by.convention, depth, known.n_queries, made)


def _first(run: Run, by: Measure, depth: int) -> list[tuple[str, str]]:
    """Return pairs of topic and document for the first documents of each topic."""
    order = in_ranked_order(run, by)
    ends = zip(run.query_ids.tolist(), run.offsets[:-1].tolist(), run.offsets[1:].tolist())
    return [(topic, document) for topic, start, stop in ends
            for document in run.doc_ids[order[start : min(stop, start + depth)]].tolist()]  # fmt: skip


def _values(qrels: Any, run: Run, by: Measure, topics: list[Any] | None = None) -> np.ndarray:
    """Return values of the topics of the qrels, or of `topics`, where a topic without judgements has 0."""
    found = np.nan_to_num(by.per_query(*judge_run(qrels, run)))
    if topics is None:
        return found
    own = dict(zip(qrels.query_ids.tolist(), found.tolist()))
    return np.array([own.get(topic, 0.0) for topic in topics])


def _groups(groups: Mapping[str, str] | PathLike, runs: Mapping[str, Run]) -> dict[str, str]:
    """Return the group of each run."""
    if not isinstance(groups, Mapping):
        name = os.fspath(groups)
        rows = list(csv.DictReader(io.StringIO(read_text(name))))
        if not rows or not {"run", "group"} <= set(rows[0]):
            shown = ", ".join(map(str, rows[0])) if rows else "no rows"
            raise DataFileError(
                f"expected a CSV file with the columns run and group, got {shown}", name, 1, code="columns"
            )
        groups = {row["run"]: row["group"] for row in rows}
    lacking = [name for name in runs if name not in groups]
    if lacking:
        raise InvalidInputError(
            f"{counted(len(lacking), 'run')} without a group, such as {lacking[0]!r}. Name the group of each run",
            argument="groups",
        )
    found = {name: str(groups[name]) for name in runs}
    if len(set(found.values())) < 2:
        raise InvalidInputError(
            f"the runs have {counted(len(set(found.values())), 'group')}, but two are required. Add another group",
            argument="groups",
        )
    return found
