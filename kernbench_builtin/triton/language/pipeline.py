"""Loops whose next loads are under way while an iteration computes: what `num_stages` asks a compiler for."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from operator import index
from typing import Any, ClassVar

from attrs import define, evolve, field, frozen

from kernbench_builtin.triton.language.atomic_commands import AtomicCmd
from kernbench_builtin.triton.language.numbers import NumberLanguage
from kernbench_core.callsite import CallSite, describe_site
from kernbench_core.errors import TcmOverflowError
from kernbench_core.kernel.commands import KernelCommand
from kernbench_core.kernel.compute_commands import ComputeCommand
from kernbench_core.kernel.dma_commands import DmaReadCmd, DmaWriteCmd
from kernbench_core.kernel.pe_state import PeState
from kernbench_core.kernel.tl.tensor import Tensor
from kernbench_core.kernel.transfers import Transfer
from kernbench_core.memory.device_memory import TensorAllocation
from kernbench_core.memory.scratchpad import TcmBlock
from kernbench_core.values.dtypes import itemsize
from kernbench_core.values.region import Region
from kernbench_core.values.store_index import Write
from kernbench_core.values.views import FillValue

#: What Triton gives loops of a launch that names none.
DEFAULT_STAGES = 3


ONE_STAGE = "num_stages is 1"
"""Why all loads of a loop wait for their iteration; "turns" of such loops are counted as well."""
#: Why a load waits for it.
_INSIDE = "another loop is inside of its loop"
_NO_ROOM = "the scratchpad has no room for another tile"
_UNEVEN = "it does not go on by equal steps"


class AheadReadCmd(DmaReadCmd):
    """Bring a tile before its iteration asks for it: until then nobody has used that memory, as far as races go."""

    __slots__ = ()

    #: The command that takes as long.
    timed_as: ClassVar[type[KernelCommand]] = DmaReadCmd

    def at_issue(self, state: PeState, now: float) -> None:
        """Begin the load, and keep to itself what it reads."""
        uses, self.memory_uses = self.memory_uses, ()
        super().at_issue(state, now)
        self.memory_uses = uses

    def taken(self) -> None:
        """Be the load of the iteration that asks for it now."""
        hazards = self.state.hazards
        if hazards is None:
            return
        scratch, self.scratch_uses = self.scratch_uses, ()
        self.blocking = self.complete
        hazards.issued(self, hazards.now)
        self.scratch_uses = scratch
        if self.complete:
            hazards.landed(self, self.tail)


@frozen(eq=False)
class _Ahead:
    """A tile that was asked for before its iteration came: what it moves, what fills it, and the tile."""

    transfer: Transfer
    fill: bytes
    tile: Tensor
    command: AheadReadCmd

    def is_for(self, transfer: Transfer, fill: bytes) -> bool:
        """Tell whether it is what a load asks for now."""
        return self.transfer == transfer and self.fill == fill


@define(eq=False)
class _Stream:
    """One load of a loop: what it moved last, and the tiles of iterations to come. `wrong` once one was not asked for.

    It was `met` so often, and found `used` tiles; `why` it found none.
    """

    last: Transfer | None = None
    ahead: deque[_Ahead] = field(factory=deque)
    wrong: bool = False
    met: int = 0
    used: int = 0
    why: str = ""

    def take(self, transfer: Transfer, fill: bytes) -> Tensor | None:
        """Return the tile that was asked for before, None where there is none, or it is another one."""
        if not self.ahead:
            return None
        found = self.ahead.popleft()
        if found.is_for(transfer, fill):
            self.used += 1
            found.command.taken()
            return found.tile
        self.wrong, self.why = True, _UNEVEN
        self.ahead.clear()
        return None

    def step_to(self, transfer: Transfer) -> int | None:
        """Return by how many bytes this load is further than the last; None where it is not the same, shifted."""
        last, self.last = self.last, transfer
        self.met += 1
        if last is None or self.wrong or not transfer.regions or len(last.regions) != len(transfer.regions):
            return None
        step = transfer.regions[0].base - last.regions[0].base
        if evolve(last, regions=_shifted(last, step)) == transfer:
            return step
        self.why = _UNEVEN
        return None


@define(eq=False)
class PipelinedLoop:
    """A loop of which up to `stages` iterations are under way; `after` are to come behind the present one.

    The addresses of an iteration to come are those of the last two, continued; a tile that the iteration then does not
    ask for is dropped, and that load not foreseen any more. A tensor that the loop writes is not read ahead of a write.
    """

    stages: int
    after: int = 0
    _streams: dict[tuple[CallSite, int], _Stream] = field(factory=dict)
    _met: Counter[CallSite] = field(factory=Counter)
    _written: dict[int, str] = field(factory=dict)
    _stopped: str = ""
    _waiting: dict[CallSite, str] = field(factory=dict)

    def begin(self, after: int) -> None:
        """Begin an iteration behind which so many come."""
        self.after = after
        self._met.clear()

    def stream(self, site: CallSite) -> _Stream:
        """Return the load at a line: the first there of this iteration, or the second."""
        key = site, self._met[site]
        self._met[site] += 1
        return self._streams.setdefault(key, _Stream())

    def may_read_ahead(self, tensor: TensorAllocation, site: CallSite) -> bool:
        """Tell whether a load of a tensor may go before what stands between."""
        why = self._stopped or self._written.get(tensor.va, "")
        if why and self.stages > 1:
            self._waiting[site] = why
        return not why

    def wrote(self, tensor: TensorAllocation, site: CallSite) -> None:
        """Take note of a write to a tensor: what was read ahead of it is not used."""
        self._written.setdefault(tensor.va, f"{_line(site)} writes {tensor.name!r} in its loop")

    def stop(self, why: str) -> None:
        """Use nothing that was read ahead: what may order programs is in the loop, or another loop is."""
        self._stopped = self._stopped or why

    def give_up(self) -> list[AheadReadCmd]:
        """Read nothing ahead any more, as that takes room; return the loads of tiles that nobody has asked for."""
        found = [each.command for stream in self._streams.values() for each in stream.ahead]
        if found:
            self.stop(_NO_ROOM)
            for stream in self._streams.values():
                stream.ahead.clear()
        return found

    def waiting(self) -> Iterator[tuple[CallSite, str]]:
        """Yield the loads that waited for their iterations, from the third on, and why."""
        yield from self._waiting.items()
        for (site, _), stream in self._streams.items():
            if stream.met > 2 and not stream.used and stream.why and site not in self._waiting:
                yield site, stream.why


class PipelineLanguage(NumberLanguage):
    """Loops and loads where a run pipelines loops. `stages` are those of the launch."""

    stages = DEFAULT_STAGES
    _loops: Sequence[PipelinedLoop] = ()

    def range(self, start: Any, end: Any = None, step: Any = 1, **hints: Any) -> Any:
        """Give int32 scalars, or int64 where a bound is; `num_stages` is that of the launch where it is not given."""
        if not self._state.kernels.pipelines:
            return super().range(start, end, step, **hints)
        start, end, step = (index(each) if isinstance(each, Tensor) else each for each in (start, end, step))
        stages = hints.pop("num_stages", None)
        numbers = super().range(start, end, step, **hints)
        depth = self.stages if stages is None else int(stages)
        bounds = (0, start, step) if end is None else (start, end, step)
        return self._pipelined(numbers, len(range(*map(int, bounds))), depth)

    def takes(self, hint: str) -> bool:
        """Tell whether a hint of a launch changes something in this run."""
        return hint == "num_stages" and self._state.kernels.pipelines

    def _pipelined(self, numbers: Any, count: int, stages: int) -> Iterator[Any]:
        outer, loop = self._loops, PipelinedLoop(stages)
        for each in outer:
            each.stop(_INSIDE)
        self._loops, self._first_told = (*outer, loop), self._note
        try:
            for at, number in enumerate(numbers):
                loop.begin(count - at - 1)
                yield number
        finally:
            self._loops, self._first_told = outer, self._note if outer else None
            for site, why in loop.waiting():
                told = f"tl.load at {_line(site)} is not under way before its iteration (num_stages), as {why}."
                self._state.kernels.ignored[told] += 1
                self._state.kernels.late_loads[_line(site), why] += 1
            if stages < 2:
                self._state.kernels.late_loads["", ONE_STAGE] += 1
                self._state.kernels.late_loads["turns", ONE_STAGE] += count

    def _bring(
        self, transfer: Transfer, tensor: TensorAllocation, fill: FillValue | None, site: CallSite, wait: bool
    ) -> Tensor:
        """Bring a tile, or take one that was asked for before; ask for those of the iterations to come."""
        loop = self._loops[-1] if self._loops else None
        if loop is None or loop.stages < 2 or not loop.may_read_ahead(tensor, site):
            return super()._bring(transfer, tensor, fill, site, wait)
        stream, filled = loop.stream(site), b"" if fill is None else fill.array().tobytes()
        tile = stream.take(transfer, filled)
        if tile is None:
            tile = super()._bring(transfer, tensor, fill, site, wait)
        step = stream.step_to(transfer)
        if step is not None:
            self._read_ahead(loop, stream, step, transfer, tensor, fill, filled, site)
        return tile

    def _read_ahead(
        self, loop: PipelinedLoop, stream: _Stream, step: int, transfer: Transfer, tensor: TensorAllocation,
        fill: FillValue | None, filled: bytes, site: CallSite,
    ) -> None:  # fmt: skip
        while len(stream.ahead) < min(loop.stages - 1, loop.after):
            regions = _shifted(transfer, step * (len(stream.ahead) + 1))
            inside = all(tensor.va <= each.start and each.end <= tensor.va + tensor.nbytes for each in regions)
            if not inside:
                return
            if not self._state.tcm.room(2 * transfer.nbytes, 1):
                stream.why = _NO_ROOM
                return
            following = evolve(transfer, regions=regions)
            if not self._is_written(regions, tensor, site):
                return
            stream.ahead.append(_Ahead(following, filled, *self._ask_for(following, tensor, fill, site)))

    def _is_written(self, regions: Sequence[Region], tensor: TensorAllocation, site: CallSite) -> bool:
        """Tell whether there is something to read yet; without data nobody knows, and it is taken for granted."""
        state = self._state
        if not state.store.data:
            return True
        where = state.memory.translate(regions, state.pe)
        found, whole = state.store.has("hbm", where), state.kernels.recorded
        sure = found and (whole is None or tensor.va in whole)
        if not sure and (not found or any(map(self._may_come_later, state.store.writes("hbm", where)))):
            state.kernels.timed.setdefault("whether memory is written yet", site)
        return found

    def _may_come_later(self, write: Write) -> bool:
        """Tell whether at other times something may not be written yet that another PE has written."""
        writer = write.writer
        return writer is not None and writer[0] != self._state.pe and not self._is_over(*writer)

    def _ask_for(
        self, transfer: Transfer, tensor: TensorAllocation, fill: FillValue | None, site: CallSite
    ) -> tuple[Tensor, AheadReadCmd]:
        """Issue the load of an iteration to come, as `_bring` does that of the present one."""
        nbytes = math.prod(transfer.shape) * itemsize(transfer.dtype)
        block = self._reserve("tl.load", transfer.shape, transfer.dtype, nbytes, site)
        command = AheadReadCmd(self.op_id(), "tl.load", site, transfer, tensor, self._state.memory, block, fill)
        tile = Tensor(self, command.value, block, "tl.load", site, command)
        self.issue(command, wait=False)
        return tile, command

    def _reserve(self, op: str, shape: tuple[int, ...], dtype: str, nbytes: int, site: CallSite) -> TcmBlock:
        """Reserve scratchpad space; where there is none, give up what was read ahead, as the program needs the room."""
        try:
            return super()._reserve(op, shape, dtype, nbytes, site)
        except TcmOverflowError:
            given_up = [command for loop in self._loops for command in loop.give_up()]
            if not given_up:
                raise
        self._state.kernels.timed.setdefault("which of several commands is complete", site)
        self.wait_for([command for command in given_up if not command.complete])
        del given_up
        return super()._reserve(op, shape, dtype, nbytes, site)

    def _note(self, command: KernelCommand) -> None:
        """Take note of a command at its issue: nothing is read ahead of what may order programs, or writes."""
        if not isinstance(command, DmaReadCmd | ComputeCommand):
            for loop in self._loops:
                if isinstance(command, DmaWriteCmd) and not isinstance(command, AtomicCmd):
                    loop.wrote(command.tensor, command.site)
                else:
                    loop.stop(f"{command.call} at {_line(command.site)} may order programs")


def _line(site: CallSite) -> str:
    return describe_site(site).rpartition("/")[2]


def _shifted(transfer: Transfer, step: int) -> tuple[Region, ...]:
    return tuple(region.shifted(step) for region in transfer.regions)
