"""The union of the documents of many lists, by topic and descending id."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import query_blocks
from truerank.data.grouping import offsets_of
from truerank.io.document_ids import DocumentIds
from truerank.io.letor.decimal_kernel import byte
from truerank.io.trec import Run

_BLOCK = 1 << 16
"""Entries of a block of topics: few enough for the processor's cache."""
_HASH, _BEGIN, _TOPIC = 0, 1, 2


def join_lists(
    runs: Sequence[Run], lists: np.ndarray
) -> tuple[DocumentIds, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Join the documents of r runs' lists for m topics; `lists` int64 (m, r, 2) are first entry and length of lists.

    Returns ids (n,), by descending id within a topic, and their offsets (m + 1,) by topic; list offsets (m r + 1,),
    for run j and topic i from `i * r + j`; and the document and score of each entry (e,).

    Each block of topics has a hash table. The cost is e look-ups and a sort of each topic's documents.
    """
    m, r, _ = lists.shape
    list_offsets = offsets_of(lists[:, :, 1])
    before = list_offsets[::r]  # entries before each topic
    rows, scores = np.empty(before[-1], dtype=np.int64), np.empty(before[-1])
    # The size is an upper bound; pages that are never written use no memory.
    documents = np.empty((before[-1] + 1, 3), dtype=np.int64)
    utf8 = np.empty(sum(int((run.ids.ends - run.ids.begins).sum()) for run in runs), dtype=np.uint8)
    documents[0, _BEGIN] = n = 0
    parts = [lists, list_offsets[:-1].reshape(m, r, 1), np.broadcast_to(np.arange(m)[:, None, None], (m, r, 1))]
    placed = np.concatenate(parts, axis=2).transpose(1, 0, 2).copy()
    values = [np.require(run.scores, np.float64, ["C", "W"]) for run in runs]
    for first, last in query_blocks(before, _BLOCK):
        found, slots = 0, np.full(1024, -1, dtype=np.int32)
        for run, own, block in zip(runs, values, placed[:, first:last]):
            ids = run.ids
            slots, found = _join(
                ids.utf8, ids.begins, ids.ends, ids.hashes.view(np.int64), own, block, slots, documents[n:], utf8,
                found, rows, scores,
            )  # fmt: skip
        rows[before[first] : before[last]] += n
        n += found
    begins = documents[: n + 1, _BEGIN].copy()
    ids = DocumentIds(utf8[: begins[n]].copy(), begins[:n], begins[1:])
    topics = documents[:n, _TOPIC]
    offsets = offsets_of(np.bincount(topics, minlength=m))
    order = _descending(ids.texts, np.argsort(topics, kind="stable"), offsets)
    row_of = np.empty(n, dtype=np.int64)
    row_of[order] = np.arange(n)
    np.take(row_of, rows, out=rows, mode="clip")
    return ids.take(order), offsets, list_offsets, rows, scores


def _descending(texts: np.ndarray, entries: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Sort the `entries` of each group by descending id; the ids of a group differ."""
    result = np.empty_like(entries)
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        group = entries[start:stop]
        result[start:stop] = group[np.argsort(texts[group])[::-1]]
    return result


@kernel
def _join(utf8, begins, ends, hashes, values, lists, slots, documents, texts, n, rows, scores):
    """Look up one run's lists among the n documents of a block of topics, and add the new documents.

    lists (b, 4): first entry, length, first place in rows and scores, topic. slots: documents, or -1. documents:
    hash, begin in `texts` and topic of each. Returns the slots, which may have grown, and n.
    """
    for t in range(len(lists)):
        entry, length, place, topic = lists[t]
        if 2 * (n + length) > len(slots):
            slots = _larger(slots, documents[:n], 4 * (n + length))
        mask = len(slots) - 1
        for k in range(length):
            mixed = hashes[entry + k]
            begin, size = begins[entry + k], ends[entry + k] - begins[entry + k]
            slot = _first_slot(mixed, topic, mask)
            while slots[slot] >= 0:
                other = slots[slot]
                if documents[other, _HASH] == mixed and documents[other, _TOPIC] == topic:
                    there = documents[other, _BEGIN]
                    same = documents[other + 1, _BEGIN] - there == size
                    i = 0
                    while same and i < size:
                        same = byte(utf8, begin + i) == byte(texts, there + i)
                        i += 1
                    if same:
                        break
                slot = (slot + 1) & mask
            if slots[slot] < 0:
                slots[slot] = n
                end = documents[n, _BEGIN]
                for i in range(size):
                    texts[end + i] = byte(utf8, begin + i)
                documents[n, _HASH], documents[n, _TOPIC] = mixed, topic
                n += 1
                documents[n, _BEGIN] = end + size
            rows[place + k] = slots[slot]
            scores[place + k] = values[entry + k]
    return slots, n


@kernel
def _first_slot(mixed, topic, mask):
    return (mixed ^ (mixed >> 32) ^ (topic * 40503)) & mask


@kernel
def _larger(slots, documents, wanted):
    """Return a table of the same documents with at least `wanted` slots, a power of two."""
    size = 2 * len(slots)
    while size < wanted:
        size *= 2
    result = np.full(size, -1, dtype=np.int32)
    for k in range(len(documents)):
        slot = _first_slot(documents[k, _HASH], documents[k, _TOPIC], size - 1)
        while result[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        result[slot] = k
    return result
