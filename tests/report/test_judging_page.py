"""The page on which people judge, in a browser: keys grade, move and take back, and the saved file is read back."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import pytest

from truerank import plan_judgements, read_plan
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


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_keys_grade_move_and_take_back(tmp_path):
    plan = plan_judgements(RUNS, "DCG@5", budget=12)
    page = judging_page(plan, {}, {}, "plan.csv", meanings={3: "fully"})
    page = re.sub(
        r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page
    )  # so that the keys of this test may run
    (tmp_path / "page.html").write_text(page.replace("</body>", f"{KEYS}</body>"))
    words = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000",
             f"--user-data-dir={tmp_path}/profile", "--dump-dom", f"file://{tmp_path}/page.html"]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, timeout=200)
    found = json.loads(html.unescape(re.search(r'<pre id="out">(.*?)</pre>', done.stdout, re.DOTALL)[1]))
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
