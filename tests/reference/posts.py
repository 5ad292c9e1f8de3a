"""`rt` of the reference interpreter: launches run one program after another.

A program runs until it ends or waits for a message that nobody has sent yet; then the next one has its turn.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.reference import numerics as num
from tests.reference.interpreter import Tl
from tests.reference.numerics import Array
from tests.reference.tiles import Buffer, Local, Pointer, Tile


class Post:
    """Messages between the programs of a launch, and whose turn it is to run."""

    def __init__(self) -> None:
        self._queues: dict[tuple[int, int], deque[Tile]] = {}
        self._turns: dict[threading.Thread, threading.Semaphore] = {}
        self._back = threading.Semaphore(0)
        self._moves = 0  # messages sent and taken, programs ended
        self._ended: set[threading.Thread] = set()
        self._error: BaseException | None = None

    def send(self, source: int, to: int, tile: Tile) -> None:
        """Put a message into a queue."""
        self._queues.setdefault((source, to), deque()).append(tile)
        self._moves += 1

    def take(self, sources: Sequence[int], to: int) -> tuple[Tile, int]:
        """Give the next message of the first of some queues that has one, and whose; let others run until there is."""
        while not (waiting := [source for source in sources if self._queues.get((source, to))]):
            self._back.release()
            self._turns[threading.current_thread()].acquire()
            if self._error is not None:
                raise RuntimeError("another program has failed")
        self._moves += 1
        return self._queues[waiting[0], to].popleft(), waiting[0]

    def run(self, programs: Sequence[Callable[[], None]]) -> None:
        """Run programs in turns; raise what the first of them to fail raises."""
        left = [threading.Thread(target=self._program, args=(program,), daemon=True) for program in programs]
        for thread in left:
            self._turns[thread] = threading.Semaphore(0)
            thread.start()
        while left:
            before = self._moves
            for thread in left:
                self._turns[thread].release()
                self._back.acquire()
            left = [thread for thread in left if thread not in self._ended]
            if self._moves == before and self._error is None:
                self._error = RuntimeError("every program waits for a message")
        if self._error is not None:
            raise self._error
        if any(self._queues.values()):
            raise RuntimeError("a message was not received")

    def _program(self, program: Callable[[], None]) -> None:
        self._turns[threading.current_thread()].acquire()
        try:
            if self._error is None:
                program()
        except BaseException as error:
            self._error = self._error or error
        self._moves += 1
        self._ended.add(threading.current_thread())
        self._back.release()


class Runtime:
    """`rt` of a bench: tensors in memory and launches, whatever the machine."""

    language = Tl

    def __init__(self, n_pes: int, seed: int = 0) -> None:
        self.n_pes, self.rng = n_pes, np.random.default_rng(seed)
        self.tensors: dict[str, Buffer] = {}

    def tensor(self, source: Array, dtype: Any = None, name: str = "", placement: Any = None) -> Buffer:
        kind = num.dtype_of(dtype) if dtype is not None else source.dtype
        self.tensors[name] = Buffer(source.shape, kind, num.cast(source, kind))
        return self.tensors[name]

    def zeros(self, shape: Sequence[int], dtype: Any = "f32", name: str = "", placement: Any = None) -> Buffer:
        return self.tensor(np.zeros(shape, np.float32), dtype, name)

    def empty(self, shape: Sequence[int], dtype: Any = "f32", name: str = "", placement: Any = None) -> Buffer:
        self.tensors[name] = Buffer(shape, num.dtype_of(dtype), None)
        return self.tensors[name]

    def launch(self, kernel: Callable[..., None], *args: Any, grid: Sequence[int] | None = None, **how: Any) -> None:
        extents = (self.n_pes,) if grid is None else tuple(grid)
        extents = (*extents, 1, 1)[:3]
        post = Post()
        places = [place[::-1] for place in itertools.product(*map(range, extents[::-1]))]
        tls = [self.language(place, extents, post) for place in places]
        post.run([self._bound(kernel, self._given(args, tl._program[0]), tl) for tl in tls])
        for buffer in self.tensors.values():
            buffer.pending[:] = False

    def _given(self, args: Sequence[Any], pe: int) -> list[Any]:
        """Give the arguments as a program gets them: pointers in place of tensors, or of a PE's own part of one."""
        tensors = [arg.whole.part(pe, self.n_pes) if isinstance(arg, Local) else arg for arg in args]
        return [Pointer(each, np.asarray(0)) if isinstance(each, Buffer) else each for each in tensors]

    @staticmethod
    def _bound(kernel: Callable[..., None], args: list[Any], tl: Tl) -> Callable[[], None]:
        return lambda: kernel(*args, tl=tl)

    def check(self, tensor: Buffer, expected: Any, rtol: float | None = None, atol: float | None = None) -> None:
        pass

    def wait_all(self) -> None:
        pass
