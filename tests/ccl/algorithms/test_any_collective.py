"""Any algorithm, number of ranks, network, size and number of PEs: right data, no races, no time below its bound."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.measure import time_collective
from tests.ccl.algorithms.measured_forms import METHODS, NETWORKS, PLUGINS, ideal, machine


@given(
    st.sampled_from(METHODS),
    st.sampled_from(NETWORKS),
    st.integers(2, 6),
    st.integers(1, 9_000),
    st.one_of(st.none(), st.integers(1, 4)),
    st.booleans(),
)
@settings(max_examples=12)
def test_whatever_is_asked_for_is_right_and_not_below_its_bound(method, network, world, nbytes, pes, pipeline):
    """On a real machine: data of both kinds, in place too; nothing races."""
    name, what = method
    algorithm = Catalogue.of(PLUGINS).open(f"ccl.{name}_{what}", what)
    if algorithm.refusal(machine(world, f"system.network.topology={network}").network) is not None:
        return
    (row,) = time_collective(
        what, [nbytes], "tiny", ranks=world, algo=f"ccl.{name}_{what}", set=(f"system.network.topology={network}",),
        pes=pes, pipeline=pipeline, plugins=PLUGINS,
    )  # fmt: skip
    assert row.wrong == 0 and not [line for found in row.measured for line in (*found.failures, *found.hazards)]
    assert all(found.time_ns >= row.bound_ns > 0 for found in row.measured)


@given(st.integers(3, 5), st.integers(1, 60), st.integers(10, 400), st.integers(1, 40))
@settings(max_examples=8)
def test_links_of_any_kind_are_filled(world, tens_of_ns, bandwidth, tiles):
    """Direct, on one PE: from 10 ns and 10 GB/s to 600 ns and 400 GB/s, to the last message of 16 KiB."""
    sets = (f"system.network.bandwidth={bandwidth} GB/s", f"system.network.latency={10 * tens_of_ns} ns")
    nbytes = tiles * 16384 * world
    measured, formula, _ = ideal("direct", "all_gather", nbytes, world, "fully_connected", *sets)
    assert formula == pytest.approx(10 * tens_of_ns + nbytes / world / bandwidth)
    assert measured.time_ns == pytest.approx(formula, rel=0.01)


def test_trees_keep_long_links_full_in_both_directions():
    """400 GB/s and 4 us: with less under way than goes up and comes down again it took 40 % more than its form."""
    sets = ("system.network.bandwidth=400 GB/s", "system.network.latency=4 us")
    measured, formula, bound = ideal("double_binary_tree", "all_reduce", 1 << 19, 5, "switch", *sets, pipeline=True)
    assert formula is None
    assert bound <= measured.time_ns < 4.4 * 8000
