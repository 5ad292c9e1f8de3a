"""What computes floats: numpy by itself, or what is given."""

from __future__ import annotations

import numpy as np
import pytest

from kernbench_core.compute.backends import Backend
from kernbench_core.compute.executor import DataExecutor
from kernbench_core.compute.ops import MathOp
from kernbench_core.compute.ops.record import MathFunction
from kernbench_core.errors import UsageError
from kernbench_core.values.arrays import Array
from tests.core.compute.recorder import Recorder, graph


@pytest.mark.parametrize(("elements", "multiplications", "own"), [(0, 0, 8), (129, 0, 5), (0, 513, 3), (65, 513, 1)])
def test_what_is_too_little_for_a_backend_is_numpys(elements: int, multiplications: int, own: int) -> None:
    """Five products of 8 x 8 x 8 take 512 multiplications; `sub` has 128 elements, `exp` and `sum` have 64."""
    record, asked = Recorder(), []

    class Picky(Backend):
        name = "picky"
        worth_elements, worth_multiplications = elements, multiplications

        def product(self, a: Array, b: Array) -> Array:
            asked.append("product")
            return super().product(a, b)

        def function(self, op: MathOp) -> MathFunction | None:
            return lambda params, *arrays: asked.append(op.name) or op.function(params, *arrays)

    made = graph(record)
    record.executor(keep_all=True).run()
    other = record.executor(inputs={}, keep_all=True, backend=Picky())
    for value in made:
        np.testing.assert_array_equal(other.materialize(value), value.array())
    found = other.computed_by
    assert found is not None
    assert found.ops - found.by_numpy == own
    assert ("product" in asked) == (multiplications <= 512)
    assert {"sub", "exp", "sum"} & {*asked} == {
        name for name, size in (("sub", 128), ("exp", 64), ("sum", 64)) if size >= elements
    }


def test_numpy_says_that_it_computed() -> None:
    """And what computed nothing says nothing."""
    record = Recorder()
    graph(record)
    executor = record.executor()
    assert executor.computed_by is None
    executor.run()
    found = executor.computed_by
    assert found is not None
    assert (found.backend, found.device, found.ops, found.by_numpy) == ("numpy", "CPU", 11, 11)
    assert found.library == f"numpy {np.__version__}"


def test_a_name_is_no_backend() -> None:
    """The executor knows no plug-ins, and says who looks a name up."""
    with pytest.raises(UsageError) as caught:
        DataExecutor(Recorder().log, Recorder().store, backend="torch")  # type: ignore[arg-type]
    assert str(caught.value) == (
        "backend of DataExecutor must be a Backend, not 'torch'; open_backend(plugins, 'torch') of kernbench_core.runs "
        "returns one by its name."
    )
