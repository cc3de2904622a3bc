"""`truerank cross-validate`: train, select and test over folds of queries."""

from __future__ import annotations

import argparse
import itertools
import re
from pathlib import Path
from typing import Any

import truerank
from truerank.cli import common, options, ranker_options
from truerank.cli.next_command import next_command
from truerank.cli.parser import OutputFile, OutputFolder, argument, option, positive, refuse, within
from truerank.cli.reproduce import record
from truerank.core.files import one_step

_LOOKED_AT = 200  # queries, for the best column
_AGREES = 0.95  # share of neighbours in the order of ranks whose scores are in that order, if these made the ranks


def _seeds(text: str) -> list[int]:
    """Return the seeds of a text such as "0-9" or "0,1,5"."""
    if not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", text):
        raise argparse.ArgumentTypeError(f"must be numbers such as 0-9 or 0,1,5, got {text!r}")
    ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
    return [seed for part in ends for seed in range(part[0], part[-1] + 1)]


class Arguments(options.Learning, options.Folds, options.Clustered, options.Record, options.Json):
    folds: str = argument(
        "a folder with Fold*/{train,vali,test}.txt, a folder with five parts S1.txt … S5.txt (test S_k, validation "
        "S_k-1, train on the other three), or one file that is split by query",
        "FOLDS",
    )
    against: list[str] = option(
        "rankers with default parameters, to compare with --ranker over the same folds", "NAME …"
    )
    compared = within("", to="against", why="compares rankers: give --against NAME")
    about: str | None = compared(
        "with --against: test the fitted rankers over queries, or the learners over folds (default: rankers)",
        choices=("rankers", "learners"),
    )
    repeats: int | None = compared("with --against: random divisions into folds (default: 1)", "N", type=positive)
    seeds: list[int] | None = option(
        "train with each of these seeds (0-9, or 0,1,5) on the folds of one file", "SEEDS", type=_seeds
    )
    state: str | None = option(
        "with --seeds: file of finished fits, with which a killed run resumes", "FILE", to="seeds"
    )
    curve: bool = option("learning curve: train on more and more queries of one file, and test on its first fold")
    grid: list[str] = option("values to choose from by the validation queries of each fold", "key=v1,v2,… …")
    select: str | None = option("measure that chooses among --grid (default: AP)", "MEASURE")
    measures: list[str] = option("measures to report", "NAME …", default=["nDCG@10 nDCG@5 AP"])
    scores: str | None = option(
        "output file of the scores of the test queries (for a folder of folds, an output folder)",
        "OUT",
        writes=lambda args: OutputFile if Path(args.folds).is_file() else OutputFolder,
    )
    convention: options.Convention = options.convention("ranklib")
    RULES = (
        refuse("grid select scores cluster position categorical", "against"),
        refuse("grid select scores cluster position", "curve"),
        refuse("grid select scores cluster position categorical curve", "seeds"),
        refuse("position scores prepare", "cluster"),
        refuse("scores state cluster", "record"),
    )


def run(args: Arguments) -> int:
    """Print a row for each fold, a comparison of rankers, or a learning curve."""
    settings = ranker_options.settings_of(args.ranker, args.set)
    place = Path(args.folds)
    if args.curve and not place.is_file():
        raise common.UsageError(
            f"--curve divides the queries of one file, and {args.folds} is a folder or pattern. "
            "Name one file, or leave --curve out"
        )
    if args.curve:
        return _curve(args, settings)
    names = [args.ranker, *args.against]
    if len({(own, *settings) for own, settings in map(ranker_options.ranker_named, names)}) < len(names):
        raise common.UsageError(f"a ranker is named twice in {', '.join(names)}. Name each ranker once")
    refuse_folds_of_folder(args)
    grid = _grid(args.grid)
    seed = _seed(args, args.ranker)
    candidates = [
        ranker_options.make_ranker(args.ranker, settings | dict(zip(grid, one)), None if number else seed, args.prepare)
        for number, one in enumerate(itertools.product(*grid.values()))
    ]
    if len(candidates) == 1:
        common.refuse_idle(args, ["select"], "chooses among several settings. Add --grid key=v1,v2")
    others = {name: ranker_options.make_ranker(name, {}, _seed(args, name), args.prepare) for name in args.against}
    inner = "ranker__" if args.prepare else ""
    with common.cluster_of(args.cluster) as client:
        data = common.read_graded(args.folds, args, client=client)
        folds = getattr(data, "folds", args.cv)
        if args.position is not None:
            data = common.with_position(data, args.position, candidates)
        if args.categorical:
            common.set_categorical(candidates[0], data, args)
        found: Any = truerank.cross_validate(
            {args.ranker: candidates[0]} | others, data, " ".join(args.measures), cv=folds, repeats=args.repeats or 1,
            grid={args.ranker: {inner + key: values for key, values in grid.items()}}, select=args.select or "AP",
            convention=args.convention, random_state=args.seed or 0, **common.given(args, "seeds", "state"),
        )  # fmt: skip
    if not args.seeds:
        chosen = [{key.removeprefix(inner): one[key] for key in one} for one in found.settings[args.ranker]]
        found.settings[args.ranker][:] = chosen
    if args.scores is not None:
        _write_scores(args, args.scores, data, found.scores[args.ranker])
    if args.seeds:
        common.note(f"{found.fits} fits, {found.cpu_seconds:.1f} CPU seconds")
    report, text = found.to_dict(), str(found)
    if args.against:
        about = "learners" if args.about == "learners" else "seeds" if args.seeds else "rankers"
        test = found.compare(about=about, baseline=args.ranker)
        report |= {"about": test.about, "comparison": test.to_dict()}
        text = f"{text}\n{common.size_of(data)}\n\n{test}"
    record(args, report)
    common.show(args, report, text)
    if not (args.against or args.seeds):
        _next(args, data)
    return 0


def _seed(args: Arguments, name: str) -> int | None:
    """Return the seed of a ranker. The seed draws the folds of a file too, so a ranker may do without it there."""
    idle = Path(args.folds).is_dir() and name == args.ranker and not args.seeds
    draws = "random_state" in ranker_options.make_ranker(name, {}).get_params()
    return args.seed if idle or (draws and not args.seeds) else None


def _write_scores(args: Arguments, target: str, data: Any, scores: Any) -> None:
    """Write the scores of the tested rows: of a file in its order, of a folder in a file for each fold."""
    from truerank.io.scores import by_fold

    if not Path(args.folds).is_dir():
        common.write_scores(target, scores)
        return
    Path(target).mkdir(parents=True, exist_ok=True)
    with one_step():
        for path, rows in by_fold(target, data).items():
            args.outputs.add(path)
            common.write_scores(path, scores[rows])


def _next(args: Arguments, data: Any) -> None:
    """Print the command that compares the scores with the best column, or the ranker with another one."""
    best = None
    if args.scores is not None:
        common.note(f"wrote {args.scores}: scores of the test queries, in the order of the rows")
        best = _best_column(data) if Path(args.folds).is_file() else None
    other = "list-net" if args.ranker == "single-feature" else "single-feature"
    if best is not None:
        next_command(
            args,
            "compare",
            data=args.folds,
            scores=[args.scores],
            baseline=best,
            seed=0,
            record=None,
            convention=None if args.convention == "ranklib" else args.convention,
        )  # the default for rows
    elif not args.categorical:  # --against refuses it
        next_command(args, "cross-validate", against=other, scores=None, record=None, state=None)


def _best_column(data: Any) -> str | None:
    """Return the column without missing values that ranks the first queries best, with its order if 1 is the best.

    Today's ranking comes first: columns that are named as scores, or that agree with a column of ranks.
    """
    import numpy as np

    from truerank.data.columns import names_of, take_columns
    from truerank.io.judgements.roles import role_like

    names, texts, dense = names_of(data), data.category_names or {}, isinstance(data.X, np.ndarray)
    own = [k for k, name in enumerate(names) if dense and name not in texts and not np.isnan(data.X[:, k]).any()]
    if not own:
        return None
    own = [k for k in own if role_like(names[k]) == "score"] or _as_ranked(data, own) or own
    found = truerank.SingleFeature().fit(take_columns(data.take_queries(range(min(_LOOKED_AT, data.n_queries))), own))
    return names[own[found.feature_]] + ("" if found.sign_ > 0 else ":ascending")


def _as_ranked(data: Any, columns: list[int]) -> list[int]:
    """Return the columns that order every query as a column of ranks does, or if there are none, the ranks."""
    import numpy as np

    from truerank.data.rank_columns import are_ranks

    ranks = [k for k in columns if are_ranks(data.X[:, k], data.offsets, len(columns))]
    alike = []
    for rank in ranks:
        order = np.lexsort((data.X[:, rank], data.query_index))
        within = np.diff(data.query_index) == 0
        alike += [k for k in columns if k not in ranks and (np.diff(data.X[order, k])[within] <= 0).mean() > _AGREES]
    return alike or ranks


def _curve(args: Arguments, settings: dict[str, Any]) -> int:
    """Print the learning curve of a ranker, measured on the first fold."""
    from truerank.data.splits import folds_of

    ranker = ranker_options.make_ranker(args.ranker, settings, args.seed, args.prepare)
    data = common.read_graded(args.folds, args)
    if args.categorical:
        common.set_categorical(ranker, data, args)
    first = folds_of(data, args.cv, random_state=args.seed)[0]
    found = truerank.learning_curve(
        ranker, data.take_queries(first.train), data.take_queries(first.test), measure=args.measures[0].split()[0],
        convention=args.convention, random_state=args.seed or 0,
    )  # fmt: skip
    report = found.to_dict()
    record(args, report)
    return common.show(args, report, str(found))


def _grid(pairs: list[str]) -> dict[str, list[Any]]:
    """Return the values of `--grid` by setting."""
    lists: dict[str, list[Any]] = {}
    for key, text in ranker_options.key_values("--grid", "key=v1,v2,…", pairs).items():
        values = ranker_options.listed(text)
        if values is None:
            raise common.UsageError(f"--grid {key} must be a list, such as {key}=1,10, got {text!r}")
        lists[key] = values
    return lists


def refuse_folds_of_folder(args: options.Folds) -> None:
    """Refuse a number of folds for a folder, which has folds of its own."""
    if Path(args.folds).is_dir():
        common.refuse_idle(args, ["cv"], f"divides one file into folds, and {args.folds} is a folder of folds")
