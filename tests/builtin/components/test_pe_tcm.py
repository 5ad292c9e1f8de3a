"""The scratchpad: each access by its closed form, and two channels that do not disturb each other."""

from __future__ import annotations

import pytest

from kernbench_builtin.components.pe_tcm import PeTcm, TcmRequest
from kernbench_core.testing import Rig, assert_ready_at

PARAMS = {"overhead": "2 ns", "read_bandwidth": "50 GB/s", "write_bandwidth": "25 GB/s", "latency": "6 ns"}
HOP = 1.0


def request(op: str, nbytes: int) -> TcmRequest:
    return TcmRequest(op, nbytes, "in0", "under_test", lambda _: None)


def ends(rig: Rig) -> list[float]:
    rig.run()
    return [arrival.tail for arrival in rig.arrivals]


@pytest.mark.parametrize(
    ("op", "wire", "service_ns"),
    [
        ("read", 100.0, 2 + 6 + 1000 / 50),
        ("read", 20.0, 2 + 6 + 1000 / 20),
        ("write", 100.0, 2 + 6 + 1000 / 25),
        ("write", 20.0, 2 + 6 + 1000 / 20),
    ],
)
def test_an_access_pays_the_narrowest_of_wire_and_channel_once(op: str, wire: float, service_ns: float) -> None:
    """Two hops, overhead, latency, and the bytes over the narrower bandwidth."""
    rig = Rig(PeTcm, PARAMS, bandwidth=wire, latency=HOP).ask(0, msg=request(op, 1000))
    assert_ready_at(rig, HOP + service_ns + HOP)
    (arrival,) = rig.arrivals
    assert arrival.nbytes == (1000 if op == "read" else 0)
    assert arrival.message.elapsed == arrival.tail


def test_reads_serialise_on_the_read_channel() -> None:
    """Each read adds its own bytes over the channel, in the order of arrival."""
    rig = Rig(PeTcm, PARAMS)
    for nbytes in (1000, 500, 1000):
        rig.ask(0, msg=request("read", nbytes))
    first = HOP + 2 + 6 + 20 + HOP
    assert ends(rig) == [first, first + 10, first + 10 + 20]


def test_writes_serialise_on_the_write_channel() -> None:
    rig = Rig(PeTcm, PARAMS, inputs=2)
    for port in (0, 1):
        rig.ask(0, port=port, msg=request("write", 1000))
    first = HOP + 2 + 6 + 40 + HOP
    assert ends(rig) == [first, first + 40]


def test_reads_and_writes_do_not_wait_for_each_other() -> None:
    """A read beside a write takes as long as alone, and the other way round."""
    rig = Rig(PeTcm, PARAMS, inputs=2).ask(0, msg=request("write", 1000)).ask(0, port=1, msg=request("read", 1000))
    assert sorted(ends(rig)) == [HOP + 2 + 6 + 20 + HOP, HOP + 2 + 6 + 40 + HOP]


def test_the_ledger_counts_the_bytes_of_each_channel() -> None:
    rig = Rig(PeTcm, PARAMS).ask(0, msg=request("read", 600)).ask(0, msg=request("write", 100))
    rig.run()
    read, write = rig.under_test.internal_wires
    assert (read.bytes_carried, read.busy_ns) == (600, 12.0)
    assert (write.bytes_carried, write.busy_ns) == (100, 4.0)


def test_an_answer_comes_to_the_unit_once() -> None:
    answers: list[object] = []
    asked = TcmRequest("read", 64, "in0", "under_test", answers.append)
    Rig(PeTcm, PARAMS).ask(0, msg=asked).run()
    assert answers == [asked]
