"""One table of systems and measures: marks, bold, captions and CSV."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
import unicodedata

import numpy as np
import pytest

from truerank import Experiment
from truerank.core.printing import latex_escaped, styled_table
from truerank.significance.comparison import compare_values
from truerank.significance.paper_table import paper_table

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
    assert "(p $<$ 0.05)" in text  # a bare < is another character in LaTeX's text
    means = {name: f"{values.mean():.4f}" for name, values in VALUES.items()}
    lines = text.splitlines()
    better = rf"\textbf{{{means['better']}}} & \textsuperscript{{$+$}}"
    assert rf"better & {better} & {better} \\" in lines
    assert rf"old\_1 & {means['old_1']} &  & {means['old_1']} &  \\" in lines
    worse = rf"{means['worse']} & \textsuperscript{{$-$}}"
    assert rf"worse & {worse} & {worse} \\" in lines
    assert r"ranker & \multicolumn{2}{c}{AP} & \multicolumn{2}{c}{RR\%} \\" in lines
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
        assert head == r"ranker & \multicolumn{2}{c}{AP} & 95\% interval & ranks \\"
        low, high = found.intervals["better"][1:]
        assert better.endswith(rf" & [{low:.4f}, {high:.4f}] & 1 \\")
        assert text.count("& ranks") == 1
    else:
        assert head == r"ranker & \multicolumn{2}{c}{AP} & 95\% interval & d \\"
        assert better.endswith(rf" & [$+${pair.low:.4f}, $+${pair.high:.4f}] & {pair.effect:.2f} \\")
        assert r"old\_1 & " in text
    rows = {line.count("&") for line in text.splitlines() if line.endswith(r"\\") and line != head}
    assert rows == {head.count("&") + 1}  # the heading of a mean has two columns


def typeset(text, folder):
    """The words of a LaTeX document's PDF, in which ligatures and curly quotes are plain."""
    head = [r"\documentclass{article}", r"\usepackage{booktabs}", r"\begin{document}"]
    (folder / "paper.tex").write_text("\n".join([*head, text, r"\end{document}"]), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
    words = subprocess.run(["pdftotext", "-raw", "paper.pdf", "-"], cwd=folder, capture_output=True, check=True).stdout
    plain = str.maketrans("\u2018\u2019\u201c\u201d\u2212", '`\'""-')
    return done.stdout, unicodedata.normalize("NFKC", words.decode()).translate(plain)


def bare(text):
    """A text without accents, spaces and the underscore, which is a rule and no letter of the font."""
    letters = unicodedata.normalize("NFKD", text.replace("−", "-").replace("µ", "μ"))
    return "".join(c for c in letters if not (unicodedata.combining(c) or c.isspace() or c in "_~^ˆ˜"))


latex = pytest.mark.skipif(
    not (shutil.which("pdflatex") and shutil.which("pdftotext")), reason="needs pdflatex with booktabs, and pdftotext"
)


@latex
@pytest.mark.parametrize("show", [[], ["intervals", "effects", "ranks"]])
def test_latex_compiles(show, tmp_path):
    names = {"a_b & c%": OLD, "#1 {x}": OLD + 0.1, "~^\\": OLD - 0.1, "é": OLD}
    table = compare_values(names, measure="nDCG(gain='linear')@10").to_latex(show=show, rope=0.01 if show else None)
    log, words = typeset(table, tmp_path)
    assert "Overfull" not in log
    assert "nDCG(gain='linear')@10" in words


@latex
def test_any_name_is_printed_as_it_is(tmp_path):
    rng, letters = np.random.default_rng(1), [*map(chr, range(33, 127)), *"éÜñçßøÅαβλτΩ×±≤≥−²µ→"]
    names = ["[a]", "*", "-- ---", "``x''", "a?`b!`", "\\\\", "e\u0301", "x\ty\n\nz"]
    names += ["".join(rng.choice(letters, 12)) for _ in range(30)]
    rows = [[name, f"{k}"] for k, name in enumerate(names)]
    for text in (
        styled_table(rows, ["name", "number"], "latex"),
        "\n".join(latex_escaped(name) + r"\\" for name in names),
    ):
        _, words = typeset(text, tmp_path)
        for name in names:
            assert bare(name) in bare(words), name


@latex
def test_a_wide_table_and_its_paragraph_fit_a_page(tmp_path):
    runs = {f"{name}_50%": {str(t): {"a": value + 0.1 * t, "b": 0.5, "c": -value} for t in range(12)}
            for name, value in {"bm25": 0.6, "dense_&_sparse": -0.4, "~x": 0.2}.items()}  # fmt: skip
    experiment = Experiment({str(t): {"a": 2, "b": 0, "c": 1} for t in range(12)}, runs, "AP nDCG@2 RR P@1")
    paragraph, *_ = experiment.methods_text().split("\n\n")
    for show in ([], ["intervals", "effects"], ["ranks"]):
        table = experiment.compare(pairs="all" if show == ["ranks"] else "baseline").to_latex(show=show)
        log, words = typeset(f"{paragraph}\n\n{table}", tmp_path)
        assert "Overfull" not in log
        assert "(p < 0.05)" in " ".join(words.split())
        assert "dense&sparse50%" in words.replace("_", "").replace(" ", "")


def test_csv_has_a_row_for_each_system_and_measure(against_old):
    rows = list(csv.DictReader(io.StringIO(paper_table(against_old, "csv"))))
    assert [(row["measure"], row["ranker"]) for row in rows] == [(m, s) for m in ("AP", "RR%") for s in VALUES]
    assert float(rows[1]["difference"]) == pytest.approx(np.mean(VALUES["better"] - OLD))
    assert (rows[0]["against"], rows[1]["against"], rows[1]["wins"]) == ("", "old_1", "40")
