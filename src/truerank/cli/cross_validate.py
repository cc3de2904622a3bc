"""`truerank cross-validate`: train, select and test over folds of queries."""

from __future__ import annotations

import argparse
import itertools
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import truerank
from truerank.cli import common, options, ranker_options
from truerank.cli.next_command import next_command
from truerank.cli.parser import OutputFile, OutputFolder, argument, option, positive, refuse, within
from truerank.cli.reproduce import record
from truerank.core.files import one_step


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
    measures: str = option("measures to report, separated by blanks", "NAMES", default="AP nDCG@5 nDCG@10")
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
    """Print a row for each fold: settings chosen on validation queries, and measures on test queries."""
    import numpy as np

    from truerank.measures import parse_measure

    names = args.measures.split()
    measures = {name: parse_measure(name, convention=args.convention) for name in names}
    tie_averaged = {name: measure.tie_averaged() for name, measure in measures.items()}
    settings = ranker_options.parse_settings(args.set)
    place = Path(args.folds)
    if args.against or args.curve or args.seeds:
        if args.curve and not place.is_file():
            raise common.UsageError(f"--curve divides the queries of one file, and {args.folds} is a folder or pattern")
        return _curve(args, settings) if args.curve else _compared(args, settings)
    candidates, seed = _candidates(args, settings)
    if len(candidates) == 1:
        common.refuse_idle(args, ["select"], "chooses among several settings. Add --grid key=v1,v2")
    select = parse_measure(args.select or "AP", convention=args.convention).tie_averaged()
    if n_folds(args) < 3:
        raise common.UsageError(f"--cv must be at least 3 (train, validation, test), got {args.cv}")
    whole = None if args.cluster is not None or place.is_dir() else common.read_graded(args.folds, args)
    folds = _folds(place, args) if whole is None else _folds_of(whole, args)
    results: list[dict[str, Any]] = []
    values, tied = [], []
    kept: dict[Any, Any] = {}
    for name, *parts in common.progress(folds, "folds"):
        rankers = [ranker_options.make_ranker(args.ranker, candidate, seed, args.prepare) for candidate in candidates]
        if args.position is not None:
            parts = [part and common.with_position(part, args.position, rankers) for part in parts]
        train, valid, test = parts
        best = _fit_best(rankers, train, valid, select, args)
        judgements, scores = test.judgements(), test.scores(rankers[best])
        if whole is not None:
            kept |= dict(zip(test.query_ids.tolist(), np.split(scores, test.offsets[1:-1])))
        elif args.scores is not None:
            kept[name.replace(" ", "-")] = test.restore(scores)
        values.append({label: measure.per_query(judgements, scores) for label, measure in measures.items()})
        tied.append({label: measure.per_query(judgements, scores) for label, measure in tie_averaged.items()})
        results.append({"fold": name, "params": candidates[best], "measures": _means(measures, values[-1:])})
    if args.scores is not None and whole is not None:
        grouped = np.concatenate([kept[query] for query in whole.query_ids.tolist()])
        common.write_scores(args.scores, whole.restore(grouped))
    elif args.scores is not None:
        Path(args.scores).mkdir(parents=True, exist_ok=True)
        with one_step():
            for name, scores in kept.items():
                args.outputs.add(path := f"{args.scores}/{name}.txt")
                common.write_scores(path, scores)
    return _report(args, results, _means(measures, values), _means(tie_averaged, tied))


def _means(measures: dict[str, Any], folds: list[dict[str, Any]]) -> dict[str, float]:
    """Return the mean over the tested queries of the folds (sum for counts) of each measure."""
    import numpy as np

    return {
        label: float(measure.aggregate(np.concatenate([values[label] for values in folds])))
        for label, measure in measures.items()
    }


def _report(args: Arguments, results: list[dict[str, Any]], mean: dict[str, float], averaged: dict[str, float]) -> int:
    """Print a row for each fold, means over queries and of folds, and ties averaged if the means then differ."""
    of_folds = {label: sum(row["measures"][label] for row in results) / len(results) for label in mean}
    trained = {args.ranker: _trained_on(args, args.ranker)}
    report = {"ranker": args.ranker, "convention": args.convention, "trained_on": trained, "folds": results,
              "means": {args.ranker: mean}, "mean_of_folds": {args.ranker: of_folds},
              "means_ties_averaged": {args.ranker: averaged}}  # fmt: skip
    record(args, report)
    if args.json:
        return common.show(args, report, "")
    each = [json.dumps(common.plain(row["params"])) for row in results]
    rows = [[row["fold"], *row["measures"].values(), text] for row, text in zip(results, each)]
    rows += [["mean of queries", *mean.values(), ""], ["mean of folds", *of_folds.values(), ""]]
    if any(abs(mean[label] - averaged[label]) > 0.0005 for label in mean):
        rows.append(["ties averaged", *averaged.values(), ""])
    first, value = next(iter(mean.items()))
    same = "" if len(set(each)) > 1 or not results[0]["params"] else f" with {each[0]}"
    print(f"{first} of {args.ranker}{same} is {value:.4f}, the mean of all tested queries of {args.folds}.\n")
    shown = len(set(each)) > 1
    print(common.table([row[: len(row) - (not shown)] for row in rows], ["fold", *mean, *["settings"] * shown]))
    chosen = f"; settings chosen by {args.select or 'AP'}" if args.grid else ""
    print(f"convention {args.convention}; {_told(trained)}{chosen}")
    other = "list-net" if args.ranker == "single-feature" else "single-feature"
    if not args.categorical:  # --against refuses it
        next_command(args, "cross-validate", against=other, scores=None, record=None, state=None)
    return 0


def _validates(args: Arguments, name: str) -> bool:
    """Return whether a ranker, or the choice of its settings, uses the validation queries of a fold."""
    return bool(args.grid) or ranker_options.make_ranker(name, {}).uses_eval_set


def _trained_on(args: Arguments, name: str) -> str:
    """Return the part of a fold on which a ranker is trained, in words."""
    validates = _validates(args, name)
    if Path(args.folds).is_dir():
        both = args.against and not validates
        return "training and validation queries of each fold" if both else "training queries of each fold"
    k = n_folds(args)
    return f"{k - 2} of {k} folds, with one fold for validation" if validates else f"{k - 1} of {k} folds"


def _told(trained: dict[str, str]) -> str:
    """Return a statement of the parts of a fold on which rankers are trained."""
    parts = list(dict.fromkeys(trained.values()))
    own = [f"{', '.join(name for name, one in trained.items() if one == part)}: {part}" for part in parts]
    return f"each ranker is trained on {parts[0]}" if len(parts) == 1 else f"trained on ({'; '.join(own)})"


def _fit_best(rankers: list[Any], train: Any, valid: Any, select: Any, args: Arguments) -> int:
    """Fit all rankers, and return the number of the best on the validation queries (the first if several are equal)."""
    best, best_value = 0, None
    for number, ranker in enumerate(rankers):
        if args.categorical:
            common.set_categorical(ranker, train, args)
        ranker.fit(train, **({"eval_set": valid} if getattr(ranker, "uses_eval_set", False) else {}))
        if len(rankers) == 1:
            break
        value = float(select.mean(valid.judgements(), valid.scores(ranker)))
        if select.improves(value, best_value):
            best, best_value = number, value
    return best


def _compared(args: Arguments, settings: dict[str, Any]) -> int:
    """Compare several rankers over the same folds, each with `--ranker` by the first measure."""
    names = [args.ranker, *args.against]
    if len(set(names)) < len(names):
        raise common.UsageError(f"a ranker is named twice in {', '.join(names)}. Name each ranker once")
    rankers = {}
    for name in names:
        own, seed = settings if name == args.ranker else {}, args.seed if _draws(name) and not args.seeds else None
        rankers[name] = ranker_options.make_ranker(name, own, seed, args.prepare)
    n = n_folds(args)
    data = common.read_graded(args.folds, args)
    seeded: dict[str, Any] = {"seeds": args.seeds, "state": args.state} if args.seeds else {}
    found: Any = truerank.cross_validate(
        rankers, data, args.measures, cv=None if Path(args.folds).is_dir() else n, repeats=args.repeats or 1,
        validate=True, convention=args.convention, random_state=args.seed or 0, **seeded,
    )  # fmt: skip
    if args.seeds:
        common.note(f"{found.fits} fits, {found.cpu_seconds:.1f} CPU seconds")
        if not args.against:
            record(args, found.to_dict())
            return common.show(args, found.to_dict(), str(found))
    about = "learners" if args.about == "learners" else "seeds" if args.seeds else "rankers"
    test = found.compare(about=about, baseline=args.ranker)
    trained = {name: _trained_on(args, name) for name in names}
    report = {"means": found.means, "convention": args.convention, "folds": found.n_folds, "repeats": found.repeats}
    report |= {"trained_on": trained, "about": test.about, "comparison": test.to_dict()}
    record(args, report)
    text = f"{found}\n{args.measures}, convention {args.convention}; {common.size_of(data)}; {_told(trained)}\n\n{test}"
    return common.show(args, report, text)


def _curve(args: Arguments, settings: dict[str, Any]) -> int:
    """Print the learning curve of a ranker, measured on the first fold."""
    import numpy as np

    from truerank.data.splits import query_folds

    ranker = ranker_options.make_ranker(args.ranker, settings, args.seed, args.prepare)
    data = common.read_graded(args.folds, args)
    if args.categorical:
        common.set_categorical(ranker, data, args)
    held_out = query_folds(data.n_queries, n_folds(args), random_state=args.seed, query_ids=data.query_ids)[0]
    train = data.take_queries(np.setdiff1d(np.arange(data.n_queries), held_out))
    found = truerank.learning_curve(
        ranker, train, data.take_queries(held_out), measure=args.measures.split()[0], convention=args.convention,
        random_state=args.seed or 0,
    )  # fmt: skip
    report = {"measure": found.measure, "train_sizes": found.train_sizes.tolist(), "queries": found.n_test}
    report |= {name: getattr(found, name).tolist() for name in ("train_scores", "test_scores", "low", "high")}
    record(args, report)
    return common.show(args, report, str(found))


def _candidates(args: Arguments, settings: dict[str, Any]) -> tuple[list[dict[str, Any]], int | None]:
    """Check and return the settings to choose from, and the seed of the rankers."""
    # The seed draws the folds of a single file too: a ranker that draws nothing may do without it there.
    seed = args.seed if not Path(args.folds).is_file() or _draws(args.ranker) else None
    candidates = [settings | choice for choice in _choices(args.grid)]
    for candidate in candidates:
        ranker_options.make_ranker(args.ranker, candidate, seed, args.prepare)
    return candidates, seed


def _draws(name: str) -> bool:
    """Return whether a ranker draws random numbers."""
    return "random_state" in ranker_options.make_ranker(name, {}).get_params()


def _choices(grid: list[str]) -> list[dict[str, Any]]:
    """Return every combination of the grid's values, or one empty choice without a grid."""
    lists: dict[str, list[Any]] = {}
    for key, text in ranker_options.key_values("--grid", "key=v1,v2,…", grid).items():
        values = ranker_options.listed(text)
        if values is None:
            raise common.UsageError(f"--grid {key} must be a list, such as {key}=1,10, got {text!r}")
        lists[key] = values
    return [dict(zip(lists, combination)) for combination in itertools.product(*lists.values())]


def _folds(place: Path, args: Arguments) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield (name, training, validation, test data) of each fold of partitions or a folder."""
    if args.cluster is not None:
        with common.cluster_of(args.cluster) as client:
            yield from _folds_of(common.read_graded(args.folds, args, client=client), args)
        return
    from truerank.io.letor.folds import fold_files, fold_folders

    def read(path: Path) -> Any:
        return common.read_graded(str(path), args)

    each = read if fold_folders(place) else cache(read)  # each of five parts is in five folds
    for name, *files in fold_files(place):
        train, valid, test = (truerank.RankingData.concatenate([*map(each, paths)]) for paths in files)
        yield name, train, valid, test


def _folds_of(data: truerank.RankingData, args: Arguments) -> Iterator[tuple[str, Any, Any, Any]]:
    """Divide the queries into folds, and yield (name, training, validation, test data) of each fold.

    The fold before the tested fold is for validation, as `validate=True` of `cross_validate`; if nothing uses it, it
    is for training.
    """
    from truerank.data.splits import folds_of

    validates = _validates(args, args.ranker)
    for fold in folds_of(data, n_folds(args), validate=validates, random_state=args.seed):
        valid = data.take_queries(fold.valid) if validates else None
        yield fold.name, data.take_queries(fold.train), valid, data.take_queries(fold.test)


def n_folds(args: options.Folds) -> int:
    """Return the number of folds, five by default; a folder has folds of its own."""
    if Path(args.folds).is_dir():
        common.refuse_idle(args, ["cv"], f"divides one file into folds, and {args.folds} is a folder of folds")
    return 5 if args.cv is None else args.cv
