"""Time a recording on a machine by the engine in C++."""

from __future__ import annotations

import ctypes
import functools
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np

from kernbench_builtin.native.machine_form import unsupported
from kernbench_builtin.native.prepared import PreparedStream, numbers_on
from kernbench_builtin.native.recording import structure_of
from kernbench_builtin.native.sources import MODULE, engine_checksum
from kernbench_builtin.native.stream_form import NotTimed
from kernbench_core.errors import UsageError
from kernbench_core.process import garbage_left

if TYPE_CHECKING:
    from kernbench_builtin.native.prepared import Numbers
    from kernbench_builtin.native.recording import Recording
    from kernbench_core.engine.hardware import Hardware
    from kernbench_core.plugins import Plugins
    from kernbench_core.topology.design import Machine

#: Events between two looks at interrupts.
_SLICE: Final = 1_000_000
_FIELDS: Final = 7
_FAULTS: Final = {
    1: "the scratchpads must have room as in the recorded run, and are full at these times; run it in full.",
    2: "the order in which slots of queues go back must be known, and at these times it is not; run it in full.",
    3: "what scratchpads have room for must be as in the recorded run, and at these times it is not; run it in full.",
}


@attrs.frozen(eq=False)
class NativeTimes:
    """Hold the times in ns of a recording on a machine.

    `commands` are (start, end) of each, `requests` when each was submitted and complete, `launches` (start, end) by PE
    and launch, -1 where there was none; `wires` have busy ns, bytes, deliveries, waits, their ns, the longest, and when
    each is free.
    """

    total_ns: float
    events: int
    commands: Numbers
    requests: Numbers
    launches: Numbers
    wires: Numbers

    def phases(self, recording: Recording) -> dict[str, float]:
        """Return how long each phase of a run was, in ns, as `phases` of a result has it."""
        from kernbench_core.host.timing import phases_of

        spans: dict[str, list[tuple[float, float]]] = {"kernel": [], "launch": [], "device_to_host": []}
        launches = iter(self.launches.swapaxes(0, 1))
        for request, (born, end) in zip(recording.requests, self.requests.tolist(), strict=True):
            if request.get("launch"):
                spans["launch"].append((born, end))
                launch = next(launches)
                ran = launch[launch[:, 0] >= 0]
                if len(ran):
                    spans["kernel"].append((float(ran[:, 0].min()), float(ran[:, 1].max())))
            elif request.get("op") == "read":
                spans["device_to_host"].append((born, end))
        return phases_of(self.total_ns, spans)


def library_file() -> Path | None:
    """Return the engine's file; None where it was not compiled."""
    name = MODULE.rpartition(".")[2]
    files = (Path(__file__).with_name(f"{name}{suffix}") for suffix in EXTENSION_SUFFIXES)
    return next((file for file in files if file.is_file()), None)


@functools.cache
def _library() -> Any:
    file = library_file()
    if file is None:
        raise UsageError(
            "the native engine must be compiled for this, and is not; install kernbench again with a C++ compiler, or "
            "leave out --engine and what-if: the Python engine does everything else."
        )
    found = ctypes.CDLL(str(file))
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    found.kernbench_native_sources.restype = number
    if found.kernbench_native_sources() != engine_checksum():
        raise UsageError(f"{file} must be compiled from the present sources, which have changed since; install again.")
    found.kernbench_native_open.restype = pointer
    found.kernbench_native_open.argtypes = [pointer, pointer]
    found.kernbench_native_advance.restype = number
    found.kernbench_native_advance.argtypes = [pointer, number]
    for name in ("state", "commands", "requests", "launches", "wires"):
        getattr(found, f"kernbench_native_{name}").argtypes = [pointer, pointer]
    found.kernbench_native_close.argtypes = [pointer]
    return found


def hardware_of(machine: Machine, plugins: Plugins) -> Hardware:
    """Build a machine on which nothing runs."""
    from kernbench_core.host.session import GraphEngine

    return GraphEngine(machine, plugins.components, plugins=plugins).hardware


def refusals(recording: Recording, machine: Machine, hardware: Hardware, *, as_it_was: bool = False) -> list[str]:
    """Say why a recording cannot be timed on a machine; nothing where it can.

    With `as_it_was` the program is taken for the same even where it looked at times.
    """
    if causes := recording.causes if as_it_was else recording.why_not:
        return [*causes]
    found = [f"the model {each}" for each in unsupported(hardware)]
    if structure_of(machine) != recording.structure:
        found.append("another structure of the machine: PEs, memories, sizes (of pages, too), queues or network")
    for node, name, value in recording.params_read:
        there = machine.nodes[node].params.get(name) if node in machine.nodes else None
        if there != value:
            found.append(f"{name} of {node}, which the program looked at: {value!r} there, and {there!r} here")
    return found


def time_recording(recording: Recording, hardware: Hardware) -> NativeTimes:
    """Time a recording on newly built hardware, which is not used up; UsageError for what the engine cannot do."""
    return timed_on(recording, hardware, [])


@attrs.define(eq=False)
class Retimer:
    """Time one recording on many machines; what depends on no times is worked out once for machines that are alike."""

    recording: Recording
    plugins: Plugins
    _prepared: list[PreparedStream] = attrs.field(factory=list)

    def require(self, machine: Machine, *, as_it_was: bool = False) -> Hardware:
        """Return the hardware of a machine; UsageError, with every cause of `refusals`, where there is any."""
        hardware = hardware_of(machine, self.plugins)
        found = refusals(self.recording, machine, hardware, as_it_was=as_it_was)
        if found:
            told = "\n".join(f"  {cause}" for cause in found)
            raise UsageError(f"a recording must hold for other times, and this one does not, because of:\n{told}")
        return hardware

    def times(self, machine: Machine) -> NativeTimes:
        """Time it on a machine for which it holds; UsageError for what the engine cannot do."""
        with garbage_left():  # of the machine
            return timed_on(self.recording, hardware_of(machine, self.plugins), self._prepared)


def timed_on(recording: Recording, hardware: Hardware, prepared: list[PreparedStream]) -> NativeTimes:
    """Time a recording as `time_recording` does; streams that were `prepared` are used again, and others added."""
    library = _library()
    try:
        machine, stream = numbers_on(recording, hardware, prepared)
    except NotTimed as error:
        raise UsageError(f"the native engine must have a model of {error}, and has none.") from None
    engine = library.kernbench_native_open(machine.ctypes.data, stream.ctypes.data)
    try:
        while library.kernbench_native_advance(engine, _SLICE):
            pass
        state = _told(library.kernbench_native_state, engine, 4)
        if state[3]:
            raise UsageError(_FAULTS[int(state[3])])
        if not state[2]:
            raise UsageError("the recording must end on this machine, but it hangs; run it in full.")
        pes = len(hardware.layout.pes)
        launches = sum(1 for request in recording.requests if request.get("launch"))
        return NativeTimes(
            float(state[0]),
            int(state[1]),
            _told(library.kernbench_native_commands, engine, recording.ops, 2),
            _told(library.kernbench_native_requests, engine, len(recording.requests), 2),
            _told(library.kernbench_native_launches, engine, pes, launches, 2),
            _told(library.kernbench_native_wires, engine, len(hardware.wires), _FIELDS),
        )
    finally:
        library.kernbench_native_close(engine)


def _told(tell: Any, engine: Any, *shape: int) -> Numbers:
    found: Numbers = np.empty(shape, np.float64)
    tell(engine, found.ctypes.data)
    return found
