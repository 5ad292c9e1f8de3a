"""What kernels read into Python: elements of tiles, which a PE's CPU reads; arithmetic on them then takes no time."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from attrs import asdict, frozen

from kernbench_core.callsite import describe_site
from kernbench_core.units import format_time, grid_ceil

if TYPE_CHECKING:
    from kernbench_core.kernel.pe_state import Kernels

#: How many elements may be read into Python, and of how many loaded elements one may, before the verdict names them.
_FEW: Final = 256
_ONE_OF: Final = 100


@frozen
class ReadLine:
    """A kernel line and how many elements it read."""

    line: str
    elements: int


@frozen
class PythonReads:
    """How many elements kernels read into Python, of how many that they `loaded`, and at which lines, most first.

    It took the CPUs of PEs `cost_ns` in all; `free` says why it took some of them no time.
    """

    elements: int
    loaded: int
    cost_ns: float
    lines: tuple[ReadLine, ...]
    free: tuple[str, ...] = ()

    @property
    def many(self) -> bool:
        """Whether so much was read that arithmetic in Python may be what the kernel is about."""
        return self.elements > _FEW and self.elements * _ONE_OF > self.loaded

    @property
    def words(self) -> str:
        """Say how many there are."""
        return f"{self.elements:,} element{'' if self.elements == 1 else 's'} read into Python"

    @property
    def sentence(self) -> str:
        """Say how many there are, what reading them took, and what is not timed."""
        took = [] if self.free and not self.cost_ns else [f"in {format_time(self.cost_ns)} of the PEs' CPUs"]
        took += [f"at no time, as {why}" for why in self.free]
        return f"{self.words}, of {self.loaded:,} loaded, {' and '.join(took)}; arithmetic on them is not timed"

    def list_lines(self, most: int = 3) -> Iterator[str]:
        """Yield a text for each of the lines that read most, and say how many more there are."""
        for each in self.lines[:most]:
            yield f"  {each.elements:,} at {each.line}"
        left = len(self.lines) - most
        if left > 0:
            yield f"  and at {left} more line{'' if left == 1 else 's'}; --json lists them"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return asdict(self)


def python_reads(kernels: Kernels) -> PythonReads | None:
    """Return what the kernels of a run read so far; None where they read nothing."""
    lines: Counter[str] = Counter()
    for site, count in kernels.read_at.items():
        lines[describe_site(site)] += count
    if not lines:
        return None
    readers = [state for state in kernels.states.values() if state.elements_read]
    return PythonReads(
        elements=lines.total(),
        loaded=kernels.loaded,
        cost_ns=sum(state.elements_read * state.element_read for state in readers),
        lines=tuple(ReadLine(*each) for each in sorted(lines.items(), key=lambda each: (-each[1], each[0]))),
        free=tuple(sorted({state.reads_free for state in readers} - {""})),
    )


def reading_of(cpu: Any) -> tuple[float, str]:
    """Return how long a PE's CPU takes to read an element, in ns, and where that is no time, why."""
    found = getattr(cpu, "element_read_ns", None)
    if found is None:
        return 0.0, f"{cpu.node.impl} has no element_read"
    if not 0.0 <= found < math.inf:
        raise ValueError(f"element_read_ns must be a finite time in ns, at least 0, not {found!r}")
    return grid_ceil(found), "" if found else f"element_read of {cpu.node.impl} is 0"


def in_debugger() -> bool:
    """Tell whether it is a debugger that asks, at a breakpoint of the kernel."""
    if sys.gettrace() is None:
        return False
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == "bdb" and frame.f_code.co_name.startswith("dispatch_"):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
