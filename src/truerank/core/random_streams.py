"""Random numbers: one seed, any number of independent named streams.

A learner draws all its randomness from `stream(random_state, ...)`. Streams with different keys are independent and
do not depend on the order in which they are made, so that results do not change with the number of threads or when
another part of the program draws one number more.
"""

from __future__ import annotations

import zlib

import numpy as np

from truerank.core.errors import InvalidInputError


def seed_of(random_state: object) -> int:
    """A 63-bit seed from None (0), an int, or a NumPy Generator or RandomState (which is advanced by one draw).

    `None` means the fixed seed 0: a fit is reproducible unless the caller asks for another seed.
    """
    if random_state is None:
        return 0
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        if random_state < 0:
            raise InvalidInputError(f"random_state must be None, an int >= 0 or a NumPy generator, got {random_state}")
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63 - 1))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise InvalidInputError(f"random_state must be None, an int >= 0 or a NumPy generator, got {random_state!r}")


def stream(seed: int, *keys: str | int) -> np.random.Generator:
    """The generator for `keys` under `seed`, for example `stream(seed, "bootstrap", tree)`."""
    words = [zlib.crc32(key.encode()) if isinstance(key, str) else int(key) for key in keys]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([int(seed), *words])))
