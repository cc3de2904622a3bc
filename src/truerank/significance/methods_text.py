"""The paragraph of a paper about a comparison, with BibTeX entries of the methods."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from truerank.core.printing import counted, latex_escaped
from truerank.measures.conventions import titled
from truerank.significance.comparison_text import family
from truerank.significance.paired import LEVEL
from truerank.significance.paper_table import tied_means

_TESTS = {
    "randomisation": ("paired randomisation test ({resamples} resamples)", "smucker2007"),
    "t": ("paired t-test", "smucker2007"),
    "wilcoxon": ("Wilcoxon's signed rank test with Pratt's treatment of zeros", "wilcoxon1945"),
    "sign": ("sign test", ""),
}
_CORRECTIONS = {
    "holm": ("Holm's step-down correction", "holm1979"),
    "bonferroni": ("Bonferroni's correction", ""),
    "benjamini-hochberg": ("Benjamini and Hochberg's correction", "benjamini1995"),
}
_MEASURES = {"nDCG": "jarvelin2002", "DCG": "jarvelin2002", "RBP": "moffat2008", "ERR": "chapelle2009",
             "Bpref": "buckley2004", "infAP": "yilmaz2006"}  # fmt: skip

# key: type, authors, title, where, year, more fields
_SOURCES: dict[str, tuple[str, str, str, str, int, str]] = {
    "smucker2007": ("inproceedings", "Smucker, Mark D. and Allan, James and Carterette, Ben", "A comparison of "
                    "statistical significance tests for information retrieval evaluation", "CIKM", 2007, "623--632"),
    "wilcoxon1945": ("article", "Wilcoxon, Frank", "Individual comparisons by ranking methods", "Biometrics Bulletin",
                     1945, "80--83"),
    "holm1979": ("article", "Holm, Sture", "A simple sequentially rejective multiple test procedure",
                 "Scandinavian Journal of Statistics", 1979, "65--70"),
    "westfall1993": ("book", "Westfall, Peter H. and Young, S. Stanley", "Resampling-based multiple testing", "Wiley",
                     1993, ""),
    "benjamini1995": ("article", "Benjamini, Yoav and Hochberg, Yosef", "Controlling the false discovery rate: a "
                      "practical and powerful approach to multiple testing", "Journal of the Royal Statistical Society "
                      "B", 1995, "289--300"),
    "mogstad2024": ("article", "Mogstad, Magne and Romano, Joseph P. and Shaikh, Azeem M. and Wilhelm, Daniel",
                    "Inference for ranks with applications to mobility across neighbourhoods and academic achievement "
                    "across countries", "Review of Economic Studies", 2024, "476--518"),
    "jarvelin2002": ("article", r'J{\"a}rvelin, Kalervo and Kek{\"a}l{\"a}inen, Jaana', "Cumulated gain-based "
                     "evaluation of {IR} techniques", "ACM Transactions on Information Systems", 2002, "422--446"),
    "moffat2008": ("article", "Moffat, Alistair and Zobel, Justin", "Rank-biased precision for measurement of "
                   "retrieval effectiveness", "ACM Transactions on Information Systems", 2008, ""),
    "chapelle2009": ("inproceedings", "Chapelle, Olivier and Metzler, Donald and Zhang, Ya and Grinspan, Pierre",
                     "Expected reciprocal rank for graded relevance", "CIKM", 2009, "621--630"),
    "buckley2004": ("inproceedings", "Buckley, Chris and Voorhees, Ellen M.", "Retrieval evaluation with incomplete "
                    "information", "SIGIR", 2004, "25--32"),
    "yilmaz2006": ("inproceedings", "Yilmaz, Emine and Aslam, Javed A.", "Estimating average precision with incomplete "
                   "and imperfect judgments", "CIKM", 2006, "102--111"),
}  # fmt: skip
_PLACES = {"inproceedings": "booktitle", "article": "journal", "book": "publisher"}


def methods_text(results: Mapping[str, Any], topics: str | None = None, seed: Any = None) -> str:
    """Return a paragraph on data, measures, test and correction of comparisons by measure, and BibTeX for it.

    `topics` describes the topics of the means, and `seed` is the seed of the random signs. The paragraph is LaTeX.
    """
    from truerank import __version__

    first = next(iter(results.values()))
    names, queries = list(first.means), sorted({pair.queries for one in results.values() for pair in one.pairs})
    conventions = ", ".join(dict.fromkeys(titled(one.convention) for one in results.values() if one.convention))
    keys = ["truerank", *(_MEASURES.get(one.by.NAME, "") for one in results.values() if one.by is not None)]
    test, key = _TESTS[first.test]
    text, by = test.format(resamples=f"{first.n_resamples:,}"), _cited(key)
    pairs = "all pairs of systems" if first.baseline is None else f"each system and {first.baseline}"
    span = f"{queries[0]} to {queries[-1]} queries" if len(queries) > 1 else counted(queries[0], "query")
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    lines = [
        f"We compare {len(names)} systems ({shown}) on {span}" + (f" ({topics})" if topics else "") + ".",
        f"Effectiveness is measured by {', '.join(results)}" + (f" with the convention {conventions}" if conventions
        else "") + f", computed by truerank {__version__} {_cited(*keys)}.",
        f"Differences between {pairs} are tested by the two-sided {text}{' ' + by if by else ''}"
        + ("" if seed is None else f", seed {seed}") + ".",
    ]  # fmt: skip
    if first.correction == "max-t":
        how = "step-down max-T with signs that are shared by all comparisons " + _cited("westfall1993")
        if first.divided and first.n_comparisons > 1:
            how += f", which has four fifths of the level, and Holm's correction {_cited('holm1979')} with one fifth"
    else:
        how, key = _CORRECTIONS.get(first.correction, ("", ""))
        how += f" {_cited(key)}" if key else ""
    if first.n_comparisons > 1:
        corrected = f"corrected for {family(first)} by {how}" if how else f"not corrected for {family(first)}"
        lines.append(f"P-values are {corrected}; differences with p < {LEVEL} are called significant.")
    else:
        lines.append(f"A difference with p < {LEVEL} is called significant.")
    lines += [
        f"{measure} orders documents with the same score by the rule of the convention; averaged over all their "
        f"orders, the mean is {told}."
        for measure, one in results.items()
        if (told := tied_means(one))
    ]
    if first.look > 1:
        lines.append(f"This is comparison {first.look} on these queries, for which the level is divided.")
    if first.rank_sets:
        lines.append(
            f"The sets of ranks hold simultaneously for all systems with 95 % confidence {_cited('mogstad2024')}."
        )
    parts = re.split(r"( \\cite{[^}]*})", " ".join(lines))
    paragraph = "".join(f"~{part[1:]}" if part.startswith(r" \cite{") else latex_escaped(part) for part in parts)
    cited = [key for keys in re.findall(r"\\cite{([^}]+)}", paragraph) for key in keys.split(",")]
    return "\n\n".join([paragraph, *map(_bibtex, dict.fromkeys(cited))])


def _cited(*keys: str) -> str:
    known = list(dict.fromkeys(filter(None, keys)))
    return rf"\cite{{{','.join(known)}}}" if known else ""


def _bibtex(key: str) -> str:
    from truerank import __version__

    if key == "truerank":
        return "\n".join([
            "@misc{truerank,", "  author = {{the truerank authors}},",
            "  title = {truerank: learning to rank and evidence on rankings},",
            f"  note = {{Python package, version {__version__}}}", "}",
        ])  # fmt: skip
    kind, author, title, where, year, pages = _SOURCES[key]
    fields = {"author": author, "title": title, _PLACES[kind]: where, "year": year, "pages": pages}
    body = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@{kind}{{{key},", *body, "}"])
