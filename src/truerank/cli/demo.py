"""`truerank demo`: the main job, end to end, on the data that ship with truerank."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from truerank.cli import common

MEASURES = ("AP", "nDCG@10", "RR", "P@5")


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--out", default="demo-output", metavar="DIR", help="where model and summary go")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the split into queries (default: 0)")
    common.add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Train AdaRank on three fifths of the sample's queries, choose on one, test on one against single features."""
    from truerank.core.files import atomic_write
    from truerank.data.samples import load_sample
    from truerank.data.splits import query_folds
    from truerank.measures import parse_measure
    from truerank.models.model_file import load_model, save_model
    from truerank.rankers.adarank import AdaRank
    from truerank.significance import paired_t, randomisation

    common.announce_compilation()
    data = load_sample()
    parts = query_folds(data.n_queries, 5, random_state=args.seed)
    train, valid, test = (data.take_queries(q) for q in ([*parts[0], *parts[1], *parts[2]], parts[3], parts[4]))
    ranker = AdaRank(measure="AP").fit(train, eval_set=valid)
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    save_model(ranker, out / "model.json")
    scores = load_model(out / "model.json").predict(test)

    names = data.feature_names or [f"feature {k + 1}" for k in range(data.n_features)]
    judged = valid.judgements()
    ap = parse_measure("AP")
    best = int(ap.per_query(judged, valid.X.T).mean(axis=1).argmax())
    systems: dict[str, Any] = {"adarank": scores, f"best feature ({names[best]})": test.X[:, best]}
    if "bm25" in names:
        systems["bm25"] = test.X[:, names.index("bm25")]
    figures, per_query = {}, {}
    for name, system in systems.items():
        values = {m: parse_measure(m).per_query(test.judgements(), system) for m in MEASURES}
        figures[name] = {m: float(v.mean()) for m, v in values.items()}
        per_query[name] = values["AP"]
    baseline = list(systems)[1]
    difference = per_query["adarank"] - per_query[baseline]
    t, r = paired_t(per_query["adarank"], per_query[baseline]), randomisation(per_query["adarank"], per_query[baseline])
    summary = {
        "data": "Cranfield sample",
        "queries": {"train": train.n_queries, "validation": valid.n_queries, "test": test.n_queries},
        "convention": "ranklib",
        "measures": figures,
        "comparison": {
            "measure": "AP",
            "a": "adarank",
            "b": baseline,
            "wins": int((difference > 0).sum()),
            "losses": int((difference < 0).sum()),
            "ties": int((difference == 0).sum()),
            "p": {"paired t": t.p, "randomisation": r.p},
        },
        "features": ranker.feature_weights(),
        "model": str(out / "model.json"),
    }
    rows = [[name, *values.values()] for name, values in figures.items()]
    text = (
        f"Cranfield sample: {train.n_queries} queries to train, {valid.n_queries} to validate, {test.n_queries} to test"
        f" (convention ranklib)\n\n{common.table(rows, ['ranker', *MEASURES])}\n\n"
        f"adarank against {baseline} on AP: {summary['comparison']['wins']} wins, "
        f"{summary['comparison']['losses']} losses, {summary['comparison']['ties']} ties; "
        f"p = {t.p:.4f} (paired t), {r.p:.4f} (randomisation)\n"
    )
    with atomic_write(out / "summary.json") as stream:
        json.dump(common.plain(summary), stream, indent=1)
        stream.write("\n")
    with atomic_write(out / "summary.txt") as stream:
        stream.write(text)
    if args.json:
        common.print_json(summary)
    else:
        print(f"{text}\nmodel      {out / 'model.json'}\nsummary    {out / 'summary.txt'}, {out / 'summary.json'}")
    return 0
