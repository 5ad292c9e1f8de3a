"""What `auto` goes by: a table of the machine, the package's table where it holds, trials, a rule, in this order."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from attrs import evolve

from kernbench_ccl.plan.auto import AutoMachine, AutoSettings, choose_auto
from kernbench_ccl.plan.machine_tuning import MachineTuning, MeasuredTimes
from kernbench_ccl.plan.trial_choice import TrialTime
from kernbench_ccl.plan.tuning import shipped
from kernbench_core.plugins import load_plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.topology.compilation import compile_topology

PLUGINS = load_plugins()
RING, TREE, DIRECT = "ccl.ring_all_reduce", "ccl.double_binary_tree_all_reduce", "ccl.direct_all_reduce"
ABLE = (DIRECT, RING, TREE)


@cache
def machine(
    sips: int = 5, latency: str = "500ns", whole: bool = True, topology: str = "default", more: str | None = None
) -> AutoMachine:
    """Return a ring of SIPs."""
    sets = [f"system.sips={sips}", f"system.network.latency={latency}", *([more] if more else [])]
    graph = compile_topology(configure(PLUGINS, topology, sets=sets), PLUGINS)
    return AutoMachine(graph, "ring", whole)


class Fixed:
    """Times that are always the same, None for a trial that fails."""

    steady = 1 << 20

    def __init__(self, times: dict[str, float | None], forms: dict[str, float] | None = None) -> None:
        self.times, self.forms = times, forms or {}

    def form(self, name: str, nbytes: int) -> float | None:
        """Return what is given."""
        return self.forms.get(name)

    def time(self, name: str, nbytes: int) -> TrialTime | None:
        """Return what is given."""
        ns = self.times[name]
        return None if ns is None else TrialTime(ns, 0.0)


def trials(**_: Any) -> Fixed:
    """Return times of which the ring's is the least."""
    return Fixed({DIRECT: 3.0, RING: 1.0, TREE: 2.0})


def nobody() -> Any:
    """Fail: nothing is to be tried."""
    raise AssertionError("nothing must be tried here")


def table(key: str | None, world: int = 5) -> AutoSettings:
    """Return settings with a table of a machine, by which the tree is the best."""
    rows = ((1024, {TREE: 1.0, RING: 2.0, "acme.gone_all_reduce": 0.5}),)
    entry = MeasuredTimes("all_reduce", "ring", world, rows)
    return AutoSettings(tuning=MachineTuning(key or "", "default", "f16", (entry,), "t.json"))


def test_a_table_of_the_machine_comes_first_of_all() -> None:
    """With links and ranks that the package's table has, too; what is not able any more is left out."""
    for sips, latency in ((5, "501ns"), (4, "500ns")):
        at = machine(sips, latency)
        found = choose_auto(table(at.key, sips), at, ("all_reduce", sips, 4096), ABLE, nobody)
        assert found is not None
        assert (found.name, found.basis) == (TREE, "by the measurements of t.json")


def test_a_table_of_another_machine_is_not_used_which_is_said() -> None:
    """Of the machine that it is of, and other ranks, nothing is to be said."""
    found = choose_auto(table("other"), machine(), ("all_reduce", 5, 4096), ABLE, trials)
    assert found is not None and found.name == RING
    assert found.unused == (
        "t.json is not used: it was measured on another machine (default); kernbench ccl tune measures this one."
    )
    other = choose_auto(table(machine().key, 7), machine(), ("all_reduce", 5, 4096), ABLE, trials)
    assert other is not None and (other.name, other.unused) == (RING, None)


def test_the_packages_table_holds_for_its_machine_and_ranks_alone() -> None:
    """Elsewhere algorithms are tried: of other ranks, links, packages or parts of these, of some of the SIPs."""
    found = choose_auto(AutoSettings(), machine(4), ("all_reduce", 4, 4096), ABLE, nobody)
    assert found is not None and found.basis == "by measurement"
    slots = machine(4, more="components.pe_ipcq.params.slots=1")
    others = (machine(4, "501ns"), machine(4, topology="tiny"), slots, machine(4, whole=False))
    for at, ranks in ((machine(5), 5), *((other, 4) for other in others)):
        tried = choose_auto(AutoSettings(), at, ("all_reduce", ranks, 4096), ABLE, trials)
        assert tried is not None and tried.name == RING
        assert tried.basis == "by closed forms, checked by 3 short simulations of up to 4 KiB"


@pytest.mark.parametrize(
    ("settings", "nbytes", "times"),
    [(AutoSettings(simulate=False), 4096, nobody), (AutoSettings(), 0, nobody), (AutoSettings(), 4096, None)],
)
def test_without_trials_the_nearest_measurement_counts(settings: AutoSettings, nbytes: int, times: Any) -> None:
    """Where ccl.yaml forbids them, where nobody knows the size, and where nobody can simulate."""
    found = choose_auto(settings, machine(), ("all_reduce", 5, nbytes), ABLE, times)
    assert found is not None
    nearest = shipped().nearest("all_reduce", "ring", 5)[0]
    assert (found.name, found.basis) == (nearest.at(nbytes), "by measurement with 6 ranks")


def test_whom_the_packages_table_does_not_know_is_tried_with_the_others() -> None:
    """As the algorithm of a plug-in: it may be the best."""
    times = {DIRECT: 3.0, RING: 2.0, "acme.fast_all_reduce": 1.0}
    found = choose_auto(AutoSettings(), machine(4), ("all_reduce", 4, 4096), tuple(times), lambda: Fixed(times))
    assert found is not None and found.name == "acme.fast_all_reduce"


def test_what_fails_when_it_is_tried_is_not_taken() -> None:
    """Where all fail closed forms are left, and where there are none the first name."""
    times = {DIRECT: 2.0, RING: None, TREE: 3.0}
    some = choose_auto(AutoSettings(), machine(), ("all_reduce", 5, 8), ABLE, lambda: Fixed(times))
    assert some is not None and some.name == DIRECT
    none: dict[str, float | None] = dict.fromkeys(ABLE)
    forms = {TREE: 1.0, RING: 2.0}
    by_form = choose_auto(AutoSettings(), machine(), ("all_reduce", 5, 8), ABLE, lambda: Fixed(none, forms))
    assert by_form is not None
    assert (by_form.name, by_form.basis) == (TREE, "by closed forms, as no simulation ended")
    first = choose_auto(AutoSettings(), machine(), ("all_reduce", 5, 8), ABLE, lambda: Fixed(none))
    assert first is not None and first.name == DIRECT


def test_who_is_alone_is_taken_and_nobody_is_none() -> None:
    """Nothing is tried for that."""
    found = choose_auto(AutoSettings(), machine(), ("all_reduce", 5, 8), (TREE,), nobody)
    assert found is not None and (found.name, found.basis) == (TREE, "nobody else does it")
    assert choose_auto(AutoSettings(), machine(), ("all_reduce", 5, 8), (), nobody) is None


def test_the_table_of_the_package_holds_for_the_settings_that_it_was_measured_with() -> None:
    """With others, as without overlapping steps, algorithms are tried."""
    found = [
        choose_auto(AutoSettings(), machine(4), ("all_reduce", 4, 4096), ABLE, trials, changed=changed)
        for changed in ({}, {RING: ("pipeline=off",)})
    ]
    assert [each and each.basis.partition(",")[0] for each in found] == ["by measurement", "by closed forms"]


def test_a_table_holds_for_the_settings_that_it_was_measured_with() -> None:
    """With others it is not used, which is said; of those that are not in it, nothing is."""
    at, asked = machine(), ("all_reduce", 5, 4096)
    plain = table(at.key)
    assert plain.tuning is not None
    entry = evolve(plain.tuning.entries[0], settings={RING: ("pes=1",)})
    single = evolve(plain, tuning=evolve(plain.tuning, entries=(entry,)))
    pes, slots = {RING: ("pes=1",)}, {RING: ("pes=1", "slots=2")}
    for settings, changed in ((plain, {}), (single, pes)):
        held = choose_auto(settings, at, asked, ABLE, nobody, changed=changed)
        assert held is not None and (held.name, held.unused) == (TREE, None)
    for settings, changed, told in (
        (plain, pes, "the defaults and not pes=1"), (single, {}, "pes=1 and not the defaults"),
        (single, slots, "pes=1 and not pes=1, slots=2"),
    ):  # fmt: skip
        left = choose_auto(settings, at, asked, ABLE, trials, changed=changed)
        assert left is not None and left.name == RING
        assert left.unused == (
            f"t.json is not used: it was measured with other settings of {RING}, {told}; kernbench ccl tune --config "
            "measures with those of a ccl.yaml."
        )
