"""An op that phase 2 is to compute."""

from __future__ import annotations

from attrs import define

from kernbench_core.oplog.log import OpRecord
from kernbench_core.values.value import ResultValue, Value


@define(eq=False)
class PlannedOp:
    """An op to compute: where its record is, the values it reads, and the results that these are made of."""

    row: int
    t_start: float
    result: ResultValue
    inputs: tuple[Value, ...]
    record: OpRecord | None = None
    done: bool = False
    needs: tuple[ResultValue, ...] | None = None

    def reads(self) -> tuple[ResultValue, ...]:
        """Return the results that the op reads, each once."""
        if self.needs is None:
            self.needs = tuple(dict.fromkeys(r for value in self.inputs for r in value.results()))
        return self.needs
