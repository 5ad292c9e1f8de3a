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


LAUNCH = f"{__file__}:{report.__code__.co_firstlineno + 3}"
"""The line that launches the kernel."""


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
    """The way leads to the PE that has ended, and what that did is told."""
    rest = report(one_is_not_sent_to)
    line = f"{__file__}:{one_is_not_sent_to.__code__.co_firstlineno + 3}"
    assert [words.partition(", for ")[0] for words in rest[:-2]] == [
        "  kernels that wait:",
        "    sip0.cube0.pe0.pe_cpu waits in kernel 'one_is_not_sent_to'",
        f"      tl.recv at {line} waits for a message from sip0.cube0.pe1, 0 received before",
        "  waited for, and idle:",
    ]
    assert rest[-2].startswith(
        f"    sip0.cube0.pe1 ended its part of the launch of 'one_is_not_sent_to', called at {LAUNCH}, at "
    )
    assert rest[-2].endswith(" ns, without a call")
    assert rest[-1] == "  no wait-for cycle: sip0.cube0.pe0 -> sip0.cube0.pe1, which runs no kernel"


def test_what_each_pe_did_last() -> None:
    """Those that did the same last are one line, from the first that did to the last; one that did nothing too."""

    def kernel(tl: Any) -> None:
        me = tl.program_id(0)
        if me == 1:
            tl.full((8,), 1.0, "f32")
        elif me == 2:
            tl.full((4096,), 1.0, "f32") + 1.0
        tl.recv((8,), "f32", (me + 1) % 3)

    rest = report(kernel)
    first = kernel.__code__.co_firstlineno
    assert [words.partition(", until ")[0] for words in rest[3:-1]] == [
        "      before that:",
        "        sip0.cube0.pe0 did nothing",
        f"        sip0.cube0.pe1 did tl.full at {__file__}:{first + 3}",
        f"        sip0.cube0.pe2 did tl.add at {__file__}:{first + 5}",
    ]

    def alike(tl: Any) -> None:
        tl.full((512 * tl.program_id(0) + 8,), 1.0, "f32")
        tl.recv((8,), "f32", (tl.program_id(0) + 1) % 3)

    words, times = report(alike)[3].split(", until ")
    assert words == f"      before that they did tl.full at {__file__}:{alike.__code__.co_firstlineno + 1}"
    sooner, later = (float(time.removesuffix(" ns")) for time in times.split(" to "))
    assert 0 < sooner < later


def test_a_receipt_from_any_is_kept_by_all_its_sources_alone() -> None:
    """A source that could still send is why it waits, also where another source waits for it in turn."""

    def kernel(tl: Any) -> None:
        me = tl.program_id(0)
        if me == 0:
            tl.recv_any((8,), "f32", [1, 2])
        elif me == 1:
            tl.recv((8,), "f32", 0)
        else:
            tl.full((8,), 1.0, "f32")

    rest = report(kernel)
    assert rest[-1] == "  no wait-for cycle: sip0.cube0.pe0 -> sip0.cube0.pe2, which runs no kernel"
    first = kernel.__code__.co_firstlineno
    assert f"the last call there was tl.full at {__file__}:{first + 7}, until " in rest[-2]

    def everybody(tl: Any) -> None:
        others = [other for other in range(3) if other != tl.program_id(0)]
        tl.recv_any((8,), "f32", others)

    assert report(everybody)[-1] == "  wait-for cycle: sip0.cube0.pe0 -> sip0.cube0.pe1 -> sip0.cube0.pe0"
