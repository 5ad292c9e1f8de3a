"""What auto is: the measured best, the nearest measurement, a rule."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from kernbench_ccl.measure import Setup, machine_of
from kernbench_ccl.plan.machine_key import machine_key
from kernbench_ccl.plan.tuning import LARGE, Tuning, TuningEntry, by_rule, load_tuning, shipped
from kernbench_ccl.plugin import kernbench_algorithms
from kernbench_core.plugins import load_plugins

RING, TREE, DIRECT = "ccl.ring_all_reduce", "ccl.double_binary_tree_all_reduce", "ccl.direct_all_reduce"


def test_the_measured_best_of_a_size_is_chosen():
    """Up to its bytes each, the last one also above."""
    table = Tuning((TuningEntry("all_reduce", "ring", 8, ((4096, TREE), (1 << 20, RING))),))
    chosen = [table.choose("all_reduce", "ring", 8, n, (RING, TREE)) for n in (1, 4096, 4097, 1 << 30)]
    assert chosen == [TREE, TREE, RING, RING]


def test_another_number_of_ranks_takes_the_nearest_measurement():
    """Nearest by ratio; another network or collective is no neighbour."""
    table = Tuning(
        (
            TuningEntry("all_reduce", "ring", 2, ((1 << 30, TREE),)),
            TuningEntry("all_reduce", "ring", 8, ((1 << 30, RING),)),
            TuningEntry("all_reduce", "switch", 6, ((1 << 30, DIRECT),)),
        )
    )
    able = (DIRECT, RING, TREE)
    assert table.choose("all_reduce", "ring", 3, 1, able) == TREE
    assert table.choose("all_reduce", "ring", 6, 1, able) == RING
    assert table.choose("all_reduce", "switch", 2, 1, able) == DIRECT


def test_powers_of_two_are_near_each_other():
    """7 ranks are not 8, and 16 are not 12; a far power of two is further than what is no power."""
    table = Tuning(tuple(TuningEntry("all_reduce", "ring", world, ((1, RING),)) for world in (2, 3, 4, 6, 8)))
    nearest = {n: table.nearest("all_reduce", "ring", n)[0].world for n in (2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 100, 128)}
    assert nearest == {2: 2, 3: 3, 4: 4, 5: 6, 6: 6, 7: 6, 8: 8, 9: 6, 12: 6, 16: 8, 100: 6, 128: 8}


def test_what_auto_goes_by_is_said():
    """Other ranks and another machine than were measured, and the rule."""
    table = Tuning((TuningEntry("all_reduce", "ring", 8, ((1, RING),)),), frozenset({"its key"}))
    found = [table.basis("all_reduce", "ring", world, key) for world in (8, 6) for key in ("its key", "another")]
    assert found == [
        "by measurement",
        "by measurement on packages and links of default",
        "by measurement with 8 ranks",
        "by measurement with 8 ranks on packages and links of default",
    ]
    assert table.basis("all_reduce", "switch", 8, "its key") == "by rule, nothing was measured here"


def test_it_covers_what_was_measured_with_just_these_ranks():
    """No nearest one, no other network."""
    entry = TuningEntry("all_reduce", "ring", 8, ((1, RING),))
    table = Tuning((entry,))
    asked = [("all_reduce", "ring", 8), ("all_reduce", "ring", 7), ("all_reduce", "switch", 8), ("reduce", "ring", 8)]
    assert [table.covers(*cell) for cell in asked] == [entry, None, None, None]


def test_the_table_is_of_default_and_of_all_algorithms():
    """Where not, measure anew (tools/tune_ccl.py), or with --machines where what was changed takes no time."""
    plugins = load_plugins()
    networks = dict.fromkeys(entry.network for entry in shipped().entries)
    setups = (
        Setup("default", None, ("system.sips=4", f"system.network.topology={name}"), checked=False) for name in networks
    )
    assert {machine_key(machine_of(setup, plugins).graph) for setup in setups} == shipped().machines
    names = {entry.name for entry in kernbench_algorithms()} - {"ccl.direct_send_recv", "ccl.dissemination_barrier"}
    assert names == shipped().measured


def test_what_refuses_is_not_chosen():
    """A measured algorithm that does not do these ranks gives way."""
    table = Tuning((TuningEntry("all_reduce", "ring", 8, ((1 << 30, TREE),)),))
    assert table.choose("all_reduce", "ring", 7, 1, (RING,)) == RING
    assert table.choose("all_reduce", "ring", 7, 1, ()) is None


def test_the_rule_takes_few_steps_for_small_and_bandwidth_for_large():
    """Direct where everyone is linked; trees before rings for small messages on a ring."""
    able = (DIRECT, RING, TREE)
    assert by_rule("all_reduce", "ring", 8, 1024, (RING, TREE)) == TREE
    assert by_rule("all_reduce", "ring", 8, LARGE, able) == RING
    assert by_rule("all_reduce", "fully_connected", 8, LARGE, able) == DIRECT
    assert by_rule("all_reduce", "ring", 8, 1, ("acme.magic_all_reduce",)) == "acme.magic_all_reduce"


@given(
    st.sampled_from(["ring", "mesh_2d", "torus_2d", "fully_connected", "switch"]),
    st.integers(1, 64),
    st.integers(0, 1 << 34),
    st.lists(st.sampled_from([RING, TREE, DIRECT, "acme.odd"]), unique=True, min_size=1),
)
def test_something_able_is_always_chosen(network, world, nbytes, able):
    """Whatever the size and the network."""
    assert shipped().choose("all_reduce", network, world, nbytes, able) in able


def test_the_table_is_read_and_one_of_another_version_is_left(tmp_path):
    """A file that is not there, or of another schema, is no table."""
    path = tmp_path / "tuning.json"
    assert load_tuning(path) == Tuning()
    entry = {"collective": "all_reduce", "network": "ring", "world": 4, "best": [[1024, TREE], [2048, RING]]}
    of = {"machines": ["a", "b"], "measured": [RING, TREE]}
    path.write_text(json.dumps({"schema": "kernbench.tuning/1", **of, "entries": [entry]}))
    found = load_tuning(path)
    assert found.entries == (TuningEntry("all_reduce", "ring", 4, ((1024, TREE), (2048, RING))),)
    assert (found.machines, found.measured) == ({"a", "b"}, {RING, TREE})
    path.write_text(json.dumps({"schema": "kernbench.tuning/2", "entries": []}))
    assert load_tuning(path) == Tuning()
