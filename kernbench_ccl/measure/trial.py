"""One short simulation by which `auto` chooses: a launch of a collective, without data, on a machine beside the run."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from kernbench_ccl.collectives import CallShape
from kernbench_ccl.measure.measurement import OF_LAUNCHES
from kernbench_ccl.plan import make_group, plan_collective
from kernbench_ccl.plan.backend import elapsed_ns
from kernbench_ccl.plan.groups import CHOSEN_BY
from kernbench_ccl.plan.selection import make_collective
from kernbench_ccl.plan.trial_choice import TrialTime
from kernbench_core.engine import Limits
from kernbench_core.host import GraphEngine, resource_uses
from kernbench_core.kernel import op_functions
from kernbench_core.peers import Channel
from kernbench_core.process import no_automatic_collection
from kernbench_core.topology import design_of
from kernbench_core.values.dtypes import itemsize

if TYPE_CHECKING:
    from kernbench_ccl.catalogue import Algorithm
    from kernbench_ccl.collectives import CollectiveKind
    from kernbench_ccl.measure.machine import TimedMachine
    from kernbench_ccl.plan import Group, Settings
    from kernbench_core.host import DeviceTensor, LaunchHandle, Runtime
    from kernbench_core.plugins import Plugins

__tracebackhide__ = True


@frozen
class TrialCall:
    """The call that algorithms are tried for; `group` are the ranks, None for all SIPs of the machine."""

    kind: CollectiveKind
    dtype: str
    redop: str | None
    root: int
    contributors: str = "sip"
    group: Group | None = None

    def count(self, nbytes: int, world: int) -> int:
        """Return nccl's count for a size in bytes, at least 1."""
        return max(1, self.kind.count_of(nbytes // itemsize(self.dtype), world))


@frozen
class AlgorithmTrial:
    """One launch of an algorithm."""

    call: TrialCall
    algorithm: Algorithm
    settings: Settings
    count: int

    def run(self, machine: TimedMachine, plugins: Plugins, most_events: int | None) -> TrialTime:
        """Simulate it, and return its time; raise the KernbenchError of whatever goes wrong."""
        handles: list[LaunchHandle] = []
        engine = GraphEngine(
            machine.graph, plugins.components, data=False, log=False, limits=Limits(most_events),
            functions=op_functions(plugins.ops), plugins=plugins,
        )  # fmt: skip
        engine.run(lambda rt: handles.append(self._launch(rt, machine)), name=f"a trial of {self.algorithm.name}")
        uses = resource_uses(engine.hardware, engine.env.now)
        busy = max((use.utilisation for use in uses if use.kind not in OF_LAUNCHES), default=0.0) * engine.env.now
        ns = elapsed_ns(handles[0])
        return TrialTime(ns, min(busy, ns))

    def _launch(self, rt: Runtime, machine: TimedMachine) -> LaunchHandle:
        call, settings = self.call, self.settings
        channel = Channel("ccl", settings.slots, settings.slot_bytes, settings.tier, CHOSEN_BY)
        group = make_group(rt.pes, channel=channel) if call.group is None else evolve(call.group, channel=channel)
        each = group.n_pe if call.contributors == "pe" else 1
        collective = make_collective(
            group, self.algorithm, settings, design_of(machine.graph), call.dtype, machine.networks, redop=call.redop,
            root=call.root, contributors=call.contributors, vectors=each,
        )  # fmt: skip
        shape = CallShape(group.world, self.count, call.redop, call.root)

        def tensors(count: Any, what: str) -> dict[int, DeviceTensor | None]:
            counts = [each * count(shape, rank) for rank in range(group.world)]
            return {
                rank: rt.empty((n,), call.dtype, name=f"{what} of rank {rank}", device=group.sips[rank]) if n else None
                for rank, n in enumerate(counts)
            }

        given, made = tensors(call.kind.in_count, "in"), tensors(call.kind.out_count, "out")
        pes = "auto" if settings.pes is None else settings.pes
        return plan_collective(rt, group, collective, self.algorithm, given, made, self.count, pes=pes).launch(rt)


@contextmanager
def garbage_left() -> Iterator[None]:
    """Leave the garbage of a run around this alone, as when that is collected shows in its op log, and none behind.

    What a trial leaves is as large as its machine, and would lie there until Python looks at all that there is. An
    error holds what it came through: let go of that inside.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        with no_automatic_collection():
            yield
    finally:
        gc.collect()
        gc.unfreeze()
