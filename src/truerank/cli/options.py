"""Options that several commands share.

Commands import NumPy and what needs NumPy when they run, so that `--help` is fast.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from truerank.cli.parser import Options as Options
from truerank.cli.parser import OutputFile, Rule, argument, n_threads, only, option, positive, within
from truerank.io.judgements.places import AGGREGATES

if TYPE_CHECKING:
    from truerank.core.types import Convention as Convention
    from truerank.core.types import Correction as Correction
    from truerank.core.types import Test as TestName
    from truerank.core.types import Topics as TopicsRule


def convention(
    default: str | None = None, shown: str = "ranklib for judged rows, trec for runs", **settings: Any
) -> Any:
    """Declare `--convention`; the help shows `shown` if the default depends on other options."""
    from truerank.measures.conventions import CONVENTIONS

    text = "evaluation convention, which fixes gain, discount, ties, and queries without relevant documents: "
    text += f"{', '.join(CONVENTIONS)} (default: {default or shown})"
    return option(text, "NAME", choices=list(CONVENTIONS), default=default, **settings)


class Json(Options):
    json: bool = option("print one JSON object instead of text")


class Record(Options):
    record: OutputFile | None = option(
        "also write a file with which `truerank reproduce` runs this again and compares", "FILE"
    )


class Seed(Options):
    seed: int = option("random seed", "N", default=0)


class Threads(Options):
    threads: int | None = option("threads (default: 1); -1 uses all processors", "N", type=n_threads)


class Replace(Options):
    replace: bool = option("overwrite files of the same names in the folder")


class QueryField(Options):
    query_field: str | None = option("the field that is the query (TREC: title, desc, narr)", "FIELD")


class Folds(Options):
    folds: str
    cv: int | None = option("folds of a single file (default: 5)", "K")


class Bad(Options):
    bad: str = option(
        "what to do with a document that has no id or the id of another one, is not JSON or UTF-8, or exceeds 64 MiB: "
        "stop, or skip it and print a note",
        choices=("error", "skip"),
        default="error",
    )


class JudgementOptions(Options):
    """Options on reading judgements; those with `None` exist in some commands only."""

    qrels: str | None = None
    grades: list[str] | None = None
    aggregate: str | None = None
    query_column: str | None = None
    grade_column: str | None = None
    document_column: str | None = None
    convention: Convention | None = None


class Grades(JudgementOptions):
    grades: list[str] | None = option("numbers of grades in words: 'Perfect=3 Good=2 Bad=0 Skip=-'", "WORD=NUMBER …")


class Judged(Grades):
    aggregate: str | None = option(
        "how several grades of a document become one (default: they must be equal)", choices=AGGREGATES
    )


class Baseline(Options):
    baseline: str | None = option("system or column of --data to compare with (default: the first system)", "NAME")


class Collapse(Options):
    collapse: str | None = option(
        "merge chunks into documents: the id is the text before SEP, or the group of a regular expression", "SEP"
    )


class Segments(Options):
    segments: str | None = option("field of the gold set, or column of --data, whose values are segments", "FIELD")


class Topics(Options):
    topics: TopicsRule | None = option(
        "topics of the means: common, those of all runs; all, those of the qrels, where a missing topic counts 0 as in "
        "trec_eval -c (default: the topics of the runs, which must be the same)",
        choices=("common", "all"),
    )


class Statistics(Options):
    statistics: OutputFile | None = option(
        "for a model with categorical columns: write the statistic of each category to this JSON file, by column and "
        "category, and export trees over these statistics. The engine's features must be these statistics (null, else "
        "0, for a category that is not in the file; no feature for an empty cell)",
        "FILE",
    )


class Training(Options):
    training_queries: str | None = option(
        "queries that trained a model: leave them out, keep them without a verdict, or refuse (default: leave-out)",
        choices=("leave-out", "keep", "refuse"),
    )


class Test(Options):
    test: TestName = option(
        "paired, two-sided test of the per-query values",
        choices=("randomisation", "t", "wilcoxon", "sign"),
        default="randomisation",
    )


class Reading(JudgementOptions):
    """Options on reading a data file; those with `None` exist in some commands only."""

    ONE_FILE = False
    """Whether folders of published folds are refused, because the command would train on test queries."""

    _add = within("reading data")
    missing: str | None = _add(
        "how to read NULL and nan in features; zero is for engines without missing values (default: as for the model's "
        "training data, else error)",
        choices=("error", "nan", "zero"),
    )
    n_features: int | None = _add(
        "number of features in LETOR text, if all rows may lack the last ones", "N", type=positive
    )
    sparse: bool = _add("read wide LETOR text as a sparse matrix; linear rankers with scale=auto get other weights")
    max_line: int | None = _add("longest accepted line of LETOR text (default: 16777216)", "BYTES", type=positive)
    query_column: str | None = _add("column of the query: a name, a key of JSON, or a number (default: qid)", "NAME")
    grade_column: str | None = _add("column of the grade in a table (default: y)", "NAME")
    document_column: str | None = _add("column of the document id in a table", "NAME")
    features: list[str] | None = None
    exclude: list[str] | None = None
    categorical: list[str] | None = None
    position: str | None = None
    cluster: str | None = None
    out_of_core: bool = False


class Columns(Reading):
    features: list[str] | None = option(
        "columns to use: names, patterns ('bm25*'), or numbers from 1 (1-10,15); default: all",
        "COLUMN …",
        group="columns",
    )
    exclude: list[str] | None = option("columns to ignore, named in the same ways", "COLUMN …", group="columns")


class Categorical(Columns):
    categorical: list[str] | None = option(
        "features that are categories: text, or numbers without an order (oblivious-boosting)",
        "COLUMN …",
        group="columns",
    )


class Known(Categorical):
    """The columns of data that a model scores, which are those of its training, or that train nothing."""

    categorical: list[str] | None = option(
        "features that are categories, as in training; models know them themselves", "COLUMN …", group="columns"
    )


class Clustered(Options):
    cluster: str | None = option(
        "local:N (N worker processes) or tcp://scheduler:port; workers read each file of the pattern as a partition",
        "WHERE",
    )
    out_of_core: bool = option("with --cluster: read rows again at each pass, to save memory", to="cluster")


class Systems(Judged):
    """Systems to evaluate or compare, `SYSTEM …` with `--data` and its `--scores`, or with `--qrels`."""

    FIRST = True
    systems: list[str] = argument("models that score --data, or TREC runs with --qrels", "[SYSTEM …]")
    named: list[str] = option("the same systems, named by an option", "FILE …", names="--model --run --runs")
    data: str | None = option("judged documents: a LETOR file (.gz .xz .zst), a table, or -", "FILE")
    scores: list[str] = option(
        "scores of the rows of --data: files with one score on each line, or columns; NAME:ascending if 1 is the best",
        "FILE …",
        to="data",
    )
    qrels: str | None = option("judgements in any format that `truerank convert` reads, in place of --data", "FILE")
    baseline: str | None = None
    segments: str | None = None
    collapse: str | None = None
    RULES: tuple[Rule, ...] = (only("grades aggregate", "qrels"),)


class Compared(Systems, Topics, Training, Known):
    """Systems, and the rows or judgements for their evaluation."""

    RULES: tuple[Rule, ...] = (only(Known, "data", "requires --data"), only("topics", "data qrels"))


class Planned(Options):
    """`--plan` and `--judges`, as `judge.from_plan` reads them."""

    plan: str | None = option("a judged plan of `truerank judge plan`, in place of qrels", "CSV")
    judges: list[str] | None = option("with --plan: labels of model judges", "FILE …", to="plan")


NO_PLAN = "has no effect with --plan, which has estimates of its own"


class RankerName(argparse.Action):
    """Store a ranker's name, a paper's if that has settings; a following `--help` describes its parameters."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: str | None = None) -> None:
        from truerank.cli.ranker_options import ranker_named

        name, settings = ranker_named(values)
        setattr(namespace, self.dest, values if settings else name)
        general = type(parser).format_help
        parser.__dict__["format_help"] = lambda: general(parser) + parameters_text(name)


class Learner(Options):
    """A ranker, as `make_ranker` reads it."""

    FIRST = True
    ranker: str = option(
        "ranker to train, also by its name in papers; `truerank train --list` lists them, and --ranker NAME --help "
        "describes one",
        "NAME",
        default="oblivious-boosting",
        action=RankerName,
    )
    set: list[str] = option("parameters of the ranker; values are read as JSON, else as strings", "key=value …")
    seed: int | None = option("random seed (default: 0)", "N")


class Position(Options):
    position: str | None = option("where each row was shown, from 1: for objective=unbiased-lambdarank", "COLUMN")


class Learning(Learner, Categorical, Grades, Position):
    """A ranker and the rows that train it."""

    prepare: list[str] | None = option(
        "transformations of the features, in this order: score-binning, percentile-in-query, min-max-in-query, "
        "z-score-in-query, unit-deviation",
        "NAME …",
    )


def parameters_text(name: str) -> str:
    """Return the parameters of a ranker from its docstring."""
    import inspect

    from truerank.models.registry import ranker_class

    text = inspect.getdoc(ranker_class(name)) or ""
    _, _, section = text.partition("Parameters\n----------\n")
    lines = section.splitlines()
    end = next((place for place, line in enumerate(lines) if line.startswith("---")), len(lines) + 1) - 1
    inside = "\n".join(f"  {line}".rstrip() for line in lines[:end]).rstrip()
    return f"\nparameters of {name} (--set key=value):\n{inside or '  none'}\n"
