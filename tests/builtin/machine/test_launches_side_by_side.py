"""Launches that run side by side have figures of their own PEs and SIPs, beside sums over the op log by PE."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import kernbench_core as kb
from kernbench_core.plugins import load_plugins
from tests.builtin.machine.noted_bookings import noted_bookings

SIPS, PES = 3, 2  # of each SIP
SET = [f"system.sips={SIPS}", f"cube.pes={PES}"]
LONGEST_OVERHEAD = 100.0  # ns: how far ahead components of tiny book, that of a switch
#: A launch by the kernel's name, on PEs that no other launch has.
Wanted = list[tuple[str, list[int]]]


def heavy(x_ptr: Any, n: int, tl: Any) -> None:
    """Multiply twice."""
    at = x_ptr + tl.program_id(0) * n * n + tl.arange(0, n)[:, None] * n + tl.arange(0, n)
    x = tl.load(at)
    tl.store(at, tl.dot(tl.dot(x, x), x))


def light(x_ptr: Any, n: int, tl: Any) -> None:
    """Add."""
    at = x_ptr + tl.program_id(0) * n * n + tl.arange(0, n * n)
    tl.store(at, tl.load(at) + 1.0)


def run(launches: Wanted, sets: list[str] | None = None) -> kb.RunResult:
    """Run kernels on the PEs of each, all at once."""

    def bench(rt: Any) -> None:
        xs = [rt.tensor(np.ones((len(pes), 16, 16), np.float32), name=f"x{at}") for at, (_, pes) in enumerate(launches)]
        kernels = {"heavy": heavy, "light": light}
        pairs = zip(launches, xs, strict=True)
        for handle in [rt.launch(kernels[name], x, 16, pes=pes, wait=False) for (name, pes), x in pairs]:
            rt.wait(handle)

    return kb.run(bench, "tiny", set=SET if sets is None else sets, plugins=load_plugins())


def spread_out(owners: list[tuple[int, bool]]) -> Wanted:
    """Turn the number of a launch for each PE, 0 for none, into launches."""
    found: dict[int, tuple[str, list[int]]] = {}
    for pe, (owner, multiplies) in enumerate(owners):
        if owner:
            found.setdefault(owner, ("heavy" if multiplies else "light", []))[1].append(pe)
    return list(found.values())


owned = st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=SIPS * PES, max_size=SIPS * PES)


def may_be_of(name: str, pes: list[int]) -> bool:
    """Say of a link by its name whether it is inside a PE of these, or else touches a SIP of theirs."""
    sips = {pe // PES for pe in pes}
    prefixes = {f"sip{pe // PES}.cube0.pe{pe % PES}" for pe in pes}
    parts = set(re.findall(r"sip\d+\.cube\d+\.pe\d+(?=[.#]|->|$)", name))
    touched = {int(sip) for sip in re.findall(r"(?:^|->)sip(\d+)", name)}
    return parts <= prefixes and bool(touched & sips)


@given(owned.map(spread_out).filter(bool))
@settings(max_examples=12)
def test_units_are_those_that_the_op_log_names_for_its_pes(launches: Wanted) -> None:
    """The busiest of each kind of unit, how many were used, and for how long: sums of records of the launch's PEs."""
    result = run(launches)
    ops = result.ops
    assert [each.sips for each in result.launches] == [tuple(sorted({pe // PES for pe in pes})) for _, pes in launches]
    for launch, (_, pes) in zip(result.launches, launches, strict=True):
        mine = np.isin(ops["pe"], pes)
        sums: dict[str, float] = {}
        for name, took in zip(ops["component"][mine], (ops["t_end"] - ops["t_start"])[mine], strict=True):
            sums[name] = sums.get(name, 0.0) + float(took)
        uses = {use.kind: use for use in launch.busiest}
        for kind in ("pe_gemm", "pe_math", "pe_dma"):
            of_kind = {name: took for name, took in sums.items() if name.endswith(f".{kind}")}
            assert (kind in uses) == bool(of_kind)
            if of_kind:
                assert uses[kind].busy_ns == pytest.approx(max(of_kind.values()))
                assert of_kind[uses[kind].name] == pytest.approx(uses[kind].busy_ns)
                assert uses[kind].alike == len(of_kind)


@given(owned.map(spread_out).filter(bool))
@example([("light", [0, 1, 3, 5]), ("light", [2])])
@settings(max_examples=6)
def test_links_are_its_pes_own_and_those_that_touch_its_sips(launches: Wanted) -> None:
    """A second count: of the bookings between its start and end, those that names say may be its, and no others."""
    with noted_bookings() as booked:
        result = run(launches)
    for launch, (_, pes) in zip(result.launches, launches, strict=True):
        found = set(launch.links["name"])
        end = launch.ended_ns
        # What is booked by then for soon after counts as taking the gap before it, too (`Wire.busy_by`).
        ahead = {name for name, at, _ in booked if end <= at < end + LONGEST_OVERHEAD}
        used = {name for name, at, took in booked if took and launch.started_ns <= at < end} - ahead
        assert all(may_be_of(name, pes) for name in found)
        assert {name for name in used if may_be_of(name, pes)} <= found
        assert {use.name for use in launch.busiest if "->" in use.name} <= found


def test_a_launch_says_its_sips_where_there_are_several() -> None:
    """In its repr and in JSON, and after it was pickled; a machine of one SIP has nothing to tell apart."""
    result = run([("heavy", [0, 1]), ("light", [2]), ("heavy", [3, 4, 5])])
    assert [repr(each).partition(",")[0] for each in result.launches] == [
        "<LaunchFigures heavy: 2 PEs of SIP 0",
        "<LaunchFigures light: 1 PE of SIP 1",
        "<LaunchFigures heavy: 3 PEs of SIPs 1-2",
    ]
    assert [each["sips"] for each in result.to_json()["launches"]] == [[0], [1], [1, 2]]
    assert [repr(pickle.loads(pickle.dumps(each))) for each in result.launches] == [*map(repr, result.launches)]
    (launch,) = run([("light", [1])], []).launches
    assert repr(launch).startswith("<LaunchFigures light: 1 PE, ") and launch.sips == (0,)


def test_links_of_a_switch_are_of_the_sip_at_their_other_end() -> None:
    """Both launches copy from SIP 0, where data lies, and neither has the other's link."""
    result = run([("light", [2]), ("light", [4])], [*SET, "system.network.topology=switch"])
    for launch, other in zip(result.launches, (2, 1), strict=True):
        names = [name for name in launch.links["name"] if "switch" in name]
        assert names and not [name for name in names if f"sip{other}." in name]
