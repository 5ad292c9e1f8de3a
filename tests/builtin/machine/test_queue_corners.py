"""Corners of the queues: pieces that overtake others, empty messages, shapes and peers that are none."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_core.errors import ConfigError, DeadlockError, KernbenchWarning, KernelError, ShapeError
from kernbench_core.plugins import load_plugins


def run(kernel: Callable[..., Any], *given: str, topology: str = "tiny") -> kb.RunResult:
    """Run a kernel without arguments on every PE."""
    return kb.run(lambda rt: rt.launch(kernel), topology, set=given)


def test_recv_any_is_woken_by_what_waited_for_a_slower_piece() -> None:
    """Of two pieces that arrive in the wrong order, one is for a receipt before, the other for whoever waits."""
    got: list[tuple[int, ...]] = []

    def kernel(tl: Any) -> None:
        if tl.program_id(0) == 0:
            tl.send(tl.full((64,), 1.0, "f32"), 1, wait=False)
            tl.send(tl.full((16,), 2.0, "f32"), 1, wait=False)
        elif tl.program_id(0) == 1:
            first = tl.recv((64,), "f32", 0, wait=False)
            second, source = tl.recv_any((16,), "f32", [0, 2])
            tl.wait(first)
            got.append((*second.shape, source))

    slow = "components.hbm_ctrl.params.efficiency=0.02"  # a slot is in one channel: the small message is there first
    run(kernel, "components.pe_ipcq.params.tier=hbm", "components.pe_ipcq.params.slot_bytes=256 B", slow)
    assert got == [(16, 0)]


def test_an_empty_message_may_be_received_in_its_slot() -> None:
    """The slot is lent and goes back as any other: more messages than slots get through."""
    got = []

    def kernel(tl: Any) -> None:
        for _ in range(9):
            if tl.program_id(0) == 0:
                tl.send(tl.full((0,), 1.0, "f32"), 1)
            elif tl.program_id(0) == 1:
                got.append(tl.recv((0,), "f32", 0, copy=False).shape)

    run(kernel)
    assert got == [(0,)] * 9


def test_a_received_number_may_be_a_shape_and_numpy_numbers_may_be_peers() -> None:
    """What a PE sends is ready where it was ready, and whole numbers of every kind are numbers."""
    got = []

    def kernel(tl: Any) -> None:
        if tl.program_id(0) == 0:
            tl.send(tl.full((), 5, "i32"), np.int64(1))
            tl.send(tl.full((5,), 5.0, "f32"), (np.int32(1), 0))
        elif tl.program_id(0) == 1:
            count = tl.recv((), "i32", np.int64(0), wait=False)
            got.append(tl.recv(count, "f32", 0).shape)

    run(kernel)
    assert got == [(5,)]


@pytest.mark.parametrize("shape", [(-8, -8), (64.5,), 64.0, "64", None, -1])
def test_what_is_no_shape_is_told(shape: Any) -> None:
    """With the kernel's line, before anything is allocated or waits."""

    def kernel(tl: Any) -> None:
        if tl.program_id(0) == 1:
            tl.recv(shape, "f32", 0)

    with pytest.raises(ShapeError) as caught:
        run(kernel)
    assert str(caught.value).splitlines()[0] == (
        f"tl.recv at {__file__}:{kernel.__code__.co_firstlineno + 2} must be given a shape of whole numbers from 0 on, "
        f"not {shape!r}; give that of the tile that is sent."
    )


@pytest.mark.parametrize("sources", [0, "ew"])
def test_one_source_is_no_list_of_sources(sources: Any) -> None:
    """`tl.recv` is for one; the letters of a text are not directions."""

    def kernel(tl: Any) -> None:
        if tl.program_id(0) == 1:
            tl.recv_any((4,), "f32", sources)

    with pytest.raises(KernelError) as caught:
        run(kernel)
    assert str(caught.value).splitlines()[0] == (
        f"tl.recv_any at {__file__}:{kernel.__code__.co_firstlineno + 2} must be given a list of sources, not "
        f"{sources!r}; receive from one with tl.recv."
    )


def test_a_kernel_that_keeps_all_slots_is_told_so() -> None:
    """A deadlock of a sender without slots and a receiver that holds them names what holds them, and the way out."""

    def kernel(tl: Any) -> None:
        if tl.program_id(0) == 0:
            for _ in range(6):
                tl.send(tl.full((16,), 1.0, "f32"), 1)
        elif tl.program_id(0) == 1:
            tl.recv((16,), "f32", 0)
            [tl.recv((16,), "f32", 0, copy=False) for _ in range(5)]

    with pytest.raises(DeadlockError) as caught:
        run(kernel, "components.pe_ipcq.params.slots=3")
    line = f"{__file__}:{kernel.__code__.co_firstlineno + 6}"
    assert (
        f"tl.recv at {line} waits for a message from sip0.cube0.pe0, 4 received before, 3 of 3 slots held by the "
        "kernel: free one with tl.free\n"
    ) in str(caught.value)


UNITS = '''
from kernbench_builtin.components.pe_ipcq import PeIpcq
from kernbench_core.component import ComponentBase
from kernbench_core.plugins import ComponentEntry


class Counting(PeIpcq):
    """Count what is sent."""

    counted = 0

    def _send(self, command, out):
        Counting.counted += 1
        super()._send(command, out)


class Other(ComponentBase):
    """Keep no slots."""


KINDS = (Counting, Other)


kernbench_api = 1
def kernbench_components():
    entry = {"kind": "pe_ipcq", "sentence": "Keep queues."}
    return [ComponentEntry(f"acme.{kind.__name__.lower()}", f"acme_units:{kind.__name__}", **entry) for kind in KINDS]
'''


def test_a_unit_may_be_a_subclass_or_have_no_slots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A subclass sees what it overrides; a receiver without slots is told by the parameters that it has not."""
    (tmp_path / "acme_units.py").write_text(UNITS)
    monkeypatch.syspath_prepend(tmp_path)
    plugins = load_plugins(["acme = acme_units"])

    def kernel(tl: Any) -> None:
        if tl.program_id(0) == 0:
            tl.send(tl.full((16,), 1.0, "f32"), 1)
        elif tl.program_id(0) == 1:
            tl.full((16384,), 1.0, "f32")
            tl.recv((16,), "f32", 0)

    kb.run(lambda rt: rt.launch(kernel), "tiny", set=["components.pe_ipcq.impl=acme.counting"], plugins=plugins)
    assert importlib.import_module("acme_units").Counting.counted == 1
    mixed = tmp_path / "mixed.yaml"
    mixed.write_text('base: tiny\noverrides: [{match: "*.pe1.pe_ipcq", impl: acme.other}]\n')
    dropped = pytest.warns(KernbenchWarning, match="acme.other has none of the parameters")
    with pytest.raises(ConfigError) as caught, dropped:
        kb.run(lambda rt: rt.launch(kernel), mixed, plugins=plugins)
    assert str(caught.value).splitlines() == [
        "sip0.cube0.pe1.pe_ipcq: slots must be a whole number of at least 1, not None.",
        "sip0.cube0.pe1.pe_ipcq: slot_bytes must be a multiple of 64, a line of the scratchpad, not None.",
        "sip0.cube0.pe1.pe_ipcq: tier must be one of tcm, sram, hbm, not None.",
    ]


@pytest.mark.parametrize(("slots", "count"), [(1, 100), (3, 100), (3, 16), (4, 200), (4, 0)])
def test_a_receipt_names_every_slot_that_it_read(slots: int, count: int) -> None:
    """In the op log its bytes lie where the pieces were put, one after the other, however often the ring goes round."""

    def kernel(tl: Any) -> None:
        for _ in range(2):  # the second message begins in the middle of the ring
            if tl.program_id(0) == 0:
                tl.send(tl.full((count,), 1.0, "f32"), 1)
            elif tl.program_id(0) == 1:
                tl.recv((count,), "f32", 0)

    log = run(kernel, "components.pe_ipcq.params.slot_bytes=64 B", f"components.pe_ipcq.params.slots={slots}").op_log
    put: list[int] = []
    for record in sorted((r for r in log if r.op_name == "ipcq_copy"), key=lambda r: r.t_end):
        put += range(record.params["dst_addr"], record.params["dst_addr"] + record.params["nbytes"])
    read: list[int] = []
    for record in sorted((r for r in log if r.op_name == "ipcq_recv"), key=lambda r: r.t_end):
        assert record.reads[0].nbytes == record.params["nbytes"] == 4 * count
        for region in record.reads[0].regions:
            read += range(region.base, region.base + region.nbytes)
    assert read == put
