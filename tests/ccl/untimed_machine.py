"""A naive stand-in for the simulator: kernels of a collective over plain numpy, with no time and no queues of ours.

Every program is a greenlet. A message is handed over when it is received, never before: a send is complete when the
other side took it, which is stricter than any queue of the machine, so that what runs here needs no queue space.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from greenlet import getcurrent, greenlet

from kernbench_ccl.catalogue import Algorithm
from kernbench_ccl.contract import Collective, KernelContext
from kernbench_core.values.dtypes import cast, numpy_dtype


class Stuck(Exception):
    """Nobody can go on; it says who waits where."""


class Ptr:
    """An element of a flat array."""

    def __init__(self, array: np.ndarray[Any, Any], at: int = 0) -> None:
        self.array, self.at = array, at

    def __add__(self, offset: int) -> Ptr:
        return Ptr(self.array, self.at + offset)


class Tile:
    """A value of the scratchpad; `source` is the receive that it waits for, if any."""

    def __init__(self, tl: Tl, values: Any, pending: Any = None) -> None:
        self.tl, self._values, self.pending = tl, values, pending

    @property
    def values(self) -> np.ndarray[Any, Any]:
        if self.pending is not None:
            self._values, self.pending = self.tl.take(*self.pending), None
        return self._values

    def _with(self, function: Any, other: Any) -> Tile:
        operand = other.values if isinstance(other, Tile) else other
        with np.errstate(all="ignore"):
            return Tile(self.tl, function(self.values, operand))

    def __add__(self, other: Any) -> Tile:
        return self._with(lambda a, b: np.add(a, b, dtype=a.dtype), other)

    def __mul__(self, other: Any) -> Tile:
        return self._with(lambda a, b: np.multiply(a, b, dtype=a.dtype), other)

    def __truediv__(self, other: Any) -> Tile:
        wide = np.float64 if self.values.dtype == np.float64 else np.float32
        return self._with(lambda a, b: a.astype(wide) / wide(b), other)


class Send:
    """A message on its way; it is complete when it was taken."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.values, self.taken = values, False


class Tl:
    """The part of the kernel language that collectives use."""

    def __init__(self, machine: Machine, rank: int, pe: int, collective: Collective) -> None:
        self._machine, self._rank, self._pe, self.collective = machine, rank, pe, collective
        self._asked: dict[tuple[int, int], deque[Tile]] = {}

    def load(self, ptr: Ptr, *, shape: tuple[int], wait: bool = True) -> Tile:
        (length,) = shape
        assert length > 0 and ptr.at >= 0 and ptr.at + length <= ptr.array.size, (ptr.at, length, ptr.array.size)
        return Tile(self, ptr.array[ptr.at : ptr.at + length].copy())

    def store(self, ptr: Ptr, tile: Tile) -> None:
        values = tile.values
        assert values.size > 0 and ptr.at >= 0 and ptr.at + values.size <= ptr.array.size
        assert values.dtype == ptr.array.dtype
        ptr.array[ptr.at : ptr.at + values.size] = values

    def zeros(self, shape: tuple[int], dtype: str) -> Tile:
        return Tile(self, np.zeros(shape, numpy_dtype(dtype)))

    def maximum(self, a: Tile, b: Tile) -> Tile:
        return a._with(np.maximum, b)

    def minimum(self, a: Tile, b: Tile) -> Tile:
        return a._with(np.minimum, b)

    def cast(self, x: Tile, dtype: str) -> Tile:
        return Tile(self, cast(x.values, dtype))

    def send(self, tile: Tile, to: Any, *, wait: bool = True) -> Send:
        sent = Send(tile.values)
        self._machine.queue((self._rank, self._pe), self._peer(to)).append(sent)
        self._machine.events += 1
        if wait:
            self.wait(sent)
        return sent

    def wait(self, sent: Send | Tile) -> None:
        if isinstance(sent, Tile):
            _ = sent.values
            return
        self._machine.until(lambda: sent.taken, f"rank {self._rank} PE {self._pe} sends")

    def recv(self, shape: tuple[int], dtype: str, source: Any, *, wait: bool = True) -> Tile:
        sender = self._peer(source)
        tile = Tile(self, None, (sender, shape, dtype))
        self._asked.setdefault(sender, deque()).append(tile)
        if wait:
            _ = tile.values
        return tile

    def take(self, sender: tuple[int, int], shape: tuple[int], dtype: str) -> np.ndarray[Any, Any]:
        """Receive what the oldest receive from a sender asked for; receives are used in the order they were asked."""
        queue = self._machine.queue(sender, (self._rank, self._pe))
        self._machine.until(lambda: bool(queue), f"rank {self._rank} PE {self._pe} receives from {sender}")
        sent = queue.popleft()
        sent.taken = True
        self._machine.events += 1
        oldest = self._asked[sender].popleft()
        assert oldest.pending == (sender, shape, dtype), "receives are used out of order"
        assert sent.values.shape == tuple(shape) and sent.values.dtype == numpy_dtype(dtype), (sent.values.shape, shape)
        return sent.values

    def _peer(self, to: Any) -> tuple[int, int]:
        peer = to if isinstance(to, tuple) else (to, self._pe)
        assert peer in self._machine.places and peer != (self._rank, self._pe), peer
        return peer


class Machine:
    """All programs of one collective."""

    def __init__(self, places: Sequence[tuple[int, int]]) -> None:
        self.places = set(places)
        self._queues: dict[Any, deque[Send]] = {}
        self.events = 0

    def queue(self, sender: tuple[int, int], receiver: tuple[int, int]) -> deque[Send]:
        """Give a queue to somebody who will send, or who may receive."""
        return self._queues.setdefault((sender, receiver), deque())

    def until(self, condition: Any, why: str) -> None:
        """Let others run until the condition holds."""
        while not condition():
            getcurrent().parent.switch(why)

    def run(self, programs: Sequence[Any]) -> None:
        waiting = [(greenlet(program), "") for program in programs]
        while waiting:
            before = self.events
            left = []
            for program, _ in waiting:
                why = program.switch()
                if not program.dead:
                    left.append((program, why))
            if len(left) == len(waiting) and before == self.events:
                raise Stuck("; ".join(str(why) for _, why in left))
            waiting = left
        assert not any(self._queues.values()), "messages that nobody received"


def run_collective(
    algorithm: Algorithm,
    collective: Collective,
    count: int,
    n_pe: int,
    inputs: Mapping[int, np.ndarray[Any, Any]],
    outputs: Mapping[int, np.ndarray[Any, Any]],
    offsets: tuple[Mapping[int, int], Mapping[int, int]] = ({}, {}),
) -> None:
    """Run a collective whose rank r reads `inputs[r]` and writes `outputs[r]`, which may be the same array."""
    world = collective.world
    machine = Machine([(rank, pe) for rank in range(world) for pe in range(n_pe)])
    need = algorithm.scratch_count(count, world)
    programs = []
    for rank in range(world):
        scratch = Ptr(np.zeros(need, numpy_dtype(collective.dtype))) if need else None
        for pe in range(n_pe):
            pointers = (
                Ptr(inputs[rank], offsets[0].get(rank, 0)) if rank in inputs else None,
                Ptr(outputs[rank], offsets[1].get(rank, 0)) if rank in outputs else None,
                scratch,
            )
            kind = algorithm.kind_of(collective.network)
            ctx = KernelContext(*pointers, count, rank, world, pe, n_pe, kind, collective)
            tl = Tl(machine, rank, pe, collective)
            programs.append(lambda ctx=ctx, tl=tl: algorithm.kernel(*algorithm.kernel_args(ctx), tl))
    machine.run(programs)
