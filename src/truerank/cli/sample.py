"""`truerank sample`: write sample data as files, on which every command can be tried."""

from __future__ import annotations

import filecmp
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

import truerank
from truerank.cli import common, options
from truerank.cli.parser import OutputFolder, argument, option, refuse
from truerank.core.files import atomic_write, one_step

# Features that serve as systems of their own: name of the run -> column.
RUNS = {
    "bm25": "bm25.porter-stop.all",
    "dirichlet": "dirichlet.porter-stop.all",
    "feedback": "rm3-10",
    "latent": "latent-300",
}
MEASURES = ("AP", "nDCG@10", "RR", "P@5")  # of --demo
_FOLDS = 5
_FEW = 25  # queries for `truerank judge`
TERMS = "cranfield.md"
"""The name differs from README.md, because the folder may be a user's project."""


class Arguments(options.Replace, options.Json):
    out: OutputFolder | None = argument("output folder; created if it does not exist", "[DIR]")
    demo: bool = option("train and test a ranker on the sample, and write it to DIR (default: demo-output)")
    seed: int = option("seed of the split of queries", "N", default=0)
    RULES = (refuse("replace", "demo"),)


def run(args: Arguments) -> int:
    """Write training, validation and test queries, qrels, runs and tables of the Cranfield sample.

    The files are made in a temporary folder. Existing files with the same bytes stay, and other files of these names
    are overwritten only with `--replace`.
    """
    if args.demo:
        return _demo(args)
    if args.out is None:
        raise common.UsageError("no output folder is named. Write: truerank sample DIR")
    with tempfile.TemporaryDirectory(prefix="truerank-sample-") as made:
        written = write_sample(Path(made), args.seed)
        same, _, _ = filecmp.cmpfiles(made, args.out, written, shallow=False)
        others = [name for name in written if name not in same]
        out = common.made_folder(args, args.out, others)
        with one_step():
            for name in others:
                with open(Path(made) / name, "rb") as source, atomic_write(out / name, "wb") as stream:
                    shutil.copyfileobj(source, stream)
    if args.json:
        common.print_report(args, {"out": str(out), "files": written})
        return 0
    print(common.table([[str(out / name), what] for name, what in written.items()], ["file", "contents"]))
    if find_spec("pyarrow") is None:
        common.note("truerank: the tables (.parquet) were not written. They require: pip install 'truerank[tables]'")
    return 0


def write_sample(out: Path, seed: int) -> dict[str, str]:
    """Write the files into a folder; return a description of each. Equal seeds give files with equal bytes."""
    import numpy as np

    from truerank.data.samples import sample_path
    from truerank.data.splits import query_folds
    from truerank.io.trec import Qrels, Run

    data = truerank.load_sample("cranfield-text")
    parts = query_folds(data.n_queries, 5, random_state=seed, query_ids=data.query_ids)
    roles = {"train": np.sort(np.concatenate(parts[2:])), "vali": parts[0], "test": parts[1]}
    written = {}
    for role, queries in roles.items():
        part = data.take_queries(queries)
        truerank.write_letor(part, out / f"{role}.txt.gz")
        written[f"{role}.txt.gz"] = f"{part.n_queries} queries, {part.n_rows} rows, {part.n_features} features"
        if find_spec("pyarrow") is not None:
            truerank.write_table(part, out / f"{role}.parquet")
            written[f"{role}.parquet"] = "the same data as a table"
    if find_spec("pyarrow") is not None:
        truerank.write_table(data, out / "judgements.parquet")
        written["judgements.parquet"] = "all queries as one table, for `truerank split`"
    truerank.write_qrels(truerank.read_qrels(sample_path("cranfield-qrels")), out / "qrels.txt")
    written["qrels.txt"] = "the judgements of all 225 queries"
    assert data.doc_ids is not None
    names = list(data.feature_names or [])
    for name, column in RUNS.items():
        scores = data.X[:, names.index(column)]
        truerank.write_run(Run(data.query_ids, data.offsets, data.doc_ids, scores), out / f"{name}.run", tag=name)
        written[f"{name}.run"] = f"a TREC run by the feature {column}"
    few, n = data.take_queries(np.arange(_FEW)), f"{_FEW} queries"
    assert few.doc_ids is not None
    assert few.y is not None
    for name, column in {name: RUNS[name] for name in ("bm25", "latent")}.items():
        scores = few.X[:, names.index(column)]
        truerank.write_run(Run(few.query_ids, few.offsets, few.doc_ids, scores), out / f"few-{name}.run", tag=name)
        written[f"few-{name}.run"] = f"{n} of {name}.run"
    similarity = few.X[:, names.index("rocchio-5")]
    labels = np.searchsorted(np.quantile(similarity, [0.85, 0.93, 0.98]), similarity).astype(np.float64)
    for name, grades, what in (
        ("human", few.y, f"grades of all documents of {n}"),
        ("judge", labels, f"labels of a made-up model judge, by similarity, for {n}"),
    ):
        qrels = Qrels(np.asarray(few.query_ids).astype(str), few.offsets, few.doc_ids, grades)
        truerank.write_qrels(qrels, out / f"few-{name}.txt")
        written[f"few-{name}.txt"] = what
    shutil.copyfile(sample_path().parent / "README.md", out / TERMS)
    written[TERMS] = "origin, terms, and what the features are"
    return written


def _demo(args: Arguments) -> int:
    """Test AdaRank on each fifth of the sample's queries after training on the others; save one trained on all."""
    out = Path("demo-output" if args.out is None else args.out)
    out.mkdir(parents=True, exist_ok=True)
    data = truerank.load_sample("cranfield-text")
    # AdaRank adds features up: on one scale within the query no feature outweighs the others by its unit.
    data.X = truerank.MinMaxInQuery().fit_transform(data.X, qid=data.qid)
    ranker = truerank.AdaRank(measure="AP")
    found = truerank.cross_validate({"adarank": ranker}, data, "AP", cv=_FOLDS, validate=False, random_state=args.seed)
    systems = {**found.scores, "bm25": data.X[:, list(data.feature_names or []).index(RUNS["bm25"])]}
    results = truerank.Experiment(data, systems, " ".join(MEASURES)).evaluate()
    figures = {name: {measure: result[measure] for measure in MEASURES} for name, result in results.items()}
    compared = truerank.compare(data, systems, "AP", baseline="bm25")
    ranker.fit(data)
    summary = {
        "data": "Cranfield sample",
        "queries": {"test": data.n_queries, "folds": _FOLDS},
        "convention": "ranklib",
        "measures": figures,
        "comparison": compared.to_dict(),
        "features": ranker.feature_weights(),
        "model": str(out / "model.json"),
    }
    rows_of_table = [[name, *values.values()] for name, values in figures.items()]
    text = (
        f"Cranfield sample: {data.n_queries} queries in {_FOLDS} folds, each tested by a ranker of the other four "
        f"(convention ranklib)\n\n{common.table(rows_of_table, ['ranker', *MEASURES])}\n\n"
        f"{compared}\n"
    )
    with one_step():
        truerank.save_model(ranker, out / "model.json")
        common.write_summary(out, summary, text)
    files = f"model      {out / 'model.json'}\nsummary    {out / 'summary.txt'}, {out / 'summary.json'}"
    return common.show(args, summary, f"{text}\n{files}")
