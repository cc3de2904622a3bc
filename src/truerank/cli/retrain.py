"""`truerank retrain`: train the model in production again, and replace it if a test shows a gain.

The model is trained on newer queries, and both models are compared on held-out queries by a paired test. The exit code
is 0 if the model was replaced, and 3 if it was kept. After any other exit code, an error, the model is kept.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import truerank
from truerank.cli import common, options, ranker_options
from truerank.cli.parser import OutputFile, Replaced, argument, option, refuse
from truerank.cli.systems import training_rule
from truerank.core.files import atomic_write, identity, one_step
from truerank.core.locks import locked

KEPT = 3
"""Exit code if the model in production is kept; 0 if it was replaced."""


class Arguments(options.Known, options.Training, options.Test, options.Position, options.Json):
    production: Replaced = argument("the model in production, which `truerank train` wrote", "MODEL")
    data: list[str] = argument("newer judged rankings: LETOR files, or tables", "DATA …")
    held_out: str | None = option(
        "judged queries that trained neither model (default: a share of the newer queries)", "FILE"
    )
    share: float | None = option("share of the newer queries to hold out, in place of --held-out (default: 0.3)", "S")
    valid: str | None = option("validation queries, for early stopping", "FILE")
    how: str = option(
        "continue: add trees, or start from the model's weights; refit: train again; auto: continue if possible",
        choices=("auto", "continue", "refit"),
        default="auto",
    )
    more: int | None = option("number of trees to add (default: 20)", "N")
    set: list[str] = option("parameters to change", "key=value …")
    measure: str | None = option("measure to compare (default: the model's measure)", "NAME")
    level: float = option("significance level: the p-value must be lower", "P", default=0.05)
    margin: float = option(
        "also promote a model that is not worse by more than M (default: 0, require a gain)", "M", default=0.0
    )
    model: OutputFile | None = option("output file of a better model (default: replace MODEL)", "FILE")
    previous: OutputFile | None = option("output file that keeps the replaced model", "FILE")
    history: OutputFile | None = option("history of the uses of held-out queries (default: MODEL.history.json)", "FILE")
    candidate: OutputFile | None = option("output file of the new model in any case", "FILE")
    seed: int = option("seed of the split and the test", "N", default=0)
    convention: options.Convention | None = options.convention()
    RULES = (
        refuse("share", "held_out", "and --held-out both choose the held-out queries. Give one of them"),
        refuse("more", "how=refit", "has no effect with --how refit, which trains all trees again"),
    )


def run(args: Arguments) -> int:
    """Train, compare, and replace or keep the model, under a lock of the history and the model."""
    compared = Path(args.production).read_bytes()
    target = args.model or _default("--model", args.production)
    state = args.history or _default("--history", f"{args.production}.history.json")
    args.outputs.add(_reference(target))
    if args.history is None:
        args.outputs.add(state)
    if identity(target) != identity(args.production) or args.model is None:
        args.outputs.add(args.production, "MODEL")
    with ExitStack() as locks:
        for path in (state, target):
            locks.enter_context(locked(path))
        return _run(args, state, target, compared)


def _default(option: str, path: str) -> str:
    """Return the default file of an option; if the file cannot be written, an error names the option."""
    try:
        OutputFile(path).check(option)
    except common.InvalidInputError as error:
        raise common.InvalidInputError(f"{error}. Name another file with {option} FILE") from error
    return path


def _run(args: Arguments, state: str, target: str, compared: bytes) -> int:
    from truerank.inspection.retraining import digest
    from truerank.models.model_file import model_text
    from truerank.significance.history import History

    if args.margin > 0 and args.model is not None and args.history is None:
        raise common.UsageError(
            "--margin with --model requires the history of all models, so that losses within the margin do not add up "
            "from model to model. Add --history FILE"
        )
    production = common.load_ranker(args.production)
    history, own_digest = History.read(state), digest(compared)
    earlier = history.references.get(own_digest)
    reference = _load_reference(earlier) if args.margin > 0 and earlier is not None else None
    data = _read(args, production)
    others = args.but(position=None)  # of queries to learn from alone
    held_out = None if args.held_out is None else common.read_graded(args.held_out, others, production)
    valid = None if args.valid is None else common.read_graded(args.valid, others, production)
    both = 0 if held_out is None else len({*map(str, data.query_ids)} & {*map(str, held_out.query_ids)})
    if both:
        common.note(
            f"truerank: warning: {common.counted(both, 'query')} of {args.held_out} also occur in the newer data. If "
            "these are the same judgements, the comparison favours the new model"
        )
    found = truerank.retrain(
        production,
        data,
        held_out,
        valid=valid,
        params=ranker_options.parse_settings(args.set),
        reference=reference,
        history=history,
        random_state=args.seed,
        training_queries=training_rule(args.training_queries),
        **common.given(args, "how", "measure", "convention", "test", "level", "margin", "share", "more"),
    )
    common.remember_reading(found.candidate, args, production)
    new = model_text(found.candidate).encode() if found.promoted or args.candidate is not None else b""
    changed = found.promoted and Path(args.production).read_bytes() != compared
    shown_better = found.decision.verdict == "better" and (earlier is None or reference is not None)
    written: dict[str, bytes] = {} if args.candidate is None else {args.candidate: new}
    if found.promoted and not changed:
        if not shown_better and earlier is None:
            earlier = {"digest": own_digest, "path": os.path.abspath(_reference(target))}
            written[earlier["path"]] = compared
        if earlier is not None and not shown_better:
            history.references[digest(new)] = earlier
        written |= {target: new} if args.previous is None else {args.previous: compared, target: new}
    with one_step():  # the history is replaced first: a kill in between loses no reference
        history.write(state)
        for path, content in written.items():
            with atomic_write(path, "wb") as stream:  # follows a link and keeps permissions
                stream.write(content)
    if changed:
        raise common.InvalidInputError(
            f"{args.production} has changed since it was read, and the new model was compared with the old content. "
            "Nothing was replaced. Run the command again"
        )
    _report(args, found, target, both)
    return 0 if found.promoted else KEPT


def _read(args: Arguments, production: Any) -> truerank.RankingData:
    """Return the rows for training; print a warning about unseen categories."""
    from truerank.data.columns import names_of
    from truerank.io.tables import UNSEEN

    files = [os.path.realpath(path) for path in args.data]
    twice = [path for place, path in enumerate(args.data) if files[place] in files[:place]]
    if twice:
        raise common.UsageError(f"{twice[0]} is named twice, and its queries would count twice. Name it once")
    parts = [common.read_graded(path, args, production) for path in args.data]
    if args.position is not None:
        parts = [common.with_position(part, args.position, [production]) for part in parts]
    data = parts[0] if len(parts) == 1 else truerank.RankingData.concatenate(parts)
    for name in data.category_names or {}:
        unseen = int((data.X[:, names_of(data).index(name)] == UNSEEN).sum())
        if unseen:
            common.note(
                f"truerank: warning: column {name!r} has a category that {args.production} does not know in "
                f"{common.counted(unseen, 'row')}. Such a category counts as unseen. Use `truerank train` to add it"
            )
    return data


def _load_reference(earlier: dict[str, str]) -> Any:
    """Return the last model that was promoted as better; raise if its file has changed."""
    from truerank.inspection.retraining import digest

    path = Path(earlier["path"])
    if not path.exists() or digest(path.read_bytes()) != earlier["digest"]:
        raise common.InvalidInputError(
            f"--margin compares with the last model that was promoted as better, but {path} no longer contains this "
            "model. Put it back, or leave --margin out"
        )
    return common.load_ranker(str(path))


def _reference(target: str) -> str:
    return f"{target}.reference.json"


def _report(args: Arguments, found: Any, target: str, both: int) -> None:
    from truerank.significance.comparison_text import caption, remarks_below

    comparison = found.comparison
    report = found.to_dict() | {
        "level": args.level,
        "margin": args.margin,
        "model": target if found.promoted else args.production,
        "previous": args.previous if found.promoted else None,
        "candidate": args.candidate,
    }
    report["queries"]["in_both"] = both
    compared = {comparison.measure: comparison}
    lines = [str(found.training), comparison._table("text"), caption(compared), *remarks_below(compared)]
    kept = f"{target} is the new model" if found.promoted else f"{args.production} stays"
    before = f"; the one before is in {args.previous}" if found.promoted and args.previous else ""
    lines += [
        f"{found.how} on {common.counted(found.n_train, 'query')}, compared on {found.n_held_out} held-out ones; "
        f"{found.reason}",
        f"{report['decision']}: {kept}{before}",
    ]
    common.show(args, report, "\n".join(lines))
