"""Philox4x32: random bits from a counter of four words and a key of two, after a number of rounds.

Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 3.3 and table 2;
ten rounds are their default. A round is two products of 32 bits, each with its upper half, and four exclusive ors; the
key is bumped by two sums between rounds.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kernbench_core.compute.ops.record import LaneCost, MathOp, Operands, Params
from kernbench_core.compute.ops.shape_rules import elementwise
from kernbench_core.compute.ops.type_rules import always
from kernbench_core.values.arrays import Array

ROUNDS: Final = 10
MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
BUMPS: Final = (0x9E3779B9, 0xBB67AE85)
_WORD: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)


def _words(operands: Any) -> list[Array]:
    """Bring operands to words of 32 bits, held in 64."""
    return [x.astype(np.int64).astype(np.uint64) & _WORD for x in np.broadcast_arrays(*operands)]


def _philox(params: Params, *operands: Array) -> Array:
    """Give word `part` of what the key (the first two operands) makes of the counter (the other four)."""
    k0, k1, c0, c1, c2, c3 = _words(operands)
    for _ in range(int(params.get("rounds", ROUNDS))):
        low, high = c0 * np.uint64(MULTIPLIERS[0]), c2 * np.uint64(MULTIPLIERS[1])
        c0, c1 = (high >> _HALF) ^ c1 ^ k0, high & _WORD
        c2, c3 = (low >> _HALF) ^ c3 ^ k1, low & _WORD
        k0, k1 = k0 + np.uint64(BUMPS[0]) & _WORD, k1 + np.uint64(BUMPS[1]) & _WORD
    return np.asarray((c0, c1, c2, c3)[int(params["part"])]).astype(np.uint32)


OPS: Final = (
    MathOp(
        "philox", _philox, always("uint32"), elementwise, operands=Operands.GIVEN, arity=6,
        cost=LaneCost(ROUNDS * (4 + 4 + 2)),
    ),
)  # fmt: skip
