"""One table of systems and measures: marks, bold, captions and CSV."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess

import numpy as np
import pytest

from truerank.significance.comparison import compare_values
from truerank.significance.tables import paper_table

RANDOM = np.random.default_rng(0)
OLD = RANDOM.random(40)
VALUES = {"old_1": OLD, "better": OLD + 0.1 + 0.01 * RANDOM.random(40), "worse": OLD - 0.1 - 0.01 * RANDOM.random(40)}


@pytest.fixture(scope="module")
def against_old():
    return {"AP": compare_values(VALUES, baseline="old_1"), "RR%": compare_values(VALUES, baseline="old_1")}


def test_latex_marks_what_differs_from_the_baseline(against_old):
    text = paper_table(against_old, "latex")
    assert "means over 3 of the 4 topics; 40 queries" in paper_table(
        against_old, "latex", "means over 3 of the 4 topics"
    )
    assert "(p $<$ 0.05)." in text  # a bare < is another character in LaTeX's text
    means = {name: f"{values.mean():.4f}" for name, values in VALUES.items()}
    lines = text.splitlines()
    better = rf"\textbf{{{means['better']}}}\textsuperscript{{+}}"
    assert rf"better & {better} & {better} \\" in lines
    assert rf"old\_1 & {means['old_1']} & {means['old_1']} \\" in lines
    worse = rf"{means['worse']}\textsuperscript{{-}}"
    assert rf"worse & {worse} & {worse} \\" in lines
    assert r"ranker & AP & RR\% \\" in lines
    assert [line for line in lines if line.endswith("rule")] == [r"\toprule", r"\midrule", r"\bottomrule"]
    assert "40 queries" in text
    assert text.count("{") == text.count("}")
    assert "%" not in text.replace(r"\%", "")


def test_all_pairs_have_letters():
    text = paper_table({"AP": compare_values(VALUES, baseline=None)}, "markdown")
    first, second, third = text.splitlines()[2:5]
    assert first.startswith("| better (a) | **")
    assert first.endswith("<sup>bc</sup> |")
    assert second.startswith("| old_1 (b) | ")
    assert second.endswith("<sup>c</sup> |")
    assert third.startswith("| worse (c) | ")
    assert "<sup>" not in third


@pytest.mark.parametrize("baseline", ["old_1", None])
def test_more_columns_on_request(baseline):
    found = compare_values(VALUES, measure="AP", baseline=baseline)
    text = found.to_latex(show=["intervals", "effects", "ranks"])
    head, better = (next(line for line in text.splitlines() if line.startswith(name)) for name in ("ranker", "better"))
    pair = next(pair for pair in found.pairs if {pair.a, pair.b} == {"better", "old_1"})
    if baseline is None:
        assert head == r"ranker & AP & 95\% interval & ranks \\"
        low, high = found.intervals["better"][1:]
        assert better.endswith(rf" & [{low:.4f}, {high:.4f}] & 1 \\")
        assert text.count("& ranks") == 1
    else:
        assert head == r"ranker & AP & 95\% interval & d \\"
        assert better.endswith(rf" & [{pair.low:+.4f}, {pair.high:+.4f}] & {pair.effect:.2f} \\")
        assert r"old\_1 & " in text
    assert {line.count("&") for line in text.splitlines() if line.endswith(r"\\")} == {head.count("&")}


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs a TeX distribution with booktabs")
@pytest.mark.parametrize("show", [[], ["intervals", "effects", "ranks"]])
def test_latex_compiles(show, tmp_path):
    names = {"a_b & c%": OLD, "#1 {x}": OLD + 0.1, "~^\\": OLD - 0.1, "é": OLD}
    table = compare_values(names, measure="nDCG(gain='linear')@10").to_latex(show=show, rope=0.01 if show else None)
    head = [r"\documentclass{article}", r"\usepackage{booktabs}", r"\begin{document}"]
    (tmp_path / "paper.tex").write_text("\n".join([*head, table, r"\end{document}"]), encoding="utf-8")
    done = subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"], cwd=tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "paper.pdf").stat().st_size > 1_000


def test_csv_has_a_row_for_each_system_and_measure(against_old):
    rows = list(csv.DictReader(io.StringIO(paper_table(against_old, "csv"))))
    assert [(row["measure"], row["ranker"]) for row in rows] == [(m, s) for m in ("AP", "RR%") for s in VALUES]
    assert float(rows[1]["difference"]) == pytest.approx(np.mean(VALUES["better"] - OLD))
    assert (rows[0]["against"], rows[1]["against"], rows[1]["wins"]) == ("", "old_1", "40")
