"""TREC qrels, tab-separated qrels of MS MARCO, and LETOR or RankLib text with queries and documents in comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from truerank.core.errors import DataFileError
from truerank.core.files import read_text
from truerank.io.first_bytes import is_other_order
from truerank.io.judgements.content import Content
from truerank.io.judgements.formats import Format, whole, write_lines
from truerank.io.judgements.ratings import Ratings, Row
from truerank.io.letor.grammar import NUMBER, is_word
from truerank.io.topics import topic_texts
from truerank.io.trec import write_qrels

_LINE = re.compile(r"\s*(\S+)\s+qid:(\S+)((?:\s+\d+:\S+)*)\s*(?:#\s*(.*?))?\s*$")
_COMMENT = re.compile(r"docid\s*=\s*(?P<named>\S+)|(?P<id>[^\t;]*?)\t(?P<text>.+)|(?P<quoted>\S+);\s*\"(?P<query>.*)\"|"
                      r"(?P<word>\S+)(?:\s+(?P<rest>.+))?")  # fmt: skip
_HEAD = 1 << 14


def _is_trec(content: Content) -> bool:
    """Return whether the first line has four words, and its grade (for grades in words, its iteration) is a number."""
    words = next(content.lines(), (0, []))[1] if content.kind == "text" else []
    if len(words) != 4 or not any(NUMBER.fullmatch(word.encode()) for word in (words[3], words[1].removeprefix("Q"))):
        return False
    return not is_other_order(content.text[:_HEAD].encode())


def _trec_rows(content: Content) -> Iterator[Row]:
    lines = list(content.lines())
    topics = list(dict.fromkeys(words[0] for _, words in lines))
    named, known = topic_texts(topics, content.name)
    names, texts = dict(zip(topics, named.tolist())), known | _queries_beside(content.name)
    for number, words in lines:
        if len(words) != 4:
            what = f"expected 4 columns 'topic iteration docno grade', got {len(words)}: {' '.join(words)[:60]!r}"
            raise DataFileError(what, content.name, number)
        query = names[words[0]]
        yield Row(query, words[2], words[3], text=texts.get(query), line=number)


def _queries_beside(name: str) -> dict[str, str]:
    """Return the query texts for `qrels.X.tsv` from the file `queries.X.tsv` in its folder, as in MS MARCO."""
    path = Path(name)
    beside = path.with_name(path.name.replace("qrels", "queries"))
    if beside == path or path.suffix != ".tsv" or not beside.is_file():
        return {}
    lines = (line.partition("\t") for line in read_text(beside).splitlines())
    return {query: text for query, tab, text in lines if tab}


def _write_ms_marco(ratings: Ratings, target: object) -> None:
    rows = zip(ratings.queries, ratings.documents, ratings.grades)
    for one in (*ratings.queries, *ratings.documents):
        if not is_word(one):
            raise DataFileError(
                f"the id {one!r:.80} is not one word, as text of MS MARCO requires. Write a table", str(target)
            )
    write_lines((f"{query}\t0\t{document}\t{whole(grade)}" for query, document, grade in rows), target)
    if isinstance(target, str | Path) and ratings.texts and "qrels" in Path(target).name:
        beside = Path(target).with_name(Path(target).name.replace("qrels", "queries"))
        texts = ((query, " ".join(ratings.text(query).split())) for query in ratings.by_query())
        write_lines((f"{query}\t{text}" for query, text in texts), beside)


def _is_letor(content: Content) -> bool:
    return content.kind == "text" and bool(re.search(r"^\s*[^#\s]\S*\s+qid:\S.*#", content.text, re.MULTILINE))


def _letor_rows(content: Content) -> Iterator[Row]:
    """Yield the rows of LETOR text with the text of their query.

    The texts are those of lines `# qid:ID text`; of other queries, those of the comments after document ids, if the
    comments of each query in the file are equal.
    """
    texts = dict(re.findall(r"^#\s*qid:\s*(\S+?):?\s+(.*\S)", content.text, re.MULTILINE))
    rows, after = list[Row](), dict[str, set[str | None]]()
    for row in _letor_lines(content):
        rows.append(row)
        after.setdefault(row.query, set()).add(row.text)
    same = (
        {query: next(iter(own)) for query, own in after.items()} if all(len(own) == 1 for own in after.values()) else {}
    )
    for row in rows:
        yield row._replace(text=texts.get(row.query, same.get(row.query)))


def _letor_lines(content: Content) -> Iterator[Row]:
    for number, line in enumerate(content.text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _LINE.match(line)
        comment = _COMMENT.match(found[4] or "") if found else None
        if found is None or comment is None:
            what = "expected 'grade qid:ID … # document'" if found is None else (
                "the line has no document id. LETOR text has judgements of documents if its comments name them: "
                "'3 qid:1 1:0.5 # docid', or '# docid<TAB>query'"
            )  # fmt: skip
            raise DataFileError(what, content.name, number)
        part = comment.groupdict()
        document = part["named"] or part["id"] or part["quoted"] or part["word"]
        features = found[3].strip()  # with features the rest of a comment is no query
        text = part["text"] or part["query"] or (None if features else part["rest"])
        yield Row(found[2], document, found[1], text=text, line=number)


def _write_ranklib(ratings: Ratings, target: object) -> None:
    lines = []
    for number, (query, rows) in enumerate(ratings.by_query().items(), 1):
        own = query if query in ratings.texts and is_word(query) else str(number)
        for row in rows:
            text = " ".join(ratings.text(query).splitlines())
            lines.append(f"{whole(ratings.grades[row])} qid:{own} # {ratings.documents[row]}\t{text}")
    write_lines(lines, target)


TREC = Format("qrels", "TREC qrels", _is_trec, _trec_rows, lambda ratings, target: write_qrels(ratings.qrels(), target))
MS_MARCO = Format("ms-marco", "MS MARCO's qrels", lambda content: False, _trec_rows, _write_ms_marco)
RANKLIB = Format("ranklib", "RankLib text with document ids", _is_letor, _letor_rows, _write_ranklib)
