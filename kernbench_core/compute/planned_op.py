"""An op that phase 2 is to compute."""

from __future__ import annotations

from kernbench_core.compute.kinds import Kind
from kernbench_core.oplog.log import OpRecord
from kernbench_core.values.value import ResultValue, Value


class PlannedOp:
    """An op to compute: where its record is, the values it reads, and the results that these are made of.

    `number` is that of its kind, -1 of one that is like no others; `kind` is there once it is computed. The last walk
    over ops that met it is `walk`, for which it `waits` for so many results.
    """

    # no attrs class, for speed: every op of a log is one
    __slots__ = (
        "done", "inputs", "kind", "nbytes", "needs", "number", "record", "result", "row", "t_start", "waits", "walk",
    )  # fmt: skip

    def __init__(
        self,
        row: int,
        t_start: float,
        result: ResultValue,
        inputs: tuple[Value, ...],
        record: OpRecord | None = None,
        done: bool = False,
        number: int = -1,
    ) -> None:
        self.row = row
        self.t_start = t_start
        self.result = result
        #: Bytes of the result.
        self.nbytes = result.nbytes
        self.inputs = inputs
        self.record = record
        self.done = done
        self.number = number
        self.kind: Kind | None = None
        self.walk = -1
        self.waits = 0
        found: list[ResultValue] = []
        for value in inputs:
            found += value.results()
        #: The results that the op reads, each once.
        self.needs = tuple(found) if len(found) < 2 else tuple(dict.fromkeys(found))
