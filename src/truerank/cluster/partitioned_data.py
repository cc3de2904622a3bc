"""Describe judged rankings in partitions at the client, and call the workers that hold the rows."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from truerank.cluster.checkpoint import INSIDE, Checkpoint, name_of_fit
from truerank.cluster.clients import current_client
from truerank.cluster.crew import Crew
from truerank.cluster.partition import Partition, Source, given_rows, joined_rows, ordered_rows, rows_of_queries
from truerank.core.errors import InvalidInputError
from truerank.core.printing import note
from truerank.core.types import ArrayLike, Scorer
from truerank.data.grouping import offsets_of
from truerank.data.provenance import part_digests
from truerank.data.ranking_data import RankingData
from truerank.data.row_source import RowSource
from truerank.data.rows import Description, Merge, add, beside


class ClusterRankingData(RowSource):
    """Judged rankings in partitions of whole queries on workers; `read_parquet` and other functions return it.

    `fit`, `predict` and `rank` of rankers and `evaluate` accept it in place of a `RankingData`. The client holds one
    number per query and partition. `query_ids` (m,) are in the order of the partitions. `crew.bytes_sent` and
    `crew.bytes_received` count the traffic of the workers.

    Set `checkpoint` to a folder before `fit`. If the client is killed, the same fit to the same data resumes there and
    ends with the same bits. The file grows by some kilobytes per round and is deleted when the fit is done.
    """

    def __init__(
        self, sources: Sequence[Source], client: object = None, hold: bool = True, n_jobs: int | None = None
    ) -> None:
        if not sources:
            raise InvalidInputError("the data have no partitions. Pass at least one file or block")
        self.client, self.n_jobs, self.hold = current_client(client), n_jobs, hold
        self.checkpoint: str | os.PathLike[str] | None = None
        self.keeps_checkpoint = False  # of a fit inside another, which deletes it
        self.crew = Crew(self.client, sources, hold, n_jobs)
        shapes = self._shapes()
        self._check_kinds([shape.queries for shape in shapes])
        ordered = _ordered(sources, [shape.names for shape in shapes])
        whole = self._join(ordered, [shape.queries for shape in shapes])
        if whole != list(sources):
            self.crew = Crew(self.client, whole, hold, n_jobs)
            shapes = self._shapes()
        self._take(shapes)

    def _shapes(self) -> list[Description]:
        told = self.crew.round(_describe, merge=beside)
        self._digests = [] if self.hold else [digests for _, digests in told]  # else read once more for them
        return [shape for shape, _ in told]

    def statistics(self, function: Callable[..., Any], *state: Any, merge: Merge = add, keep: bool = False) -> Any:
        """Run one round of the crew; see `RowSource`."""
        if function is part_digests and self._digests:
            return self._digests
        return self.crew.round(function, *state, merge=merge, keep=keep)

    # `RowSource` documents these.

    def mark(self) -> int:
        return self.crew.mark()

    def rewind(self, mark: int) -> None:
        self.crew.rewind(mark)

    def note(self, function: Callable[..., Any], *state: Any) -> None:
        self.crew.note(function, *state)

    def remembered(self, what: str, work: Callable[[], Any]) -> Any:
        return self.crew.remembered(what, work)

    def retried(self, work: Callable[[], Any]) -> Any:
        return self.crew.retried(work)

    def together(self, program: Callable[..., Any], *arguments: Any) -> Any:
        return self.crew.together(program, *arguments)

    @contextmanager
    def fitting(self, ranker: Scorer, valid: RowSource | None) -> Iterator[None]:
        """Run a fit with a new journal; the fit resumes from the checkpoint if there is one."""
        crews = [one.crew for one in (self, valid) if isinstance(one, ClusterRankingData)]
        log = None if self.checkpoint is None else Checkpoint(self.checkpoint, name_of_fit(ranker, self, valid))
        done = False
        try:
            for crew in crews:
                crew.begin(log)
            yield
            done = True
        finally:
            for crew in crews:
                crew.end()
            if log is not None:
                log.close(done and not self.keeps_checkpoint)
        for crew in crews:
            crew.begin()

    @staticmethod
    def _check_kinds(queries: list[list[Any]]) -> None:
        """Raise an error if query ids are texts in one partition and numbers in another, which would not be joined."""
        first: dict[str, int] = {}
        for number, names in enumerate(queries):
            for name in names:
                first.setdefault("texts" if isinstance(name, str | bytes) else "numbers", number)
        if len(first) > 1:
            raise InvalidInputError(
                f"query ids are numbers in partition {first['numbers']} and texts in partition {first['texts']}, so "
                "that 7 and '7' would be two queries. Write all ids as numbers, or all as text",
                code="mixed-ids",
            )

    def _join(self, sources: list[Source], queries: list[list[Any]]) -> list[Source]:
        """Return sources with whole queries: a split query moves to the first partition that contains it."""
        home: dict[Any, int] = {}
        foreign: list[set[Any]] = [set() for _ in sources]
        more: list[dict[int, set[Any]]] = [{} for _ in sources]
        for i, names in enumerate(queries):
            for query in names:
                first = home.setdefault(query, i)
                if first != i:
                    foreign[i].add(query)
                    more[first].setdefault(i, set()).add(query)
        split = set().union(*foreign)
        if not split:
            return sources
        note(f"truerank: queries that were split over partitions are joined in their first partition: {len(split)}")
        joined = list(sources)
        for i in range(len(sources)):
            if foreign[i] or more[i]:
                others = [(sources[j], frozenset(names)) for j, names in more[i].items()]
                joined[i] = partial(joined_rows, sources[i], frozenset(foreign[i]), others)
        return joined

    @property
    def n_partitions(self) -> int:
        """Number of partitions."""
        return self.n_parts

    def inside(self, outer: RowSource, name: str) -> Self:
        """Return the data for an inner fit, with a separate folder in the checkpoint of `outer`."""
        inner = copy.copy(self)
        if isinstance(outer, ClusterRankingData) and outer.checkpoint is not None:
            inner.checkpoint, inner.keeps_checkpoint = Path(outer.checkpoint) / INSIDE / name, True
        return inner

    def take_queries(self, chosen: ArrayLike) -> Self:
        """Return the data of some queries (bool (m,), or their numbers), in the same partitions.

        The workers read their partitions again, and hold these rows in addition to the others.
        """
        index = np.asarray(chosen)
        wanted = np.zeros(self.n_queries, dtype=bool)
        wanted[index] = True
        starts = offsets_of(self.queries_by_part)
        sources: list[Source] = [
            partial(rows_of_queries, source, np.flatnonzero(wanted[a:b]))
            for source, a, b in zip(self.crew.sources, starts[:-1], starts[1:])
        ]
        return type(self)(sources, self.client, self.hold, self.n_jobs)

    def beside(self, rows: RankingData) -> Self:
        """Return rows in the memory of this process as data of one partition on the same cluster."""
        return type(self)([partial(given_rows, rows)], self.client, True, self.n_jobs)


def _ordered(sources: Sequence[Source], names: list[list[str] | None]) -> list[Source]:
    """Return sources with columns in the order of the first source; raise if a source has other columns."""
    first = names[0] or []
    ordered = list(sources)
    for number, own in enumerate(names):
        if other := sorted({*first} ^ {*(own or ())}):
            raise InvalidInputError(
                f"partition {number} and partition 0 have different columns. Only one of them has "
                f"{', '.join(map(repr, other[:5]))}. Name the columns of all partitions: features=[...]",
                code="different-columns",
            )
        if own and own != first:
            ordered[number] = partial(ordered_rows, sources[number], first)
    return ordered


# Statistics of a partition.


def _describe(partition: Partition) -> list[tuple[Description, Any]]:
    data = partition.data
    return [(Description.of(data), None if partition.hold else part_digests(partition)[0])]
