"""Whether a run of a kernel depends on the network: where it does not, one proof holds on every network.

A kernel learns which network it is on in three ways only: by its parameter `topo_kind`, by `tl.collective.network`, and
by the neighbour that a direction ("e") leads to. The first is looked for in the kernel's code, the others while it
runs. A kernel that was told nothing of the network does the same on another.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from types import FunctionType
from typing import Any

from attrs import define, fields

from kernbench_ccl.catalogue import Algorithm
from kernbench_ccl.contract import PARAMETERS, Collective, Network
from kernbench_ccl.contract import kernel_args as all_nine

__tracebackhide__ = True  # errors name the kernel's line, not one of these

_KIND = "topo_kind"
_WHOLE_FRAME = frozenset({"locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe"})
"""What could give a kernel its parameters without naming them."""


@define
class NetworkUse:
    """Whether a kernel has asked for the network."""

    asked: bool = False

    def watched(self, collective: Collective) -> Collective:
        """Return the same `tl.collective`, which takes note of who asks for its network."""
        given = {each.name: getattr(collective, each.name) for each in fields(Collective)}
        copy = _Watched(**given)
        object.__setattr__(copy, "use", self)
        return copy

    def directions(self, direction: Callable[[int, str], int | None]) -> Callable[[int, str], int | None]:
        """Return the same neighbours, which takes note of who asks for one."""

        def noted(pe: int, name: str) -> int | None:
            self.asked = True
            return direction(pe, name)

        return noted


class _Watched(Collective):
    """What a kernel finds in `tl.collective`; `use` is told when its network is read."""

    use: NetworkUse | None = None

    @property
    def network(self) -> Network:
        """The scale-up network."""
        if self.use is not None:
            self.use.asked = True
        found: Network = _SLOT.__get__(self)
        return found

    @network.setter
    def network(self, value: Network) -> None:
        _SLOT.__set__(self, value)


_SLOT: Any = Collective.__dict__["network"]


def ignores_kind(algorithm: Algorithm) -> bool:
    """Whether the code of a kernel shows that it never reads `topo_kind`, and nothing else is made of it before."""
    return algorithm.kernel_args is all_nine and _never_reads(algorithm.kernel, PARAMETERS.index(_KIND))


def _never_reads(function: Callable[..., Any], position: int) -> bool:
    """Whether no instruction of a function uses the parameter at a position."""
    if type(function) is not FunctionType:
        return False
    code = function.__code__
    if code.co_argcount <= position or _WHOLE_FRAME.intersection(code.co_names):
        return False
    name = code.co_varnames[position]
    if name in code.co_cellvars:
        return False
    for instruction in dis.get_instructions(code):
        used = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
        if name in used:
            return False
    return True
