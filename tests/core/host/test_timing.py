"""Results of phase 1: phases, utilisation, what was not modelled."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.component import ComponentBase
from kernbench_core.host.timing import docstring_section, ignored_by, phase_spans, phases
from kernbench_core.messages import HostRequest, KernelLaunchMsg, Launch, MemoryReadMsg, MemoryWriteMsg
from tests.core.toy_machine import toy_engine

SPAN = st.tuples(st.integers(0, 50), st.integers(0, 20))


def kernel(tl: Any) -> None:
    """Be launched."""


def launch(born: float, end: float, started: dict[int, float], ended: dict[int, float], pes: int) -> KernelLaunchMsg:
    """Return a launch that was answered at `end`."""
    request = KernelLaunchMsg(Launch(kernel, {}, (pes, 1, 1), {pe: ((pe, 0, 0),) for pe in range(pes)}))
    request.born = born
    request.launch.started_ns.update(started)
    request.launch.ended_ns.update(ended)
    request.complete(end)
    return request


def copy(kind: type[MemoryWriteMsg], born: float, end: float) -> MemoryWriteMsg:
    """Return a copy that was answered at `end`."""
    request = kind(())
    request.born = born
    request.complete(end)
    return request


@settings(deadline=None)
@given(launches=st.lists(SPAN, max_size=3), reads=st.lists(SPAN, max_size=3), writes=st.lists(SPAN, max_size=3))
def test_each_instant_belongs_to_the_first_phase_that_applies(
    launches: list[tuple[int, int]], reads: list[tuple[int, int]], writes: list[tuple[int, int]]
) -> None:
    """Phases equal a count of single nanoseconds by kernel, launch, device_to_host, host_to_device."""
    total = 100
    requests: list[HostRequest] = []
    owner = ["host_to_device"] * total
    spans: dict[str, list[tuple[int, int]]] = {"kernel": [], "launch": [], "device_to_host": []}
    for born, length in launches:
        begin, end = born + length // 4, born + length - length // 4
        requests.append(launch(born, born + length, {0: float(begin)}, {0: float(end)}, 1))
        spans["kernel"].append((begin, end))
        spans["launch"].append((born, born + length))
    for born, length in reads:
        requests.append(copy(MemoryReadMsg, born, born + length))
        spans["device_to_host"].append((born, born + length))
    requests += [copy(MemoryWriteMsg, born, born + length) for born, length in writes]
    for phase in ("device_to_host", "launch", "kernel"):
        for begin, end in spans[phase]:
            owner[begin:end] = [phase] * (end - begin)
    assert phases(float(total), requests) == {
        name: float(owner.count(name)) for name in ("kernel", "launch", "device_to_host", "host_to_device")
    }
    spans = phase_spans(float(total), requests)
    assert [phase for begin, end, phase in spans for _ in range(int(begin), int(end))] == owner
    assert all(before[2] != after[2] for before, after in pairwise(spans))


def test_kernel_phase_lasts_from_the_first_start_to_the_last_end() -> None:
    """PEs that start and end at different times make one kernel phase; one that still runs lasts to now."""
    done = launch(0.0, 90.0, {0: 20.0, 1: 25.0}, {0: 70.0, 1: 60.0}, 2)
    assert phases(100.0, [done])["kernel"] == 50.0
    running = launch(0.0, 90.0, {0: 20.0, 1: 25.0}, {0: 70.0}, 2)
    assert phases(100.0, [running])["kernel"] == 80.0


def test_a_run_that_took_no_time_has_no_spans() -> None:
    """There is no instant that could belong to a phase."""
    assert phase_spans(0.0, []) == []


def test_unanswered_request_lasts_until_now() -> None:
    """A run that was cut short still divides its time."""
    request = MemoryReadMsg(())
    request.born = 40.0
    assert phases(100.0, [request]) == {
        "kernel": 0.0, "launch": 0.0, "device_to_host": 60.0, "host_to_device": 40.0
    }  # fmt: skip


def test_busiest_are_the_resources_by_utilisation() -> None:
    """The narrowest wire of a copy is the busiest; use is busy time over total time, bytes are payload."""
    engine = toy_engine(pes=1)
    engine.run(lambda rt: rt.tensor((64, 64), "f32"))
    result = engine.get_timing_result()
    first = result.busiest[0]
    assert (first.name, first.kind, first.nbytes) == ("host->sip0.io0.pcie_ep", "pcie wire", 16384)
    assert first.busy_ns == (16384 + 64 * 16) / 16
    assert first.utilisation == first.busy_ns / result.total_ns
    assert [use.utilisation for use in result.busiest] == sorted((u.utilisation for u in result.busiest), reverse=True)
    kinds = [use.kind for use in result.busiest]
    assert len(kinds) == len(set(kinds))
    channels = next(use for use in result.busiest if use.kind == "hbm_ctrl channel")
    assert (channels.alike, channels.nbytes) == (4, 4096)
    assert channels.mean_utilisation == channels.utilisation


def test_not_modelled_quotes_the_models_that_were_crossed_with_counts() -> None:
    """Each sentence of an `Ignores` comes once, with how many messages its model served; idle models are silent."""
    engine = toy_engine(pes=2)
    engine.run(lambda rt: rt.tensor((4,), "f32"))
    quoted = [(each.sentence, each.component, each.count) for each in engine.get_timing_result().not_modelled]
    # four rows are dealt over two memories: two transactions through two forwarding nodes, there and back
    assert quoted == [
        ("Everything else.", "forward", 8),
        ("Refresh is left out.", "memory", 2),
        ("Rows too.", "memory", 2),
    ]


class Sectioned(ComponentBase):
    """Be documented.

    Models: one thing
        and another.
    Ignores: This. That, with
        a second line.
    Timing: out = in + overhead.
    Source: a table.
    """


class Plain(ComponentBase):
    """Have no sections."""


@pytest.mark.parametrize(
    ("cls", "name", "text"),
    [
        (Sectioned, "Models", "one thing and another."),
        (Sectioned, "Timing", "out = in + overhead."),
        (Sectioned, "Source", "a table."),
        (Sectioned, "Nothing", ""),
        (Plain, "Models", ""),
    ],
)
def test_docstring_sections_are_read_by_machine(cls: type, name: str, text: str) -> None:
    """A section is its text on one line; a model without it has none."""
    assert docstring_section(cls, name) == text


def test_ignored_by_gives_sentences() -> None:
    """`Ignores` is split into its sentences."""
    assert ignored_by(Sectioned) == ("This.", "That, with a second line.")
    assert ignored_by(Plain) == ()
