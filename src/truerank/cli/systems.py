"""Make an `Experiment` of the systems that the arguments of a command name."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from os.path import abspath
from typing import TYPE_CHECKING, Any, NamedTuple

from truerank.cli import common, options
from truerank.core.names import repeated
from truerank.measures.conventions import DEFAULT_CONVENTION, QRELS_CONVENTION

if TYPE_CHECKING:
    from truerank.core.types import Convention, TrainingRule
    from truerank.data.provenance import Provenance
    from truerank.experiments.experiment import Experiment


class Named(NamedTuple):
    """Systems that a command names, by their input.

    `files` and `names` are of all systems: models, runs, scores. Without a given convention, `convention` is the
    default of the kind of judgements, as `about_convention` states.
    """

    models: list[str]
    runs: list[str]
    files: list[str]
    names: list[str]
    convention: Convention
    about_convention: str

    def baseline(self, given: str | None) -> str:
        """Return the name of the baseline, which is given by its name or its file; by default, the first system."""
        if given is None:
            return self.names[0]
        if (place := abspath(given)) in (places := [*map(abspath, self.files)]):
            return self.names[places.index(place)]
        if (name := common.printable(given)) in self.names:
            return name
        raise common.UsageError(
            f"--baseline {given!r} is not among the compared systems. Choose one of: {', '.join(self.names[:20])}"
        )


def training_rule(given: str | None) -> TrainingRule:
    """Return the rule for queries that trained a model, as Python calls it."""
    rule: Any = (given or "leave-out").replace("-", " ")
    return rule


def about_training(rule: str | None, models: Mapping[str, Any], data: Any, **more: Any) -> Provenance:
    """Return the queries of `data` on which no model (by file) was trained; see `settle_training`."""
    from truerank.data.provenance import settle_training

    return settle_training(models, data, training_rule(rule), **more)


def named_systems(args: options.Compared, least: int = 0) -> Named:
    """Return the systems of a command.

    A baseline that is a column of the data, or a file that was not named, becomes the last of them. Fewer than `least`
    systems are refused.
    """
    from truerank.io.trec import run_name, unlike_names

    named = [*args.systems, *args.named]
    if (args.data is None) == (args.qrels is None):
        if args.data is None and len(named) > 1:
            raise common.UsageError(f"no judgements are named. {_where_judged(named)}")
        raise common.UsageError(
            "give either --qrels FILE with runs, or --data FILE with models, --scores FILE … or --baseline COLUMN"
        )
    models, runs = (named, []) if args.qrels is None else ([], common.run_paths(named))
    if not models:
        why = "requires --data" if args.data is None else "applies only to models. Name a model"
        common.refuse_idle(args, ["training_queries"], why)
    files = [*models, *runs, *args.scores]
    places = [*map(abspath, files)]
    if twice := repeated(places):
        raise common.UsageError(f"{files[places.index(twice[0])]} is named twice. Name each system once")
    names = unlike_names(list(map(run_name, files)), files)
    column = args.baseline if args.data is not None or os.path.isfile(args.baseline or "") else None
    if column is not None and common.printable(column) not in names and abspath(column) not in places:
        files = [*files, column]
        names = unlike_names(list(map(run_name, files)), files)
    if len(files) < least:
        more = "another run" if args.data is None else "--baseline COLUMN, --scores FILE or another model"
        raise common.UsageError(f"a comparison requires at least two systems, got {len(files)}. Add {more}")
    convention: Convention = args.convention or (DEFAULT_CONVENTION if args.qrels is None else QRELS_CONVENTION)
    about = f" (the default for {'judged rows' if args.qrels is None else 'runs and qrels'})"
    return Named(models, runs, files, names, convention, "" if args.convention else about)


def _where_judged(named: Sequence[str]) -> str:
    """Return how to name the judgements, which may be among the systems."""
    from truerank.io.letor.grammar import NUMBER
    from truerank.io.streams import Source

    for name in filter(os.path.isfile, named):
        with Source(name) as stream:
            words = stream.peek().partition(b"\n")[0].split()
        if len(words) == 4 and NUMBER.fullmatch(words[3]):
            return f"{name} has the four columns of qrels. Write --qrels {name}"
    own = f"--data {named[-1]} if this is the file of judged rows"
    return f"For models, add --data FILE ({own}), for TREC runs --qrels FILE"


def experiment_of(
    args: options.Compared, named: Named, measures: Sequence[str], *, baseline: str | None = None
) -> Experiment:
    """Return the experiment on the systems, and print the remarks on what was read."""
    from truerank.experiments.experiment import Experiment
    from truerank.experiments.systems import ModelFile

    common.check_one_stdin([args.data, args.qrels, *named.files])
    models = list(map(common.load_ranker, named.models))
    systems = [*map(ModelFile, named.models, models), *named.files[len(models) :]]
    with common.cluster_of(args.cluster) as client:
        if args.data is None:
            judgements = common.judgements_of(args)
        elif client is None:
            judgements = common.place_of(args.data, args)
        else:
            judgements = common.read_partitions(args.data, args, client, *models)
        found = Experiment(
            judgements, dict(zip(named.names, systems)), " ".join(measures), baseline=baseline,
            convention=named.convention, topics=args.topics, training_queries=training_rule(args.training_queries),
            segments=args.segments, collapse=args.collapse,
        )  # fmt: skip
        common.tell_remarks(args, found.found)
    return found
