"""Rows over sizes: which sizes, which algorithms, in which order, and never below a lower bound."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernbench_builtin.torch.torch_backend import TorchBackend
from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.collectives import COLLECTIVES
from kernbench_ccl.measure import sweep, time_collective, timed_run
from kernbench_ccl.measure.sweep import _in_good_order, counts_of, size_of, sizes_of
from kernbench_ccl.measure.timed_run import TimedCase
from kernbench_ccl.plan.tuning import shipped
from kernbench_core.compute.backends import Backend
from kernbench_core.compute.executor import DataExecutor
from kernbench_core.errors import DeadlockError, SanityError, UsageError
from kernbench_core.plugins import load_plugins, own_plugins
from tests.core.shapes import NETWORKS

TIMED = [name for name in COLLECTIVES if name != "barrier"]


@pytest.fixture(scope="module")
def plugins():
    return load_plugins(own_plugins(), installed=False)


def test_sizes_grow_by_a_factor_or_by_a_step():
    """As nccl-tests' -f and -i; the last one is not above -e."""
    assert sizes_of(1024, 8192, 2, None) == [1024, 2048, 4096, 8192]
    assert sizes_of(1024, 9000, None, None) == [1024, 2048, 4096, 8192]
    assert sizes_of(1000, 3000, None, 1000) == [1000, 2000, 3000]
    assert sizes_of(1, 5, 1.5, None) == [1, 2, 3, 4]
    assert sizes_of(7, 7, 2, None) == [7]


def test_counts_are_nccls_and_each_comes_once():
    """Of collectives with a part for each rank sizes are rounded down to whole parts, at least one element each."""
    assert counts_of([1024, 2048], COLLECTIVES["all_reduce"], "f16", 8) == [512, 1024]
    assert counts_of([1024, 1025, 2048], COLLECTIVES["all_gather"], "f16", 6) == [85, 170]
    assert size_of(85, COLLECTIVES["all_gather"], "f16", 6) == 1020
    assert counts_of([1, 2, 4], COLLECTIVES["all_to_all"], "f32", 8) == [1]


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("groups, halves", [(1, 1), (2, 2), (5, 2), (7, 1)])
def test_the_smallest_runs_first_and_the_largest_next(groups, halves, workers):
    """Every case is submitted once; the second worker begins with the largest size."""
    made = [
        [TimedCase("all_reduce", "a", "f16", g, 2 * g, None, 0, bool(h), None) for h in range(halves)]
        for g in range(groups)
    ]
    order = _in_good_order(made, workers)
    assert sorted(order, key=lambda c: (c.count, c.in_place)) == [case for group in made for case in group]
    assert order[0] == made[0][0]
    if workers > 1 and groups > 1:
        assert order[1].count == groups - 1 or workers > 2


def calls(fewest, most):
    """Draw a collective, a network, a number of ranks, a size, and whether the machine is the ideal one."""
    return st.tuples(
        st.sampled_from(TIMED), st.sampled_from(sorted(NETWORKS)), st.integers(fewest, most), st.integers(1, 1 << 15),
        st.booleans(),
    )  # fmt: skip


def hold_to_the_bound(plugins, call, data):
    """Assert that no time is below its bound, for any algorithm and root; the data is right too, and nothing races."""
    collective, network, ranks, size, idealised = call
    sets = (f"system.network.topology={network}", "cube.pes=2")
    root = data.draw(st.integers(0, ranks - 1)) if COLLECTIVES[collective].rooted else 0
    name = data.draw(st.sampled_from(sorted(Catalogue.of(plugins).methods_of(collective))))
    try:
        rows = time_collective(
            collective, [size], "tiny", algo=name, ranks=ranks, root=root, set=sets, idealised=idealised,
            plugins=plugins,
        )  # fmt: skip
    except UsageError:
        return
    for row in rows:
        assert row.bound_ns >= 500.0
        for found in row.measured:
            assert found.time_ns >= row.bound_ns
            assert (found.wrong, found.failures, found.hazards) == (0, (), ())


@settings(max_examples=16, suppress_health_check=[HealthCheck.too_slow])
@given(call=calls(2, 6), data=st.data())
def test_no_algorithm_is_below_the_lower_bound_even_on_the_ideal_machine(plugins, call, data):
    hold_to_the_bound(plugins, call, data)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(call=calls(7, 9), data=st.data())
def test_no_algorithm_of_many_ranks_is_below_the_lower_bound(plugins, call, data):
    hold_to_the_bound(plugins, call, data)


@pytest.mark.parametrize("slow", [False, True])
def test_the_error_that_is_told_is_the_first_in_order(monkeypatch, slow):
    """Whichever of two processes ends first: the smallest size, out of place before in place; not those beyond it."""

    def fails(setup: Any, case: TimedCase, limits: Any) -> None:
        time.sleep(0.1 if slow != case.in_place else 0)
        raise DeadlockError("a cycle")

    @contextmanager
    def threads(workers: int, limit_s: float | None) -> Iterator[Executor]:
        with ThreadPoolExecutor(workers) as pool:
            yield pool

    monkeypatch.setattr(sweep, "process_pool", threads)
    monkeypatch.setattr(sweep, "measure_remotely", fails)
    groups = [
        [TimedCase("all_gather", "a", "f16", n, n << 20, None, 0, place, None) for place in (False, True)]
        for n in (1, 2)
    ]
    with pytest.raises(DeadlockError) as caught:
        [*sweep.Sweep(None, None, None, None)._ended(groups)]
    assert caught.value.__notes__ == ["This was 1 MiB by a, out of place."]


def test_a_time_below_the_bound_fails_the_sanity_check(plugins, monkeypatch):
    """What cannot be is not printed as a result."""
    monkeypatch.setattr("kernbench_ccl.measure.measurement.elapsed_ns", lambda handle: 10.0)
    with pytest.raises(SanityError) as caught:
        time_collective("all_reduce", [1024], "tiny", algo="ring", ranks=3, plugins=plugins)
    assert str(caught.value) == (
        "all_reduce of 1024 B by ccl.ring_all_reduce must take at least the lower bound of 506.8 ns (injection), and "
        "took 10 ns; do not use the result."
    )


def test_a_collective_that_cannot_be_timed_is_refused():
    """barrier moves nothing; a misspelt one is none."""
    with pytest.raises(UsageError) as caught:
        time_collective("barrier", [1])
    assert str(caught.value) == (
        "a collective must be one of all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, gather, "
        "scatter, send_recv, not 'barrier'."
    )


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("all_gather redop=nonsense", "redop must be left out for all_gather, which has none, not 'nonsense'."),
        ("all_reduce redop=nonsense", "redop: a reduction must be one of sum, avg, product, min, max, not 'nonsense'; "
         "choose one of these."),
        ("all_reduce redop=avg dtype=int8", "redop: avg must be of a float dtype, not of int8, which cannot hold the "
         "quotient; use sum, or cast first."),
        ("all_reduce root=2", "root must be left out for all_reduce, which has none, not 2."),
        ("broadcast root=3", "root must be a rank from 0 to 2, not 3; choose one of these."),
        ("all_reduce contributors=pe pes=1", "pes and contributors pe exclude each other: every PE takes part; leave "
         "pes out."),
        ("broadcast contributors=pe", "contributors must be left out for broadcast, which has none, not 'pe'."),
        ("all_reduce contributors=cube", "contributors must be one of sip, pe, not 'cube'."),
        ("all_reduce pes=5", "pes must be at most 4, the PEs of a SIP, not 5; give fewer."),
        ("all_reduce ranks=1", "a collective must have at least 2 ranks, and this topology has 1 SIP; give ranks, or "
         "another topology."),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_refused(plugins, asked, told):
    """As the command refuses its options, in the same words."""
    collective, *words = asked.split()
    given = {key: int(value) if value.isdigit() else value for key, value in (word.split("=") for word in words)}
    with pytest.raises(UsageError) as caught:
        time_collective(collective, [64], "tiny", **{"ranks": 3, **given}, plugins=plugins)
    assert str(caught.value) == told


DTYPES, SOME = ("f32", "bf16", "f8e4m3", "int32", "int8"), ("sum", "product", "max")


@pytest.mark.parametrize("redop", SOME)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_reduction_is_right(plugins, dtype, redop):
    """Integers are computed while the kernels run, floats by phase 2."""
    options = {"dtype": dtype, "redop": redop, "ranks": 3, "set": ("cube.pes=2",), "plugins": plugins}
    (row,) = time_collective("all_reduce", [600], "tiny", algo="ring", **options)
    assert [found.wrong for found in row.measured] == [0, 0]


def test_a_dtype_may_be_spelled_as_on_the_command_line(plugins):
    """i8 is int8, as for -d."""
    (row,) = time_collective("all_reduce", [64], "tiny", ranks=2, dtype="i8", check=False, plugins=plugins)
    assert (row.dtype, row.count) == ("int8", 64)


def test_the_data_is_computed_by_the_backend_that_is_asked_for(plugins, monkeypatch):
    """Each check has it; one that is none is refused before anything runs."""
    asked, torch = [], Backend()
    monkeypatch.setattr(timed_run, "DataExecutor", lambda *args, backend, **more: asked.append(backend) or
                        DataExecutor(*args, **more))  # fmt: skip
    monkeypatch.setattr(TorchBackend, "on", lambda device: torch)
    options = {"algo": "ring", "ranks": 2, "dtype": "f32", "plugins": plugins}
    (row,) = time_collective("all_reduce", [64], "tiny", backend="torch", **options)
    assert row.wrong == 0
    assert set(asked) == {torch}
    with pytest.raises(UsageError, match=r"^a backend must be numpy, torch, .*, not 'jax'; give one of these\.$"):
        time_collective("all_reduce", [64], "tiny", backend="jax", **options)


def test_without_checks_the_time_is_the_same(plugins):
    """Keeping shapes only changes nothing but what is known of the data."""
    both = [
        time_collective("all_reduce", [4096], "tiny", algo="ring", ranks=4, check=check, plugins=plugins)[0]
        for check in (True, False)
    ]
    assert both[0].out_of_place.time_ns == both[1].out_of_place.time_ns
    assert both[1].out_of_place.wrong is None


def test_a_closed_form_that_assumes_other_links_is_left_out(plugins):
    """Direct exchange costs one latency where everyone is linked; on a ring of 6 that is below the bound."""
    formulas = []
    for network in ("fully_connected", "ring"):
        sets = (f"system.network.topology={network}", "cube.pes=2")
        options = {"ranks": 6, "set": sets, "check": False, "plugins": plugins}
        (row,) = time_collective("all_reduce", [64], "tiny", algo="direct", **options)
        formulas.append(row.formula_ns)
    assert formulas[0] > 1000.0
    assert formulas[1] is None


@pytest.mark.parametrize("bandwidth", [10, 50])
def test_more_pes_help_where_one_is_as_wide_as_the_links(bandwidth, plugins):
    """One PE takes bytes from its queue and its memory in turn: auto is no slower than all PEs, also on slow links."""
    options = {"ranks": 3, "algo": "ring", "check": False, "set": (f"system.network.bandwidth={bandwidth} GB/s",)}
    (auto,) = time_collective("all_reduce", [1 << 16], "tiny", plugins=plugins, **options)
    (every,) = time_collective("all_reduce", [1 << 16], "tiny", plugins=plugins, pes=4, **options)
    assert auto.out_of_place.time_ns <= every.out_of_place.time_ns * 1.02


def test_without_trials_auto_takes_the_nearest_measurement(monkeypatch):
    """On links that no table has nothing is simulated beside the rows."""
    from kernbench_ccl.measure.trials import AlgorithmTrial

    monkeypatch.setattr(AlgorithmTrial, "run", lambda *_: pytest.fail("nothing must be tried"))
    sets = ["system.network.latency=501ns", "cube.pes=1"]
    (row,) = time_collective("all_gather", [256], "tiny", ranks=3, set=sets, check=False, trials=False)
    assert row.algorithm == shipped().nearest("all_gather", "ring", 3)[0].at(row.size)


def test_what_is_known_of_a_machine_does_not_run_again(plugins, monkeypatch):
    """Only the size and the place that are new are simulated, and all rows are as without."""
    ran, measured = [], sweep.measure
    monkeypatch.setattr(sweep, "measure", lambda case, *rest, **more: ran.append(case) or measured(case, *rest, **more))
    known, asked = {}, {"topology": "tiny", "ranks": 2, "algo": "ring", "check": False, "plugins": plugins}
    time_collective("all_reduce", [64, 4096], in_place=False, known=known, **asked)
    rows = time_collective("all_reduce", [64, 256, 4096], known=known, **asked)
    at = [(case.nbytes, case.in_place) for case in ran]
    assert at == [(64, False), (4096, False), (64, True), (256, False), (256, True), (4096, True)]
    again = time_collective("all_reduce", [64, 256, 4096], **asked)
    assert [row.out_of_place.time_ns for row in rows] == [row.out_of_place.time_ns for row in again]
    assert [row.in_place.time_ns for row in rows] == [row.in_place.time_ns for row in again]
