"""tl.send, tl.recv and tl.recv_any over a toy that pairs messages by plain deques and takes no time for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernbench_core.errors import KernelError, PendingDataError
from tests.core.kernel.queue_rig import QueueRig


def test_a_message_is_its_value_by_reference() -> None:
    """Loaded data stays ready, so that it may be branched on; what phase 2 computes stays pending."""
    rig = QueueRig()
    x, y = rig.tensor(np.arange(8, dtype=np.float32)), rig.empty((8,))
    seen: list[float] = []

    def kernel(x: Any, y: Any, tl: Any) -> None:
        if tl.program_id(0) == 0:
            tile = tl.load(x, shape=(8,))
            tl.send(tile, 1)
            tl.send(tile * 2.0, 1)
            return
        ready = tl.recv((8,), tl.float32, 0)
        seen.append(ready[3])
        pending = tl.recv(8, "f32", 0)
        tl.store(y, pending + ready)
        with pytest.raises(PendingDataError):
            pending.numpy()

    rig.run(kernel, x, y)
    assert seen == [3.0]
    np.testing.assert_array_equal(rig.numpy(y), 3 * np.arange(8, dtype=np.float32))
    names = [record.op_name for record in rig.log]
    assert (names.count("ipcq_send"), names.count("ipcq_recv")) == (2, 2)


def test_the_bytes_may_be_taken_for_another_shape_and_dtype() -> None:
    """A message has bytes; the receiver says what they are."""
    rig = QueueRig()
    y = rig.empty((2, 2), "int32")

    def kernel(y: Any, tl: Any) -> None:
        if tl.program_id(0) == 0:
            tl.send(tl.full((4,), 1.0, "f32"), 1)
        else:
            tl.store(y, tl.recv((2, 2), "int32", 0))

    rig.run(kernel, y)
    np.testing.assert_array_equal(rig.numpy(y), np.full((2, 2), 0x3F800000))


def test_index_tensors_are_brought_into_the_scratchpad() -> None:
    """tl.arange is free until it is sent: then it takes a copy."""
    rig = QueueRig()
    y = rig.empty((8,), "int32")

    def kernel(y: Any, tl: Any) -> None:
        if tl.program_id(0) == 0:
            tl.send(tl.arange(0, 8) * 3, 1)
        else:
            tl.store(y, tl.recv((8,), "int32", 0))

    rig.run(kernel, y)
    np.testing.assert_array_equal(rig.numpy(y), 3 * np.arange(8))
    assert [record.op_name for record in rig.log][:2] == ["copy", "ipcq_send"]


def test_messages_under_way_are_waited_for_when_they_are_used() -> None:
    """A receipt with wait=False comes back at once; a send is waited for by its handle, or by the end."""
    rig = QueueRig()
    y = rig.empty((4,))
    times: list[float] = []

    def kernel(y: Any, tl: Any) -> None:
        me, env = tl.program_id(0), rig.env
        if me == 1:
            before = env.now
            got = tl.recv((4,), "f32", 0, wait=False)
            times.append(env.now - before)
            tl.store(y, got + 1.0)
        else:
            tile = tl.full((4,), 1.0, "f32")
            first = tl.send(tile, 1, wait=False)
            tl.wait(first)
            assert first.command is None

    rig.run(kernel, y)
    assert times == [1.0]  # the dispatch overhead
    np.testing.assert_array_equal(rig.numpy(y), np.full(4, 2.0))


def test_a_slot_goes_back_when_its_last_name_goes() -> None:
    """After tl.free, or with the next tile of the same name; views keep it."""
    rig = QueueRig()
    back: list[int] = []

    def kernel(tl: Any) -> None:
        if tl.program_id(0) == 0:
            for _ in range(3):
                tl.send(tl.full((4,), 1.0, "f32"), 1)
            return
        tile = tl.recv((4,), "f32", 0, copy=False)
        view = tile.reshape(2, 2)
        tile = tl.recv((4,), "f32", 0, copy=False)
        back.append(rig.returned)
        del view
        back.append(rig.returned)
        tl.free(tile)
        back.append(rig.returned)
        tile, source = tl.recv_any((4,), "f32", [0], copy=False)
        assert source == 0
        back.append(rig.returned)

    rig.run(kernel)
    assert [*back, rig.returned] == [0, 1, 2, 2, 3]


def test_recv_any_without_sources_means_all_others() -> None:
    """It names the sender as a number."""
    rig = QueueRig(3)
    got: list[int] = []

    def kernel(tl: Any) -> None:
        me = tl.program_id(0)
        if me == 1:
            for _ in range(2):
                got.append(tl.recv_any((1,), "f32")[1])
        else:
            tl.send(tl.full((1,), 0.0, "f32"), 1)

    rig.run(kernel)
    assert sorted(got) == [0, 2]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda tl: tl.send(3, 1), "must be given a tile, not int 3; make a tile of it with tl.full."),
        (lambda tl: tl.send([1], 1), "must be given a tile, not list [1]; make a tile of it with tl.full."),
        (lambda tl: tl.send(tl.full((1,), 0.0, "f32"), 0), "must name another PE, not 0, which is this one."),
        (
            lambda tl: tl.collective,
            "must be read in the kernel of a collective, and this launch is none; pass what the kernel needs as "
            "arguments.",
        ),
    ],
)
def test_what_cannot_be_is_told(call: Any, sentence: str) -> None:
    """With the kernel's line, and what to do."""
    rig = QueueRig()

    def kernel(tl: Any) -> None:
        if tl.program_id(0) == 0:
            call(tl)

    with pytest.raises(KernelError) as caught:
        rig.run(kernel)
    assert str(caught.value).splitlines()[0].endswith(sentence)
    assert f"{__file__}:" in str(caught.value).splitlines()[0]
