"""What comes before what in a run: vector clocks of the programs, which do not know of simulated time.

A *thread* is what is in program order: all programs of a PE, or, where programs of one launch count as unordered, those
that have the same place among the programs of their PE, one of each launch. Each thread counts its own epochs; its
clock holds, for every thread, the last epoch that is known to be over. A launch gives its PEs what the host knew when
it was submitted; the host learns what the PEs of a launch know when it has waited for it; an edge between PEs
(`publish`, `order`) hands on what the sender knew.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kernbench_core.values.value import OpId

if TYPE_CHECKING:
    from kernbench_core.messages import Launch

Clock = np.ndarray[Any, np.dtype[np.int32]]
"""By thread the last epoch that is known to be over; of threads past its end none is. 2**31 epochs do for any run."""

#: Launches that were waited for whose clocks are kept, for other host programs that wait for them too.
_MOST_OVER: Final = 256


class Thread:
    """Its place in clocks, what it knows, and the epoch that it is in."""

    __slots__ = ("clock", "epoch", "index")

    def __init__(self, index: int, clock: Clock) -> None:
        self.index = index
        self.clock = clock
        self.epoch = 1


class _Launched:
    """What the host knew when it submitted a launch, and what the launch's PEs know at their ends.

    `coming` are the PEs that have not begun their part, `running` those that have not ended it.
    """

    __slots__ = ("coming", "given", "learnt", "running")

    def __init__(self, given: Clock, learnt: Clock, pes: Iterable[int]) -> None:
        self.given = given
        self.learnt = learnt
        self.coming = set(pes)
        self.running: set[int] = set()


class _Turns:
    """The threads of a PE by their place, and what each of them knows when it begins its part of a launch."""

    __slots__ = ("known", "threads")

    def __init__(self, threads: list[Thread], known: Clock) -> None:
        self.threads = threads
        self.known = known


class Clocks:
    """Keep the clocks of `pes` PEs and of the host programs; `by_program` parts the programs of one PE."""

    def __init__(self, pes: int, *, by_program: bool = False) -> None:
        self._by_program = by_program
        self._nothing: Clock = np.zeros(pes, np.int32)
        self._width = pes
        #: The thread that each PE is in.
        self._threads: dict[int, Thread] = {}
        self._turns: dict[int, _Turns] = {}
        #: What each host program knows, by number; the first is the bench.
        self._hosts: dict[int, Clock] = {0: self._nothing}
        #: By program that waits for others that it started, how many of them have not ended.
        self._children: dict[int, int] = {}
        #: What the PEs of launches knew at their ends that some host program has waited for.
        self._over: dict[Launch, Clock] = {}
        self._launches: dict[Launch, _Launched] = {}
        #: By host program that does nothing until a launch is over, that launch.
        self._waiting: dict[int, Launch] = {}
        self._published: dict[OpId, Clock] = {}
        #: By atomic op what it found has carried to it, until its kernel has waited for it.
        self._handed: dict[OpId, Clock] = {}

    # Launches and host programs -----------------------------------------------------------------------

    def launched(self, launch: Launch, program: int = 0) -> None:
        """Note that a host program submits a launch: what it has waited for comes before the launch."""
        self._launches[launch] = _Launched(self._hosts[program], self._nothing, launch.programs)
        self._waiting.pop(program, None)

    def begun(self, launch: Launch, pe: int) -> None:
        """Note that a PE begins its programs of a launch: they come after what the host knew."""
        known = self._launches.get(launch)
        if known is None:
            return
        known.coming.discard(pe)
        known.running.add(pe)
        thread = self.thread(pe)
        if self._by_program:
            turns = self._turns[pe]
            turns.known = joined(turns.known, known.given)
        elif known.given is not self._nothing:
            thread.clock = joined(thread.clock, known.given)

    def turned(self, pe: int, place: int) -> None:
        """Note that a PE begins the program that has this place among its programs of a launch."""
        if not self._by_program:
            return
        self.thread(pe)
        turns = self._turns[pe]
        while place >= len(turns.threads):
            turns.threads.append(Thread(self._width, turns.known))
            self._width += 1
        thread = self._threads[pe] = turns.threads[place]
        thread.clock = turns.known

    def ended(self, launch: Launch, pe: int) -> None:
        """Note that a PE has ended its programs of a launch; all of its commands are complete."""
        self.thread(pe)
        turns = self._turns[pe]
        over = self._release(turns.threads[0])
        for thread in turns.threads[1:]:
            over = joined(over, self._release(thread))
        turns.known = over
        known = self._launches.get(launch)
        if known is not None:
            known.learnt = joined(known.learnt, over)
            known.running.discard(pe)

    def waiting(self, launch: Launch, program: int = 0) -> None:
        """Note that a host program does nothing until a launch is over: `joined` says when it goes on."""
        self._waiting[program] = launch

    def joined(self, launch: Launch, program: int = 0) -> None:
        """Note that a host program has waited for a launch: it comes before all that the program does from now on."""
        self._waiting.pop(program, None)
        known = self._launches.pop(launch, None)
        learnt = self._over.get(launch) if known is None else known.learnt
        if learnt is None:
            return
        self._hosts[program] = joined(self._hosts[program], learnt)
        if len(self._hosts) > 1:
            self._over[launch] = learnt
            if len(self._over) > _MOST_OVER:  # clocks are large, and a second program hardly ever waits for a launch
                del self._over[next(iter(self._over))]

    def program_started(self, program: int, parent: int) -> None:
        """Note that one host program starts another, which knows what it knows, and waits for it."""
        self._hosts[program] = self._hosts[parent]
        self._children[parent] = self._children.get(parent, 0) + 1

    def program_ended(self, program: int, parent: int) -> None:
        """Note that a host program has ended, with all that it launched, and that its parent waits for it."""
        self._hosts[parent] = joined(self._hosts[parent], self._hosts.pop(program))
        self._children[parent] -= 1
        if not self._children[parent]:
            del self._children[parent]

    def forget_if_over(self) -> bool:
        """Tell whether the only host program knows of everything, and drop what is not needed any more then."""
        if self._launches or len(self._hosts) > 1:
            return False
        self._published.clear()
        self._handed.clear()
        self._over.clear()
        return True

    def floor(self) -> Clock:
        """Return what everything that comes will know, whichever program or PE does it.

        Host programs that wait for others, or for a launch, know all of theirs when they go on. PEs know what their
        launch gave them, and from when they begin it on all that they have learnt.
        """
        live: list[Clock] = []
        for program, clock in self._hosts.items():
            if program not in self._children:
                awaited = self._launches.get(self._waiting[program]) if program in self._waiting else None
                if awaited is None:
                    live.append(clock)
                elif not (awaited.coming or awaited.running):
                    live.append(joined(clock, awaited.learnt))
        for launched in self._launches.values():
            if launched.coming or (launched.running and self._by_program):  # of a PE other programs may be to come
                live.append(launched.given)
            else:
                live += [self._threads[pe].clock for pe in launched.running]
        shortest = min(map(len, live))
        least: Clock = np.minimum.reduce([clock[:shortest] for clock in live])
        return least

    # Edges between PEs ----------------------------------------------------------------------------------

    def publish(self, op_id: OpId) -> None:
        """Let an op of a PE (a send, an arrival at a barrier) carry all that the PE's kernel has waited for."""
        self._published[op_id] = self._release(self.thread(op_id[0]))

    def order(self, from_op: OpId, to_pe: int) -> None:
        """Let what a PE issues from now on come after what `from_op` carries; called once, when it was received."""
        carried = (self._handed if from_op in self._handed else self._published).pop(from_op, None)
        if carried is not None:
            thread = self.thread(to_pe)
            thread.clock = joined(thread.clock, carried)

    def passed(self, from_op: OpId, to_op: OpId, *, learn: bool) -> bool:
        """Let an atomic op that found what another one left carry what that one does; tell whether there was anything.

        With `learn` its kernel learns it where `order` is called with `to_op`.
        """
        carried = self._published.pop(from_op, None)
        if carried is None:
            return False
        own = self._published.get(to_op)
        self._published[to_op] = carried if own is None else joined(own, carried)
        if learn:
            self._handed[to_op] = carried
        return learn

    def _release(self, thread: Thread) -> Clock:
        """Give what a thread knows now, its own epoch included, and begin its next epoch."""
        released = self.widened(thread.clock).copy()
        released[thread.index] = thread.epoch
        thread.epoch += 1
        return released

    def thread(self, pe: int) -> Thread:
        """Return the thread that a PE is in."""
        found = self._threads.get(pe)
        if found is None:
            found = self._threads[pe] = Thread(pe, self._nothing)
            self._turns[pe] = _Turns([found], self._nothing)
        return found

    def widened(self, clock: Clock) -> Clock:
        """Return a clock with a place for every thread that there is now."""
        missing = self._width - len(clock)
        return np.pad(clock, (0, missing)) if missing else clock


def joined(one: Clock, other: Clock) -> Clock:
    """Return the clock of who knows what both know."""
    if one is other:
        return one
    if len(one) == len(other):
        return np.maximum(one, other)
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    both = longer.copy()
    np.maximum(both[: len(shorter)], shorter, out=both[: len(shorter)])
    return both
