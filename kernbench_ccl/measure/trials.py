"""Times of algorithms on a machine by short simulations, by which `auto` chooses where no table holds.

Each is a launch of a collective, without data, on a machine beside the run. It is kept in the user's cache under all
that its time depends on: machine, code, call, algorithm and settings; a cache that is off, full or damaged costs the
simulation once more and changes no time. A trial is stopped after `MOST_EVENTS` events: what takes longer is not tried.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Mapping
from functools import cached_property
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve, field, frozen

from kernbench_ccl.collectives import CallShape
from kernbench_ccl.measure.measurement import OF_LAUNCHES, closed_form
from kernbench_ccl.measure.timed_run import TimedCase
from kernbench_ccl.plan import make_group, plan_collective
from kernbench_ccl.plan.backend import elapsed_ns
from kernbench_ccl.plan.candidates import first_sentence
from kernbench_ccl.plan.groups import CHOSEN_BY
from kernbench_ccl.plan.machine_key import machine_digest
from kernbench_ccl.plan.selection import make_collective
from kernbench_ccl.plan.trial_choice import TrialTime, steady_bytes
from kernbench_core.cache import Cache, NotCacheable, code_digests, digest_of
from kernbench_core.engine import Limits
from kernbench_core.errors import KernbenchError
from kernbench_core.host import GraphEngine, resource_uses
from kernbench_core.kernel import op_functions
from kernbench_core.peers import Channel
from kernbench_core.process import garbage_left
from kernbench_core.topology import design_of
from kernbench_core.values.dtypes import itemsize

if TYPE_CHECKING:
    from kernbench_ccl.catalogue import Algorithm
    from kernbench_ccl.collectives import CollectiveKind
    from kernbench_ccl.measure.machine import TimedMachine
    from kernbench_ccl.plan import Group, Settings
    from kernbench_core.graph import Graph
    from kernbench_core.host import DeviceTensor, LaunchHandle, Runtime
    from kernbench_core.plugins import Plugins

__tracebackhide__ = True

MOST_EVENTS: Final = 4_000_000
"""The events after which a trial is stopped: half a minute on a slow processor."""

SCHEMA: Final = "kernbench.trial/1"
_OF_SETTINGS: Final = ("algorithm", "slots", "slot_bytes", "tier", "chunk", "pipeline", "pes", "topology")


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


@frozen(eq=False)
class TrialStore:
    """What is kept of trials on one machine with some plug-ins.

    A cache that may hold no byte is off; so it is with a plug-in that is a lone file, beside which nobody knows what it
    reads: what is kept is taken unasked.
    """

    graph: Graph
    plugins: Plugins
    cache: Cache

    @cached_property
    def _same(self) -> list[Any] | None:
        """What the keys of all trials have in common; None where nothing can be kept."""
        if not self.cache.most_bytes or any(source.file for source in self.plugins.sources):
            return None
        try:
            code = code_digests(self.plugins)
        except NotCacheable:
            return None
        libraries = [metadata.version("simpy"), *sys.version_info[:3]]
        return [SCHEMA, machine_digest(self.graph), sorted(code.items()), libraries]

    def get(self, trial: AlgorithmTrial) -> TrialTime | None:
        """Return the time that is kept of a trial; None where there is none, or none that can be one."""
        key = self._key(trial)
        entry = None if key is None else self.cache.get(key)
        if entry is None:
            return None
        try:
            time = TrialTime(float(entry[0]["ns"]), float(entry[0]["busy_ns"]))
        except (KeyError, TypeError, ValueError):
            return None
        return time if 0 < time.ns < math.inf and 0 <= time.busy_ns <= time.ns else None

    def put(self, trial: AlgorithmTrial, time: TrialTime) -> None:
        """Keep the time of a trial."""
        key = self._key(trial)
        if key is not None:
            about = {"kind": "trial", "name": f"{trial.algorithm.name} of {trial.count} {trial.call.dtype}"}
            self.cache.put(key, {**about, "ns": time.ns, "busy_ns": time.busy_ns})

    def _key(self, trial: AlgorithmTrial) -> str | None:
        if self._same is None:
            return None
        call, group = trial.call, trial.call.group
        asked = [
            call.kind.name, call.dtype, call.redop, call.root, call.contributors, trial.count, trial.algorithm.name,
            digest_of(trial.algorithm.file),
            None if group is None else [group.sips, group.pes],
            [getattr(trial.settings, name) for name in _OF_SETTINGS],
        ]  # fmt: skip
        text = json.dumps([self._same, asked], separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@frozen(eq=False)
class AlgorithmTrials:
    """Times of algorithms on a machine, as far as they are asked for; `able` has them by their registered names."""

    call: TrialCall
    machine: TimedMachine
    plugins: Plugins
    able: Mapping[str, tuple[Algorithm, Settings]]
    most_events: int | None = MOST_EVENTS
    _times: dict[tuple[str, int], TrialTime | None] = field(factory=dict, init=False)
    failures: dict[str, str] = field(factory=dict, init=False)
    """Why algorithms could not be tried, by their names: what their first trial said."""

    @cached_property
    def store(self) -> TrialStore:
        """What is kept of such trials."""
        return TrialStore(self.machine.graph, self.plugins, Cache.of_user())

    @property
    def world(self) -> int:
        """How many ranks take part."""
        return self.machine.world if self.call.group is None else self.call.group.world

    @cached_property
    def steady(self) -> int:
        """The size that nothing larger than is simulated."""
        return steady_bytes(self.world, *self.machine.link())

    def form(self, name: str, nbytes: int) -> float | None:
        """Return the closed form of an algorithm in ns; None where it has none, or some of the SIPs take part.

        It is that of one PE a rank: of several a form has the first messages of all wait for each other, and a long
        chain of ranks takes far less than that.
        """
        if self.call.group is not None:
            return None
        algorithm, settings = self.able[name]
        call, count = self.call, self.call.count(nbytes, self.world)
        case = TimedCase(call.kind.name, name, call.dtype, count, nbytes, call.redop, call.root, False, settings)
        try:
            found = closed_form(case, self.machine, algorithm, pes=1)
        except KernbenchError:  # who runs it is told
            return None
        return None if isinstance(found, str) else found

    def time(self, name: str, nbytes: int) -> TrialTime | None:
        """Return how long an algorithm takes; None where its run ends otherwise, which `failures` tells."""
        key = (name, nbytes)
        if key not in self._times:
            self._times[key] = self._simulated(name, nbytes)
        return self._times[key]

    def _trial(self, name: str, nbytes: int) -> AlgorithmTrial:
        return AlgorithmTrial(self.call, *self.able[name], self.call.count(nbytes, self.world))

    def _simulated(self, name: str, nbytes: int) -> TrialTime | None:
        trial = self._trial(name, nbytes)
        kept = self.store.get(trial)
        if kept is not None:
            return kept
        with garbage_left():
            try:
                found = trial.run(self.machine, self.plugins, self.most_events)
            except KernbenchError as error:
                self.failures.setdefault(name, first_sentence(error))
                return None
        self.store.put(trial, found)
        return found
