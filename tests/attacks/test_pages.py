"""Surface: the pages that `report` and `judge` write. Only their own scripts may run, and nothing is loaded or sent."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess

import pytest

from truerank import plan_judgements
from truerank.core.charts import Chart
from truerank.report.judging import judging_page
from truerank.report.page import Section, chart, data_table, page

RUNS = {"a": {"1": {"x": 2.0, "<script>": 1.0}}, "b": {"1": {"<script>": 2.0, "x": 1.0}}}
PLOT = {"mark": "bar", "encoding": {"x": {"field": "x", "type": "quantitative", "bin": True}},
        "data": {"values": [{"x": 1.5}, {"x": 2.5}]}}  # fmt: skip


def report():
    pytest.importorskip("vl_convert")
    table = data_table(["a", "b"], [["</script><script>alert(1)</script>", 2.0]], "rows")
    return page("title", "text", [Section("one", "One", chart(Chart(PLOT, "plot")) + table)])


def judging():
    return judging_page(plan_judgements(RUNS, "DCG@3", budget=2), {"x": "<img src=x onerror=alert(1)>"}, {})


@pytest.mark.parametrize("make", [report, judging])
def test_the_policy_names_every_script_and_allows_nothing_else(make):
    text = make()
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
    assert text.index("Content-Security-Policy") < text.index("<script")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    scripts = re.findall(r"<script(?: type=module)?>(.*?)</script>", text, re.DOTALL)
    found = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert rules["script-src"].split() == [f"'sha256-{one}'" for one in found]
    assert "unsafe-eval" not in policy


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
@pytest.mark.parametrize("make", [report, judging])
@pytest.mark.parametrize("planted", ["", "<script>document.title = 'planted'</script>"])
def test_a_browser_runs_the_page_and_no_other_script(make, planted, tmp_path):
    head, _, end = make().rpartition("</body>")
    (tmp_path / "page.html").write_text(f"{head}{planted}</body>{end}")
    words = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
             "--virtual-time-budget=20000", f"--user-data-dir={tmp_path}/profile", "--dump-dom"]  # fmt: skip
    done = subprocess.run([*words, f"file://{tmp_path}/page.html"], capture_output=True, text=True, timeout=200)
    assert ("CONSOLE" in done.stderr) == bool(planted)
    assert "<title>planted" not in done.stdout
    if make is report:
        assert 'data-drawn="yes"' in done.stdout
        assert re.search("<td[^>]*>&lt;/script&gt;", done.stdout)
    else:
        assert "document 1 of 2, 2 left</span>" in done.stdout
