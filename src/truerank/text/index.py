"""The index of a collection: tokens in order, and term counts both ways, in memory-mapped files of a folder.

Layout of the folder (NumPy files, and a JSON file that is written last):

    index.json                header: version, fields, analysers, counts
    documents.*, words.*, terms.ANALYSER.*        strings: UTF-8 bytes, their ends, and their sorted order
    tokens.npy                the word number of every token of every document, in reading order
    parts.npy, fields.npy     a document's fields: the end of each one's tokens, and its field number
    terms.ANALYSER.of.npy     term of each word, -1 if the analyser drops it
    ANALYSER.FIELD.*.npy      postings: starts of terms, documents, counts, document lengths, totals of terms
    numbers.npy, vectors.*    numbers and vectors of the documents
"""

from __future__ import annotations

import json
import os
import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from truerank.core.checks import check_choice
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.core.files import atomic_write, refuse_planted, remove_folder, sole_folder
from truerank.core.kernel import kernel
from truerank.core.printing import progress
from truerank.data.grouping import offsets_of
from truerank.io.document_ids import DocumentIds
from truerank.io.documents import Document
from truerank.text.analysers import ANALYSERS, WORD, folded, term_of

FORMAT, VERSION = "truerank-index", 1
ALL = "all"  # name of the union of all fields
# Names of the files of an index, also of an interrupted one. Only files with these names are removed.
KNOWN = r"[a-z0-9.-]+\.npy|tokens\.raw|index\.json|\..*\.truerank-(tmp|step)"

_MOST_TOKENS = 2**31 - 1  # tokens of one document
_HELD = 1 << 22  # tokens in memory before they are written


class Postings(NamedTuple):
    """Counts of terms in a field under an analyser, sorted by term.

    Term t is in the documents `documents[starts[t]:starts[t + 1]]` (ascending), with the counts of the same range.
    """

    starts: np.ndarray  # int64 (terms + 1,)
    documents: np.ndarray  # int32 (postings,)
    counts: np.ndarray  # int32 (postings,)
    lengths: np.ndarray  # int32 (documents,), terms in each document
    totals: np.ndarray  # int64 (terms,), counts of each term in the collection
    n_tokens: int  # |C|, the sum of lengths

    def of(self, term: int) -> tuple[np.ndarray, np.ndarray]:
        """Return documents and counts of a term."""
        place = slice(self.starts[term], self.starts[term + 1])
        return self.documents[place], self.counts[place]

    def documents_with(self, term: int) -> int:
        """Return df of a term."""
        return int(self.starts[term + 1] - self.starts[term])

    @property
    def mean_length(self) -> float:
        """The mean length avdl, or 1 if no document has a term."""
        return self.n_tokens / len(self.lengths) or 1.0


class StoredStrings:
    """Strings in memory-mapped files, by number and by binary search."""

    def __init__(self, folder: Path, name: str) -> None:
        self._bytes, self._ends, self._sorted = (
            load_array(folder / f"{name}.{part}.npy") for part in ("bytes", "ends", "sorted")
        )
        check_fit(
            len(self._ends) == len(self._sorted) + 1
            and rise_to(self._ends, len(self._bytes))
            and lie_within(self._sorted, 0, len(self._sorted)),
            "its strings",
            folder,
        )

    def __len__(self) -> int:
        return len(self._sorted)

    def _at(self, number: int) -> bytes:
        return self._bytes[self._ends[number] : self._ends[number + 1]].tobytes()

    def as_ids(self) -> DocumentIds:
        """Return all strings as ids. The bytes are copied, because read-only arrays would need separate kernels."""
        return DocumentIds(np.array(self._bytes), self._ends[:-1], self._ends[1:])

    def ranks(self) -> np.ndarray:
        """Return the rank of each string in sorted order, int64 (n,)."""
        return np.argsort(self._sorted)

    def find(self, string: str) -> int:
        """Return the number of a string, or -1 if it is unknown."""
        wanted, order = string.encode("utf-8", "surrogatepass"), self._sorted
        place = bisect_left(order, wanted, key=self._at)
        return int(order[place]) if place < len(order) and self._at(order[place]) == wanted else -1


class Index:
    """An index that `build_index` wrote, opened for reading; its arrays are memory-mapped.

    A folder without a finished index of this version, or with inconsistent files, raises `DataFileError`.

    Attributes
    ----------
    path : Path
    n_documents : int
    fields : list of str
        Text fields, without "all".
    analysers : list of str
    numbers : dict of float64 array (n_documents,)
        NaN if missing.
    vectors : dict of float32 array (n_documents, dimensions)
        Zeros if missing.

    Examples
    --------
    >>> import tempfile
    >>> from truerank.io.documents import Document
    >>> folder = tempfile.mkdtemp()
    >>> documents = [Document("a", {"text": "Heat flow"}, {}, {}), Document("b", {"text": "Flows, flows"}, {}, {})]
    >>> index = build_index(documents, folder + "/index")
    >>> index.n_documents, index.terms("flows", "porter"), index.postings("porter").totals.tolist()
    (2, [1], [1, 3])
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.exists() and (_set_aside(self.path) / "index.json").exists():
            self.path = _set_aside(self.path)  # a run was killed between two renames
        place = self.path / "index.json"
        try:
            self._stamp = _stamp(place)
            header = json.loads(place.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataFileError(
                "the folder has no finished index (index.json). Build one with `truerank text index`",
                str(path),
                code="not-an-index",
            ) from None
        except (OSError, ValueError) as error:
            raise DataFileError(f"cannot read the index ({error})", str(place)) from error
        if not isinstance(header, dict) or header.get("format") != FORMAT or header.get("version") != VERSION:
            raise DataFileError(
                f"the index does not have version {VERSION}. Rebuild it with `truerank text index`", str(place)
            )
        self._held: dict[Any, Any] = {}
        try:
            self._open(header)
        except (KeyError, TypeError, AttributeError) as error:
            raise DataFileError(f"the index is damaged ({error!r}). Rebuild it", str(place), code="damaged") from error

    def _open(self, header: dict[str, Any]) -> None:
        """Open the files that the header names, and check their consistency."""
        self.n_documents: int = header["documents"]
        self.fields: list[str] = list(header["fields"])
        self.analysers: list[str] = list(header["analysers"])
        self._documents = StoredStrings(self.path, "documents")
        self._words = {name: StoredStrings(self.path, f"terms.{name}") for name in self.analysers}
        numbers = self._array("numbers")
        vectors = {name: self._array(f"vectors.{number}") for number, name in enumerate(header["vectors"])}
        check_fit(
            len(self._documents) == self.n_documents
            and numbers.shape == (len(header["numbers"]), self.n_documents)
            and all(values.size % max(1, self.n_documents) == 0 for values in vectors.values()),
            "its files",
            self.path,
        )
        self.numbers: dict[str, np.ndarray] = dict(zip(header["numbers"], numbers))
        self.vectors = {name: values.reshape(self.n_documents, -1) for name, values in vectors.items()}

    def __repr__(self) -> str:
        return f"Index({str(self.path)!r}, {self.n_documents} documents, fields {', '.join(self.fields)})"

    def terms(self, text: str, analyser: str) -> list[int]:
        """Return the term numbers of a text, in order, without unknown words and words that the analyser drops."""
        check_choice(analyser, "analyser", self.analysers)
        words = term_of(analyser)(re.findall(WORD, folded(text)))
        found = [self._words[analyser].find(word) for word in words if word]
        return [number for number in found if number >= 0]

    def n_terms(self, analyser: str) -> int:
        """Return the number of distinct terms."""
        return len(self._words[analyser])

    @cached_property
    def ids(self) -> DocumentIds:
        """The ids of all documents by number."""
        return self._documents.as_ids()

    def document_ids(self, numbers: Any = None) -> np.ndarray:
        """Return the ids of some documents by number, or of all, as StringDType."""
        return (self.ids if numbers is None else self.ids.take(np.asarray(numbers, np.int64))).texts

    def id_ranks(self) -> np.ndarray:
        """The rank of each document's id in sorted order, int64 (n_documents,)."""
        return self._documents.ranks()

    def document_number(self, name: str) -> int:
        """Return the number of a document by its id, or -1 if it is unknown."""
        return self._documents.find(name)

    def postings(self, analyser: str, field: str = ALL) -> Postings:
        """Return postings of a field ("all": of all fields together) under an analyser."""
        check_choice(analyser, "analyser", self.analysers)
        check_choice(field, "field", (ALL, *self.fields))
        if field != ALL and len(self.fields) == 1:
            field = ALL
        name = f"{analyser}.{0 if field == ALL else 1 + self.fields.index(field)}"
        if name not in self._held:
            parts = (self._array(f"{name}.{part}") for part in ("starts", "documents", "counts", "lengths", "totals"))
            starts, documents, counts, lengths, totals = parts
            check_fit(
                len(starts) == len(totals) + 1
                and rise_to(starts, len(documents))
                and len(counts) == len(documents)
                and len(lengths) == self.n_documents
                and lie_within(documents, 0, self.n_documents),
                f"the postings of {name}",
                self.path,
            )
            self._held[name] = Postings(starts, documents, counts, lengths, totals, int(totals.sum()))
        return self._held[name]

    @cached_property
    def tokens(self) -> np.ndarray:
        """The word numbers of all tokens, int32."""
        tokens = self._array("tokens")
        n_words = len(self.term_of_word(self.analysers[0]))
        check_fit(lie_within(tokens, 0, n_words), "its tokens", self.path)
        return tokens

    @cached_property
    def ends(self) -> np.ndarray:
        """The offsets of the documents in `tokens`, int64 (n_documents + 1,)."""
        parts, ends = self._array("parts"), np.concatenate([[0], self._array("part-ends")])
        fits = len(parts) == self.n_documents + 1 and rise_to(parts, len(ends) - 1)
        check_fit(fits and rise_to(ends, len(self._array("tokens"))), "the places of its tokens", self.path)
        return ends[parts]

    def term_of_word(self, analyser: str) -> np.ndarray:
        """Return the term of each word under an analyser, int32, -1 for dropped words."""
        name = f"terms.{analyser}.of"
        if name not in self._held:
            terms = self._array(name)
            check_fit(lie_within(terms, -1, self.n_terms(analyser)), "its words", self.path)
            self._held[name] = terms
        return self._held[name]

    def derived(self, name: str, make: Any) -> np.ndarray:
        """Return an array that is costly to compute from the index, and store it in the folder if it is writable."""
        if name not in self._held:
            path = self.path / f"{name}.npy"
            if path.exists():
                self._held[name] = self._array(name)
            else:
                values = make()
                self._check_same()
                with suppress(OSError), atomic_write(path, "wb") as stream:
                    np.save(stream, values)  # in a read-only folder, each process computes the array
                self._held[name] = values
        return self._held[name]

    def _array(self, name: str) -> np.ndarray:
        array = load_array(self.path / f"{name}.npy")
        self._check_same()
        return array

    def _check_same(self) -> None:
        place = self.path / "index.json"
        if not place.exists() or _stamp(place) != self._stamp:
            raise DataFileError(
                "the index was replaced after it was opened. Open it again", str(self.path), code="replaced"
            )


def load_array(path: Path) -> np.ndarray:
    """Open a memory-mapped array; an empty array cannot be mapped and is read."""
    try:
        try:
            return np.asarray(np.load(path, mmap_mode="r"))
        except ValueError:
            return np.load(path)
    except Exception as error:  # a damaged NumPy header can raise any error
        raise DataFileError(f"the index is damaged ({error}). Rebuild it", str(path), code="damaged") from error


def check_fit(fits: bool, what: str, folder: Path) -> None:
    """Raise an error for inconsistent numbers. Kernels use these numbers as indices and would crash."""
    if not fits:
        raise DataFileError(f"the index is damaged ({what} are inconsistent). Rebuild it", str(folder), code="damaged")


def rise_to(ends: np.ndarray, last: int) -> bool:
    """Return whether integers start at 0, never decrease, and end at `last`."""
    if ends.ndim != 1 or ends.dtype.kind not in "iu" or not len(ends):
        return False
    return bool(ends[0] == 0 and ends[-1] == last and (ends[1:] >= ends[:-1]).all())


def lie_within(numbers: np.ndarray, lowest: int, end: int) -> bool:
    """Return whether integers are in the range from `lowest` to `end` - 1."""
    if numbers.dtype.kind not in "iu":
        return False
    return not len(numbers) or lowest <= int(numbers.min()) <= int(numbers.max()) < end


def write_strings(folder: Path, name: str, strings: list[str]) -> None:
    """Write strings for `StoredStrings`; raise an error for a repeated string."""
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    ends = offsets_of(list(map(len, encoded)))
    np.save(folder / f"{name}.bytes.npy", np.frombuffer(b"".join(encoded), dtype=np.uint8))
    np.save(folder / f"{name}.ends.npy", ends)
    order = sorted(range(len(encoded)), key=encoded.__getitem__)
    for before, after in pairwise(order):
        if encoded[before] == encoded[after]:
            raise InvalidInputError(
                f"{name}: {strings[after]!r} occurs again as number {after + 1}; expected distinct ids", argument=name
            )
    np.save(folder / f"{name}.sorted.npy", np.array(order, dtype=np.int32))


def _stamp(place: Path) -> tuple[int, int]:
    """Return the identity of a header file, with which a replacement is detected."""
    found = os.stat(place)
    return found.st_ino, found.st_mtime_ns


def _set_aside(target: Path) -> Path:
    """Return the temporary path of an old index during its replacement."""
    return target.parent / f".{target.name}.old"


def _recover(target: Path) -> None:
    """Restore the old index after an interrupted replacement, or remove it if the new index is complete."""
    old = _set_aside(target)
    refuse_planted(old)
    if old.exists() and not target.exists():
        os.replace(old, target)
    elif old.exists():
        remove_folder(old, KNOWN)


def build_index(
    documents: Iterable[Document],
    path: str | os.PathLike[str],
    *,
    analysers: Sequence[str] = ANALYSERS,
    fields: Sequence[str] | None = None,
) -> Index:
    """Write an index of documents to the folder `path` and open it.

    Parameters
    ----------
    documents : iterable of Document
        Documents, which are read once, one at a time.
    path : path
        A new folder, an empty folder, or an index, which is replaced when the new index is complete. If the process is
        killed, an old index is unchanged.
    analysers : sequence of str, default all three
        See `truerank.text.analysers`.
    fields : sequence of str, optional
        Text fields to index; None means all.

    Raises
    ------
    InvalidInputError
        If `path` holds files that are not an index, there is no document, an id repeats, no document has a field of
        `fields`, another run is writing this index, or its temporary folders are links or hold other files.

    Notes
    -----
    Equal documents give equal bytes. Memory holds the vocabulary, the ids, 17 bytes for each field of each document,
    and 4 million tokens. Cost: tokenisation, and two passes over the tokens for each analyser and field.
    """
    target = Path(os.path.realpath(path))
    is_index = (target / "index.json").exists()
    if target.exists() and not is_index and (not target.is_dir() or any(target.iterdir())):
        raise InvalidInputError(f"{path} exists and is not an index. Name a new folder", code="exists")
    strange = sorted(name for name in os.listdir(target) if not re.fullmatch(KNOWN, name)) if is_index else []
    if strange:
        raise InvalidInputError(f"{path} contains {strange[0]!r}, which is not part of an index. Move it elsewhere")
    for analyser in analysers:
        term_of(analyser)
    if not analysers:
        raise InvalidInputError("analysers must name at least one analyser", argument="analysers")
    with sole_folder(target.parent / f".{target.name}.partial", KNOWN) as partial:
        _recover(target)
        _build(documents, partial, list(dict.fromkeys(analysers)), fields)
        try:
            try:
                if target.exists():
                    os.replace(target, _set_aside(target))
            except PermissionError as error:  # Windows, while a program has one of its files open
                what = f"{target}: cannot be replaced; end the programs that read this index, or name another folder"
                raise InvalidInputError(what, code="index-open") from error
            os.replace(partial, target)
            _recover(target)
        except BaseException:
            _recover(target)
            raise
    return Index(path)


class _Numbering(dict[str, int]):
    """Numbers of words, in the order of first appearance."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


def _build(documents: Iterable[Document], folder: Path, analysers: list[str], only: Sequence[str] | None) -> None:
    words, find = _Numbering(), re.compile(WORD).findall
    names: list[str] = []
    fields: dict[str, int] = {}
    part_fields, part_ends, parts = array("B"), array("q"), array("q", [0])
    numbers: dict[str, dict[int, float]] = {}
    vectors: dict[str, dict[int, list[float]]] = {}
    held, n_tokens = array("i"), 0
    with open(folder / "tokens.raw", "wb") as stream:
        for document in progress(documents, "indexing"):
            for field, text in document.text.items():
                if only is not None and field not in only:
                    continue
                if field not in fields and (field == ALL or len(fields) == 255):
                    raise InvalidInputError(
                        f"document {document.id!r}: got the text field {field!r}; expected another name than {ALL!r}, "
                        "and at most 255 fields",
                        code="field",
                    )
                of_field = fields.setdefault(field, len(fields) + 1)
                before = len(held)
                held.extend(map(words.__getitem__, find(folded(text))))
                n_tokens += len(held) - before
                if len(held) - before > _MOST_TOKENS:
                    raise InvalidInputError(
                        f"document {document.id!r} has more than {_MOST_TOKENS} tokens", code="too-long"
                    )
                part_fields.append(of_field)
                part_ends.append(n_tokens)
            number = len(names)
            names.append(document.id)
            parts.append(len(part_ends))
            for field, value in document.numbers.items():
                numbers.setdefault(field, {})[number] = value
            for field, vector in document.vectors.items():
                vectors.setdefault(field, {})[number] = vector
            if len(held) > _HELD:
                stream.write(held.tobytes())
                held = array("i")
        stream.write(held.tobytes())
    if not names:
        raise InvalidInputError("got no documents, but an index requires at least one")
    unknown = [field for field in only or () if field not in fields]
    if unknown:
        raise InvalidInputError(f"no document has the text field {unknown[0]!r}", code="field")
    n_documents = len(names)
    for name, given in (("parts", parts), ("fields", part_fields), ("part-ends", part_ends)):
        np.save(folder / f"{name}.npy", np.array(given))
    # Copied without reading the tokens into memory.
    np.save(
        folder / "tokens.npy", np.memmap(folder / "tokens.raw", np.int32, "r") if n_tokens else np.zeros(0, np.int32)
    )
    os.unlink(folder / "tokens.raw")
    write_strings(folder, "documents", names)
    del names
    _save_numbers(folder, numbers, vectors, n_documents)
    in_order = list(words)
    words.clear()
    for analyser in analysers:
        _write_terms(folder, analyser, in_order, n_documents, len(fields))
    header = {
        "format": FORMAT, "version": VERSION, "documents": n_documents, "tokens": n_tokens, "words": len(in_order),
        "fields": list(fields), "analysers": analysers, "numbers": list(numbers), "vectors": list(vectors),
    }  # fmt: skip
    with atomic_write(folder / "index.json") as stream_of_text:
        json.dump(header, stream_of_text, ensure_ascii=False, indent=1)


def _write_terms(folder: Path, analyser: str, words: list[str], n_documents: int, n_fields: int) -> None:
    """Write the terms of the words under an analyser, and the postings of each field."""
    terms, by_name = term_of(analyser)(words), _Numbering()
    of = np.array([by_name[term] if term else -1 for term in terms], dtype=np.int32)
    np.save(folder / f"terms.{analyser}.of.npy", of)
    write_strings(folder, f"terms.{analyser}", list(by_name))
    for field in range(n_fields + 1 if n_fields > 1 else 1):
        _invert(folder, f"{analyser}.{field}", of, len(by_name), n_documents, field)


def _save_numbers(folder: Path, numbers: dict[str, Any], vectors: dict[str, Any], n_documents: int) -> None:
    table = np.full((len(numbers), n_documents), np.nan)
    for row, by_document in zip(table, numbers.values()):
        row[list(by_document)] = list(by_document.values())
    np.save(folder / "numbers.npy", table)
    for number, (name, by_document) in enumerate(vectors.items()):
        sizes = {len(vector) for vector in by_document.values()}
        if len(sizes) > 1:
            raise InvalidInputError(f"vectors {name!r} must have the same dimensions, got {sorted(sizes)[:5]}")
        matrix = np.zeros((n_documents, sizes.pop()), dtype=np.float32)
        matrix[list(by_document)] = list(by_document.values())
        np.save(folder / f"vectors.{number}.npy", matrix)


def _invert(folder: Path, name: str, of: np.ndarray, n_terms: int, n_documents: int, field: int) -> None:
    """Write the postings of a field (0: all fields) under an analyser."""
    tokens, parts, fields, ends = (
        load_array(folder / f"{part}.npy") for part in ("tokens", "parts", "fields", "part-ends")
    )
    lengths, totals = np.zeros(n_documents, dtype=np.int32), np.zeros(n_terms, dtype=np.int64)
    sizes, last = np.zeros(n_terms, dtype=np.int64), np.full(n_terms, -1, dtype=np.int32)
    none = np.zeros(0, dtype=np.int32)
    _post(tokens, parts, fields, ends, of, field, sizes, last, lengths, totals, none, none)
    starts = offsets_of(sizes)
    documents, counts = (
        np.lib.format.open_memmap(folder / f"{name}.{part}.npy", mode="w+", dtype=np.int32, shape=(int(starts[-1]),))
        for part in ("documents", "counts")
    )
    last[:] = -1
    _post(tokens, parts, fields, ends, of, field, starts[:-1] - 1, last, lengths, totals, documents, counts)
    documents.flush()
    counts.flush()
    for part, values in (("starts", starts), ("lengths", lengths), ("totals", totals)):
        np.save(folder / f"{name}.{part}.npy", values)


@kernel
def _post(tokens, parts, fields, ends, of, field, place, last, lengths, totals, documents, counts):
    """Advance `place` (terms,) by one for each document of a term; write its counts there if there is room.

    `last` (terms,), the last document of each term, starts at -1.
    """
    for d in range(len(lengths)):
        for part in range(parts[d], parts[d + 1]):
            if field != 0 and fields[part] != field:
                continue
            start = ends[part - 1] if part > 0 else 0
            for token in range(start, ends[part]):
                term = of[tokens[token]]
                if term < 0:
                    continue
                if last[term] != d:
                    last[term] = d
                    place[term] += 1
                    if len(documents):
                        documents[place[term]] = d
                if len(documents):
                    counts[place[term]] += 1
                    lengths[d] += 1
                    totals[term] += 1
