"""What is wrong with a run of a collective: who waits for whom, who raced, and what every rank ended with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve

from kernbench_ccl.prove.lost_contributions import Loss, Search
from kernbench_ccl.prove.payloads import PayloadError, contribution
from kernbench_ccl.prove.postconditions import Admissible, Difference, differences, nature, right_payload
from kernbench_ccl.prove.proof_case import (
    CHANGED,
    DEADLOCK,
    ENDLESS,
    RACE,
    RAISED,
    UNHEARD,
    UNRECEIVED,
    WRONG,
    Fault,
    counted,
)
from kernbench_ccl.prove.proof_run import Run, line_at
from kernbench_ccl.prove.untimed_queues import Wait
from kernbench_ccl.prove.untimed_run import Outcome, Raised, wait_cycle
from kernbench_ccl.prove.wrong_step import WrongStep, blame, chunk_of
from kernbench_core.errors import KernbenchError, LimitError, PendingDataError, in_words
from kernbench_core.memory import RECYCLED_SLOT, Hazard
from kernbench_core.process import WallTimeExceeded
from kernbench_core.values import OpId
from kernbench_core.values.dtypes import itemsize
from kernbench_core.wording import with_full_stop

__tracebackhide__ = True  # errors name the kernel's line, not one of these

_MOST_FAULTS = 8
"""Faults of one case that are told."""

OR_RAISE_IT = "correct the loop, or give it more time if it is only long."
"""What to do about a case that takes too long."""


class Verdict:
    """Look at a run that has come to its end."""

    def __init__(self, run: Run, outcome: Outcome) -> None:
        self._run = run
        self._outcome = outcome
        self._case = run.case
        self._history = run.history
        self._peers = run.peers
        self._search: Search | None = None

    def faults(self) -> tuple[Fault, ...]:
        """Return everything that is wrong, up to a few; of a run that did not end, why it did not."""
        outcome = self._outcome
        faults = [*self._raised(outcome.raised), *self._blocked(outcome)]
        if not faults:
            faults += [*self._races_found(), *self._unreceived(outcome), *self._wrong(), *self._not_heard()]
        return tuple(faults[:_MOST_FAULTS])

    def _fault(self, kind: str, pe: int, step: int, lines: Iterable[str], told: str, *about: str) -> Fault:
        rank, place = self._peers.place_of(pe)
        each = tuple(dict.fromkeys(lines))
        return Fault(kind, self._case, rank, place, step, None, None, each, told, frozenset(about))

    def _pe(self, pe: int) -> str:
        rank, place = self._peers.place_of(pe)
        return f"rank {rank}" if self._case.n_pe == 1 else f"PE {place} of rank {rank}"

    def _raised(self, raised: Raised | None) -> list[Fault]:
        if raised is None:
            return []
        step = self._step_of(raised.pe)
        if isinstance(raised.error, WallTimeExceeded):
            told = f"the case must end within the wall time of --timeout, and is still in {raised.line}; {OR_RAISE_IT}"
        elif not isinstance(raised.error, KernbenchError):
            told = with_full_stop(f"{raised.line}: {in_words(raised.error)}")
        else:
            told = str(raised.error)
        if isinstance(raised.error, PendingDataError):
            told += " A proof holds for all data: the kernel of a collective must not look at its payload."
        kind = WRONG if isinstance(raised.error, PayloadError) else RAISED
        kind = ENDLESS if isinstance(raised.error, WallTimeExceeded | LimitError) else kind
        line = getattr(raised.error, "line", "") or raised.line
        return [self._fault(kind, raised.pe, step, [line], f"{self._pe(raised.pe)} after step {step}: {told}")]

    def _blocked(self, outcome: Outcome) -> list[Fault]:
        if not outcome.blocked:
            return []
        cycle = wait_cycle(outcome.blocked)
        told = cycle or [(pe, wait) for pe, waits in outcome.blocked.items() for wait in waits][:3]
        number = len(outcome.blocked)
        begin = f"{'a PE waits' if number == 1 else f'{number} PEs wait'} for ever"
        begin += f", {len(cycle)} of them for each other in a cycle: " if cycle else ": "
        words = [self._waiting(pe, wait, outcome.blocked) for pe, wait in told]
        pe, wait = told[0]
        step = self._history.trail.step_of(wait.command.op_id) if wait.sends else self._step_of(pe)
        return [self._fault(DEADLOCK, pe, step, [w.line for _, w in told], begin + "; ".join(words) + ".")]

    def _step_of(self, pe: int) -> int:
        """Return the deepest step that a PE has reached."""
        return self._run.reached[pe]

    def _waiting(self, pe: int, wait: Wait, blocked: Mapping[int, Sequence[Wait]]) -> str:
        command = wait.command
        peers = " or ".join(self._pe(peer) for peer in wait.peers)
        ended = "" if wait.peers[0] in blocked else f", which {'have' if len(wait.peers) > 1 else 'has'} ended"
        if wait.sends:
            step = self._history.trail.step_of(command.op_id)
            held = chunk_of(self._history.symbols.of(command.value))
            return (
                f"{self._pe(pe)} at {wait.line} waits for a free slot at {peers}{ended}, to send its message "
                f"{wait.number} of step {step} ({held})"
            )
        size = command.value.nbytes // itemsize(command.value.dtype)
        return (
            f"{self._pe(pe)} at {wait.line}, after step {self._step_of(pe)}, waits for message {wait.number} "
            f"({counted(size, 'element')}) of {peers}{ended}"
        )

    def _wrong(self) -> list[Fault]:
        """Compare what every rank holds at the end with what it must hold."""
        case, faults = self._case, list[Fault]()
        told: dict[tuple[int, int, int, str], list[WrongStep]] = {}
        about: dict[tuple[int, int, int, str], frozenset[str]] = {}
        places = case.n_pe if case.contributors == "pe" else 1
        right = {
            rank: right_payload(self._run.kind, case.call, rank, places) for rank in range(case.world)
        }
        admissible: Admissible | None = None
        for rank, buffer in self._run.outputs.items():
            must_be = right[rank]
            if not must_be:
                continue
            size = must_be[-1].end
            start = self._run.first_of_output(rank, size)
            held = self._run.held(buffer, start, size)
            for wrong in differences(held, must_be):
                admissible = admissible or Admissible(right)
                writer = self._run.writer(buffer, start + wrong.start)
                step = blame(
                    self._history, wrong, rank, admissible, self._peers.place_of, self._run.where, case.redop, writer,
                    single=case.n_pe == 1, lost=self._lost,
                )  # fmt: skip
                where = step.step, step.rank, step.pe, step.line
                told.setdefault(where, []).append(step)
                about[where] = about.get(where, frozenset()) | nature(wrong)
        for where, steps in told.items():
            number, at_rank, at_pe, line = where
            first, others = steps[0], len(steps) - 1
            more = f" {counted(others, 'more stretch', 'es')} of outputs went wrong there." if others else ""
            sentence = first.sentence + more
            lines = (line,) if line else ()
            fault = Fault(WRONG, case, at_rank, at_pe, number, first.start, first.end, lines, sentence, about[where])
            faults.append(fault)
        return faults + self._inputs_changed()

    def _lost(self, wrong: Difference, rank: int, writer: OpId | None) -> Loss | None:
        """Say where was lost what a rank's output lacks."""
        if self._search is None:
            self._search = self._run.search(self._pe)
        return self._search.lost(wrong, rank, writer)

    def _inputs_changed(self) -> list[Fault]:
        """Look whether the input of a collective that is out of place is still what it was."""
        faults = []
        for rank, buffer in self._run.inputs.items():
            size = buffer.allocation.size
            if not size:
                continue
            for wrong in differences(self._run.held(buffer, 0, size), (contribution(rank, 0, 0, size),)):
                writer = self._run.writer(buffer, wrong.start)
                if writer is None:
                    continue
                elements = f"element {wrong.start}" if wrong.end == wrong.start + 1 else (
                    f"elements {wrong.start}-{wrong.end - 1}"
                )
                told = (
                    f"the input of rank {rank} must be left as it is out of place, and {self._pe(writer[0])} changed "
                    f"{elements} of it at {self._run.where(writer)}."
                )
                step = self._history.trail.step_of(writer)
                fault = self._fault(WRONG, writer[0], step, [self._run.where(writer)], told, CHANGED)
                faults.append(evolve(fault, start=wrong.start, end=wrong.end))
        return faults

    def _not_heard(self) -> list[Fault]:
        """Look whether a barrier holds every rank until all have come."""
        if not self._run.kind.barrier:
            return []
        for rank, pes in enumerate(self._peers.ranks):
            heard = 0
            for pe in pes:
                heard |= self._run.heard[pe]
            for other in range(self._case.world):
                if not heard >> other & 1:
                    told = f"rank {rank} leaves the barrier without having heard of rank {other}."
                    return [self._fault(WRONG, pes[0], self._step_of(pes[0]), [], told, UNHEARD)]
        return []

    def _unreceived(self, outcome: Outcome) -> list[Fault]:
        faults = []
        for send in outcome.unreceived:
            step = self._history.trail.step_of(send.op_id)
            held = chunk_of(self._history.symbols.of(send.value))
            told = (
                f"{self._pe(send.to)} never received what {self._pe(send.pe)} sent it in step {step} at "
                f"{line_at(send.site)} ({held})."
            )
            faults.append(self._fault(WRONG, send.pe, step, [line_at(send.site)], told, UNRECEIVED))
        return faults

    def _slot_used_after_its_end(self, hazard: Hazard) -> list[Fault]:
        first, second = hazard.first, hazard.second
        if hazard.kind != RECYCLED_SLOT:
            return []
        pe = self._run.pe_named(second.pe)
        told = f"{self._pe(pe)} gives {hazard.name} back at {second.line} while {first.call} at {first.line} uses it"
        if first.op_id is None:
            told = f"{self._pe(pe)} uses {hazard.name} at {second.line} after it gave it back at {first.line}"
        told += ", and its sender may write the next message there."
        return [self._fault(WRONG, pe, self._run.reached[pe], [first.line, second.line], told, RACE)]

    def _races_found(self) -> list[Fault]:
        faults: list[Fault] = []
        seen: set[frozenset[str]] = set()
        for hazard in self._run.hazards:
            first, second = hazard.first, hazard.second
            lines = frozenset((first.line, second.line))
            if lines in seen:
                continue
            seen.add(lines)
            if first.op_id is None or second.op_id is None:
                faults += self._slot_used_after_its_end(hazard)
                continue
            told = (
                f"{self._pe(first.op_id[0])} {'writes' if first.writes else 'reads'} {hazard.name} at {first.line} and "
                f"{self._pe(second.op_id[0])} {'writes' if second.writes else 'reads'} the same elements at "
                f"{second.line}, and no message orders the two."
            )
            step = self._history.trail.step_of(second.op_id)
            faults.append(self._fault(WRONG, second.op_id[0], step, [first.line, second.line], told, RACE))
        return faults
