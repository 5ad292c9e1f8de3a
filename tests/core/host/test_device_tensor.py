"""Tensors in device memory as the host sees them, on a bare memory and store: what is put together equals numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernbench_core.errors import NoDataError, UninitializedReadError, UsageError
from kernbench_core.host.device_tensor import DeviceTensor, cell_of
from kernbench_core.memory.device_memory import DeviceMemory
from kernbench_core.memory.placement import Interleave, Placements, Replicate, Shard
from kernbench_core.values.memory_store import MemoryStore
from kernbench_core.values.region import Region
from kernbench_core.values.value import ArrayValue, Value
from tests.core.kernel_rig import design

X = np.arange(8 * 8, dtype=np.int32).reshape(8, 8)


class Holder:
    """Be the host program that makes tensors on four PEs; it waits for nothing."""

    def __init__(self, data: bool = True) -> None:
        self.data = data
        self.store = MemoryStore(data)
        self.design = design(4)
        self.memory = DeviceMemory(self.design)
        self.settled: list[str] = []

    def require_live(self, tensor: DeviceTensor) -> None:
        self.memory.require_live(tensor.allocation)

    def require_unchanged(self, tensor: DeviceTensor) -> None:
        pass

    def settle(self, tensor: DeviceTensor) -> None:
        self.settled.append(tensor.name)

    def materialize(self, value: Value) -> Any:
        return value.array()

    def tensor(self, array: Any = X, placement: Placements | None = None, *, written: bool = True) -> DeviceTensor:
        """Place an array; write every copy of it."""
        allocation = self.memory.allocate(array.shape, "int32", "x", self.design.pes, placement)
        if written:
            for held in allocation.segments:
                assert allocation.layout is not None
                cell = np.ascontiguousarray(cell_of(array, allocation.layout, held.cell))
                self.store.write("hbm", Region(held.pa, held.nbytes), ArrayValue(cell))
        return DeviceTensor(self, allocation)


PLACEMENTS: dict[str, Placements | None] = {
    "rows dealt": None,
    "rows": {"pe": Shard(0)},
    "columns": {"pe": Shard(1)},
    "interleaved": {"pe": Interleave(24)},
    "replicated": {"pe": Replicate()},
}


@pytest.mark.parametrize("placement", PLACEMENTS.values(), ids=PLACEMENTS)
def test_a_tensor_is_what_was_put_into_its_shards(placement: Placements | None) -> None:
    """Whole, any rows of it, and each copy; reading waits for what runs with it."""
    holder = Holder()
    x = holder.tensor(placement=placement)
    assert np.array_equal(x.numpy(), X)
    assert np.array_equal(x[2:7][1:3].numpy(), X[3:5])
    assert holder.settled == ["x", "x"]
    assert all(np.array_equal(x.numpy(copy), X) for copy in range(x.replicas))
    assert x.replicas == (4 if placement == {"pe": Replicate()} else 1)
    for shard in x.shards:
        assert x.local_shape(shard.pe) == shard.shape
        if shard.index is not None:
            assert X[shard.index].shape == shard.shape


def test_copies_that_hold_the_very_same_are_one() -> None:
    """One that was changed is another value."""
    holder = Holder()
    x = holder.tensor(placement={"pe": Replicate()})
    same = ArrayValue(X.copy())
    for held in x.allocation.segments:
        holder.store.write("hbm", Region(held.pa, held.nbytes), same)
    assert list(x.distinct()) == [0]
    holder.store.write("hbm", Region(x.allocation.segments[2].pa, X.nbytes), ArrayValue(X + 1))
    found = x.distinct()
    assert list(found) == [0, 2]
    assert np.array_equal(found[2].array(), X + 1)


def test_what_is_not_there_is_said() -> None:
    """Parts that nobody wrote, PEs without a shard, copies, rows and runs without data."""
    holder = Holder()
    written, empty = holder.tensor(), holder.tensor(written=False)
    cases: dict[str, tuple[type[Exception], Any]] = {
        "tensor 'x' must be written before the host reads it, and its element [0, 0] was not; store to it in a "
        "kernel, or make it with rt.zeros.": (UninitializedReadError, empty.numpy),
        "tensor 'x[1:3]' must be written before the host reads it, and element [1, 0] of 'x' was not; store to it "
        "in a kernel, or make it with rt.zeros.": (UninitializedReadError, empty[1:3].numpy),
        "tensor 'x' has shards on PEs 0 to 3, not on PE 7; ask for one of these.": (
            UsageError, lambda: written.local_shape(7),
        ),
        "tensor 'x' has 1 copies, and no copy 1; count from 0.": (UsageError, lambda: written.numpy(1)),
        "tensor 'x' of shape [8, 8] must be indexed by a slice of at least one row, as in [0:1], not by [5:2]; read "
        "elements from numpy().": (UsageError, lambda: written[5:2]),
        "x[2:5] is a part of tensor 'x': only numpy() and dist calls accept parts; give the whole tensor, and add 16 "
        "to its pointer in the kernel.": (UsageError, lambda: written[2:5].regions),
        "tensor 'x' has no data in a run that keeps shapes only; leave out --no-data to read it.": (
            NoDataError, Holder(data=False).tensor(written=False).numpy,
        ),
    }  # fmt: skip
    for sentence, (kind, ask) in cases.items():
        with pytest.raises(kind) as caught:
            ask()
        assert str(caught.value) == sentence


def test_what_has_to_be_finished_first_is_finished_once() -> None:
    """When the tensor is used; what could not be finished is tried again."""
    x = Holder().tensor()
    tried: list[str] = []

    def finish() -> None:
        tried.append("finish")
        if len(tried) == 1:
            raise ValueError("not yet")

    x.before_use(finish)
    with pytest.raises(ValueError, match="not yet"):
        _ = x.regions
    assert np.array_equal(x.numpy(), X)
    assert tried == ["finish", "finish"]


@pytest.mark.parametrize("data", [0, 0.0, True, np.float32(0), X, [1, 2]], ids=repr)
def test_data_is_no_tensor(data: object) -> None:
    """Comparing it with a tensor would be false whatever the tensor holds; other things are other tensors, or none."""
    x, y = Holder().tensor(), Holder().tensor()
    for compare in (lambda: x == data, lambda: x != data, lambda: data == x):
        with pytest.raises(UsageError) as caught:
            compare()
        assert str(caught.value) == (
            "tensor 'x' must be compared by its data; write x.numpy() == …, or use rt.check."
        )
    assert x == x and x != y and x in (y, x) and {x: 1}[x] == 1
    assert x is not None and x != "x"


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_snapshot_is_what_the_tensor_held_then(placement: str) -> None:
    """It waits when it is made; what is written after that does not show, and before there is nothing to hold."""
    holder = Holder()
    tensor = holder.tensor(placement=PLACEMENTS[placement])
    held = tensor.snapshot()
    assert holder.settled == ["x"]
    for segment in tensor.allocation.segments:
        zeros = ArrayValue(np.zeros(segment.nbytes // 4, np.int32))
        holder.store.write("hbm", Region(segment.pa, segment.nbytes), zeros)
    assert (held() == X).all() and not tensor.numpy().any()
    with pytest.raises(UninitializedReadError):
        holder.tensor(written=False).snapshot()


def test_a_snapshot_without_data_says_so_when_it_is_looked_at() -> None:
    held = Holder(data=False).tensor(written=False).snapshot()
    with pytest.raises(NoDataError) as caught:
        held()
    assert str(caught.value) == (
        "tensor 'x' has no data in a run that keeps shapes only; leave out --no-data to read it."
    )
