"""From the hooks of components to the op log: what was served, from when to when, and for which kernel line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kernbench_core.callsite import CallSite
from kernbench_core.oplog.description import OpDescription
from kernbench_core.values.value import OpId

if TYPE_CHECKING:
    from kernbench_core.oplog.log import OpLog


class Describable(Protocol):
    """What the logger needs of a message."""

    def describe(self) -> OpDescription | None:
        """Called once per service by the logger; None means that the message describes nothing."""


class LineUse:
    """Say how many ops a call of a kernel gave so far, and for how long they were served, in ns together."""

    __slots__ = ("ns", "ops", "site")

    def __init__(self, site: CallSite, ops: int = 0, ns: float = 0.0) -> None:
        self.site = site
        self.ops = ops
        self.ns = ns


class OpLogger:
    """Turn the two hooks of a component into log records. Single-threaded, as the simulation is.

    A message with a true attribute `captured_at_start` is asked for its description when its service starts, others
    when it ends. One that describes nothing is logged as `unknown`. Where `sites` is a dict, it gets the kernel line (a
    `callsite.CallSite`) of every op that has one. `lines` sums up the ops of each line, stages left out.
    """

    def __init__(self, log: OpLog, sites: dict[OpId, CallSite | None] | None = None) -> None:
        self.log = log
        self.sites = sites
        #: By code object, as it is slow to hash, and offset.
        self.lines: dict[tuple[int, int], LineUse] = {}
        self._columns = log.columns
        self._open: dict[tuple[int, str], tuple[float, int, Describable, OpDescription | None]] = {}
        self._sequences: dict[str, int] = {}

    def record_start(self, t: float, component_id: str, msg: Describable) -> None:
        """Note that a component begins to serve a message at `t` ns."""
        sequence = self._sequences.get(component_id, 0)
        self._sequences[component_id] = sequence + 1
        early = msg.describe() if getattr(msg, "captured_at_start", False) else None
        self._open[id(msg), component_id] = (t, sequence, msg, early)

    def record_end(self, t: float, component_id: str, msg: Describable) -> None:
        """Note that the service ends at `t` ns, and log it."""
        t_start, sequence, _, early = self._open.pop((id(msg), component_id))
        described = early or msg.describe()
        if described is None:
            op_id = getattr(msg, "op_id", None)
            described = OpDescription("unknown", type(msg).__name__, {}, op_id=op_id)
        if described.op_id is not None:
            site: CallSite | None = getattr(msg, "site", None)
            if self.sites is not None:
                self.sites.setdefault(described.op_id, site)
            if site is not None and described.stage_of is None:
                key = id(site[0]), site[1]
                line = self.lines.get(key)
                if line is None:
                    line = self.lines[key] = LineUse(site)
                line.ops += 1
                line.ns += t - t_start
        self._columns.append(t_start, t, component_id, described, sequence)

    @property
    def unfinished(self) -> int:
        """How many services have started and not ended; they are not in the log."""
        return len(self._open)
