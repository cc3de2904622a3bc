"""A certificate counts the queries that the engine ranks otherwise, by its own rules on the rows as they are."""

import json

import numpy as np
import pytest

from support.refusals import refused
from truerank import (
    CalibratedRanker,
    ObliviousBoosting,
    RankBoost,
    RankingData,
    RidgeRanker,
    SingleFeature,
    export_model,
    load_model,
    read_letor,
    read_table,
    save_model,
)
from truerank.cli import main
from truerank.cli.common import over_statistics
from truerank.core.errors import InvalidInputError
from truerank.export import program
from truerank.export.form import form_of
from truerank.export.formats import FORMATS, ExportRefused, reason_against
from truerank.export.run import evaluators

pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = {"n_estimators": 4, "depth": 3}
MODELS = {
    "ridge": RidgeRanker,
    "single": lambda: SingleFeature(0),
    "stumps": lambda: RankBoost(5),
    "constant": lambda: ObliviousBoosting("constant", **SMALL),
    "fuzzy": lambda: ObliviousBoosting("fuzzy", **SMALL),
    "polynomial": lambda: ObliviousBoosting("polynomial", **SMALL),
    "calibrated": lambda: CalibratedRanker(ObliviousBoosting("constant", **SMALL), cv=2, random_state=0),
}
VALUES = [
    lambda rng, n: np.round(rng.normal(size=n), 2),
    lambda rng, n: rng.integers(0, 3, n).astype(float),  # ties
    lambda rng, n: 1e7 + rng.uniform(size=n),  # merged by float32
    lambda rng, n: rng.normal(size=n),
]


def drawn(rng, absent):
    sizes = rng.integers(1, 12, int(rng.integers(3, 10)))
    n = int(sizes.sum())
    X = np.column_stack([VALUES[int(rng.integers(len(VALUES)))](rng, n) for _ in range(4)])
    grades = np.clip(np.round(X[:, 0] - X[:, 0].mean() + rng.normal(size=n)), 0, 2)
    if absent:
        X[rng.uniform(size=X.shape) < 0.15] = np.nan
    if rng.uniform() < 0.3:  # documents with the same row
        X[rng.uniform(size=n) < 0.5] = X[0]
    return RankingData(X, grades, np.repeat(np.arange(len(sizes)), sizes))


def scored_by_solr(text, X, names):
    """Solr's arithmetic, one row and one question at a time; absent features are 0."""
    model, one = json.loads(text), np.float32
    scores = []
    for row in X:
        x = {name: one(0.0 if np.isnan(value) else value) for name, value in zip(names, row)}
        total = one(0)
        if "weights" in model["params"]:
            for name, weight in model["params"]["weights"].items():
                total += one(weight) * x[name]
        for tree in model["params"].get("trees", ()):
            node = tree["root"]
            while "feature" in node:
                side = x[node["feature"]] <= one(node["threshold"]) + one(1e-6)
                node = node["left" if side else "right"]
            total += one(tree["weight"]) * one(node["value"])
        scores.append(float(total))
    return np.array(scores)


def scored_by_script(text, model, X, absent):
    """The float32 score of Painless, which adds a shift and is at least 0."""
    params = json.loads(text)["script"]["params"]
    rows = np.array([[(0.0 if absent == "zero" else v) if np.isnan(v) else v for v in row] for row in X])
    proba = hasattr(model, "predict_proba")
    own = model.predict_proba(rows)[:, 1] if proba else model.predict(rows)
    return np.array([float(np.float32(max(score + params["shift"], 0.0))) for score in own])


def ranking(scores, slack):
    """Numbers of the rows by descending score, ties in the order of the rows."""
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    groups = [order[:1]]
    for before, i in zip(order, order[1:]):
        if scores[before] - scores[i] <= slack:
            groups[-1].append(i)
        else:
            groups.append([i])
    return [i for group in groups for i in sorted(group)]


def counted(expected, found, offsets, slack):
    orders = firsts = 0
    for start, stop in zip(offsets[:-1], offsets[1:]):
        ours, theirs = expected[start:stop], [scores[start:stop] for scores in found]
        if any(np.isnan(scores).any() for scores in (ours, *theirs)):
            orders, firsts = orders + 1, firsts + 1
            continue
        ranked = [ranking(scores, slack) for scores in theirs]
        orders += any(ranking(ours, slack) != other for other in ranked)
        firsts += any(ranking(ours, slack)[0] != other[0] for other in ranked)
    return orders, firsts


def predicted(model, X, proba):
    """The model's own scores of the rows as they are, nan where it refuses one."""
    scores = np.full(len(X), np.nan)
    for i, row in enumerate(X):
        try:
            scores[i] = model.predict_proba(row[None])[0, 1] if proba else model.predict(row[None])[0]
        except ValueError:
            assert np.isnan(row).any()
    return scores


def trial(seed):
    """Compare the figures of one certificate with the slow reference; returns them and what was tried."""
    rng = np.random.default_rng(seed)
    kind = list(MODELS)[seed % len(MODELS)]
    trained_on_missing = kind != "ridge" and rng.uniform() < 0.4
    train, given = drawn(rng, trained_on_missing), drawn(rng, rng.uniform() < 0.6)
    while kind == "calibrated" and len(set((train.y >= 1).tolist())) < 2:
        train = drawn(rng, trained_on_missing)
    model = MODELS[kind]().fit(train)
    if not trained_on_missing and rng.uniform() < 0.3:
        model.reading_ = {"missing": "zero"}
    held = [name for name in FORMATS if name != "onnx" and reason_against(form_of(model), name) is None]
    format = ("solr", "python", "painless", str(rng.choice(held)))[int(rng.integers(4))]
    if format not in held:
        format = "python"
    missing = [None, None, "zero", "nan"][int(rng.integers(4))]
    try:
        text = export_model(model, format, certify=given, absent=missing, force=True)
    except InvalidInputError as error:  # an unforced limit of the format, such as numbers that it cannot hold
        return kind, format, None, str(error)
    own, absent = text.certificate, missing or FORMATS[format].missing
    proba = own.policy["output"] == "probability"
    form = form_of(model, calibrated=FORMATS[format].expression)
    X = np.asarray(given.X)
    expected = predicted(model, X, proba)
    read = np.where(np.isnan(X), 0.0, X) if absent == "zero" else X
    if format == "solr" and absent == "zero":
        found = [scored_by_solr(text, X, form.names)]
    elif format == "painless" and kind not in ("ridge", "single", "fuzzy", "polynomial"):
        found = [scored_by_script(text, model, X, absent)]
    elif format == "python":
        space = {}
        exec(text, space)
        found = [np.array([space["score"](row) for row in read.tolist()])]
    else:
        found = [score(read) for score in evaluators(str(text), form, format).values()]
    with np.errstate(all="ignore"):
        figures = counted(expected, found, given.offsets, 1e-12 if proba else 0.0)
    assert (own.orders_changed, own.firsts_changed) == figures, (seed, kind, format, missing)
    assert own.score_differences == 0, (seed, kind, format, missing)
    assert own.rank_agreement == pytest.approx(1 - figures[0] / given.n_queries)
    if figures[0]:
        with pytest.raises(ExportRefused) as refused:
            export_model(model, format, certify=given, absent=missing)
        assert refused.value.certificate.orders_changed == figures[0]
    return kind, format, figures, ""


def looked_up(statistics, texts):
    """What the feature code sends for a column of texts, by the rule of `--statistics`: nan is no feature."""
    other = statistics.get("null", 0.0)
    return np.array([np.nan if text == "" else statistics.get(text, other) for text in texts])


def written_table(path, rng, n_queries, brands, empty):
    qid = np.repeat(np.arange(n_queries), 8)
    brand = np.where(rng.uniform(size=len(qid)) < empty[0], "", rng.choice(brands, len(qid)))
    value = np.round(rng.normal(size=len(qid)), 2)
    missing = rng.uniform(size=len(qid)) < empty[1]
    effect = {"x": 1, "y": 0, "z": -1, "": 1.5}
    y = np.clip(np.round(value * ~missing + [effect.get(b, 0) for b in brand] + 0.5 * rng.normal(size=len(qid))), 0, 3)
    cells = ["" if lost else repr(float(v)) for v, lost in zip(value, missing)]
    lines = [f"{q},d{i},{int(g)},{v},{b}" for i, (q, g, v, b) in enumerate(zip(qid, y, cells, brand))]
    path.write_text("\n".join(["qid,docid,y,f,brand", *lines]) + "\n")
    return np.where(missing, np.nan, value), brand, np.arange(0, len(qid) + 1, 8)


def category_trial(seed, folder, capsys):
    """Compare a certificate of `--statistics` with the model's own scores and the written file, by the look-up rule."""
    rng = np.random.default_rng(seed)
    missing = ("zero", "nan", "error")[seed % 3]
    empty = [(0.25, 0.0), (0.25, 0.2), (0.0, 0.2), (0.0, 0.0)][int(rng.integers(4)) if missing != "error" else 3]
    leaves = ("constant", "fuzzy", "polynomial")[int(rng.choice(3, p=[0.6, 0.2, 0.2]))]
    held = ("opensearch-ltr", "solr", "xgboost", "lightgbm", "python", "painless", "vespa", "c", "onnx")
    format = str(rng.choice(held if leaves == "constant" else held[4:-1]))
    train, test, model, sent, out = (str(folder / name) for name in ("a.csv", "b.csv", "m.json", "s.json", "out"))
    written_table(folder / "a.csv", rng, 15, ["x", "y", "z"], empty)
    value, brand, offsets = written_table(folder / "b.csv", rng, 12, ["x", "y", "z", "new"], empty)
    columns = ["--document-column", "docid", "--missing", missing, "--categorical", "brand", "--model", model]
    assert main(["train", train, *columns, "--set", f"leaves={leaves}", "n_estimators=6", "depth=3"]) == 0
    assert main(["predict", model, test, "-o", str(folder / "p.txt")]) == 0
    capsys.readouterr()
    line = ["export", model, "--to", format, "--statistics", sent, "--certify", test, "-o", out]
    if missing == "zero" and rng.uniform() < 0.5:
        line += ["--missing", "nan"]  # the feature code sends no feature for a missing number, instead of 0
    elif missing == "zero":
        value = np.nan_to_num(value, nan=0.0)
    assert main([*line, "--force", "--json"]) == 0
    own = json.loads(capsys.readouterr().out)
    X = np.column_stack([value, looked_up(json.loads((folder / "s.json").read_text())["brand"], brand)])
    plain = load_model(model).over_statistics()
    form = form_of(plain)
    if FORMATS[format].missing == "zero":
        X = np.nan_to_num(X, nan=0.0)
    content = (folder / "out").read_bytes() if format == "onnx" else (folder / "out").read_text()
    if format == "solr":
        found = [scored_by_solr(content, X, form.names)]
    else:
        found = [score(X) for score in evaluators(content, form, format).values()]
    figures = counted(np.loadtxt(folder / "p.txt"), found, offsets, 0.0)
    assert (own["orders_changed"], own["firsts_changed"]) == figures, (seed, missing, leaves, format, empty)
    if figures[0]:
        assert main(line) == 1
    return missing, leaves, format, empty, figures


@pytest.mark.parametrize("seed", range(12))
def test_certificates_over_statistics_hold_for_the_rows_as_read(seed, tmp_path, capsys):
    """Empty categories were certified as 0 if missing numbers are 0, and 39 of 40 orders changed."""
    category_trial(seed, tmp_path, capsys)


def test_a_category_called_null_is_not_written_as_the_entry_of_unknown_ones():
    frames = pytest.importorskip("pandas")
    frame = frames.DataFrame({"f": np.arange(40.0), "brand": ["null", "x"] * 20})
    model = ObliviousBoosting("constant", **SMALL, categorical=["brand"]).fit(frame, np.arange(40) % 3, qid=[0] * 40)
    with pytest.raises(InvalidInputError, match="'null'"):
        over_statistics(model)


def test_models_over_statistics_leave_empty_categories_missing(tmp_path, capsys):
    rng = np.random.default_rng(0)
    written_table(tmp_path / "a.csv", rng, 20, ["x", "y", "z"], (0.25, 0.2))
    train, path = str(tmp_path / "a.csv"), str(tmp_path / "m.json")
    columns = ["--document-column", "docid", "--missing", "zero", "--categorical", "brand"]
    assert main(["train", train, *columns, "--model", path, "--set", "leaves=constant", "n_estimators=6"]) == 0
    model = load_model(path)
    data = read_table(train, document="docid", missing="nan", categories=model.category_names)
    save_model(model.over_statistics(), path)
    for plain in (model.over_statistics(), load_model(path)):
        rows = data.replaced(X=model.encoded(data.X), category_names=None)
        np.testing.assert_array_equal(plain.predict(rows), model.predict(data))
        with refused(InvalidInputError, code="export-differs") as caught:
            export_model(plain, "opensearch-ltr", certify=rows)
        assert "of their own" in str(caught.value)
        assert export_model(plain, "painless", certify=rows).certificate.orders_changed == 0


@pytest.mark.parametrize("seed", range(28))
def test_changed_orders_are_those_of_a_slow_reference(seed):
    trial(seed)


def shop(seed=0, n_queries=27):
    """Logged features with missing values: `age` is missing for a third of the documents, which are often good."""
    rng = np.random.default_rng(seed)
    n = 12 * n_queries
    X = np.column_stack([np.round(rng.lognormal(size=n), 3), np.round(rng.uniform(1, 9, size=n), 1)])
    y = np.clip(np.round(X[:, 0] - 0.3 * X[:, 1] + 1), 0, 3)
    X[rng.uniform(size=n) < 0.33, 1] = np.nan
    return RankingData(X, y, np.repeat(np.arange(n_queries), 12), feature_names=["bm25", "age"])


def write(data, path):
    lines = ["qid,y,bm25,age"]
    for q, y, (a, b) in zip(data.qid, data.y, data.X):
        lines.append(f"{q},{y:g},{a},{'' if np.isnan(b) else b}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_a_changed_order_needs_force_on_the_command_line(tmp_path, capsys):
    train, test = write(shop(), tmp_path / "train.csv"), write(shop(1), tmp_path / "test.csv")
    model, out = str(tmp_path / "model.json"), tmp_path / "solr.json"
    settings = ["--ranker", "oblivious-boosting", "--set", "leaves=constant", "n_estimators=20", "depth=3"]
    assert main(["train", train, "--model", model, "--missing", "nan", *settings]) == 0
    line = ["export", model, "--to", "solr", "-o", str(out)]
    capsys.readouterr()
    assert main([*line, "--certify", test]) == 1
    assert not out.exists()
    said = capsys.readouterr().err
    ranker, data = load_model(model), shop(1)
    zero = scored_by_solr(export_model(ranker, "solr", force=True), data.X, data.feature_names)
    orders, firsts = counted(ranker.predict(data), [zero], data.offsets, 0.0)
    assert orders > firsts > 0
    assert f"{orders} of 27 queries change their order, {firsts} their first document" in said
    assert "--force" in said
    assert main([*line, "--certify", test, "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["orders_changed"], report["firsts_changed"]) == (orders, firsts)
    assert report["exit_code"] == 1
    assert not out.exists()
    assert main([*line, "--certify", test, "--json", "--force"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["orders_changed"], report["firsts_changed"]) == (orders, firsts)
    assert report["rank_agreement"] == 1 - orders / 27
    assert report["missing_rows"] == int(np.isnan(data.X).any(axis=1).sum())
    assert main([*line, "--certify", test, "--force"]) == 0
    first = capsys.readouterr().err.splitlines()[0]
    assert first.startswith(f"solr: {orders} of 27 queries change their order, {firsts} their first document")
    assert main(line) == 1  # generated rows cannot show what happens to missing values
    assert "--certify" in capsys.readouterr().err


@pytest.mark.parametrize("ranker", ["oblivious-boosting", "ridge", "rank-boost"])
def test_a_model_trained_with_zero_agrees_with_engines_that_read_zero(tmp_path, capsys, ranker):
    train, test = write(shop(), tmp_path / "train.csv"), write(shop(1), tmp_path / "test.csv")
    model = str(tmp_path / "model.json")
    leaves = ["--set", "leaves=constant"] if ranker == "oblivious-boosting" else []
    assert main(["train", train, "--model", model, "--missing", "zero", "--ranker", ranker, *leaves]) == 0
    for format in ("solr", "opensearch-ltr", "painless"):
        for more in ([], ["--missing", "nan"]):  # as in training; or as they are
            out = str(tmp_path / "out")
            assert main(["export", model, "--to", format, "--certify", test, "-o", out, *more]) == 0
            assert "0 of 27 queries change their order" in capsys.readouterr().err
    own = load_model(model)
    assert own.reading_["missing"] == "zero"
    data = shop(1)
    filled = np.where(np.isnan(data.X), 0.0, data.X)
    np.testing.assert_array_equal(own.predict(data.X), own.predict(filled))
    np.testing.assert_array_equal(own.predict(data), own.predict(data.replaced(X=filled)))
    assert np.isnan(data.X).any()  # the caller's
    save_model(own, model)
    assert load_model(model).reads_missing_as_zero
    own.fit(data.replaced(X=filled))
    assert not own.reads_missing_as_zero


def test_missing_zero_reads_text_and_tables(tmp_path):
    (tmp_path / "a.txt").write_text("1 qid:1 1:0.5 2:nan\n0 qid:1 1:NULL 2:3\n")
    (tmp_path / "a.csv").write_text("qid,y,a,b\n1,1,0.5,\n1,0,,3\n")
    for data in (
        read_letor(tmp_path / "a.txt", missing="zero"),
        read_letor(tmp_path / "a.txt", missing="zero", sparse=True),
        read_table(tmp_path / "a.csv", missing="zero"),
    ):
        X = data.X.toarray() if hasattr(data.X, "toarray") else data.X
        assert X.tolist() == [[0.5, 0.0], [0.0, 3.0]]


def test_a_category_that_is_missing_remains_missing(tmp_path):
    (tmp_path / "a.csv").write_text("qid,y,a,b\n1,1,x,\n1,0,,3\n")
    data = read_table(tmp_path / "a.csv", missing="zero", categories=["a"])
    np.testing.assert_array_equal(data.X, [[0.0, 0.0], [np.nan, 3.0]])


@pytest.mark.parametrize("planted", ["total = -total", "total = total + 42"])
def test_an_error_in_the_text_of_the_script_is_found(monkeypatch, planted):
    monkeypatch.setitem(program._BODIES, "oblivious", f"{program._OBLIVIOUS}{planted}\n")
    model = MODELS["constant"]().fit(shop().replaced(X=np.nan_to_num(shop().X)))
    data = shop(1).replaced(X=np.nan_to_num(shop(1).X))
    with refused(InvalidInputError, code="export-differs"):
        export_model(model, "painless", certify=data)


@pytest.mark.parametrize("format", FORMATS)
def test_a_certificate_says_what_was_evaluated(format):
    if format == "onnx":
        pytest.importorskip("onnx")
    own = export_model(MODELS["constant"]().fit(drawn(np.random.default_rng(0), False)), format, force=True).certificate
    assert own.evaluated in str(own)
    assert "not checked" not in own.evaluated


def test_models_that_read_missing_values_otherwise_are_evaluated_together(tmp_path, capsys):
    train, test = write(shop(), tmp_path / "train.csv"), write(shop(1), tmp_path / "test.csv")
    models = {missing: str(tmp_path / f"{missing}.json") for missing in ("zero", "nan")}
    for missing, path in models.items():
        settings = ["--ranker", "oblivious-boosting", "--set", "leaves=constant", "n_estimators=20"]
        assert main(["train", train, "--model", path, "--missing", missing, *settings]) == 0
    data = shop(1)
    own = {missing: load_model(path).score(data) for missing, path in models.items()}
    assert own["zero"] != own["nan"]
    for paths in (list(models.values()), list(reversed(models.values()))):
        capsys.readouterr()
        assert main(["compare", *paths, "--data", test, "--measures", "nDCG@10", "--json"]) == 0
        said = capsys.readouterr().out
        for score in own.values():
            assert repr(float(score)) in said
