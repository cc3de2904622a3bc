"""The union of the documents of many lists: by topic, by descending id, each once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import query_blocks
from truerank.data.grouping import offsets_of
from truerank.io.document_ids import DocumentIds
from truerank.io.letor.decimal_kernel import byte
from truerank.io.trec import Run
from truerank.matrices.sorting import room_to_sort, sort_descending

_BLOCK = 1 << 16
"""Entries of the topics that are joined together: few enough that their documents stay in the processor's cache."""
_HASH, _BEGIN, _TOPIC = 0, 1, 2
_PLACES = 16  # bytes of an id that are told by one number, at most


def join_lists(
    runs: Sequence[Run], lists: np.ndarray
) -> tuple[DocumentIds, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The documents of r runs' lists for m topics, and the lists over them.

    Parameters
    ----------
    runs : sequence of Run (r,)
    lists : int64 array (m, r, 2)
        First entry, in its run, and length of each run's list for each topic.

    Returns
    -------
    ids : DocumentIds (n,)
        By descending id within a topic.
    offsets : int64 array (m + 1,)
        Documents of topic i are `offsets[i]:offsets[i + 1]`.
    list_offsets : int64 array (m r + 1,)
        Entries of run j's list for topic i are `list_offsets[i * r + j]:list_offsets[i * r + j + 1]`.
    rows, scores : int64 and float64 arrays (e,)
        Document and score of each entry, lists in their runs' order.

    Notes
    -----
    A hash table for each block of topics; ids are copied once for each document of the union. Cost: e look-ups and the
    sort of each topic's documents.
    """
    m, r, _ = lists.shape
    list_offsets = offsets_of(lists[:, :, 1])
    before = list_offsets[::r]  # entries before each topic
    rows, scores = np.empty(before[-1], dtype=np.int64), np.empty(before[-1])
    # Memory is taken for documents that are all different; what is not needed is never touched.
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
    order = _descending(ids, np.argsort(topics, kind="stable"), offsets)
    row_of = np.empty(n, dtype=np.int64)
    row_of[order] = np.arange(n)
    np.take(row_of, rows, out=rows, mode="clip")
    return ids.take(order), offsets, list_offsets, rows, scores


def _descending(ids: DocumentIds, entries: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """`entries` of ids, by descending id within each group, whose ids differ."""
    n = len(entries)
    keys, order, same = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.zeros(n + 1, dtype=bool)
    lengths = np.zeros(len(offsets) - 1, dtype=np.int64)
    _first_keys(ids.utf8, ids.begins, ids.ends, entries, offsets, lengths, keys)
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        keys[start:stop].sort()  # NumPy's is several times as fast as a compiled merge sort
    if _places(keys, offsets, order, same):
        spare = np.empty(n, dtype=np.uint64)
        _settle(ids.utf8, ids.begins, ids.ends, entries, offsets, lengths, same, spare, order)
    return entries[order]


@kernel
def _eight_bytes(utf8, begin, end):
    """The next eight bytes of an id as a number that sorts as they do; zeros behind its end."""
    key = np.uint64(0)
    for k in range(8):
        key <<= np.uint64(8)
        if begin + k < end:
            key |= np.uint64(byte(utf8, begin + k))
    return key


@kernel
def _symbol(utf8, place, end):
    """The byte at a place of an id, counted from 1; 0 behind its end."""
    return np.int64(byte(utf8, place)) + 1 if place < end else 0


@kernel
def _bits(n):
    """Bits of the numbers below n."""
    bits = 0
    while 1 << bits < n:
        bits += 1
    return bits


@kernel
def _first_keys(utf8, begins, ends, entries, offsets, lengths, keys):
    """Of each id a number that rises as the ids of its group fall, above the id's place in the group (the lowest bits).

    A digit for each byte behind those with which all ids of the group begin: how many of the bytes that stand there in
    some id are greater. So few bits hold many bytes, mostly all. lengths: bytes of the ids that the numbers tell.
    """
    seen, digits = np.zeros((_PLACES, 257), np.bool_), np.zeros((_PLACES, 257), np.int64)
    radix = np.empty(_PLACES, np.int64)
    for i in range(len(offsets) - 1):
        group = entries[offsets[i] : offsets[i + 1]]
        if len(group) == 0:
            continue
        first = group[0]
        skip = ends[first] - begins[first]
        shortest = skip
        for entry in group:
            shortest = min(shortest, ends[entry] - begins[entry])
            k, most = 0, min(skip, ends[entry] - begins[entry])
            while k < most and byte(utf8, begins[entry] + k) == byte(utf8, begins[first] + k):
                k += 1
            skip = k
        seen[:] = False
        seen[shortest - skip :, 0] = True
        for entry in group:
            begin = begins[entry] + skip
            for k in range(min(_PLACES, ends[entry] - begin)):
                seen[k, _symbol(utf8, begin + k, ends[entry])] = True
        bits = _bits(len(group))
        room, places = 1 << (63 - bits), 0
        while places < _PLACES:
            size = 0
            for symbol in range(256, -1, -1):
                digits[places, symbol] = size
                size += seen[places, symbol]
            if size > room:
                break
            room //= size
            radix[places] = size
            places += 1
        for k in range(len(group)):
            begin, key = begins[group[k]] + skip, 0
            for place in range(places):
                key = key * radix[place] + digits[place, _symbol(utf8, begin + place, ends[group[k]])]
            keys[offsets[i] + k] = key << bits | k
        lengths[i] = skip + places


@kernel
def _places(keys, offsets, order, same):
    """The ids' places in the order of the sorted keys, and which have the number of the one before; whether any has."""
    tied = False
    for i in range(len(offsets) - 1):
        bits = _bits(offsets[i + 1] - offsets[i])
        for k in range(offsets[i], offsets[i + 1]):
            order[k] = offsets[i] + (keys[k] & ((1 << bits) - 1))
            same[k] = k > offsets[i] and keys[k] >> bits == keys[k - 1] >> bits
            tied = tied or same[k]
    return tied


@kernel
def _settle(utf8, begins, ends, entries, offsets, lengths, same, keys, order):
    """Sort ids that agree in `lengths` bytes by their next eight, and so on; at the end the longer id is greater.

    same: whether an id agrees with the one before it so far; it changes, and `order`. keys: room for n numbers.
    """
    for i in range(len(offsets) - 1):
        skip = lengths[i]
        unsettled = True
        while unsettled:
            unsettled = False
            start = offsets[i]
            while start < offsets[i + 1]:
                stop = start + 1
                while same[stop]:
                    stop += 1
                if stop - start > 1:
                    tied = order[start:stop]
                    longest = 0
                    for place in tied:
                        longest = max(longest, ends[entries[place]] - begins[entries[place]])
                    for place in tied:
                        entry = entries[place]
                        if skip < longest:
                            keys[place] = _eight_bytes(utf8, begins[entry] + skip, ends[entry])
                        else:  # one is the other with zeros behind
                            keys[place] = np.uint64(ends[entry] - begins[entry])
                    unsettled = unsettled or skip < longest
                    sort_descending(keys, tied, len(tied), room_to_sort(len(tied)))
                    for k in range(start + 1, stop):
                        same[k] = keys[order[k]] == keys[order[k - 1]]
                start = stop
            skip += 8


@kernel
def _join(utf8, begins, ends, hashes, values, lists, slots, documents, texts, n, rows, scores):
    """Look one run's lists for a block of topics up among the n documents of the block, and add those that are new.

    lists (b, 4): first entry, length, place of the entries in rows and scores, topic. slots: documents, or -1.
    documents: hash, begin in `texts` and topic of each, and where the next one begins. Returns the slots, which grow,
    and n.
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
    """Where the search for an id of this hash begins, among mask + 1 slots."""
    return (mixed ^ (mixed >> 32) ^ (topic * 40503)) & mask


@kernel
def _larger(slots, documents, wanted):
    """Slots of the same documents, a power of two and at least `wanted` of them."""
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
