"""Random numbers from one seed, in any number of independent streams by name.

Streams with different keys do not depend on the order of their creation. Results therefore do not change with the
number of threads, or if another part of the program draws one more number.
"""

from __future__ import annotations

import zlib

import numpy as np

from truerank.core.errors import InvalidInputError


def seed_of(random_state: object) -> int:
    """Return a 63-bit seed: 0 for None, an int itself, or one draw from a NumPy Generator or RandomState."""
    if random_state is None:
        return 0
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        if random_state < 0:
            raise InvalidInputError(
                f"random_state must be None, an int >= 0 or a NumPy generator, got {random_state}",
                argument="random_state",
            )
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63 - 1))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise InvalidInputError(
        argument="random_state", expected="None, an int >= 0 or a NumPy generator", value=random_state
    )


def stream(seed: int, *keys: str | int) -> np.random.Generator:
    """Return the generator for `keys` under `seed`, for example `stream(seed, "bootstrap", tree)`."""
    words = [int(seed), *(zlib.crc32(key.encode()) if isinstance(key, str) else int(key) for key in keys)]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))
