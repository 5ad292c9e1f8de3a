"""The cases of all families."""

from __future__ import annotations

from tests.builtin.triton.families import attention, counting, elementwise, idioms, matmul, moves, norms, softmax

CASES = (
    *elementwise.CASES, *softmax.CASES, *norms.CASES, *matmul.CASES, *attention.CASES, *moves.CASES,
    *counting.CASES, *idioms.CASES,
)  # fmt: skip
