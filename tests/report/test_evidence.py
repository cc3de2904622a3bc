"""The report page: what it says, that it asks for nothing, and what a browser makes of it."""

from __future__ import annotations

import json
import re
import shutil
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from support.refusals import refused
from truerank import (
    AdaRank,
    CalibratedRanker,
    Experiment,
    ObliviousBoosting,
    RankingData,
    RidgeRanker,
    SingleFeature,
    load_model,
    load_sample,
    ranking_stability,
    read_letor,
    save_model,
    write_letor,
)
from truerank.cli import main
from truerank.core.errors import InvalidInputError
from truerank.data.columns import names_of
from truerank.data.ranking_data import Judgements
from truerank.data.row_source import HeldRows
from truerank.report.evidence import make_report

pytest.importorskip("vl_convert")


class System(NamedTuple):
    name: str
    judgements: Judgements
    scores: np.ndarray


def made_systems(queries=30, documents=8, systems=2, seed=0):
    rng = np.random.default_rng(seed)
    offsets = np.arange(0, queries * documents + 1, documents)
    grades = rng.integers(0, 3, queries * documents).astype(float)
    judgements = Judgements(grades, offsets, query_ids=np.array([f"q{i}" for i in range(queries)]))
    return [System(f"system {k}", judgements, grades * k + rng.normal(size=len(grades))) for k in range(systems)]


def page_of(systems, measures="nDCG@10 AP RR", convention="trec", baseline="system 0", **settings):
    """The page of systems over the judgements of the first one, which is the baseline."""
    scores = {system.name: system.scores for system in systems}
    baseline = baseline if baseline in scores else None
    experiment = Experiment(systems[0].judgements, scores, measures, convention=convention, baseline=baseline)
    return make_report(experiment.evidence(), **settings)


MODELS = ("ridge", "ada", "calibrated")


def data_of(page: str, key: str) -> list[dict]:
    """The JSON data in the page that have a key."""
    found = [json.loads(text) for text in re.findall(r'<script type="application/json">(.*?)</script>', page, re.S)]
    return [item for item in found if key in item]


def test_what_it_says():
    systems = made_systems()
    page = page_of(systems, measures="AP", convention="trec", made_by="truerank report <&>")
    for part in (
        "Summary",
        "Measures",
        "Better than system 0?",
        "Queries",
        "Wrong pairs by grade",
        "Rankings of a query",
    ):
        assert part in page
    assert "truerank report &lt;&amp;&gt;" in page
    (table,) = data_of(page, "columns")
    assert table["columns"] == ["query", "documents", "relevant", "difference", "system 0", "system 1"]
    from truerank import evaluate

    values = [evaluate(s.judgements, s.scores, "AP", convention="trec").per_query["AP"] for s in systems]
    np.testing.assert_allclose([row[3] for row in table["rows"]], sorted(values[1] - values[0], reverse=True))
    (ranked,) = data_of(page, "systems")
    first = ranked["queries"]["q0"][1]
    own = systems[1].scores[:8]
    assert [document["score"] for document in first] == sorted(own.tolist(), reverse=True)
    assert len(page) < 3_000_000


@pytest.mark.parametrize("convention", ["trec", "ranklib"])
def test_rankings_have_the_order_of_the_measure(convention):
    """Equal scores stand as the convention orders them, and rows without ids count within their query."""
    rng = np.random.default_rng(5)
    order = rng.permutation(72)
    qid, grades = np.repeat([f"q{k}" for k in range(12)], 6)[order], rng.integers(0, 3, 72).astype(float)
    scores = {name: rng.integers(0, 2, 72).astype(float) for name in "ab"}
    for ids in (None, [f"d{k}" for k in order]):
        own = Experiment(grades, scores, "nDCG@3", qid=qid, doc_ids=ids, convention=convention)
        rankings, found = own.evidence().rankings, own.evaluate()
        for query, sides in rankings.queries.items():
            rows, number = np.flatnonzero(qid == query), own.query_ids.tolist().index(query)
            for name, side in zip(rankings.systems, sides):
                shown = np.array([document["grade"] for document in side])
                if ids is None:
                    places = [int(document["id"].split()[1]) - 1 for document in side]
                    assert grades[rows[places]].tolist() == shown.tolist()
                gain = 2.0**shown - 1 if convention == "ranklib" else shown
                value, best = (gains[:3] @ (1 / np.log2([2, 3, 4])) for gains in (gain, np.sort(gain)[::-1]))
                assert found[name].per_query["nDCG@3"][number] == pytest.approx(value / best if best else 0.0)


def test_the_headline_of_one_system_has_its_interval():
    from truerank import evaluate

    (system,) = made_systems(systems=1)
    values = evaluate(system.judgements, system.scores, "AP", convention="trec").per_query["AP"]
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
    low, high = values.mean() - half, values.mean() + half
    page = page_of([system], measures="AP", convention="trec")
    assert f"AP of system 0 is {values.mean():.4f} (95 % interval {low:.4f} to {high:.4f}) over 30 queries." in page


def test_p_is_corrected_over_all_systems_and_measures():
    from truerank import evaluate
    from truerank.significance import MeasuredValues, compare_measures

    systems = made_systems(systems=3)
    page = page_of(systems, measures="AP nDCG@10", convention="trec")
    about = "AP, nDCG@10, convention trec (trec_eval 10); 30 queries; randomisation test, two-sided (10000 resamples); "
    assert about + "p corrected by max-T and Holm, 4 : 1, for 4 comparisons (2 pairs × 2 measures)" in page
    found = [evaluate(s.judgements, s.scores, "AP nDCG@10", convention="trec").per_query for s in systems]
    values = [MeasuredValues({s.name: one[m] for s, one in zip(systems, found)}) for m in ("AP", "nDCG@10")]
    expected = compare_measures(values, baseline="system 0")
    pair = expected[0].pairs[1]
    assert f"(p = {pair.p_adjusted:.3g} after correction)" in page
    rows = re.findall(r"<td[^>]*>(system \d)[^<]*</td>", page[page.index('id="measures"') : page.index("<details")])
    assert rows == sorted(rows, key=lambda name: -found[int(name[-1])]["AP"].mean())  # one row each, the best first


def test_a_measure_without_any_value_is_not_compared():
    systems = made_systems()
    judged = systems[0].judgements
    none = Judgements(np.zeros(len(judged.grades)), judged.offsets, query_ids=judged.query_ids)
    page = page_of(
        [System(s.name, none, s.scores) for s in systems], measures=["P@5", "AP(empty='skip')"], convention="trec"
    )
    assert "for 1 comparison," in page


def test_it_asks_for_nothing_and_ends_no_script_early():
    systems = made_systems(queries=3)
    names = np.array(["</script><b>", "<!--", "q"])
    judged = Judgements(systems[0].judgements.grades, systems[0].judgements.offsets, query_ids=names)
    page = page_of([System("<i>one</i>", judged, systems[0].scores)])
    assert "<i>one" not in page
    assert "</script><b>" not in page
    assert not re.findall(r'(?:src|href)="(?!#|data:)', re.sub(r"<script.*?</script>", "", page, flags=re.S))
    assert page.count("<script") == page.count("</script>")


def test_the_verdict_is_the_headline():
    systems = made_systems(queries=40)
    text = page_of(systems)
    summary = text[text.index('id="summary"') : text.index('id="measures"')]
    assert "system 1 is better than system 0.</p>" in summary
    alone = page_of(systems[:1])
    assert '<p class="headline">nDCG@10 of system 0 is 0.' in alone
    reverse = page_of(systems[::-1])
    assert "system 1 is better than system 0.</p>" in reverse  # the baseline may be the better one
    names = re.findall(r"<details><summary><h2[^>]*>([^<]*)</h2>", text)
    assert names[0] == "Better than system 0?"
    assert "Rankings of a query" in names


def test_what_is_refused():
    first, other = made_systems(queries=3)
    scores = {first.name: first.scores, other.name: other.scores}
    with refused(InvalidInputError, code="no-system"):
        Experiment(first.judgements, {})
    with refused(InvalidInputError, argument="baseline"):
        Experiment(first.judgements, scores, baseline="third")
    with pytest.raises(InvalidInputError, match="geometric"):
        Experiment(first.judgements, scores, "GMAP AP").evidence()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A page of models over the sample, and one of 10,000 queries."""
    folder = tmp_path_factory.mktemp("report")
    sample = load_sample()
    train, test = sample.take_queries(np.arange(40)), sample.take_queries(np.arange(40, 60))
    save_model(RidgeRanker().fit(train), folder / "ridge.json")
    save_model(AdaRank(n_estimators=10).fit(train), folder / "ada.json")
    save_model(CalibratedRanker(RidgeRanker(), "platt").fit(train), folder / "calibrated.json")
    write_letor(test, folder / "test.txt")
    models = [str(folder / f"{name}.json") for name in MODELS]
    output = str(folder / "models.html")
    assert main(["report", *models, "--data", str(folder / "test.txt"), "-o", output]) == 0
    (folder / "many.html").write_text(page_of(made_systems(queries=10_000, documents=5)), encoding="utf-8")
    return folder


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_models_are_explained(pages):
    text = (pages / "models.html").read_text(encoding="utf-8")
    for part in ("Weights and importance", "Calibration of the probabilities", "Data quality"):
        assert part in text
    (ranked,) = data_of(text, "systems")
    document = next(iter(ranked["queries"].values()))[0][0]
    assert document["why"]


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.filterwarnings("ignore:.*used for training")
def test_models_of_different_columns_find_their_own(pages, tmp_path):
    write = ["--features", "1-4"], ["--features", "3-8"]
    models = []
    for number, columns in enumerate(write):
        models.append(str(tmp_path / f"{number}.json"))
        train = ["train", str(pages / "test.txt"), "--ranker", "ridge", *columns, "--model", models[-1]]
        assert main(train) == 0
    output = tmp_path / "both.html"
    assert main(["report", *models, "--data", str(pages / "test.txt"), "-o", str(output)]) == 1
    allowed = ["--data", str(pages / "test.txt"), "--training-queries", "keep", "-o", str(output)]
    assert main(["report", *models, *allowed]) == 0
    assert "No verdict" in output.read_text(encoding="utf-8")
    (ranked,) = data_of(output.read_text(encoding="utf-8"), "systems")
    sides = next(iter(ranked["queries"].values()))
    asked = [{name for document in side for name, _ in document["why"]} for side in sides]
    names = names_of(read_letor(pages / "test.txt"))
    assert set() < asked[0] <= set(names[:4])
    assert set() < asked[1] <= set(names[2:8])


@pytest.mark.parametrize("ending", ["md", "html"])
def test_remedies_are_those_of_the_front_end(tmp_path, ending):
    r = np.random.default_rng(0)
    y = r.integers(0, 3, size=60)
    data = RankingData(np.column_stack([r.normal(size=60), y]), y, np.repeat(np.arange(12), 5))
    save_model(SingleFeature(0).fit(data.take_queries([0, 1])), tmp_path / "m.json")
    write_letor(data, tmp_path / "d.txt")
    texts = []
    assert (
        main(
            ["report", str(tmp_path / "m.json"), "--data", str(tmp_path / "d.txt"), "-o", str(tmp_path / f"r.{ending}")]
        )
        == 0
    )
    texts.append((tmp_path / f"r.{ending}").read_text(encoding="utf-8"))
    Experiment(str(tmp_path / "d.txt"), str(tmp_path / "m.json")).report(tmp_path / f"p.{ending}")
    texts.append((tmp_path / f"p.{ending}").read_text(encoding="utf-8"))
    assert ["--exclude 2" in text for text in texts] == [True, False]
    assert ["exclude=[" in text for text in texts] == [False, True]


def test_rows_in_parts_have_a_report_without_the_details_of_rows():
    data = load_sample().take_queries(np.arange(30))
    model = RidgeRanker().fit(data.take_queries(np.arange(10)))
    parts = HeldRows([data.take_queries(np.arange(10, 20)), data.take_queries(np.arange(20, 30))])
    none = [np.zeros(n) for n in parts.rows_by_part]
    kept = Experiment(parts, {"m": model, "none": none}, "AP").evidence()
    whole = Experiment(data.take_queries(np.arange(10, 30)), {"m": model, "none": np.zeros(parts.n_rows)}, "AP")
    own, every = (json.loads(one.in_format(".json")) for one in (kept, whole.evidence()))
    assert set(every["details"]) - set(own["details"]) == {"findings"}
    assert own["details"]["queries"] == every["details"]["queries"]
    assert "Rankings of a query" in make_report(kept)


def numbers_of(value):
    """All numbers in a value of JSON."""
    if isinstance(value, dict):
        value = [own for key, own in value.items() if key != "place"]  # of a bar
    if isinstance(value, list):
        return [number for own in value for number in numbers_of(own)]
    return [] if value is None or isinstance(value, str) else [float(value)]


def figures_of(value):
    """The numbers of the data of a chart, a table or rankings."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    own = (numbers_of(part) if key in ("values", "rows", "queries") else figures_of(part) for key, part in parts)
    return [number for each in own for number in each]


def shown_numbers(page):
    """The figures of tables, charts and rankings in a page, each with its digits after the point."""
    found = []
    for text in re.findall(r"<td[^>]*>([^<]*)</td>", page[: page.index('id="making"')]):
        if not re.search(r"[a-z]{2}", text):
            found += [(float(own), len(own.partition(".")[2])) for own in re.findall(r"-?\d+(?:\.\d+)?", text)]
    for data in re.findall(r'<script type="application/json">(.*?)</script>', page, re.S):
        found += [(number, 9) for number in figures_of(json.loads(data))]
    return found


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("kind", ["models", "runs", "scores"])
def test_every_figure_of_the_page_is_in_the_json_and_the_tables_in_markdown(request, kind):
    if kind == "models":
        pages = request.getfixturevalue("pages")
        data, models = read_letor(pages / "test.txt"), [load_model(pages / f"{name}.json") for name in MODELS]
        experiment = Experiment(data, dict(zip(MODELS, models)), "nDCG@10 AP")
    elif kind == "runs":
        r = np.random.default_rng(0)
        qrels = {f"q{k}": {f"d{i}": int(r.integers(0, 3)) for i in range(6)} for k in range(20)}
        runs = {name: {q: {f"d{i}": float(r.normal()) for i in range(9)} for q in qrels} for name in "abc"}
        experiment = Experiment(qrels, runs, "nDCG@5 P@5")
    else:
        systems = made_systems()
        experiment = Experiment(systems[0].judgements, {one.name: one.scores for one in systems}, "AP RR")
    page = make_report(experiment.evidence())
    evidence = experiment.evidence()
    report, markdown = json.loads(evidence.in_format(".json")), evidence.in_format(".md")
    known, shown = np.unique(np.abs(numbers_of(report))), shown_numbers(page)
    assert len(shown) > 300
    for value, digits in shown:
        near = np.abs(known - abs(value)).min()
        assert near <= 0.5 * 10.0**-digits + 1e-9, value
    for name, detail in evidence.details.items():
        assert report["details"][name]["columns"] == detail.columns
        assert f"<summary>{detail.title}</summary>" in markdown
        assert f"{detail.title}</h2>" in page
    assert {"models": "probabilities", "runs": "queries", "scores": "pairs"}[kind] in report["details"]


def test_of_columns_alone_only_queries_and_grades_are_checked(tmp_path):
    rng = np.random.default_rng(0)
    header = "qid,y,docid,kind,first,second,third"
    lines = [
        f"{q},{int(d < 2)},{d},{['even', 'odd'][q % 2]},1,{rng.random()},{rng.random()}"
        for q in range(12)
        for d in range(4)
    ]
    (tmp_path / "rows.csv").write_text("\n".join([header, *lines]) + "\n")
    told = ["--data", str(tmp_path / "rows.csv"), "--scores", "second", "--baseline", "first", "--segments", "kind"]
    assert main(["report", *told, "-o", str(tmp_path / "page.html")]) == 0
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Data quality" in text
    assert "identical-rows" not in text
    assert "conflicting-grades" not in text
    assert "unjudged" not in text.partition("<script type=module>")[0]
    assert "second against first" in text
    tables = text.partition("<script type=module>")[0].count("<table>")
    assert tables == text.count('<div class="scroll ') > 3
    assert text.count("sha256 ") == 1  # columns are no files


def test_runs(tmp_path, capsys):
    (tmp_path / "q.txt").write_text("1 0 a 1\n1 0 b 0\n2 0 c 2\n")
    (tmp_path / "one.run").write_text("1 Q0 a 1 2.0 x\n1 Q0 b 2 1.0 x\n2 Q0 c 1 1.0 x\n")
    (tmp_path / "two.run").write_text("1 Q0 b 1 2.0 x\n1 Q0 z 2 1.0 x\n")
    output = str(tmp_path / "r.html")
    runs = [str(tmp_path / "one.run"), str(tmp_path / "two.run")]
    assert main(["report", "--qrels", str(tmp_path / "q.txt"), "--run", *runs, "--topics", "all", "-o", output]) == 0
    assert "convention trec" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert main(["report", "-o", output]) == 2
    assert main(["report", "--qrels", str(tmp_path / "q.txt"), "-o", output]) == 2
    capsys.readouterr()


@pytest.mark.parametrize("name", ["models", "many"])
def test_in_a_browser(pages, name):
    sync_api = pytest.importorskip("playwright.sync_api")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium on this machine")
    problems: list[str] = []
    with sync_api.sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        try:
            for scheme, width in (("light", 1280), ("dark", 390)):
                view = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 844})
                page = view.new_page()
                page.set_default_timeout(180_000)  # ms; a busy machine is no defect of the page
                page.on("console", lambda m: problems.append(m.text) if m.type in ("error", "warning") else None)
                page.on("pageerror", lambda error: problems.append(str(error)))
                page.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else problems.append(r.url))
                page.goto((pages / f"{name}.html").as_uri())
                page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
                page.wait_for_function(
                    "document.documentElement.dataset.ready === 'yes' && "
                    "[...document.querySelectorAll('.chart')].every(c => c.dataset.drawn === 'yes')"
                )
                assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
                found = axe.Axe().run(page).response["violations"]
                assert [v["id"] for v in found if v["impact"] in ("serious", "critical")] == []
            last = page.locator(".data-table th").last
            last.get_by_role("button").click()
            assert last.get_attribute("aria-sort") == "descending"
            shown = [float(text) for text in page.locator(".data-table tbody tr td:last-child").all_inner_texts()]
            assert shown == sorted(shown, reverse=True)
            mark = page.locator(".chart").first.locator("svg .mark-symbol path, svg .mark-rect path").first
            mark.scroll_into_view_if_needed()
            mark.hover(force=True)
            page.wait_for_selector("#vg-tooltip-element.visible")
            page.locator(".data-table input").fill("no such query")
            assert page.locator(".data-table [role=status]").inner_text() == "nothing found"
            box = page.locator("#query-box")
            names = box.locator("option").all_inner_texts()
            before = page.locator(".rankings .sides").inner_text()
            box.select_option(names[-1])
            assert page.locator(".rankings .sides").inner_text() != before
        finally:
            browser.close()
    assert problems == []


def test_the_best_of_several_has_a_simultaneous_interval():
    from truerank import evaluate
    from truerank.significance import MeasuredValues, compare_measures

    systems = made_systems(systems=4)
    own = [evaluate(s.judgements, s.scores, "AP", convention="trec").per_query["AP"] for s in systems]
    values = MeasuredValues({s.name: one for s, one in zip(systems, own)})
    pairs = compare_measures([values], baseline="system 0")[0].pairs
    best = max(pairs, key=lambda pair: pair.difference)
    page = page_of(systems, measures="AP", convention="trec")
    _, low, high = best.simultaneous
    assert f"single step, {low:+.4f} to {high:+.4f})" in page
    assert low < best.low


def test_without_a_stated_baseline_the_best_systems_are_the_headline():
    systems = made_systems(systems=4, queries=60)
    systems.append(System("twin", systems[3].judgements, systems[3].scores + 0.2 * (np.arange(480) % 7)))
    scores = {system.name: system.scores for system in systems}
    stated = [Experiment(systems[0].judgements, scores, "AP", baseline=name).evidence() for name in (None, "system 0")]
    best, *alike = stated[0].leaders
    means = {name: stated[0].evaluations[name]["AP"] for name in scores}
    assert best == max(means, key=means.get)
    every = Experiment(systems[0].judgements, scores, "AP").compare(pairs="all")
    p = {frozenset((pair.a, pair.b)): pair.p_adjusted for pair in every.pairs}
    assert alike == [name for name in sorted(means, key=means.get, reverse=True)
                     if name != best and p[frozenset((best, name))] >= 0.05]  # fmt: skip
    assert stated[0].summary.startswith(f"{best} has the best AP")
    assert all(name in stated[0].summary for name in alike)
    assert stated[1].leaders == []
    assert "better than system 0" in stated[1].summary
    assert stated[0].summary in make_report(stated[0])


def test_the_headline_names_judging_and_is_withheld_where_the_unjudged_can_reverse_it():
    systems = made_systems()
    grades, offsets = systems[0].judgements.grades, systems[0].judgements.offsets
    few = Judgements(grades, offsets, judged=np.arange(len(grades)) % 5 == 0)
    unjudged = [System(s.name, few, s.scores) for s in systems]
    page = page_of(unjudged, measures="P@5", convention="trec")
    assert "No verdict on" in page
    assert "depending on the unjudged documents, the difference is" in page
    page = page_of(unjudged, measures="nDCG@5", convention="trec")
    assert "are judged; bounds for unjudged documents are not known for nDCG@5)" in page
    assert "are judged" not in page_of(systems, measures="P@5", convention="trec").partition("<details")[0]


def test_the_headline_of_a_measure_where_less_is_better_names_the_better_system():
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 3, 400)
    judged = Judgements(grades, np.arange(0, 401, 10))
    good, bad = grades + 0.1 * rng.random(400), rng.random(400)
    page = page_of([System("bad", judged, bad), System("good", judged, good)], measures="pairs(2,0)")
    assert "good is better than bad." in page


def test_models_with_thresholds_say_how_much_their_rankings_move():
    data = load_sample().take_queries(np.arange(150))
    judged = data.judgements()
    plain, fuzzy = (
        ObliviousBoosting(leaves, n_estimators=20, random_state=0).fit(data) for leaves in ("constant", "fuzzy")
    )
    linear = RidgeRanker().fit(data)
    named = {"plain": plain, "fuzzy": fuzzy, "linear": linear}
    kept = Experiment(data, named, "nDCG@10", training_queries="keep")
    page = make_report(kept.evidence())
    rows = re.search(r'<div class="scroll stability".*?</div>', page, re.S)[0]
    assert "linear" not in rows
    for name in ("plain", "fuzzy"):
        moved = ranking_stability(named[name], data, repeats=3, random_state=0)
        assert re.search(rf"<td[^>]*>{name}</td>.*?{np.nanmean(moved):.4f}", rows, re.S)
    scores = [System(name, judged, data.grouped(model.predict(data))) for name, model in named.items()]
    assert "Stability of the rankings" not in page_of(scores, measures="nDCG@10", convention="ranklib")


def test_one_query_has_no_verdict_and_no_figures_of_a_test():
    text = page_of(made_systems(queries=1))
    summary = text[text.index('id="summary"') : text.index('id="measures"')]
    assert "No verdict on system 1 and system 0: 1 query cannot be tested." in summary
    assert "nan" not in summary.replace("dominant-baseline", "")


def test_without_a_stated_baseline_nothing_is_marked_against_the_first_system():
    text = page_of(made_systems(systems=3), baseline=None)
    measures = text[text.index('id="measures"') : text.index("<details")]
    assert "(baseline)" not in measures
    assert "**" not in measures
    assert "Differences from system 0, the first system" in text
