"""The figures of one launch that is over: when, how long, what was busiest, and how near to the peaks it came."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import attrs

from kernbench_builtin.machines.figures.ceilings import above_ceilings
from kernbench_builtin.machines.figures.lines import short_names
from kernbench_builtin.machines.figures.meter import LaunchMeter, busiest_of, links_of
from kernbench_builtin.machines.figures.roofline import rate_text
from kernbench_core.callsite import describe_site, line_number
from kernbench_core.process.notebook import Pictured
from kernbench_core.units import format_time
from kernbench_core.wording import join_names

if TYPE_CHECKING:
    from kernbench_builtin.machines.figures.columns import ColumnTable
    from kernbench_builtin.machines.figures.meter import LaunchUse, Resources
    from kernbench_builtin.machines.figures.readings import BusyInterval
    from kernbench_builtin.machines.figures.resource_locations import BoolArray
    from kernbench_builtin.machines.figures.roofline import RooflinePoint
    from kernbench_core.host.host_program import LaunchHandle
    from kernbench_core.kernel.steps import PathStep

LATE: Final = "late"
"""The unit of the time in which a path waits for a launch that began later, on other PEs."""

#: What a first command takes to leave is less of a launch's time.
_LATER: Final = 0.05
#: What a copy in another process has of the machine.
_LEFT: Final[dict[str, Any]] = {"_resources": None, "_intervals": (), "_own": None}


@attrs.frozen
class PathCall:
    """Say how much of the time of a launch's slowest PE, in ns, commands of one call took, and how many there were.

    That PE ended last: its time goes to the commands that it waited for, each from when it was sent or its unit
    was free; where it waits for a message, to those of the sender until it sent it. `call` is as "tl.load", `unit` the
    kind of unit that serves it, `line` as "gemm.py:22"; all are "" for the time of the PE's CPU, and but for `unit`,
    which is "late", for that until a launch began whose message came then.
    """

    call: str
    unit: str
    line: str
    ns: float
    commands: int


@attrs.frozen(repr=False, eq=False, slots=False)
class LaunchFigures(Pictured):
    """Say how one launch went; times in ns.

    The host asked for it at `injected_ns` and learned of its end at `completed_ns`; the first program began at
    `started_ns`, the last one ended at `ended_ns`. `kernel` is the kernel's name, `label` what reports call the launch
    where that is something else, `line` the line of the host program that asked. It ran on so many `pes` of `sips`.
    `last` is the PE that ended last, and `path` what its time went to, the longest first. `roofline` says what was
    achieved between start and end, None where nothing was computed or moved. RunTables are equal where all that and
    `busiest` are.
    """

    kernel: str
    label: str
    line: str
    grid: tuple[int, int, int]
    pes: int
    sips: tuple[int, ...]
    injected_ns: float
    started_ns: float
    ended_ns: float
    completed_ns: float
    last: str
    path: tuple[PathCall, ...]
    roofline: RooflinePoint | None
    _resources: Resources
    _intervals: Sequence[BusyInterval]
    _own: Callable[[], BoolArray]
    _alone: bool

    @cached_property
    def busiest(self) -> tuple[LaunchUse, ...]:
        """The busiest resource of each kind between start and end, the highest utilisation first.

        Of its PEs' own, of its SIPs', and of the links that touch these.
        """
        return busiest_of(self._resources, self._intervals, self._own())

    @cached_property
    def links(self) -> ColumnTable:
        """The links that were busy between start and end, by column: name, kind, payload bytes, time (ns), share.

        Those inside its PEs and its SIPs, and those that touch its SIPs.
        """
        return links_of(self._resources, self._intervals, self._own())

    @property
    def time_ns(self) -> float:
        """How long the kernel ran: from its first program's start to its last one's end."""
        return self.ended_ns - self.started_ns

    @property
    def time_us(self) -> float:
        """`time_ns` in microseconds."""
        return self.time_ns / 1e3

    @property
    def host_ns(self) -> float:
        """How long it took as the host sees it, on its way there and back included."""
        return self.completed_ns - self.injected_ns

    @property
    def flops(self) -> float:
        """The floating-point operations of its units, of all lanes of a block: those that a mask leaves out, too."""
        return 0.0 if self.roofline is None else self.roofline.flops

    @property
    def hbm_bytes(self) -> int:
        """The payload bytes that its PEs moved to and from HBM."""
        return 0 if self.roofline is None else self.roofline.hbm_bytes

    @property
    def flops_per_s(self) -> float:
        """FLOP/s while the kernel ran."""
        return self.flops / self.time_ns * 1e9 if self.time_ns else 0.0

    @property
    def hbm_bytes_per_s(self) -> float:
        """Bytes/s of HBM while the kernel ran."""
        return self.hbm_bytes / self.time_ns * 1e9 if self.time_ns else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "kernel": self.kernel,
            "label": self.label,
            "line": self.line,
            "grid": list(self.grid),
            "pes": self.pes,
            "sips": list(self.sips),
            "injected_ns": self.injected_ns,
            "started_ns": self.started_ns,
            "ended_ns": self.ended_ns,
            "completed_ns": self.completed_ns,
            "time_ns": self.time_ns,
            "last": self.last,
            "path": [attrs.asdict(call) for call in self.path],
            "busiest": [attrs.asdict(use) for use in self.busiest],
            "roofline": None if self.roofline is None else self.roofline.to_json(),
        }

    def _values(self) -> tuple[Any, ...]:
        own = (getattr(self, field.name) for field in attrs.fields(type(self)) if field.name[0] != "_")
        return (*own, self.busiest)

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if isinstance(other, LaunchFigures) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.kernel, self.line, self.started_ns, self.ended_ns))

    def __getstate__(self) -> dict[str, Any]:
        """Leave the machine behind: what was busy goes along."""
        return {**vars(self), "busiest": self.busiest, "links": self.links, **_LEFT}

    def __repr__(self) -> str:
        where = "" if self._alone else f" of {join_names(f'SIP {sip}' for sip in self.sips)}"
        told = [f"{self.pes} PE{'' if self.pes == 1 else 's'}{where}", format_time(self.time_ns)]
        if self.busiest:
            told.append(f"{self.busiest[0].name} {self.busiest[0].utilisation:.1%} busy")
        for each in () if self.roofline is None else self.roofline.resources:
            told.append(f"{each.kind} {rate_text(each.achieved, each.unit)} ({each.share:.1%} of peak)")
        return f"<LaunchFigures {self.label or self.kernel}: {', '.join(told)}>"


class FiguresMeter(LaunchMeter):
    """Measures the launches of one run, and says what came of each."""

    def warnings(self) -> tuple[str, ...]:
        """Return what of the machine is beyond the hardware of today."""
        return above_ceilings(self._hardware)

    def figures_of(self, handle: LaunchHandle) -> LaunchFigures:
        """Return the figures of a launch that is over."""
        return figures_of(handle, self)


def figures_of(handle: LaunchHandle, meter: LaunchMeter) -> LaunchFigures:
    """Return the figures of a launch that is over."""
    request, launch, response = handle.request, handle.request.launch, handle.request.response
    assert response is not None
    sip_of = meter.sip_of
    last = max(launch.ended_ns, key=lambda pe: (launch.ended_ns[pe], -pe))
    return LaunchFigures(
        kernel=getattr(launch.kernel, "__name__", repr(launch.kernel)),
        label=handle.label,
        line="" if handle.site is None else describe_site(handle.site),
        grid=launch.grid,
        pes=len(launch.started_ns),
        sips=tuple(sorted({sip_of[pe] for pe in launch.programs})),
        injected_ns=request.born,
        started_ns=min(launch.started_ns.values()),
        ended_ns=max(launch.ended_ns.values()),
        completed_ns=response.completed_ns,
        last=meter.name_of(last),
        path=tuple(
            path_of(
                launch.steps.get(last), launch.started_ns[last], launch.ended_ns[last], lambda: meter.is_alone(launch)
            )
        ),
        roofline=meter.point(launch),
        resources=meter.resources,
        intervals=meter.intervals(launch),
        own=lambda: meter.own(launch),
        alone=len(set(sip_of)) == 1,
    )


def path_of(
    step: PathStep | None, start: float, end: float, alone: Callable[[], bool] = lambda: True
) -> list[PathCall]:  # fmt: skip
    """Return the calls on the way to a step, the longest first; what is left of the time is the CPU's.

    Where it leads through a message to a PE of a launch that began later, unless it is `alone`, the time until then is
    of unit `LATE`.
    """
    if step is None:
        return []
    sums = step.sums()
    names = short_names(site[0].co_filename for _, _, site, _, _ in sums.values())
    lines: dict[tuple[str, str, str], list[float]] = {}
    for call, unit, site, ns, commands in sums.values():
        found = lines.setdefault((call, unit, f"{names[site[0].co_filename]}:{line_number(site)}"), [0.0, 0])
        found[0] += ns
        found[1] += commands
    late = step.first - start > _LATER * (end - start) and any(unit == "pe_ipcq" for _, unit, _ in lines)
    if late and not alone():
        lines["", LATE, ""] = [step.first - start, 0]
    lines["", "", ""] = [end - start - sum(ns for ns, _ in lines.values()), 0]
    calls = (PathCall(*key, ns, int(commands)) for key, (ns, commands) in lines.items() if ns > 0.0)
    return sorted(calls, key=lambda each: (-each.ns, each.call, each.line))
