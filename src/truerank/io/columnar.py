"""Open Parquet, Arrow and Feather files, and reject a file that expands too much before it is in memory."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from truerank.core.errors import DataFileError
from truerank.core.types import PathLike
from truerank.io.streams import check_expansion

_CELL = 8  # least bytes of a cell in memory
_ROWS, _ROWS_OF_NESTED_TEXT, _ROWS_OF_SHARED_TEXT = 1 << 16, 4096, 64  # of a batch of a Parquet file


@contextmanager
def open_columnar(
    path: PathLike, kind: str, *, coded: bool = False, columns: list[str] | None = None, groups: Any = None
) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Yield the schema of a file and its record batches, which are valid.

    `kind` is "parquet" or "arrow". With `coded`, texts may be dictionaries although the schema has plain texts.
    `columns` and `groups` (numbers of row groups) choose parts of a Parquet file. Raises DataFileError if the file is
    damaged, of another kind, or expands too much (`check_expansion`).
    """
    import pyarrow

    name = os.fspath(path)
    try:
        # Python's `open` raises clear errors, and Arrow's serves its threads: see `tables._in_own_memory`.
        with open(path, "rb"), pyarrow.OSFile(name) as file:
            if kind == "parquet":
                schema, batches = _of_parquet(file, name, columns, groups)
            elif file.read(4) == b"FEA1":  # Feather's first version, which is not compressed
                from pyarrow import feather

                table = feather.read_table(name)
                schema, batches = table.schema, iter(table.to_batches())
            else:
                check_expansion(name, file.size(), sum(_block_sizes(file)))
                opened = pyarrow.ipc.open_file(file)
                schema, batches = opened.schema, map(opened.get_batch, range(opened.num_record_batches))
            yield schema, _bounded(batches, None if coded else schema, name, file.size())
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError, OverflowError, struct.error, IndexError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise DataFileError(f"cannot be read as {kind}: {first_line(error)}", name, code="unreadable") from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error of another library, at most 300 printable characters."""
    text = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def _of_parquet(file: Any, name: str, columns: list[str] | None, groups: Any) -> tuple[Any, Iterator[Any]]:
    """Return the schema and the batches of a Parquet file, with texts as dictionaries.

    A text that the file stores once for many rows is then in memory once. Texts in a delta encoding cannot be
    dictionaries, and with DELTA_BYTE_ARRAY a short page may hold long texts, so batches are small.
    """
    from pyarrow import schema, types
    from pyarrow.parquet import ParquetFile

    held = ParquetFile(file)
    whole = held.schema_arrow
    places = list(range(len(held.schema)))
    if columns is not None:
        whole = schema([field for field in whole if field.name in columns], whole.metadata)
        within = tuple(f"{column}." for column in columns)
        paths = [held.schema.column(k).path for k in places]
        places = [k for k in places if paths[k] in columns or paths[k].startswith(within)]
    numbers = list(range(held.num_row_groups) if groups is None else groups)
    parts = [held.metadata.row_group(k) for k in numbers]
    check_expansion(name, file.size(), sum(part.total_byte_size for part in parts))
    for k in numbers:
        # Without a row, the readers of the columns are made. Damaged metadata of a column are an error here, and end
        # the process in Arrow's `column` below.
        next(held.reader.iter_batches(0, row_groups=[k], column_indices=places), None)
    chunks = [part.column(place) for part in parts for place in places]
    check_expansion(name, file.size(), sum(max(_CELL * one.num_values, one.total_uncompressed_size) for one in chunks))
    kinds = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    shared = any("DELTA_BYTE_ARRAY" in one.encodings for one in chunks)
    other = {one.path_in_schema for one in chunks if any("DELTA" in encoding for encoding in one.encodings)}
    texts = [field.name for field in whole if any(kind(field.type) for kind in kinds) and field.name not in other]
    nested = any(one.physical_type == "BYTE_ARRAY" and one.path_in_schema not in texts for one in chunks)
    rows = _ROWS_OF_SHARED_TEXT if shared else _ROWS_OF_NESTED_TEXT if nested else _ROWS
    opened = ParquetFile(file, metadata=held.metadata, read_dictionary=texts)
    return whole, map(_of_used, opened.iter_batches(batch_size=rows, columns=whole.names, row_groups=groups))


def _of_used(batch: Any) -> Any:
    """Return a batch whose dictionaries hold only its own values; Arrow copies the dictionary of a row group."""
    from pyarrow import DictionaryArray, types

    def compact(column: Any) -> Any:
        if not types.is_dictionary(column.type):
            return column
        used = column.indices.dictionary_encode()
        codes, values = used.indices.cast(column.type.index_type), column.dictionary.take(used.dictionary)
        return DictionaryArray.from_arrays(codes, values, ordered=column.type.ordered)

    return type(batch).from_arrays(list(map(compact, batch.columns)), schema=batch.schema)


def _bounded(batches: Iterable[Any], schema: Any, name: str, size: int) -> Iterator[Any]:
    """Yield valid batches of a schema, or batches with dictionaries if the schema is None."""
    held = 0
    for batch in batches:
        batch.validate()
        held += max(batch.nbytes, _CELL * batch.num_rows * batch.num_columns)
        held += 0 if schema is None else sum(map(_repeated, batch.columns))
        check_expansion(name, size, held)
        batch.validate(full=True)  # otherwise a damaged file makes Arrow read outside of its columns
        if schema is None:
            yield batch
            continue
        columns = [
            column.dictionary_decode().cast(field.type)
            if hasattr(column, "indices") and field.type != column.type
            else column
            for column, field in zip(batch.columns, schema)
        ]
        yield type(batch).from_arrays(columns, schema=schema)


def _repeated(column: Any) -> int:
    """Return the size in Python, in bytes, of the texts of a column that stores each text once for several rows."""
    from pyarrow import compute, types

    kind: Any = column.type
    values: Any = getattr(column, "dictionary", getattr(column, "values", None))
    if types.is_string_view(kind) or types.is_binary_view(kind):
        views = np.frombuffer(column.buffers()[1], dtype=np.int32)[4 * column.offset :: 4]
        return int(views[: len(column)].sum(dtype=np.int64))
    if not (types.is_dictionary(kind) or types.is_run_end_encoded(kind)) or not hasattr(values, "type"):
        return 0
    if not (types.is_string(values.type) or types.is_large_string(values.type) or types.is_binary(values.type)):
        return 0
    lengths = compute.binary_length(values)
    if types.is_run_end_encoded(kind):
        return len(column) * (compute.max(lengths).as_py() or 0)
    return compute.sum(lengths.take(column.indices)).as_py() or 0


def _block_sizes(file: Any) -> Iterator[int]:
    """Yield the bytes of each block of an Arrow file after decompression, from its headers.

    The footer lists the blocks. Each block has a header (a flatbuffer) and buffers; compressed buffers begin with their
    size.
    """
    file.seek(max(file.size() - 10, 0))
    length = int.from_bytes(file.read(4), "little")
    file.seek(max(file.size() - 10 - length, 0))
    footer = file.read(min(length, file.size()))
    root = _follow(footer, 0)
    for field in (2, 3):  # dictionaries, record batches
        for offset, size in _structs(footer, _field(footer, root, field), "<qi12x"):
            file.seek(offset)
            head = file.read(min(size, file.size()))
            head = head[8 if head[:4] == b"\xff" * 4 else 4 :]
            batch = _follow(head, _field(head, _follow(head, 0), 2))
            batch = _follow(head, _field(head, batch, 1)) if field == 2 else batch
            for start, stored in _structs(head, _field(head, batch, 2), "<qq"):
                unpacked = -1
                if stored > 8 and _field(head, batch, 3):
                    file.seek(offset + size + start)
                    (unpacked,) = struct.unpack("<q", file.read(8))
                yield max(stored, unpacked)


def _follow(data: bytes, place: int) -> int:
    return place + int(struct.unpack_from("<I", data, place)[0])


def _field(data: bytes, table: int, number: int) -> int:
    """Return the place of a field in a flatbuffer's table, or 0 if the field is absent."""
    names = table - struct.unpack_from("<i", data, table)[0]
    absent = 4 + 2 * number >= struct.unpack_from("<H", data, names)[0]
    step = 0 if absent else struct.unpack_from("<H", data, names + 4 + 2 * number)[0]
    return table + step if step else 0


def _structs(data: bytes, place: int, form: str) -> list[tuple[int, int]]:
    """Return the entries of a vector of structs, or [] if the vector is absent."""
    start = _follow(data, place) if place else 0
    n = struct.unpack_from("<I", data, start)[0] if place else 0
    return list(struct.iter_unpack(form, data[start + 4 : start + 4 + n * struct.calcsize(form)]))
