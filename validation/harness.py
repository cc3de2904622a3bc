"""What the modules of `validation/` share: rows with Monte Carlo errors, real differences, stored results.

A module states one promise and measures it:

    PROMISE = "The 95 % interval of a mean difference covers the true difference."

    def run(replications: int, seed: int) -> list[Row]: ...

`python -m validation NAME` calls `run`, prints the rows and writes `validation/results/NAME.json`;
`python -m validation page` makes the pages and the table of all stored results. A row with fewer than `FEWEST`
replications is observed: it has no result.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

RESULTS = Path(__file__).parent / "results"
POWER = 1_000  # replications of a row of power
FEWEST = 5_300  # two Monte Carlo errors of a rate of .05 are then .006


class Row(NamedTuple):
    """One measured quantity.

    Attributes
    ----------
    setting : str
        The data that were simulated or resampled.
    quantity : str
        For example "family-wise error" or "coverage".
    value : float
    error : float
        Monte Carlo standard error of `value`.
    replications : int
    low, high : float or None
        The bar: `low <= value` and `value <= high` up to two Monte Carlo errors; None for a row without a bar.
    fewest : int, default FEWEST
        With fewer replications no bar is met.
    """

    setting: str
    quantity: str
    value: float
    error: float
    replications: int
    low: float | None = None
    high: float | None = None
    fewest: int = FEWEST

    @property
    def met(self) -> bool | None:
        """Whether the bar is met; None without a bar, and with too few replications."""
        return None if self.excess is None or self.replications < self.fewest else not self.outside

    @property
    def excess(self) -> float | None:
        """How far the value is beyond its bar; negative within it, None without a bar."""
        ends = [self.value - self.high] if self.high is not None else []
        ends += [self.low - self.value] if self.low is not None else []
        return max(ends, default=None)

    @property
    def outside(self) -> bool:
        """Whether the value is beyond its bar by more than two Monte Carlo errors."""
        return self.excess is not None and self.excess > 2 * self.error

    @property
    def bar(self) -> str:
        """The bar in words."""
        texts = [] if self.low is None else [f"at least {self.low:g}"]
        return " and ".join(texts + ([] if self.high is None else [f"at most {self.high:g}"]))


def rate(setting: str, quantity: str, events: Any, *, low: float | None = None, high: float | None = None) -> Row:
    """A row of the share of true values in `events` (replications,), with its binomial standard error."""
    found = np.asarray(events, dtype=np.float64)
    share = float(found.mean())
    n = len(found)
    return Row(setting, quantity, share, math.sqrt(max(share * (1 - share), 1 / n) / n), n, low, high)


def never(setting: str, quantity: str, events: Any, replications: int) -> Row:
    """A row whose bar is no event at all in `events`; a single one breaks it, whatever the Monte Carlo error."""
    return Row(setting, quantity, float(np.mean(events)), 0.0, replications, high=0.0)


def average(setting: str, quantity: str, values: Any, *, low: float | None = None, high: float | None = None) -> Row:
    """A row of the mean of `values` (replications,) with its standard error."""
    found = np.asarray(values, dtype=np.float64)
    error = float(found.std(ddof=1)) / math.sqrt(len(found)) if len(found) > 1 else math.inf
    return Row(setting, quantity, float(found.mean()), error, len(found), low, high)


def streams(seed: int, replications: int) -> Iterator[np.random.Generator]:
    """One independent generator for each replication, the same for any number of them."""
    for child in np.random.SeedSequence(seed).spawn(replications):
        yield np.random.default_rng(child)


def collections() -> Path | None:
    """The folder of real collections that `TRUERANK_DATA` names; None where there is none."""
    folder = Path(os.environ.get("TRUERANK_DATA", ""))
    return folder if (folder / "letor4-mq2008").is_dir() else None


def write(name: str, promise: str, rows: Sequence[Row], seed: int) -> Path:
    """Store the rows of a module as `validation/results/NAME.json`."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    document = {"name": name, "promise": promise, "seed": seed, "rows": [row._asdict() for row in rows]}
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def read(path: Path) -> tuple[dict[str, Any], list[Row]]:
    """A stored document and its rows."""
    document = json.loads(path.read_text(encoding="utf-8"))
    rows = [Row(**row) for row in document["rows"]]
    return document, [row._replace(fewest=POWER if row.fewest == POWER else FEWEST) for row in rows]


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    lines = [
        "| setting | quantity | value | ± | replications | bar | met |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        parts = [f"at least {row.low:.3g}"] if row.low is not None else []
        parts += [f"at most {row.high:.3g}"] if row.high is not None else []
        met = {True: "yes", False: "**no**", None: ""}[row.met]
        lines.append(
            f"| {row.setting} | {row.quantity} | {row.value:.3f} | {row.error:.3f} | {row.replications:,} | "
            f"{', '.join(parts)} | {met} |"
        )
    return "\n".join(lines)


TEN = (
    "CWI0000",
    "Sab9web1",
    "apl9all",
    "att0010gb",
    "dcu00ca",
    "hum9te",
    "iit00t",
    "jscbt9wls1",
    "pir0Wt1",
    "tnout9t2",
)


@lru_cache(maxsize=2)
def trec9(every: bool = False) -> np.ndarray | None:
    """AP (50 topics, runs) of ten runs of TREC-9's web track, one a group, or of every run; None without the data."""
    folder = collections()
    if folder is None:
        return None
    from truerank.io.streams import files_of
    from truerank.io.trec import judge_run, read_qrels, read_run
    from truerank.measures import AP

    runs = folder / "trec9-web-runs"
    qrels = read_qrels(runs / "qrels.451-500.txt.xz")
    chosen = [path for path in files_of(runs / "runs") if every or path.name.split(".")[0] in TEN]
    measure = AP(convention="trec", missing_topics="zero")
    return np.array([measure.per_query(*judge_run(qrels, read_run(path))) for path in chosen]).T


@lru_cache(maxsize=1)
def mq2008() -> np.ndarray | None:
    """nDCG@10 (784 queries, 10) of ten single features of MQ2008, every fifth; None without the data."""
    folder = collections()
    if folder is None:
        return None
    from truerank.io.letor.read import read_letor
    from truerank.measures import parse_measure

    measure = parse_measure("nDCG@10", "ranklib")
    parts = [read_letor(folder / "letor4-mq2008" / f"S{k}.txt.gz") for k in range(1, 6)]
    values = [
        [
            measure.per_query(part.judgements(), part.grouped(np.asarray(part.X[:, column])))
            for column in range(0, 46, 5)
        ]
        for part in parts
    ]
    return np.concatenate([np.array(one).T for one in values])


def centred_differences(values: np.ndarray) -> np.ndarray:
    """Differences (topics, pairs) of all pairs of systems in `values` (topics, systems), each less its mean."""
    first, second = np.triu_indices(values.shape[1], 1)
    found = values[:, first] - values[:, second]
    return found - found.mean(axis=0)
