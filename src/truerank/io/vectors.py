"""Vectors of documents and queries with their ids: NumPy, safetensors, Parquet and Arrow files, and arrays.

    docs.npy         float (n, p)
    docs.npy.ids     n lines, an id in each

A .npy or .safetensors file is mapped into memory, so that only the parts in use are read. A list column of a Parquet or
Arrow file, with a column of ids, is read as float32.
"""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

import numpy as np

from truerank.core.errors import DataFileError, InvalidInputError
from truerank.core.names import repeated
from truerank.data.grouping import id_text
from truerank.io.document_ids import DocumentIds
from truerank.io.judgements.roles import DOCUMENT, QUERY, plain
from truerank.io.streams import Source

_IDS = (".ids", ".ids.txt")
_TYPES = {"F16": np.float16, "F32": np.float32, "F64": np.float64}
_ID_COLUMNS = ("id", *DOCUMENT, *QUERY)


class Vectors(NamedTuple):
    """Ids (n,) and values (n, p) in float16, float32 or float64; the values of a file may be mapped into memory."""

    ids: DocumentIds
    values: np.ndarray
    name: str = "vectors"

    def places(self) -> dict[str, int]:
        """Return the row of each id."""
        return {name: row for row, name in enumerate(self.ids.texts.tolist())}


def read_vectors(source: Any, ids: Any = None, *, column: str | None = None) -> Vectors:
    """Return vectors and their ids.

    Parameters
    ----------
    source : path, array-like (n, p), mapping of id to vector, or Vectors
        A file has the suffix .npy, .safetensors, .parquet, .arrow or .feather.
    ids : path or sequence of str, optional
        The id of each row: a text file with an id on each line, or a sequence. By default, the file with ".ids" or
        ".ids.txt" added to the name, and for tables their column of ids.
    column : str, optional
        The column of a table, or the array of a safetensors file; required if there are several.

    Raises
    ------
    DataFileError, InvalidInputError
        For values that are not finite numbers in two dimensions, missing or repeated ids, or different numbers of ids
        and rows. Values of mapped files are checked when they are used.

    Examples
    --------
    >>> found = read_vectors({"a": [0.6, 0.8], "b": [1.0, 0.0]})
    >>> found.ids.texts.tolist(), found.values.shape
    (['a', 'b'], (2, 2))
    """
    if isinstance(source, Vectors):
        return source
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        form = os.path.splitext(name)[1]
        if form in (".parquet", ".arrow", ".feather"):
            own, values = _of_table(name, form, column)
            ids = own if ids is None else ids
        elif form == ".npy":
            values = _of_npy(name)
        elif form == ".safetensors":
            values = _of_safetensors(name, column)
        else:
            raise DataFileError(
                "expected vectors in a .npy, .safetensors, .parquet, .arrow or .feather file", name, code="form"
            )
        if ids is None:
            ids = next((name + end for end in _IDS if os.path.exists(name + end)), None)
    else:
        name = "vectors"
        if hasattr(source, "columns"):
            raise InvalidInputError(
                f"vectors must be an array or a mapping of id to vector, got a frame with {list(source.columns)[:12]}",
                argument="source",
                remedies=["pass dict(zip(frame[ids], frame[vectors]))"],
            )
        if hasattr(source, "items"):
            pairs = dict(source.items())
            ids, source = list(pairs), list(pairs.values())
        values = _checked(source, name)
    if ids is None:
        raise InvalidInputError(
            f"{name} has no ids for its rows. Expected a file with an id on each line",
            argument="ids",
            remedies=[f"write them to {name}.ids, or name the file"],
        )
    return Vectors(_ids(ids, len(values), name), values, name)


def _checked(values: Any, name: str) -> np.ndarray:
    try:
        array = np.asarray(values) if not isinstance(values, np.ndarray) else values
    except ValueError as error:  # of several lengths
        raise InvalidInputError(f"{name}: vectors must have one length ({error})", code="shape") from error
    if array.ndim != 2 or not array.size or array.dtype.kind not in "fiu":
        raise InvalidInputError(
            f"{name}: vectors must be numbers of shape (n, p), got {array.dtype} of shape {array.shape}", code="shape"
        )
    return array


def _of_npy(name: str) -> np.ndarray:
    try:
        return _checked(np.load(name, mmap_mode="r", allow_pickle=False), name)
    except (ValueError, EOFError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise DataFileError(f"cannot be read as .npy: {str(error)[:200]}", name, code="unreadable") from error


def _of_safetensors(name: str, column: str | None) -> np.ndarray:
    """Map an array of a safetensors file: 8 bytes with the length of a JSON header, the header, and the arrays."""
    size = os.path.getsize(name)
    with open(name, "rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        try:
            if size < 8 + length or length > 1 << 27:
                raise ValueError(f"a header of {length} bytes in a file of {size}")
            header = json.loads(stream.read(length))
            arrays = {key: one for key, one in header.items() if key != "__metadata__" and len(one["shape"]) == 2}
            chosen = _only(arrays, column, name, "array")
            one = arrays[chosen]
            if one["dtype"] not in _TYPES:
                raise ValueError(f"{chosen} is {one['dtype']}; expected {', '.join(_TYPES)}")
            kind, (start, stop), shape = np.dtype(_TYPES[one["dtype"]]), one["data_offsets"], tuple(one["shape"])
            if stop - start != kind.itemsize * shape[0] * shape[1] or 8 + length + stop > size or start < 0:
                raise ValueError(f"{chosen} extends beyond the file")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, InvalidInputError | DataFileError):
                raise
            raise DataFileError(
                f"cannot be read as safetensors: {str(error)[:200]}", name, code="unreadable"
            ) from error
    return _checked(np.memmap(name, kind, "r", 8 + length + start, shape), name)


def _of_table(name: str, form: str, column: str | None) -> tuple[list[str] | None, np.ndarray]:
    """Return the ids, or None without a column of ids, and the values of a list column, float32."""
    from pyarrow import compute, types

    from truerank.io.columnar import open_columnar

    with open_columnar(name, "parquet" if form == ".parquet" else "arrow") as (schema, batches):
        tests = types.is_list, types.is_large_list, types.is_fixed_size_list
        lists = [field.name for field in schema if any(is_list(field.type) for is_list in tests)]
        chosen = _only(dict.fromkeys(lists), column, name, "list column")
        known = {plain(field.name): field.name for field in schema if field.name not in lists}
        key = next((known[one] for one in _ID_COLUMNS if one in known), None)
        parts, ids = list[np.ndarray](), list[str]()
        for batch in batches:
            cells = batch.column(batch.schema.get_field_index(chosen))
            lengths = set(compute.list_value_length(cells).to_pylist())
            flat = np.asarray(cells.flatten().to_numpy(zero_copy_only=False), dtype=np.float32)
            if None in lengths or len(lengths) > 1 or (parts and {parts[0].shape[1]} != lengths):
                found = ", ".join(sorted(map(str, lengths | {part.shape[1] for part in parts[:1]}))[:5])
                raise DataFileError(f"the vectors of column {chosen!r} must have one length, got {found}", name)
            parts.append(flat.reshape(len(cells), -1))
            if key is not None:
                ids += map(id_text, batch.column(batch.schema.get_field_index(key)).to_pylist())
    if not parts:
        raise DataFileError("the file has no rows. Expected a vector in each row", name, code="no-rows")
    return (ids if key is not None else None), _checked(np.concatenate(parts), name)


def _only(known: Any, wanted: str | None, name: str, what: str) -> str:
    """Return the chosen column or array."""
    if wanted is None and len(known) == 1:
        return str(next(iter(known)))
    if wanted in known:
        return str(wanted)
    found = ", ".join(map(str, list(known)[:12])) or "none"
    raise InvalidInputError(f"{name}: expected one {what} of vectors, found {found}. Name one", argument="column")


def _ids(ids: Any, n: int, name: str) -> DocumentIds:
    if isinstance(ids, str | os.PathLike):
        with Source(ids) as stream:
            texts = [line.strip() for block in stream.line_blocks() for line in block.decode("utf-8").splitlines()]
        where = os.fspath(ids)
    else:
        texts, where = [id_text(one) for one in ids], name
    if len(texts) != n:
        raise InvalidInputError(f"{where}: expected {n} ids, one for each vector, got {len(texts)}", argument="ids")
    if wrong := repeated([*texts, ""]) if "" in texts else repeated(texts):
        raise InvalidInputError(
            f"{where}: id {wrong[0]!r} is empty or occurs twice, but each vector requires its own id", code="id"
        )
    return DocumentIds.of(texts)
