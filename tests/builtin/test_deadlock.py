"""Kernels that wait for each other through queues, in a plain launch: the report, whole."""

from __future__ import annotations

from typing import Any

import pytest

import kernbench_core as kb
from kernbench_core.errors import DeadlockError


def everybody_first_receives(tl: Any) -> None:
    """Wait for the next PE, which waits for its next."""
    x = tl.recv((8,), "f32", (tl.program_id(0) + 1) % tl.num_programs(0))
    tl.send(x, (tl.program_id(0) - 1) % tl.num_programs(0))


def one_is_not_sent_to(tl: Any) -> None:
    """Wait on PE 0 for PE 1, which has ended."""
    if tl.program_id(0) == 0:
        tl.recv((8,), "f32", 1)


def report(kernel: Any) -> list[str]:
    """Return the lines of the report of a launch that never ends, times left out."""
    with pytest.raises(DeadlockError) as caught:
        kb.run(lambda rt: rt.launch(kernel, pes=[0, 1, 2]), "tiny")
    first, host, *rest = str(caught.value).splitlines()
    assert first.startswith("deadlock at simulated time ")
    assert host.startswith("  host waits for KernelLaunchMsg since ")
    return rest


def test_a_cycle_of_receives() -> None:
    """Three PEs, one line of the kernel: one entry, and the cycle."""
    rest = report(everybody_first_receives)
    line = f"{__file__}:{everybody_first_receives.__code__.co_firstlineno + 2}"
    assert [words.partition(", for ")[0] for words in rest] == [
        "  kernels that wait:",
        "    sip0.cube0.pe0.pe_cpu waits in kernel 'everybody_first_receives'",
        f"      tl.recv at {line} waits for a message from sip0.cube0.pe1, 0 received before",
        "  wait-for cycle: sip0.cube0.pe0 -> sip0.cube0.pe1 -> sip0.cube0.pe2 -> sip0.cube0.pe0",
    ]
    assert rest[1].endswith(" (3 PEs wait so):")


def test_a_message_that_is_never_sent() -> None:
    """The way leads to the PE that has ended."""
    rest = report(one_is_not_sent_to)
    line = f"{__file__}:{one_is_not_sent_to.__code__.co_firstlineno + 3}"
    assert [words.partition(", for ")[0] for words in rest] == [
        "  kernels that wait:",
        "    sip0.cube0.pe0.pe_cpu waits in kernel 'one_is_not_sent_to'",
        f"      tl.recv at {line} waits for a message from sip0.cube0.pe1, 0 received before",
        "  no wait-for cycle: sip0.cube0.pe0 -> sip0.cube0.pe1, which runs no kernel",
    ]
