"""Which sizes have room in a scratchpad: what `auto` becomes, and what is said where nothing fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from kernbench_core.errors import UsageError
from kernbench_core.host import Runtime
from kernbench_core.units import format_bytes

_Choice = TypeVar("_Choice")


def that_fits(
    rt: Runtime, choices: Iterable[_Choice], held: Callable[[_Choice], float], instead: str = ""
) -> _Choice:
    """Return the first choice of which a scratchpad holds what is there at once, as `held` says, in bytes.

    UsageError where none fits: it says how much is enough, and `instead`, what else can be given.
    """
    least = float("inf")
    for choice in choices:
        nbytes = held(choice)
        if nbytes <= rt.scratchpad_bytes:
            return choice
        least = min(least, nbytes)
    enough = f"{-int(-least // 1024)} KiB"
    raise UsageError(
        f"pe.tcm.capacity must be {enough} or more for the smallest sizes that auto can choose here, not "
        f"{format_bytes(rt.scratchpad_bytes)}; give --set pe.tcm.capacity={enough.replace(' ', '')}{instead}."
    )


def halvings(size: int) -> Iterator[int]:
    """Yield a size, half of it, and so on, down to 1."""
    yield size
    while size > 1:
        size = -(-size // 2)
        yield size


def queue_bytes(rt: Runtime) -> int:
    """Return what the slots of a queue between two PEs take in the scratchpad of the one that receives."""
    unit = rt.unit("pe_ipcq")
    return int(unit.get("slots", 4)) * int(unit.get("slot_bytes", 0)) if unit.get("tier") == "tcm" else 0
