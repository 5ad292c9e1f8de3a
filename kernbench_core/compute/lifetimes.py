"""How long results are kept: until their last reader is computed, unless memory holds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kernbench_core.compute.planned_op import PlannedOp
from kernbench_core.values.value import ResultValue


class Lifetimes:
    """Which results ops that are not computed still read, and which nobody reads and memory may hold.

    `held` gives the results that memory holds now. With `keep_all` nothing is dropped.
    """

    def __init__(self, held: Callable[[], Iterable[ResultValue]], keep_all: bool = False) -> None:
        self.held = held
        self.keep_all = keep_all
        #: How many bytes were set aside, of results that memory may hold.
        self.loose_bytes = 0
        self._readers: dict[ResultValue, int] = {}
        self._loose: dict[ResultValue, None] = {}

    def expect(self, op: PlannedOp) -> None:
        """Note that an op is to be computed."""
        readers = self._readers
        for result in op.needs:
            readers[result] = readers.get(result, 0) + 1

    def sweep(self, wanted: set[ResultValue]) -> set[ResultValue]:
        """Drop what was set aside and memory does not hold; return what memory holds, and `wanted`."""
        if self.keep_all:
            return wanted
        kept = wanted.union(self.held())
        for result in self._loose:
            if result not in kept and result not in self._readers:
                result.release()
        self._loose.clear()
        self.loose_bytes = 0
        return kept

    def finish(self, op: PlannedOp, wanted: set[ResultValue], kept: set[ResultValue] | None) -> None:
        """Drop what nobody reads any more now that an op is computed, or set it aside where `kept` is not known."""
        readers = self._readers
        if not op.done:
            op.done = True
            for result in op.needs:
                left = readers[result] - 1
                if left:
                    readers[result] = left
                else:
                    del readers[result]
                    self._drop(result, wanted, kept)
        if op.result not in readers:
            self._drop(op.result, wanted, kept)

    def _drop(self, result: ResultValue, wanted: set[ResultValue], kept: set[ResultValue] | None) -> None:
        if self.keep_all or result in wanted:
            return
        if kept is None:
            if result not in self._loose:
                self._loose[result] = None
                self.loose_bytes += result.nbytes
        elif result not in kept:
            result.release()
