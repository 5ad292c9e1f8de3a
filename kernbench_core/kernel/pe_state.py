"""What the kernels of one run share, and what the programs of one PE share over it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Protocol

from kernbench_core.callsite import CallSite
from kernbench_core.compute.ops.plugin_ops import OpsOfPlugins
from kernbench_core.graph import PeSite
from kernbench_core.memory.device_memory import DeviceMemory
from kernbench_core.memory.scratchpad import TcmTable
from kernbench_core.values.chunking import Chunk
from kernbench_core.values.memory_store import MemoryStore
from kernbench_core.values.region import Region, total_bytes

if TYPE_CHECKING:
    from kernbench_core.compute.on_demand import OnDemand
    from kernbench_core.kernel.steps import PathStep
    from kernbench_core.memory.hazards import Hazards
    from kernbench_core.memory.outside import OutsideAccesses
    from kernbench_core.messages import Command, Launch
    from kernbench_core.plugins import LanguageEntry, Registry
    from kernbench_core.values.value import OpId


class RecordsScratchpads(Protocol):
    """What notes what scratchpads hold, and when; `watch` of a table tells it."""

    def attach(self, table: TcmTable) -> None:
        """Look at a scratchpad from now on."""


class RunsPrograms(Protocol):
    """What runs the programs of a launch on a PE; `turn` of them are over."""

    turn: int

    def part_done(self) -> float | None:
        """Return which part, from 0 to 1, of the program that runs is over; None where nobody knows."""

    def close(self) -> None:
        """End a program that will not be resumed: its `finally` blocks run, its references go."""


class PeState:
    """What one PE's kernels share over a run: where it sits, its scratchpad, device memory, the issue counter.

    `launch` is the one under way, which `began` with that issue number; `last` is the command that was complete last,
    as a step, `complete` the last of each queue, and `step` the last of those that the kernel waited for.
    `kernels` are those of the run, `runner` runs the launch, while it does.
    Of the `elements_read` into Python some are `unpaid`: each takes `element_read` ns before the next command. Where
    that is no time, `reads_free` says why.
    """

    __slots__ = (
        "began", "complete", "element_read", "elements_read", "hazards", "issued", "kernels", "last", "launch",
        "memory", "on_demand", "pe", "reads_free", "runner", "site", "step", "store", "tcm", "unpaid",
    )  # fmt: skip

    def __init__(self, site: PeSite, kernels: Kernels) -> None:
        self.site = site
        self.pe = site.index
        self.kernels = kernels
        self.memory = kernels.memory
        self.store = kernels.store
        self.hazards = kernels.hazards
        self.on_demand = kernels.on_demand
        self.tcm = TcmTable(site.prefix, *kernels.memory.tcm_range(site))
        if self.hazards is not None:
            self.tcm.watch(partial(self.hazards.handed_out, self.pe))
        self.issued = self.began = 0
        self.launch: Launch | None = None
        self.runner: RunsPrograms | None = None
        self.last: PathStep | None = None
        self.step: PathStep | None = None
        self.complete: dict[str, PathStep] = {}
        self.unpaid = self.elements_read = 0
        self.element_read = 0.0
        self.reads_free = ""

    def note_read(self, elements: int, site: CallSite) -> None:
        """Take note that a kernel line read elements into Python."""
        if self.element_read:  # what takes no time takes no event either
            self.unpaid += elements
        self.elements_read += elements
        self.kernels.read_at[site] += elements

    def pay(self) -> float:
        """Return how long what is unpaid takes to read, in ns, and count it as paid."""
        time = self.unpaid * self.element_read
        self.unpaid = 0
        return time


class MeasuresLaunches(Protocol):
    """Who measures launches."""

    def begun(self, launch: Launch, pe: int) -> None:
        """Take note that the PE of this index begins with its programs now."""

    def ended(self, launch: Launch, pe: int) -> None:
        """Take note that it has ended them, and that all of their commands are complete."""


def _uncut(regions: tuple[Region, ...]) -> tuple[Chunk, ...]:
    return (Chunk("", regions, total_bytes(regions)),)


def _installed_calls() -> Registry[LanguageEntry]:
    from kernbench_core.plugins import LANGUAGE, load_plugins

    return load_plugins().of(LANGUAGE)


class Kernels:
    """What the kernels of one run share: memory, what it holds, who watches its use, and by PE what it keeps.

    Without `hazards` nobody looks for unordered uses, without `on_demand` nothing is computed while kernels run.
    `nearest(pe, direction)` gives the neighbour of a PE where a launch does not; `recorder` notes what scratchpads
    hold, `ops` and what `calls` gives are what plug-ins add to the language, `meter` measures launches. Where it
    `materializes`, kernels may read what only phase 2 knows: it is computed then, at no simulated time. With `outside`,
    accesses to elements that are outside of tensors are noted there, and are no errors. `ignored` counts, by a sentence
    on each, what kernels said that changes nothing, `late_loads` by line and reason loads that no loop brings ahead of
    its iteration, `read_at` the elements that they read into Python, by line,
    `loaded` those that they loaded. `notes` are sentences that the result is to warn with.
    `cut` gives the chunks, of one memory each, that a transfer of physical regions is moved in; without it each is one.
    `launch_on(pe)` says, for errors, which launch runs on a PE.
    """

    def __init__(
        self,
        memory: DeviceMemory,
        store: MemoryStore,
        *,
        hazards: Hazards | None = None,
        on_demand: OnDemand | None = None,
        nearest: Callable[[int, str], int | None] | None = None,
        recorder: RecordsScratchpads | None = None,
        ops: OpsOfPlugins | None = None,
        calls: Callable[[], Registry[LanguageEntry]] = _installed_calls,
        meter: MeasuresLaunches | None = None,
        materializes: bool = False,
        outside: OutsideAccesses | None = None,
        pipelines: bool = False,
        cut: Callable[[tuple[Region, ...]], tuple[Chunk, ...]] | None = None,
        launch_on: Callable[[int], str] = lambda pe: "",
    ) -> None:
        self.memory = memory
        self.store = store
        self.hazards = hazards
        self.on_demand = on_demand
        self.nearest = nearest
        self.recorder = recorder
        self.ops = ops or OpsOfPlugins({})
        self.calls = cache(calls)
        self.meter = meter
        self.materializes = materializes
        self.outside = outside
        self.pipelines = pipelines
        self.states: dict[int, PeState] = {}
        #: The commands that are not complete, by op, where kernels may wait for what they make.
        self.flying: dict[OpId, Command] | None = {} if materializes else None
        self.ignored: Counter[str] = Counter()
        self.notes: dict[str, None] = {}
        self.late_loads: Counter[tuple[str, str]] = Counter()
        self.read_at: Counter[CallSite] = Counter()
        self.loaded = 0
        self.cut = cut or _uncut
        self.launch_on = launch_on
        #: What kernels asked that only times answer, with the line.
        self.timed: dict[str, CallSite] = {}
        #: Where somebody records what they ask for, to have it at other times: the tensors, by address, that were
        #: written as a whole when a launch was given them.
        self.recorded: set[int] | None = None
        #: How many atomic ops had their turns at memories.
        self.turns = 0

    def state(self, site: PeSite) -> PeState:
        """Return what a PE keeps; the first call makes it."""
        found = self.states.get(site.index)
        if found is None:
            found = self.states[site.index] = PeState(site, self)
            if self.recorder is not None:
                self.recorder.attach(found.tcm)
        return found
