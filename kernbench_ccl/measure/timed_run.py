"""One case as a host program: place the ranks' data, launch the collective once, and look at what it left."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from kernbench_ccl.catalogue import Algorithm
from kernbench_ccl.collectives import CallShape
from kernbench_ccl.measure.data_check import Data, DataVerdict, Kept, check
from kernbench_ccl.measure.machine import TimedMachine
from kernbench_ccl.measure.table import Used
from kernbench_ccl.plan import Settings, make_group, plan_collective
from kernbench_ccl.plan.backend import Planned, RankTensor, TensorSlice
from kernbench_ccl.plan.groups import CHOSEN_BY
from kernbench_ccl.plan.selection import make_collective
from kernbench_ccl.prove.postconditions import right_payload
from kernbench_ccl.prove.symbols import Symbols
from kernbench_ccl.prove.wrong_step import WrongStep, first_wrong_step
from kernbench_core.callsite import describe_site
from kernbench_core.compute import Backend, DataExecutor
from kernbench_core.errors import UninitializedReadError
from kernbench_core.kernel import UNIT
from kernbench_core.peers import Channel
from kernbench_core.topology import design_of
from kernbench_core.topology.naming import pe_unit
from kernbench_core.values import AssemblyValue, Region, Value, sub_parts
from kernbench_core.values.dtypes import itemsize, numpy_dtype

if TYPE_CHECKING:
    from kernbench_core.host import DeviceTensor, GraphEngine, LaunchHandle, Runtime

__tracebackhide__ = True

_SHOWN_RANKS = 4


@frozen
class TimedCase:
    """One collective to run: `count` is nccl's, `nbytes` its size as nccl-tests has it, `algorithm` a registered name.

    With `contributors` "pe" every PE brings a vector of `count` elements, else every rank one.
    """

    collective: str
    algorithm: str
    dtype: str
    count: int
    nbytes: int
    redop: str | None
    root: int
    in_place: bool
    settings: Settings
    contributors: str = "sip"


class TimedRun:
    """One case as a host program: `bench` is what the engine runs."""

    def __init__(self, case: TimedCase, machine: TimedMachine, algorithm: Algorithm) -> None:
        self.case, self.machine, self.algorithm = case, machine, algorithm
        self.handle: LaunchHandle | None = None
        self.used: Used | None = None
        vectors = machine.vectors(case.contributors)
        self._each = vectors // machine.world
        self._data = Data(algorithm.kind, case.dtype, case.redop, case.root, case.count, vectors, self._each)
        self._call = CallShape(machine.world, case.count, case.redop, case.root)
        self._integers: list[Any] = []
        self._before: dict[int, Value] = {}
        self._after: dict[int, Value] = {}
        self._unwritten: dict[int, int] = {}
        self._changed: list[Kept] = []

    def bench(self, rt: Runtime) -> None:
        """Place the tensors, launch the collective over all ranks, and keep what its tensors held and hold."""
        case, settings = self.case, self.case.settings
        design = design_of(self.machine.graph)
        channel = Channel("ccl", settings.slots, settings.slot_bytes, settings.tier, CHOSEN_BY)
        group = make_group(rt.pes, channel=channel)
        collective = make_collective(
            group, self.algorithm, settings, design, case.dtype, self.machine.networks, redop=case.redop,
            root=case.root, contributors=case.contributors, vectors=self._each,
        )  # fmt: skip
        self._integers = self._data.integers() if rt.data else [None] * self._data.world
        given, made = self._places(rt)
        pes = "auto" if settings.pes is None else settings.pes
        planned = plan_collective(rt, group, collective, self.algorithm, given, made, case.count, pes=pes)
        self.used = _used(rt, planned)
        if rt.data:
            self._before = {rank: self._held(given[rank], n) for rank, n in enumerate(self._in_counts()) if n}
        self.handle = planned.launch(rt)
        if rt.data:
            self._look(made)
            self._look_back(given)

    def _look(self, made: dict[int, RankTensor]) -> None:
        """Keep what every rank's output holds, and note those that were not written as a whole."""
        for rank, count in enumerate(self._out_counts()):
            if not count:
                continue
            try:
                self._after[rank] = self._held(made[rank], count)
            except UninitializedReadError:
                self._unwritten[rank] = count

    def _look_back(self, given: dict[int, RankTensor]) -> None:
        """Note what was written to of the inputs, but for what is output in place."""
        outputs = self._out_counts()
        for rank, before in self._before.items():
            count, n_out = before.shape[0], outputs[rank]
            left = [(0, count)]
            if self.case.in_place and n_out:
                left = [(0, rank * n_out), ((rank + 1) * n_out, count)] if n_out < count else []
            after = self._held(given[rank], count) if left else before
            if _pieces(after) == _pieces(before):
                continue
            for start, end in left:
                each = count // self._each
                for at in range(start, end, each):
                    vector, first = rank * self._each + at // each, at % each
                    self._changed.append(Kept(vector, first, self._cut(after, at, min(each, end - at))))

    def _places(self, rt: Runtime) -> tuple[dict[int, RankTensor], dict[int, RankTensor]]:
        """Make the tensors of every rank; in place they share memory as nccl-tests has it."""
        case = self.case
        given: dict[int, RankTensor] = {}
        made: dict[int, RankTensor] = {}
        for rank, (n_in, n_out) in enumerate(zip(self._in_counts(), self._out_counts(), strict=True)):
            array = self._brought(rank)
            if not case.in_place or not n_in or not n_out:
                given[rank] = self._tensor(rt, array, n_in, rank, "in")
                made[rank] = self._tensor(rt, None, n_out, rank, "out")
                continue
            whole = self._tensor(rt, array, max(n_in, n_out), rank, "buffer", at=rank * n_in)
            assert whole is not None
            given[rank] = TensorSlice(whole, rank * n_in) if n_out > n_in else whole
            made[rank] = TensorSlice(whole, rank * n_out) if n_in > n_out else whole
        return given, made

    def _brought(self, rank: int) -> Any:
        """Return the integers that a rank brings, of all its vectors; None where it brings none, or without data."""
        own = [array for array in self._integers[rank * self._each : (rank + 1) * self._each] if array is not None]
        if not own:
            return None
        return own[0] if len(own) == 1 else np.concatenate(own)

    def _tensor(self, rt: Runtime, array: Any, count: int, rank: int, what: str, at: int = 0) -> DeviceTensor | None:
        """Place an array at the element `at` of a new tensor of `count` elements on a rank; None for no elements."""
        if not count:
            return None
        name = f"{what} of rank {rank}"
        if array is None:
            return rt.empty((count,), self.case.dtype, name=name, device=rank)
        if len(array) < count:
            whole = np.zeros(count, numpy_dtype(self.case.dtype))
            whole[at : at + len(array)] = array
            array = whole
        return rt.tensor(array, self.case.dtype, name=name, device=rank, resident=True)

    def _in_counts(self) -> list[int]:
        call, kind = self._call, self.algorithm.kind
        return [self._each * kind.in_count(call, rank) for rank in range(call.world)]

    def _out_counts(self) -> list[int]:
        call, kind = self._call, self.algorithm.kind
        return [self._each * kind.out_count(call, rank) for rank in range(call.world)]

    def _held(self, place: RankTensor, count: int) -> Value:
        """Return what `count` elements of a tensor, from where a part of it begins, hold now."""
        assert place is not None
        part = place if isinstance(place, TensorSlice) else TensorSlice(place)
        return self._cut(part.tensor.value(), part.start, count)

    def _cut(self, value: Value, start: int, count: int) -> Value:
        """Return `count` elements of a value, from number `start` on."""
        if value.shape == (count,):
            return value
        size = itemsize(self.case.dtype)
        to = Region(0, count * size)
        return AssemblyValue((count,), self.case.dtype, tuple(sub_parts(value, to.shifted(start * size), to)))

    def _vectors(self, held: dict[int, Value]) -> dict[int, Value]:
        """Return, by vector, what ranks hold: the rows of each where every PE has a vector."""
        each = self._each
        if each == 1:
            return held
        return {
            rank * each + row: self._cut(value, row * (value.shape[0] // each), value.shape[0] // each)
            for rank, value in held.items()
            for row in range(each)
        }

    def first_wrong_step(self, engine: GraphEngine) -> WrongStep | None:
        """Follow every rank's elements through the op log; None where all of them came where they belong.

        None too where some were not written, which has no step.
        """
        if self._unwritten:
            return None
        case, world = self.case, self.machine.world
        design, size = design_of(self.machine.graph), itemsize(case.dtype)
        symbols = Symbols(case.redop, case.dtype, self._data.world)
        for rank, value in self._before.items():
            for part in value.parts():
                symbols.contribute(part.source, rank, (part.dst.base - part.src.base) // size)
        sites = (engine.hardware.op_logger.sites if engine.hardware.op_logger is not None else None) or {}
        each = len(design.pes) // world
        return first_wrong_step(
            engine.op_log,
            symbols,
            self._after,
            {rank: right_payload(self.algorithm.kind, self._call, rank, self._each) for rank in range(world)},
            lambda pe: divmod(pe, each),
            lambda op_id: describe_site(sites.get(op_id)),
            case.redop,
        )

    def check(self, engine: GraphEngine, backend: Backend | None = None) -> DataVerdict:
        """Check the data by phase 2, on integers and on reals; what was not written as a whole is wrong."""
        if self._unwritten:
            told = [f"rank {rank}: its output of {count} elements was not written as a whole."
                    for rank, count in self._unwritten.items()]  # fmt: skip
            more = [f"and {len(told) - _SHOWN_RANKS} more ranks."] if len(told) > _SHOWN_RANKS else []
            advice = "kernbench ccl check says which elements nobody stores."
            return DataVerdict(sum(self._unwritten.values()), (*told[:_SHOWN_RANKS], *more, advice))
        on = backend or Backend()
        executor = partial(DataExecutor, engine.op_log, engine.store, engine.functions, backend=on)
        return check(self._data, executor, self._vectors(self._before), self._vectors(self._after), self._integers,
                     self._changed)  # fmt: skip


def _used(rt: Runtime, planned: Planned) -> Used:
    """Return the queues and PEs of a planned collective; what the channel leaves open is what the PEs have."""
    channel = planned.peers.channel
    keeper = rt.components.get(pe_unit(rt.design.pes[planned.peers.ranks[0][0]].prefix, UNIT))
    own = {} if keeper is None else keeper.params
    return Used(
        channel.slots or own.get("slots"), channel.slot_bytes or own.get("slot_bytes"), channel.tier or own.get("tier"),
        planned.n_pe, planned.window, planned.collective.tile * itemsize(planned.collective.dtype),
    )  # fmt: skip


def _pieces(value: Value) -> list[tuple[Region, int, Region]]:
    """Return what a value is put together from, as far as it is the same while nobody writes."""
    return [(part.dst, id(part.source), part.src) for part in value.parts()]
