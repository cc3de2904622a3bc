"""The page on which people judge, in a browser: keys grade, move and take back, and the saved file is read back."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from truerank import plan_judgements, read_plan
from truerank.cli import main
from truerank.report.judging import judging_page

RUNS = {
    name: {f"t{t}": {f"d{d}": float((d * (7 + shift) + t) % 11) for d in range(12)} for t in range(3)}
    for name, shift in (("a", 0), ("b", 2))
}
KEYS = """<script>
const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key }));
const seen = [];
const look = () => {
  const shown = [...document.querySelectorAll("article")].filter((one) => one.offsetParent !== null);
  seen.push([shown.length, document.querySelector("#left").textContent]);
};
URL.createObjectURL = (blob) => { blob.text().then((text) => {
  const out = document.createElement("pre");
  out.id = "out";
  out.textContent = JSON.stringify({ seen, text });
  document.body.append(out);
}); return "#"; };
look(); press("3"); look(); press("9"); look(); press("1"); look(); press("u"); look(); press("2"); look();
press("ArrowLeft"); look();
document.querySelector("#save").click();
</script>"""


ALL = """<script>
URL.createObjectURL = (blob) => { blob.text().then((text) => {
  const out = document.createElement("pre");
  out.id = "out";
  out.textContent = JSON.stringify({ left: document.querySelector("#left").textContent, text });
  document.body.append(out);
}); return "#"; };
for (let k = 0; k < document.querySelectorAll("article").length; k++)
  document.dispatchEvent(new KeyboardEvent("keydown", { key: String((7 * k) % 5) }));
document.querySelector("#save").click();
</script>"""
browser = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")


def in_browser(page, script, folder):
    """Return what a script leaves in the page; without the policy, so that this script may run."""
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    (folder / "page.html").write_text(page.replace("</body>", f"{script}</body>"))
    words = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000",
             f"--user-data-dir={folder}/profile", "--dump-dom", f"file://{folder}/page.html"]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, timeout=200)
    return json.loads(html.unescape(re.search(r'<pre id="out">(.*?)</pre>', done.stdout, re.DOTALL)[1]))


@browser
def test_a_thousand_documents_are_graded_and_read_back_exactly(tmp_path):
    rng = np.random.default_rng(0)
    ids = [f'd,{k} "ü"' for k in range(40)]
    runs = {name: {f"t{t}": dict(zip(ids, rng.normal(size=40).tolist())) for t in range(30)} for name in "ab"}
    plan = plan_judgements(runs, "DCG@40", budget=1100)
    assert len(plan.to_judge) >= 1000
    found = in_browser(judging_page(plan, {}, {}, "plan.csv"), ALL, tmp_path)
    assert found["left"].endswith(" 0 left")
    (tmp_path / "plan.csv").write_text(found["text"], encoding="utf-8")
    read = read_plan(tmp_path / "plan.csv")
    shown = sorted((row for row in plan.rows() if row[5] == "yes"), key=lambda row: row[0])
    expected = {tuple(row[:2]): float((7 * k) % 5) for k, row in enumerate(shown)}
    assert {(t, d): grade for t, given in read.judged.items() for d, grade in given.items()} == expected
    assert [row[:6] for row in read.rows()] == [row[:6] for row in plan.rows()]


@pytest.mark.filterwarnings("ignore:.*without a grade")
def test_the_files_of_two_judges_merge_and_may_not_contradict(tmp_path, capsys):
    for name, run in RUNS.items():
        (tmp_path / f"{name}.run").write_text(
            "".join(f"{t} Q0 {d} 1 {score} x\n" for t, scores in run.items() for d, score in scores.items())
        )
    plan = plan_judgements(RUNS, "DCG@5", budget=12)
    drawn = plan.to_judge

    def grades(chosen):
        return plan.with_grades({t: {d: 2 + int(d[1:]) % 2 for u, d in chosen if u == t} for t, _ in chosen})

    for name, part in (("all", drawn), ("one", drawn[::2]), ("two", drawn[1::2])):
        grades(part).write(tmp_path / f"{name}.csv")
    words = ["judge", "estimate", *(str(tmp_path / f"{name}.run") for name in RUNS), "--measure", "DCG@5", "--json"]

    def estimated(*more):
        code = main([*words, *more])
        return code, json.loads(capsys.readouterr().out)

    whole = estimated("--plan", str(tmp_path / "all.csv"))
    merged = estimated("--plan", str(tmp_path / "one.csv"), "--human", str(tmp_path / "two.csv"))
    assert whole[0] == merged[0] == 0
    assert merged[1]["differences"] == whole[1]["differences"]
    plan.with_grades({drawn[0][0]: {drawn[0][1]: 1}}).write(tmp_path / "other.csv")
    code, found = estimated("--plan", str(tmp_path / "one.csv"), "--human", str(tmp_path / "other.csv"))
    assert code == 1
    assert (
        f"document {drawn[0][1]}: the plan has grade {2 + int(drawn[0][1][1:]) % 2}, but the labels have 1"
        in found["error"]
    )


@browser
def test_keys_grade_move_and_take_back(tmp_path):
    plan = plan_judgements(RUNS, "DCG@5", budget=12)
    page = judging_page(plan, {}, {}, "plan.csv", meanings={3: "fully"})
    found = in_browser(page, KEYS, tmp_path)
    n = len(plan.to_judge)
    assert n > 3
    shown, said = zip(*found["seen"])
    assert set(shown) == {1}
    places = [(1, n), (2, n - 1), (2, n - 1), (3, n - 2), (2, n - 1), (3, n - 2), (2, n - 2)]
    assert list(said) == [f"document {k} of {n}, {left} left" for k, left in places]
    (tmp_path / "plan.csv").write_text(found["text"])
    grades = [
        row[-1] for row in sorted(read_plan(tmp_path / "plan.csv").rows(), key=lambda row: row[0]) if row[-1] != ""
    ]
    assert sorted(map(float, grades)) == [2.0, 3.0]
