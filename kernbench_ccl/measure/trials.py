"""Times of algorithms on a machine by short simulations, by which `auto` chooses where no table holds.

Each is kept in the user's cache under all that its time depends on; a cache that is off, full or damaged costs the
simulation once more and changes no time. A trial is stopped after `MOST_EVENTS` events: what takes longer is not tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from attrs import field, frozen

from kernbench_ccl.measure.measurement import closed_form
from kernbench_ccl.measure.timed_run import TimedCase
from kernbench_ccl.measure.trial import AlgorithmTrial, TrialCall, garbage_left
from kernbench_ccl.measure.trial_store import TrialStore
from kernbench_ccl.plan.candidates import first_sentence
from kernbench_ccl.plan.trial_choice import TrialTime, steady_bytes
from kernbench_core.cache import Cache
from kernbench_core.errors import KernbenchError

if TYPE_CHECKING:
    from kernbench_ccl.catalogue import Algorithm
    from kernbench_ccl.measure.machine import TimedMachine
    from kernbench_ccl.plan import Settings
    from kernbench_core.plugins import Plugins

MOST_EVENTS: Final = 4_000_000
"""The events after which a trial is stopped: half a minute on a slow processor."""


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

    def kept(self, name: str, nbytes: int) -> TrialTime | None:
        """Return what is known of it without a simulation; None where nothing is."""
        return self._times.get((name, nbytes)) or self.store.get(self._trial(name, nbytes))

    def learn(self, known: Iterable[tuple[str, int, TrialTime]]) -> None:
        """Take times that another process simulated: (algorithm, size, time)."""
        self._times.update({(name, nbytes): time for name, nbytes, time in known})

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
