"""Typeset the section of a paper on a comparison: table, paragraph on the methods, and references.

    python examples/paper.py qrels.txt bm25.run feedback.run latent.run --measures "AP nDCG@10"

Writes section.tex and section.bib to the current folder, and typesets section.pdf where pdflatex and bibtex are
installed. The first run is the baseline.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path

from truerank import Experiment

PAGE = r"""\documentclass{article}
\usepackage{booktabs}
\begin{document}
\section{Evaluation}
%s

Table~\ref{%s} has the results.

%s

\bibliographystyle{plain}
\bibliography{section}
\end{document}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("qrels")
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--measures", default="AP nDCG@10")
    args = parser.parse_args()
    experiment = Experiment(args.qrels, args.runs, args.measures)
    table = experiment.compare().to_latex(show=["intervals", "effects"])
    paragraph, *references = experiment.methods_text().split("\n\n")
    label = table.partition(r"\label{")[2].partition("}")[0]
    Path("section.tex").write_text(PAGE % (paragraph, label, table), encoding="utf-8")
    Path("section.bib").write_text("\n\n".join(references) + "\n", encoding="utf-8")
    if shutil.which("pdflatex") and shutil.which("bibtex"):
        latex = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "section"]
        for command in (latex, ["bibtex", "section"], latex, latex):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        print("section.pdf")
    else:
        print("section.tex and section.bib; install a TeX distribution to typeset them")


if __name__ == "__main__":
    main()
