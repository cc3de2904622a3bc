"""Where the collections of the experiments come from: what each is, its owners' page, and its folder in --data DIR."""

from __future__ import annotations

from pathlib import Path

_LETOR = "https://www.microsoft.com/en-us/research/project/letor-learning-rank-information-retrieval/"
_GLASGOW = "https://ir.dcs.gla.ac.uk/resources/test_collections/"
# Folder -> what it is and which files of it are needed; the owners' page.
SOURCES: dict[str, tuple[str, str]] = {
    "letor4-mq2008": ("LETOR 4.0, MQ2008, supervised ranking: the parts S1.txt to S5.txt", _LETOR),
    "letor3-ohsumed": ("LETOR 3.0, OHSUMED: the test files of the folds as S1.txt to S5.txt", _LETOR),
    "reuters21578": (
        "Reuters-21578: the files reut2-000.sgm to reut2-021.sgm",
        "https://kdd.ics.uci.edu/databases/reuters21578/reuters21578.html",
    ),
    "trec9-web-runs": (
        "runs of TREC-9's web track in runs/, which NIST gives to participants, and their judgements",
        "https://trec.nist.gov/results/",
    ),
    "trec3-adhoc-runs": (
        "runs of TREC-3's ad hoc track in runs/, which NIST gives to participants, and their judgements",
        "https://trec.nist.gov/results/",
    ),
    "cranfield": ("the Cranfield collection", f"{_GLASGOW}cran/"),
    "cisi": ("the CISI collection", f"{_GLASGOW}cisi/"),
    "npl": ("the NPL collection", f"{_GLASGOW}npl/"),
    "cacm": ("the CACM collection", f"{_GLASGOW}cacm/"),
    "newsgroups10": ("20 Newsgroups, ten of its groups", "http://qwone.com/~jason/20Newsgroups/"),
}


def where_to_get(message: str) -> str:
    """Return a line for each collection that an error message names: what it is, where it is published, where it goes.

    >>> print(where_to_get("there is no npl/doc-text.gz"))
    <BLANKLINE>
    npl: the NPL collection
      published at https://ir.dcs.gla.ac.uk/resources/test_collections/npl/
      put its files into the folder npl/ of --data DIR
    """
    words = {part for word in message.split() for part in Path(word.strip("'\":,()")).parts}
    return "".join(
        f"\n{folder}: {what}\n  published at {page}\n  put its files into the folder {folder}/ of --data DIR"
        for folder, (what, page) in SOURCES.items()
        if any(part.startswith(folder) for part in words)
    )
