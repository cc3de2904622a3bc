"""`truerank explain`: show why one document ranks above another, or which features matter.

With --query: show why one document of this query ranks above another. Without --query: show the weight of each
feature, and the loss of the measure when the feature is shuffled within queries, or with --train removed.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import truerank
from truerank.cli import common, options
from truerank.cli.parser import argument, option, positive, refuse
from truerank.cli.systems import about_training
from truerank.measures.conventions import DEFAULT_CONVENTION

MOST = 12  # features that are listed


class Arguments(options.Known, options.Training, options.Json):
    model: str = argument("a model that `truerank train` wrote", "MODEL")
    data: str = argument("a LETOR file (.gz .xz .zst), a table, or -", "DATA")
    query: str | None = option("name of the query", "Q")
    above: str | None = option(
        "the document that ranks higher (default: the first one)",
        "A",
        to="query",
        why="is a document of a query; name it with --query",
    )
    below: str | None = option(
        "the document that ranks lower (default: the first one below A with a higher grade, else the next)",
        "B",
        to="query",
        why="is a document of a query; name it with --query",
    )
    train: str | None = option("judged rows, to train the ranker again without each feature (without --query)", "FILE")
    measure: str | None = option("measure of the loss (default: the measure of the ranker, or nDCG@10)", "NAME")
    most: int | None = option("number of features to list (default: 12)", "N", type=positive)
    convention: options.Convention | None = options.convention(shown="ranklib")
    RULES = (
        refuse("train training_queries", "query", "has no effect with --query. Leave --query out"),
        refuse("most", "json", "has no effect with --json, which prints all features"),
    )


def run(args: Arguments) -> int:
    """Print the contributions; a row without a document id is named by its number in the file, from 1."""
    from truerank.experiments.policy import about_data

    convention, most = args.convention or DEFAULT_CONVENTION, args.most or MOST
    model = common.load_ranker(args.model)
    data = common.read_data(args.data, args, model)
    common.remark(args, args.data, about_data(data, convention))
    if args.query is None:
        _features(args, model, data, convention, most)
        return 0
    above: str | int | None = args.above
    below: str | int | None = args.below
    if data.doc_ids is None:
        above, below = (_row(name) for name in (args.above, args.below))
    result = truerank.explain(
        model, data, query=args.query, above=above, below=below, measure=args.measure, convention=convention
    )
    if data.doc_ids is None:
        result = replace(result, above=_from_one(result.above), below=_from_one(result.below))
    code = common.show(args, result.to_dict(), result.to_text(most))
    if not args.json:
        print(f"\n{args.model}: {truerank.training_queries(model, data)}")
    return code


def _features(args: Arguments, model: Any, data: Any, convention: str, most: int) -> None:
    """Print the weight of each feature in the model, and the loss of the measure without it."""
    from truerank.rankers.own_importance import own_importance

    models = {args.model: model}
    if args.train is not None:
        train = common.read_data(args.train, args, model)
        names = getattr(model, "feature_names_in_", None)
        learned = {"training_sketch_": truerank.TrainingSketch.of(train), "feature_names_in_": names}
        models[args.train] = SimpleNamespace(**learned)  # in place of the models without a feature
    seen = about_training(args.training_queries, models, data)
    data = seen.kept(data)
    measured: dict[str, Any] = {"measure": args.measure, "convention": convention}
    shuffled = truerank.permutation_importance(model, data, random_state=0, **measured)
    found = {"shuffled": shuffled}
    if args.train is not None:
        found["gone"] = truerank.removal_importance(model, train, data, **measured)
    kind, own = own_importance(model) or ("weight", {})
    rows: list[dict[str, Any]] = [
        {"feature": name, "own": own.get(name)}
        | {how: dict(zip(("loss", "low", "high", "p_adjusted", "noise_floor"), known)) for how, known in losses.items()}
        for name, losses in _by_feature(found).items()
    ]
    if args.json:
        for row in rows if "gone" in found else ():
            del row["gone"]["noise_floor"]
        common.print_report(
            args, {"measure": shuffled.measure, "own": kind, "training_queries": seen.to_dict(), "features": rows}
        )
        return
    header, shown = ["feature", kind], {"shuffled": 4, "gone": 3}  # the last is the noise floor
    for how in found:
        header += [f"loss, {how}", "95% interval", "p, max-T", "noise floor"][: shown[how]]
    cells = [
        [row["feature"], row["own"], *(v for how in found for v in _shown(**row[how])[: shown[how]])]
        for row in rows[:most]
    ]
    print(common.table(cells, header, spare=("noise floor", "95% interval")))
    rest = len(rows) - len(cells)
    print(
        (f"and {rest} more (--most)\n" if rest else "")
        + "".join(f"\nloss, {how}: {one.about}" for how, one in found.items())
        + "\nshuffled: the feature's values were exchanged among the documents of each query"
        + ("; gone: the model was trained again without the feature" if args.train else "")
        + f"\n\n{seen}"
    )


def _shown(loss: float, low: float, high: float, p_adjusted: float, noise_floor: float) -> list[Any]:
    return [loss, "" if low != low else f"[{low:.4f}, {high:.4f}]", p_adjusted, noise_floor]


def _by_feature(found: dict[str, Any]) -> dict[str, dict[str, list[float]]]:
    """Return loss, low, high, adjusted p and noise floor by feature and kind, in the order of the first kind."""
    first, *others = ({name: values for name, *values in one.to_rows()} for one in found.values())
    return {name: dict(zip(found, [first[name], *(one[name] for one in others)])) for name in first}


def _row(name: str | None) -> int | None:
    """Return the number of a row from 0; names count from 1, as in `truerank predict --format run`."""
    if name is None:
        return None
    if not name.isdecimal() or int(name) < 1:
        raise common.UsageError(f"the data have no document ids. Name a row by its number, from 1, got {name!r}")
    return int(name) - 1


def _from_one(name: str) -> str:
    """Return the name of a row, such as "row 1" for "row 0"."""
    return f"row {int(name.removeprefix('row ')) + 1}"
