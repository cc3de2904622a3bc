"""Compare and hash document ids as bytes, by compiled code."""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel
from truerank.io.letor.decimal_kernel import byte


@kernel
def same_id(utf8, begins, ends, a, b):
    """Return whether entries a and b have the same id."""
    same, k = ends[a] - begins[a] == ends[b] - begins[b], begins[a]
    while same and k < ends[a]:
        same = byte(utf8, k) == byte(utf8, begins[b] + k - begins[a])
        k += 1
    return same


@kernel
def hash_ids(utf8, begins, ends, hashes):
    """Write the FNV-1a hash of every id; products wrap around, and NumPy warns of it without compilation."""
    for i in range(len(begins)):
        mixed = np.uint64(14695981039346656037)
        for k in range(begins[i], ends[i]):
            mixed = (mixed ^ np.uint64(byte(utf8, k))) * np.uint64(1099511628211)
        hashes[i] = mixed


@kernel
def slot_of(slots, mask, utf8, begins, ends, hashes, entry):
    """Return the slot of an entry with the same id as `entry`, or else the free slot where `entry` belongs.

    The mask + 1 slots (a power of two) hold entries, or -1 if they are free; some are free.
    """
    slot = (hashes[entry] ^ (hashes[entry] >> np.uint64(32))) & mask
    while slots[slot] >= 0:
        other = slots[slot]
        if hashes[other] == hashes[entry] and same_id(utf8, begins, ends, other, entry):
            break
        slot = (slot + np.uint64(1)) & mask
    return slot


@kernel
def first_repeated(utf8, begins, ends, hashes, offsets):
    """Return the first entry that repeats an id of its group `offsets[i]:offsets[i + 1]`; -1 if there is none."""
    slots = np.empty(1, dtype=np.int64)
    for i in range(len(offsets) - 1):
        size = 1
        while size < 2 * (offsets[i + 1] - offsets[i]):
            size *= 2
        if size > len(slots):
            slots = np.empty(size, dtype=np.int64)
        slots[:size] = -1
        for entry in range(offsets[i], offsets[i + 1]):
            slot = slot_of(slots, np.uint64(size - 1), utf8, begins, ends, hashes, entry)
            if slots[slot] >= 0:
                return entry
            slots[slot] = entry
    return -1
