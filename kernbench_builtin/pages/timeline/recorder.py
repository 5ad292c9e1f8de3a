"""Look on at a run and note what happened when; what is noted is made into a timeline at the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kernbench_builtin.pages.timeline.assembly import assemble
from kernbench_builtin.pages.timeline.instruments import NotingBridge, noting_wire
from kernbench_builtin.pages.timeline.levels import LEVELS, check_level
from kernbench_builtin.pages.timeline.notes import NoteRows, Notes
from kernbench_builtin.pages.timeline.timeline import Timeline, op_number
from kernbench_core.kernel.queue_commands import RecvCmd
from kernbench_core.messages import HostRequest, KernelLaunchMsg, Launch, MsgBase, Transaction

if TYPE_CHECKING:
    from kernbench_builtin.explain.scratchpad_map import TcmRecorder
    from kernbench_builtin.pages.timeline.window import TimeWindow
    from kernbench_core.component import ComponentBase
    from kernbench_core.engine.hardware import Hardware
    from kernbench_core.environment import Environment
    from kernbench_core.oplog.log import OpLog

_KERNEL: Final = LEVELS.index("kernel")
_UNIT: Final = LEVELS.index("unit")
_CHANNEL: Final = LEVELS.index("channel")


class TimelineRecorder:
    """Look on at one run (a `RunObserver` of the engine); `timeline` gives what it saw, down to `level`, in a `window`.

    A coarser level and a window cost less time and room: channels and wires cost the most. Nothing of the run changes:
    its op log is the same, bit for bit.
    """

    env: Environment | None = None

    def __init__(self, level: str = LEVELS[-1], window: TimeWindow | None = None) -> None:
        self.level = check_level(level)
        self.window = window
        depth = LEVELS.index(level)
        self._programs = depth >= _KERNEL
        self._passages = depth >= _CHANNEL
        self._units = depth >= _UNIT
        self._numbers: dict[ComponentBase, int] = {}
        self._notes = Notes() if window is None else Notes(window.from_ns, window.to_ns)

    def begin(self, hardware: Hardware) -> None:
        """Have the machine built with wires that note what passes, where that is wanted."""
        self._hardware = hardware
        if self._passages:
            hardware.wire_type = noting_wire(self._notes, channels_only=self.level == "channel")

    def attach(self, hardware: Hardware) -> None:
        """Look on from now at what comes back to components, and at what they serve."""
        self._numbers = {}
        for index, component in enumerate(hardware.components.values()):
            component.observe(self)
            self._numbers[component] = -1 - index

    def submitted(self, request: HostRequest) -> None:
        """Look on at the programs of a launch."""
        if self._programs and isinstance(request, KernelLaunchMsg):
            request.launch.watch = partial(self._watch, request.launch)

    def answered(self, component: ComponentBase, msg: MsgBase) -> None:
        """Note a round trip to a memory."""
        if self._passages and isinstance(msg, Transaction):
            self._notes.came_back(component.id, msg)

    def served(self, component: ComponentBase, msg: MsgBase) -> None:
        """Note which message a receipt got."""
        if isinstance(msg, RecvCmd) and msg.sent is not None:
            receipts = self._notes.receipts
            receipts.extend(receipts.pack(op_number(*msg.op_id), op_number(*msg.sent.op_id)))

    def was_busy(self, component: ComponentBase, took: float, until: float) -> None:
        """Note when a unit was busy."""
        self._used(self._notes.busy, component, took, until)

    def waited(self, component: ComponentBase, waited: float, until: float) -> None:
        """Note when a message waited at a unit."""
        self._used(self._notes.waits, component, waited, until)

    def _used(self, kept: NoteRows, component: ComponentBase, ns: float, until: float) -> None:
        notes = self._notes
        if self._units and until > notes.since and until - abs(ns) < notes.until:
            kept.extend(kept.pack(self._numbers[component], ns, until))

    def timeline(
        self,
        requests: Iterable[HostRequest],
        log: OpLog,
        scratchpads: TcmRecorder | None = None,
        latest: int | None = None,
    ) -> Timeline:
        """Return what has happened so far: by `requests` of the host, ops of the `log`, and what scratchpads held.

        Of more than the `latest` passages over wires it is a window, from when the first of these began.
        UsageError where nothing of it lies in the window.
        """
        notes = self._notes if latest is None else self._notes.latest(latest, self._hardware.env.now)
        whole = assemble(self._hardware, notes, tuple(requests), log, scratchpads, self.level)
        if notes is not self._notes:
            return whole.window(notes.since, math.inf if self.window is None else self.window.to_ns)
        return whole if self.window is None else whole.window(self.window.from_ns, self.window.to_ns)

    def _watch(self, launch: Launch, pe: int, program: tuple[int, int, int]) -> Callable[..., Any]:
        env = self._hardware.env
        return partial(NotingBridge, self._notes, env, self._notes.begun(launch, pe, program, env.now))
