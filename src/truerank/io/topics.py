"""Queries as text in TREC files, whose ids are single words: `topics.tsv` has the text of each id."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path

import numpy as np

from truerank.core.errors import DataFileError, InvalidInputError
from truerank.core.files import atomic_write, read_text
from truerank.core.names import repeated
from truerank.io.letor.grammar import is_word

TOPICS = "topics.tsv"
_MADE = re.compile(r"t[0-9a-f]{16}")
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r"})


def topic_id(text: str) -> str:
    """Return the id of a text, equal in all files, so that runs and qrels of different folders agree.

    >>> topic_id("red shoes")
    'tea9addb87ec054ac'
    """
    return f"t{blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def topic_texts(topics: list[str], name: str) -> tuple[np.ndarray, dict[str, str]]:
    """Return the topics (m,) of a TREC file with their texts in place of generated ids, and the texts of other ids.

    The file `topics.tsv` in the folder of the file `name` has the texts. An id is replaced only by the text that
    generates it, so that a file of this name by another tool changes no ids.
    """
    path = Path(name).parent / TOPICS
    if not os.path.isfile(name) or not path.is_file():
        return np.array(topics), {}
    known = _read(path)
    replaced = [known[one] if one in known and _is_of(one, known[one]) else one for one in topics]
    if twice := repeated(replaced):
        raise DataFileError(f"two topics have the text {twice[0]!r:.80}. Give each topic a different text", name)
    return np.array(replaced), {one: known[one] for one in replaced if one in known}


def write_topics(target: object, query_ids: Iterable[str], texts: Mapping[str, str], who: str) -> dict[str, str]:
    """Return the word of each query id in a TREC file, and write the texts of ids to `topics.tsv` in its folder.

    Raises InvalidInputError for a text without a folder for `topics.tsv`, and if ids have other texts in that file.
    """
    words = {query: query if is_word(query) and not _MADE.fullmatch(query) else topic_id(query) for query in query_ids}
    lines = {word: texts.get(query, query) for query, word in words.items() if word != query or query in texts}
    if not lines:
        return words
    if not isinstance(target, str | os.PathLike) or os.fspath(target) == "-" or not os.path.isdir(Path(target).parent):
        if not (needed := [query for query, word in words.items() if word != query]):
            return words
        raise InvalidInputError(
            f"{who}: query {needed[0]!r:.80} is not one word, as TREC text requires. Write to a file, so that {TOPICS} "
            f"in its folder has the texts, or to a table (.csv, .parquet, .jsonl)"
        )
    path = Path(target).parent / TOPICS
    known = _read(path) if path.is_file() else {}
    other = next((word for word, text in lines.items() if known.get(word, text) != text), None)
    if other is not None:
        raise InvalidInputError(
            f"{path}: topic {other!r} has the text {known[other]!r:.80}, but its new text is {lines[other]!r:.80}. "
            "Write to another folder"
        )
    if lines.keys() - known.keys():
        with atomic_write(path) as stream:
            stream.writelines(f"{word}\t{text.translate(_ESCAPES)}\n" for word, text in (known | lines).items())
    return words


def carry_topics(source: str, folder: Path) -> None:
    """Copy the texts of generated ids from the folder of a file to another folder that lacks them."""
    path = Path(source).parent / TOPICS
    texts = {one: text for one, text in (_read(path) if path.is_file() else {}).items() if _is_of(one, text)}
    if texts and path.parent.resolve() != folder.resolve():
        write_topics(folder / "any", texts.values(), {}, "split")


def _is_of(word: str, text: str) -> bool:
    return bool(_MADE.fullmatch(word)) and topic_id(text) == word


def _read(path: Path) -> dict[str, str]:
    """Return the texts of a file by id; lines without a tab are left out."""
    plain = {escape: chr(letter) for letter, escape in _ESCAPES.items()}
    try:
        lines = read_text(path).split("\n")
    except DataFileError:
        return {}
    pairs = (line.removesuffix("\r").partition("\t") for line in lines)
    return {word: re.sub(r"\\[\\nr]", lambda found: plain[found[0]], text) for word, tab, text in pairs if tab}
