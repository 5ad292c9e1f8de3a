"""The same ops on other inputs: what phase 2 computes follows them, and what phase 1 decided is refused."""

from __future__ import annotations

import numpy as np
import pytest

from kernbench_core.compute.executor import DataExecutor
from kernbench_core.compute.substitution import Substitution
from kernbench_core.errors import ExecutionError
from kernbench_core.oplog.description import Access, OpDescription
from kernbench_core.oplog.log import OpLog
from kernbench_core.values.memory_store import MemoryStore
from kernbench_core.values.region import Region
from kernbench_core.values.value import ArrayValue, AssemblyValue, LoadedValue, Part, ResultValue
from kernbench_core.values.views import view_of
from tests.core.arrays import adopt


class Program:
    """Write a log as a run does: ops on values, their results stored to memory."""

    def __init__(self):
        self.log, self.store, self.count = OpLog(), MemoryStore(), 0

    def add(self, a, b):
        op_id = (0, self.count)
        self.count += 1
        result = ResultValue(op_id, a.shape, a.dtype)
        reads = tuple(Access("tcm", (Region(1 << 30, v.nbytes),), v) for v in (a, b))
        writes = Access("tcm", (Region((2 << 30) + (self.count << 20), result.nbytes),), result)
        params = {"op": "add", "dtype": a.dtype, "shape_out": a.shape}
        described = OpDescription("math", "add", params, reads, writes, op_id)
        self.log.append(float(self.count), self.count + 0.5, "unit", described)
        return result

    def executor(self, **options):
        return DataExecutor(self.log, self.store, **options)


def f32(*numbers):
    return np.array(numbers, np.float32)


def test_the_same_ops_are_computed_on_other_inputs_and_the_first_results_stay():
    """Two executors of one log, one with other inputs, do not see each other's data."""
    program = Program()
    a, b = adopt(f32(1, 2)), adopt(f32(10, 20))
    first = program.add(a, b)
    second = program.add(first, a)
    plain, other = program.executor(), program.executor(inputs={a: f32(5, 6)})
    assert plain.materialize(second).tolist() == [12, 24]
    assert other.materialize(second).tolist() == [20, 32]
    assert other.materialize(first).tolist() == [15, 26]
    assert plain.materialize(second).tolist() == [12, 24]
    assert other.computed == 2


def test_loads_views_and_assemblies_of_an_input_follow_it():
    """However a kernel cut and joined what it loaded, its data is that of the new inputs."""
    program = Program()
    whole = adopt(f32(0, 1, 2, 3))
    tail = view_of(whole, Region(8, 8), (2,), "f32")
    joined = AssemblyValue(
        (2,), "f32", (Part(Region(0, 4), whole, Region(12, 4)), Part(Region(4, 4), whole, Region(0, 4)))
    )
    loaded = LoadedValue((2,), "f32", joined)
    result = program.add(LoadedValue((2,), "f32", tail), loaded)
    other = program.executor(inputs={whole: f32(10, 20, 30, 40)})
    assert program.executor().materialize(result).tolist() == [2 + 3, 3 + 0]
    assert other.materialize(result).tolist() == [30 + 40, 40 + 10]
    assert other.materialize(loaded).tolist() == [40, 10]


def test_run_keeps_what_memory_holds_under_other_inputs():
    """A whole run with other inputs leaves the results that memory holds, computed."""
    program = Program()
    a = adopt(f32(1, 2))
    result = program.add(program.add(a, a), a)
    program.store.write("hbm", Region(0, 8), result)
    other = program.executor(inputs={a: f32(3, 4)})
    other.run()
    assert other.computed == 2
    assert other.materialize(program.store.value("hbm", Region(0, 8), (2,), "f32")).tolist() == [9, 12]
    assert other.computed == 2
    assert result.pending


def test_values_without_a_replaced_input_are_themselves():
    """Nothing is copied that does not depend on what was replaced."""
    a, b = adopt(f32(1, 2)), adopt(f32(3))
    other = Substitution({b: f32(9)})
    assembly = AssemblyValue((2,), "f32", (Part(Region(0, 4), a, Region(0, 4)), Part(Region(4, 4), a, Region(4, 4))))
    assert other.of(a) is a
    assert other.of(assembly) is assembly
    assert other.of(b) is other.of(b) is not b


def test_data_of_another_shape_or_dtype_is_refused():
    """The array in the place of another has its shape and dtype."""
    a = adopt(f32(1, 2))
    with pytest.raises(ExecutionError) as caught:
        Substitution({a: np.array([1.0, 2.0, 3.0])})
    assert str(caught.value) == (
        "Data in the place of f32[2] must have that shape and dtype, not float64[3]; give an array like the first one."
    )


def test_what_a_kernel_computed_while_it_ran_cannot_follow():
    """An integer result that phase 1 computed would be stale: the executor says so."""
    program = Program()
    a = adopt(np.array([1, 2], np.int32))
    eager = ArrayValue(np.array([2, 4], np.int32), writer=(3, 7))
    result = program.add(a, eager)
    with pytest.raises(ExecutionError) as caught:
        program.executor(inputs={a: np.array([5, 6], np.int32)}).materialize(result)
    assert str(caught.value) == (
        "The result of op 7 of PE 3 was computed while its kernel ran, and cannot follow other inputs; simulate again "
        "with them."
    )


def test_single_ops_are_compared_on_the_data_of_the_run_only():
    """The debug mode reads the records, which know nothing of other inputs."""
    program = Program()
    a = adopt(f32(1, 2))
    program.add(a, a)
    with pytest.raises(ExecutionError) as caught:
        program.executor(inputs={a: f32(3, 4)}, keep_all=True).visit(None)
    assert str(caught.value) == "Comparing single ops must be done on the data of the run; leave inputs out."
