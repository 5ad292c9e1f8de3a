"""What PEs and host programs did last: those that did alike are told once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from kernbench_core.callsite import describe_site
from kernbench_core.host.launch_names import called
from kernbench_core.kernel.pe_state import Kernels
from kernbench_core.units import format_time

if TYPE_CHECKING:
    from kernbench_core.engine.hardware import Hardware
    from kernbench_core.host.host_program import HostProgram, Shared

_MOST_NAMES: Final = 4


def pe_names(hardware: Hardware, pes: Iterable[int]) -> str:
    """Join the names of PEs, runs in one cube as one: "sip0.cube0.pe0-6, sip1.cube0.pe3"; of many the first few."""
    runs: list[tuple[str, int, int]] = []
    for index in sorted(pes):
        cube, _, number = hardware.layout.pes[index].prefix.rpartition(".pe")
        at = int(number)
        if runs and runs[-1][0] == cube and runs[-1][2] == at - 1:
            runs[-1] = cube, runs[-1][1], at
        else:
            runs.append((cube, at, at))
    names = [f"{cube}.pe{first}" + (f"-{last}" if last > first else "") for cube, first, last in runs]
    if len(names) > _MOST_NAMES + 1:
        left = sum(last - first + 1 for _, first, last in runs[_MOST_NAMES:])
        names[_MOST_NAMES:] = [f"{left} more PEs"]
    return ", ".join(names)


def last_call(hardware: Hardware, pe: int) -> tuple[str, float] | None:
    """Return the call and line of the command of a PE that was complete last, and when in ns; None without any."""
    kernels = hardware.find(Kernels)
    state = None if kernels is None else kernels.states.get(pe)
    if state is None or state.last is None:
        return None
    return f"{state.last.call} at {describe_site(state.last.site)}", state.last.end


def before_that(hardware: Hardware, pes: Sequence[int]) -> Iterable[str]:
    """Yield what PEs that wait did last, a line for each call that was the last of some; nothing where none did any."""
    groups: dict[str, list[tuple[int, float]]] = {}
    for pe in pes:
        did, ended = last_call(hardware, pe) or ("", 0.0)
        groups.setdefault(did, []).append((pe, ended))
    if not any(groups):
        return
    if len(groups) == 1:
        ((did, members),) = groups.items()
        yield f"before that {'they' if len(pes) > 1 else 'it'} did {did}, until {_times(members)}"
        return
    yield "before that:"
    for did, members in groups.items():
        names = pe_names(hardware, (pe for pe, _ in members))
        yield f"  {names} did {did}, until {_times(members)}" if did else f"  {names} did nothing"


def idle_pes(hardware: Hardware, shared: Shared, pes: Iterable[int]) -> Iterable[str]:
    """Yield what PEs that run no kernel did last: which launch they ended, and their last call in it."""
    ended = {pe: handle for handle in shared.launches for pe in handle.launch.ended_ns}
    groups: dict[tuple[str, str], list[tuple[int, float, float]]] = {}
    for pe in sorted(pes):
        handle = ended.get(pe)
        if handle is None:
            groups.setdefault(("", ""), []).append((pe, 0.0, 0.0))
            continue
        did, at = last_call(hardware, pe) or ("", 0.0)
        groups.setdefault((called(handle), did), []).append((pe, handle.launch.ended_ns[pe], at))
    for (launch, did), members in groups.items():
        names = pe_names(hardware, (pe for pe, _, _ in members))
        if not launch:
            yield f"{names} {'have' if len(members) > 1 else 'has'} run no kernel"
            continue
        over = _times([(pe, at) for pe, at, _ in members])
        last = _times([(pe, at) for pe, _, at in members])
        words = f"; the last call there was {did}, until {last}" if did else ", without a call"
        yield f"{names} ended {'their' if len(members) > 1 else 'its'} part of {launch}, at {over}{words}"


def ended_program(shared: Shared, program: HostProgram) -> str:
    """Say what a host program that has ended launched last."""
    mine = [handle for handle in shared.launches if handle.program is program]
    if not mine:
        return f"the program of {program.name} has ended, and has launched nothing"
    over = max(mine[-1].launch.ended_ns.values(), default=0.0)
    last = f"{called(mine[-1])}, over at {format_time(over)}"
    return f"the program of {program.name} has ended; its last launch was {last}"


def _times(members: Sequence[tuple[int, float]]) -> str:
    """Spell when it was, for several PEs from when to when."""
    times = [time for _, time in members]
    first, last = format_time(min(times)), format_time(max(times))
    return first if first == last else f"{first} to {last}"
