"""The section of a paper: table, paragraph and references; typeset where TeX is installed."""

from __future__ import annotations

import re
import runpy
import shutil
from pathlib import Path

from truerank import Experiment
from truerank.cli import main

EXAMPLE = Path(__file__).parents[2] / "examples" / "paper.py"
RUNS = ["bm25.run", "feedback.run", "latent.run"]


def test_a_section_is_the_commands_table_and_typeset(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["sample", "."]) == 0
    monkeypatch.setattr("sys.argv", ["paper.py", "qrels.txt", *RUNS])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    section, references = Path("section.tex").read_text(), Path("section.bib").read_text()
    cited = {key for keys in re.findall(r"\\cite\{([^}]*)\}", section) for key in keys.split(",")}
    assert cited == set(re.findall(r"@\w+\{(\w+),", references))
    capsys.readouterr()
    show = ["--show", "intervals", "effects"]
    assert main(["compare", "--qrels", "qrels.txt", *RUNS, "--measures", "AP nDCG@10", "--format", "latex", *show]) == 0
    printed = capsys.readouterr().out.strip()
    assert printed in section
    assert printed == Experiment("qrels.txt", RUNS, "AP nDCG@10").compare().to_latex(show=["intervals", "effects"])
    if shutil.which("pdflatex") and shutil.which("bibtex"):
        log = Path("section.log").read_text(errors="replace")
        assert Path("section.pdf").stat().st_size > 10_000
        assert "Overfull" not in log
        assert "undefined" not in log
