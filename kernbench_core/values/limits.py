"""How large addresses and sizes may be: what is larger is refused, as 64 bits would let it wrap around."""

from __future__ import annotations

from typing import Final

from kernbench_core.errors import OutOfBoundsError

LIMIT: Final = 1 << 63
"""Every address and every size is below it."""

LIMIT_AS_FLOAT: Final = float(LIMIT)
"""The limit, to compare with what was computed without wrapping around."""


def require_addresses(base: int, row_bytes: int, rows: int, pitch: int) -> None:
    """Raise an OutOfBoundsError for what reaches outside of all addresses."""
    reach = max(rows, 1) * max(row_bytes, abs(pitch), 1)  # each number is below the limit by itself, too
    if max(base, 0) + reach >= LIMIT or (base - reach if pitch < 0 else base) < -LIMIT // 2:
        raise OutOfBoundsError(
            f"a region of {rows} rows of {row_bytes} B, {pitch} B apart, from {base:#x} on must end below byte 2**63; "
            "give addresses and sizes that a machine has."
        )
