"""Ops of plug-ins: sent to the unit that the kernel names, logged, computed by the registered function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernbench_core.compute.executor import DataExecutor
from kernbench_core.errors import PendingDataError, ShapeError
from tests.core import kernel_rig
from tests.core.kernel_rig import Rig

X = np.arange(8, dtype=np.float32)


def twice_and(params: dict[str, Any], inputs: list[np.ndarray], *, factor: float = 1.0) -> np.ndarray:
    """Compute factor * x + y."""
    return (factor * inputs[0] + inputs[1]).astype(np.float32)


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    """A PE with one more unit, which takes 7 ns for everything."""
    monkeypatch.setitem(kernel_rig.UNIT_NS, "pe_sfu", 7.0)
    return Rig(overhead=0.0)


def test_a_units_op_is_timed_logged_and_computed_by_its_function(rig: Rig) -> None:
    """The command goes to the unit of the kind that was named; parameters reach the function through the log."""

    def kernel(x: Any, y: Any, tl: Any) -> None:
        loaded = tl.load(x + tl.arange(0, 8))
        tl.store(y + tl.arange(0, 8), tl.unit_op("pe_sfu", "twice_and", loaded, 1.0, factor=2.0))

    y = rig.empty((8,))
    assert rig.run(kernel, rig.tensor(X), y) == 100.0 + 7.0 + 100.0
    assert [command.serves for command in rig.cpus[0].sent] == ["pe_dma", "pe_sfu", "pe_dma"]
    record = next(record for record in rig.log if record.op_name == "twice_and")
    assert (record.op_kind, record.component_id, record.params["factor"]) == ("math", "sip0.cube0.pe0.pe_sfu", 2.0)
    store, functions = rig.store, {"twice_and": f"{__name__}:twice_and"}
    value = store.value("hbm", y.regions, (8,), "f32")
    assert DataExecutor(rig.log, store, functions).materialize(value).tolist() == (2 * X + 1).tolist()


def test_its_result_has_the_shape_and_dtype_that_are_asked_for(rig: Rig) -> None:
    """By default those of the first tensor; the result is pending, and with wait=False still on its way."""
    seen: list[Any] = []

    def kernel(x: Any, tl: Any) -> None:
        loaded = tl.load(x + tl.arange(0, 8))
        plain = tl.unit_op("pe_sfu", "twice_and", 3, loaded)
        other = tl.unit_op("pe_sfu", "twice_and", loaded, shape=(2,), dtype=tl.float16, wait=False)
        seen.extend([plain.shape, plain.dtype, other.shape, other.dtype])
        tl.wait(other)
        if plain[0] > 0:
            seen.append("branched")

    with pytest.raises(PendingDataError):
        rig.run(kernel, rig.tensor(X))
    assert seen == [(8,), "f32", (2,), "f16"]


def test_a_unit_op_needs_a_tensor(rig: Rig) -> None:
    """Numbers alone say nothing of a shape."""

    def kernel(tl: Any) -> None:
        tl.unit_op("pe_sfu", "twice_and", 1.0)

    with pytest.raises(ShapeError) as caught:
        rig.run(kernel)
    line = kernel.__code__.co_firstlineno + 1
    assert str(caught.value).splitlines()[0] == (
        f"tl.unit_op at {__file__}:{line} must be given at least one tensor; load it, or make it with tl.full."
    )
