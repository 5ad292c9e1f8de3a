"""Accesses that reach outside of their tensor, where these are no errors: counted by kernel line and tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, frozen

from kernbench_core.callsite import CallSite, describe_site
from kernbench_core.memory.elements import index_at, spell_index

if TYPE_CHECKING:
    from kernbench_core.memory.device_memory import TensorAllocation


@frozen
class OutsideAccess:
    """Elements outside of a tensor that a kernel line reached: poison where it `writes` not, dropped where it does.

    `elements` of them in `count` calls; `index` is the first, its first coordinate unbounded, by a program on `pe`.
    """

    call: str
    line: str
    pe: str
    name: str
    shape: tuple[int, ...]
    index: tuple[int, ...]
    writes: bool
    elements: int
    count: int

    def __str__(self) -> str:
        done = "dropped" if self.writes else "poison"
        what = "1 element" if self.elements == 1 else f"{self.elements:,} elements"
        calls = "" if self.count == 1 else f" in {self.count:,} calls"
        return (
            f"{self.call} at {self.line} reached {what} outside tensor {self.name!r} of shape {self.shape}{calls}, "
            f"{done}; the first was {spell_index(self.name, self.index)}, on {self.pe}"
        )


class OutsideAccesses:
    """What reached outside of its tensor in one run, by call, line and tensor."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, CallSite, str], OutsideAccess] = {}

    def note(
        self, call: str, site: CallSite, pe: str, tensor: TensorAllocation, va: int, elements: int, *, writes: bool
    ) -> None:
        """Take note of an access, whose first element outside is at virtual address `va`."""
        key = call, site, tensor.name
        before = self._found.get(key)
        if before is None:
            index, line = index_at(tensor, va), describe_site(site)
            self._found[key] = OutsideAccess(call, line, pe, tensor.name, tensor.shape, index, writes, elements, 1)
        else:
            self._found[key] = evolve(before, elements=before.elements + elements, count=before.count + 1)

    def found(self) -> tuple[OutsideAccess, ...]:
        """Return what was found, in the order in which it first happened."""
        return tuple(self._found.values())


def count_outside(found: tuple[OutsideAccess, ...]) -> str:
    """Say how many elements were outside."""
    elements = sum(each.elements for each in found)
    return f"{elements:,} element{'' if elements == 1 else 's'} outside tensors"
