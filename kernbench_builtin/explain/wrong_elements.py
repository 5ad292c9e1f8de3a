"""Which op made the worst element of a tensor that is wrong, where, and of what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from attrs import field, frozen

from kernbench_builtin.explain.provenance import Origin, Provenance
from kernbench_core.callsite import CallSite, describe_site, line_number
from kernbench_core.errors import KernbenchError
from kernbench_core.host.launch_names import called
from kernbench_core.values.lineage import Element, element_of

if TYPE_CHECKING:
    from kernbench_core.compute.executor import DataExecutor
    from kernbench_core.compute.verification import Failure
    from kernbench_core.host.host_program import LaunchHandle
    from kernbench_core.oplog.log import OpLog, OpRecord
    from kernbench_core.values.value import OpId

#: Elements that one was made of that are told, of each failure.
_MOST_ORIGINS: Final = 8
#: Elements that several ranks brought in the same way and that are told.
_MOST_ALIKE: Final = 16
#: Ops on the way of an element that are told; of more, the first and the last.
_MOST_STEPS: Final = 5
_WORDS: Final = {"dma_read": "load", "dma_write": "store", "ipcq_recv": "recv"}


@frozen
class WrongElements:
    """Say of failures what made them.

    `sites` has the kernel line of each op, `launches` are those of the run.
    """

    log: OpLog
    executor: DataExecutor
    launches: Sequence[LaunchHandle]
    sites: Mapping[OpId, CallSite | None]
    #: By PE, when launches started there, in ns.
    _starts: dict[int, list[tuple[float, LaunchHandle]]] = field(init=False)

    @_starts.default
    def _by_pe(self) -> dict[int, list[tuple[float, LaunchHandle]]]:
        found: dict[int, list[tuple[float, LaunchHandle]]] = {}
        for handle in self.launches:
            for pe, start in handle.launch.started_ns.items():
                found.setdefault(pe, []).append((start, handle))
        return found

    def maker(self, failure: Failure, it: str) -> str:
        """Return the sentence that says what made the worst element, and the lines that say of what."""
        if failure.value is None or failure.worst is None:
            return failure.maker
        provenance = Provenance(self.log)
        element = element_of(failure.value, failure.worst)
        maker = provenance.maker(element)
        if maker is None or maker.op_id is None:
            return failure.maker
        launch = self._launch(maker)
        origins = list(provenance.origins(element, lambda record: _of_one_call(launch, self._launch(record))))
        told = f" {it} was made by {maker}{self._at(maker)}{self._in(launch)}"
        if any(origin.record is not None and origin.record.op_id == maker.op_id for origin in origins):
            return f"{told}."
        return "\n  ".join([f"{told}, of:", *self._lines(origins, launch)])

    def _lines(self, origins: Sequence[Origin], launch: LaunchHandle | None) -> Iterable[str]:
        """Yield what an element of a launch was made of: first what kernels made, then what the host wrote.

        What ranks brought that was made in the same way is one line; of what stands alone the way is told, too.
        """
        alike: dict[tuple[bool, str], list[Origin]] = {}
        for origin in origins:
            kind = self._kind(origin) or f"{len(alike)}"
            alike.setdefault((origin.record is None, kind), []).append(origin)
        ordered = sorted(alike.items(), key=lambda item: (item[0][0], len(item[1])))
        for (_, kind), several in ordered[:_MOST_ORIGINS]:
            if len(several) == 1:
                yield self._line(several[0], launch)
                continue
            brought = sorted(several, key=self._number_of_program)
            told = [f"{self._number(each.element)} of {self._brought_by(each)}" for each in brought[:_MOST_ALIKE]]
            more = f" and {len(brought) - len(told)} more" if len(brought) > len(told) else ""
            yield f"{', '.join(told)}{more}: {kind}"
        left = [origin for _, several in ordered[_MOST_ORIGINS:] for origin in several]
        if left:
            host = sum(origin.record is None for origin in left)
            yield f"and {len(left)} more" + (f", {host} of which the host wrote" if host else "")

    def _line(self, origin: Origin, launch: LaunchHandle | None) -> str:
        """Tell one element with the way that it has come, and the launch that made it, where it is another."""
        way = origin.way[:-1]  # the last is what made the worst element
        steps = [self._step(*each) for each in zip(way, (origin.record, *way), strict=False)]
        if len(steps) > _MOST_STEPS:
            steps[2:-1] = [f"{len(steps) - 3} more"]
        record, made = origin.record, "written by the host"
        if record is not None and record.op_id is not None:
            op = f"{_word(record)} (op {record.op_id[1]} of PE {record.op_id[0]})"
            made_in = self._launch(record)
            made = f"{op}{self._at(record)}{'' if made_in is launch else self._in(made_in)}"
        return " -> ".join([f"{self._number(origin.element)}: {made}", *steps])

    def _kind(self, origin: Origin) -> str:
        """Say how an element was made that a rank brought, without which; "" for one of the bench's own."""
        record = origin.record
        if not self._brought_by(origin):
            return ""
        if record is None:
            return "written by the host"
        launch = self._launch(record)
        return f"{_word(record)}{self._at(record)}" + ("" if launch is None else f", in {called(launch)}")

    def _brought_by(self, origin: Origin) -> str:
        """Return the program whose kernel made an element or, where the host wrote it, loaded it."""
        first = origin.way[0] if origin.record is None and origin.way else origin.record
        return "" if first is None else _program(self._launch(first))

    def _number_of_program(self, origin: Origin) -> int:
        first = origin.way[0] if origin.record is None and origin.way else origin.record
        launch = None if first is None else self._launch(first)
        return 0 if launch is None else launch.program.number

    def _step(self, record: OpRecord, before: OpRecord | None) -> str:
        """Say what one op on the way did, and who, where that is another program than before."""
        launch, previous = self._launch(record), None if before is None else self._launch(before)
        who = _program(launch)
        by = f" by {who}" if who and (previous is None or _program(previous) != who) else ""
        site = None if record.op_id is None else self.sites.get(record.op_id)
        line = "" if site is None else f" at {Path(site[0].co_filename).name}:{line_number(site)}"
        return f"{_word(record)}{by}{line}"

    def _at(self, record: OpRecord) -> str:
        site = None if record.op_id is None else self.sites.get(record.op_id)
        return "" if site is None else f" at {describe_site(site)}"

    def _in(self, launch: LaunchHandle | None) -> str:
        if launch is None:
            return ""
        who = _program(launch)
        return f", in {called(launch)}" + (f" by {who}" if who else "")

    def _launch(self, record: OpRecord) -> LaunchHandle | None:
        """Return the launch that an op belongs to: the last that had started on its PE."""
        pe = -1 if record.op_id is None else record.op_id[0]
        before = [start for start in self._starts.get(pe, ()) if start[0] <= record.t_start]
        return max(before, key=lambda start: start[0])[1] if before else None

    def _number(self, element: Element) -> str:
        """Spell what an element is; a question mark where that cannot be computed."""
        try:
            array: Any = self.executor.materialize(element.value)
        except KernbenchError:
            return "?"
        number = array.reshape(-1)[element.byte // element.size]
        return str(number.astype(np.int64 if array.dtype.kind in "iub" else np.float64))


def _of_one_call(one: LaunchHandle | None, other: LaunchHandle | None) -> bool:
    """Whether launches are one, or those of several ranks for one call of a collective."""
    return one is other or (one is not None and other is not None and bool(one.label) and one.label == other.label)


def _program(launch: LaunchHandle | None) -> str:
    return launch.program.name if launch is not None and launch.program.number else ""


def _word(record: OpRecord) -> str:
    return _WORDS.get(record.op_name, record.op_name)
