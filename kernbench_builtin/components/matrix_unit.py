"""What the matrix units of a PE have in common: products that follow each other through an array of cells."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, ClassVar

from attrs import frozen

from kernbench_builtin.components.compute_unit import ComputeUnit, streamed_bytes
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.messages import MsgBase
from kernbench_core.units import grid_ceil

_FACTORS = 2
"""Operands of a product; a third one is the sum that it is added to."""


@frozen
class Passage:
    """How a product passes through an array, in cycles.

    The cells are loaded for `load` cycles before the operands of a fold enter for `stream` cycles; of `folds` each
    enters `period` cycles behind the one before it, and the last result is out `around` cycles behind the last operand.
    Of the cells, `filled` (0 to 1, the mean over folds) have an element to work on.
    """

    folds: int
    load: int
    stream: int
    period: int
    around: int
    filled: float = 1.0

    @property
    def entering(self) -> int:
        """From the first operand to the last one."""
        return (self.folds - 1) * self.period + self.stream

    @property
    def whole(self) -> int:
        """Of a product that has the array for itself."""
        return self.load + self.entering + self.around


class MatrixUnit(ComputeUnit):
    """Pass products through arrays of cells, each behind the one before it where folds overlap.

    With overlap the operands of a product enter right behind those of the product before it: while that one drains, it
    fills, and its start-up and the first load of its cells are over before, if it came early enough. A load begins
    when the fold before it has begun to stream (the other half of double-buffered cells), and is left out for a
    product of one fold that finds its stationary operand in the cells and follows without a gap. Without overlap a
    product waits until the array is empty.

    A product that is added to the sum that the product before it leaves needs not wait for that; without overlap it
    goes on with that sum if both are one fold, nothing is loaded and it is there in time. A tile whose sum other tiles
    go on with leaves when its operands have entered.

    Service is logged from when the array has turned to a product until its last result is out, so that services of
    products that stream overlap; `busy_ns` counts that time once. A subclass declares `clock`, `overhead` and `servers`
    and says in `passage` how a product passes.
    """

    #: The number of a product's first cycle: its last result is there at the cycle of this number less than it takes.
    FIRST_CYCLE: ClassVar[int] = 0

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self._start_up = grid_ceil(self._overhead)
        self._arrays = [MacArray() for _ in range(self.servers)]
        self._known: dict[Hashable, _Times] = {}
        #: When each command under way ends, in ns, by its op.
        self._ends: dict[Hashable, float] = {}

    @property
    def overlaps(self) -> bool:
        """Whether a fold enters right behind the one before it."""
        raise NotImplementedError

    def passage(self, msg: Any) -> Passage:
        """Return how a product passes through the array; `msg` has m, k, n and dtype_in, and nothing else counts."""
        raise NotImplementedError

    def stationary(self, msg: Any) -> Hashable:
        """Return what tells the operand that stays in the cells from others, None for none that could stay."""
        return None

    def cycles(self, msg: Any) -> int:
        """Return the cycles of a product that has the array for itself; `msg` has m, k, n and dtype_in."""
        return self.passage(msg).whole - self.FIRST_CYCLE

    def min_service_ns(self, msg: Any) -> float:
        """Return the time in ns from the first operand to the last result; start-up and loading may be over before.

        A part of a sum leaves with its last operand.
        """
        times = self._times(msg, _FACTORS)
        if getattr(msg, "part_of_sum", False):
            return times.into
        return max(0.0, times.alone - self._start_up - times.load)

    def flops(self, msg: Any) -> float:
        """Return two for each multiply-accumulate."""
        return float(2 * msg.m * msg.k * msg.n)

    # One product behind another -----------------------------------------------------------------------

    def receive(self, msg: Any) -> None:
        """Turn an array to a product, or let it wait for one; that which has its sum comes first."""
        chosen: MacArray | None = None
        for array in self._arrays:
            if array.open and (chosen is None or array.leaves_sum(msg, self._time.now)):
                chosen = array
                if array.leaves_sum(msg, self._time.now):
                    break
        if chosen is not None:
            self._turn_to(chosen, msg)
        else:
            self.queue.append(msg)

    def _turn_to(self, array: MacArray, msg: Any) -> None:
        """Begin a product, and appoint when its operands have entered and when its last result is out."""
        now, overlaps = self._time.now, self.overlaps
        self.begin(msg)
        on_sum = array.leaves_sum(msg, now)
        times = self._times(msg, _FACTORS if on_sum else None)
        array.open = False
        entry = self._entry(array, msg, times, on_sum)
        entered = entry + times.into
        alone = entry == msg.tail + self._start_up + times.load
        ends = msg.tail + times.alone if alone else entry + times.through
        drained = max(ends, entry + times.emptied)
        if getattr(msg, "part_of_sum", False):
            ends = entered
        array.entered, array.ends, array.one_fold = entered, ends, times.one_fold
        array.free, array.loadable = (entered, entry + times.last_fold) if overlaps else (drained, drained)
        array.sum, array.held = getattr(msg, "sum_after", None), self.stationary(msg) if times.load else None
        streams = min(times.streams, ends - entry)
        array.under_way[msg] = now, streams, min(times.own, streams) * times.unfilled
        if isinstance(getattr(msg, "op_id", None), tuple):
            self._ends[msg.op_id] = ends
        if ends != entered:
            self.env.call_at(ends, ArrayStep(array, msg), self._out)
        self.env.call_at(entered, ArrayStep(array, msg), self._in)

    def _entry(self, array: MacArray, msg: Any, times: _Times, on_sum: bool) -> float:
        """Return when the first operand of a product enters an array, in ns."""
        ready: float = msg.tail + self._start_up
        if self._ends and not on_sum:  # a sum that is on its way from another array, or with other products behind it
            ready = max(ready, self._ends.get(getattr(msg, "sum_before", None), 0.0))
        if not self.overlaps and self._joins(array, msg):
            return max(array.entered, ready)
        if not times.load:
            return max(array.free, ready)
        held = self.stationary(msg)
        there = held is not None and held == array.held and times.one_fold and array.one_fold
        if there and self.overlaps and ready <= array.free:
            return max(array.free, ready)
        return max(array.free, max(array.loadable, ready) + times.load)

    def _joins(self, array: MacArray, msg: Any) -> bool:
        """Whether a product goes on with the sum in the cells, without overlap, before that is shifted out."""
        times = self._times(msg, None)
        one_fold = times.one_fold and array.one_fold and not times.load
        in_time = msg.tail + self._start_up <= array.entered == self._time.now
        return one_fold and in_time and array.leaves_sum(msg, self._time.now)

    def _in(self, step: ArrayStep) -> None:
        """Go on when all operands of a product have entered: the array turns to the next one, or empties itself."""
        array, msg = step.array, step.msg
        if array.ends == array.entered:
            self._leave(array, msg)
        elif msg in array.under_way and hasattr(msg, "taken_in"):
            msg.taken_in()
        if self.overlaps or (self.queue and self._joins(array, self.queue[0])):
            self._next(array)
        else:
            self.env.call_at(array.free, step, self._emptied)

    def _out(self, step: ArrayStep) -> None:
        self._leave(step.array, step.msg)

    def _emptied(self, step: ArrayStep) -> None:
        self._next(step.array)

    def _next(self, array: MacArray) -> None:
        if self.queue:
            self._turn_to(array, self.pick(self.queue))
        else:
            array.open = True

    # Times ------------------------------------------------------------------------------------------

    def _times(self, msg: Any, operands: int | None) -> _Times:
        """Return the times of a product, if only the first `operands` come by the port from the scratchpad."""
        port = streamed_bytes(msg, operands) / self._port
        key = (msg.m, msg.k, msg.n, getattr(msg, "dtype_in", None), port)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._made(self.passage(msg), port)
        return found

    def _made(self, passage: Passage, port: float) -> _Times:
        clock, out = self._clock, passage.entering + passage.around
        return _Times(
            one_fold=passage.folds == 1,
            load=grid_ceil(passage.load / clock),
            last_fold=grid_ceil((passage.folds - 1) * passage.period / clock),
            streams=max(passage.folds * passage.stream / clock, port),
            own=passage.folds * passage.stream / clock,
            unfilled=1.0 - passage.filled,
            into=grid_ceil(max(passage.entering / clock, port)),
            through=grid_ceil(max((out - self.FIRST_CYCLE) / clock, port)),
            emptied=grid_ceil(max(out / clock, port)),
            alone=grid_ceil(self._overhead + max((passage.whole - self.FIRST_CYCLE) / clock, port)),
        )

    # What reports ask ---------------------------------------------------------------------------------

    def _leave(self, array: MacArray, msg: Any) -> None:
        """End a product, and count the time that its array has been busy since the last one that ended."""
        busy = array.busy_by(self._time.now)
        _, streamed, unfilled = array.under_way.pop(msg)
        array.counted = self._time.now
        if self._ends:
            self._ends.pop(getattr(msg, "op_id", None), None)
        self.end(msg, busy)
        self.filling_ns += busy - streamed
        self.unfilled_ns += unfilled

    def busy_by(self, time: float) -> float:
        """Return for how long, in ns, arrays were busy until `time`, together; services under way count so far."""
        return self.busy_ns + sum(array.busy_by(time) for array in self._arrays)


@frozen
class _Times:
    """Keep the times of a product in ns, on the grid.

    It takes `load` to load the cells; from when its first operand enters, its last fold begins to enter after
    `last_fold`, its operands are in after `into`, its last result is out after `through`, and the array is empty after
    `emptied`. Operands enter for `streams` of that, or for `own` if they need not wait for the port; meanwhile the
    share `unfilled` of the cells has no element. One that has the array for itself takes `alone` in all.
    """

    one_fold: bool
    load: float
    last_fold: float
    streams: float
    own: float
    unfilled: float
    into: float
    through: float
    emptied: float
    alone: float


class MacArray:
    """Keep what an array of cells is doing; times in ns.

    It is `open` when nothing stands before the next product. The last product's operands have `entered`, and its last
    result is there at `ends`; those of the next one may enter when it is `free`, and be loaded when it is `loadable`.
    `sum` and `held` are the sum that it leaves and its stationary operand; it may be `one_fold`. Of each product
    `under_way` are kept when it began, how long operands enter, and how much of that is lost to cells without an
    element; until `counted` its time is in its unit's.
    """

    __slots__ = ("counted", "ends", "entered", "free", "held", "loadable", "one_fold", "open", "sum", "under_way")

    def __init__(self) -> None:
        self.open = True
        self.entered = self.ends = self.free = self.loadable = self.counted = -math.inf
        self.one_fold = False
        self.sum: Hashable = None
        self.held: Hashable = None
        self.under_way: dict[MsgBase, tuple[float, float, float]] = {}

    def leaves_sum(self, msg: Any, now: float) -> bool:
        """Whether the last product makes the sum that `msg` is added to, and has not left for the scratchpad yet."""
        before = getattr(msg, "sum_before", None)
        return before is not None and before == self.sum and (now <= self.entered or now < self.ends)

    def busy_by(self, time: float) -> float:
        """Return for how long it was busy until `time` and has not been counted."""
        if not self.under_way:
            return 0.0
        since, _, _ = next(iter(self.under_way.values()))
        return max(0.0, time - max(since, self.counted))


class ArrayStep(MsgBase):
    """Be an appointment of an array with one of its products."""

    __slots__ = ("array", "msg")

    def __init__(self, array: MacArray, msg: MsgBase) -> None:
        super().__init__()
        self.array = array
        self.msg = msg

    @property
    def origin(self) -> MsgBase:
        """The product."""
        return self.msg
