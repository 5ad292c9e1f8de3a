"""The contract: how vectors are shared, what a call may be, and how a module is found, checked and refused."""

from __future__ import annotations

import itertools
import types
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_ccl.contract import (
    Collective,
    Cost,
    KernelContext,
    Network,
    full_name,
    kernel_args,
    load_algorithm,
    methods_of,
    read_algorithm,
    share,
)
from kernbench_core.errors import PluginError, UsageError
from kernbench_core.registry import AlgorithmEntry, Provider, Registry

US = Provider("ccl", "kernbench", "1.0")
ACME = Provider("acme", "acme-kb", "2.0")
RING = Network("ring", 4, 4)


def registry(*names: str) -> Registry[AlgorithmEntry]:
    """Make a registry of shipped algorithms under these names."""
    entries = []
    for name in names:
        target = f"kernbench_ccl.algorithms.{name.partition('.')[2]}:kernel"
        entries.append((AlgorithmEntry(name, target, "An algorithm."), US if name.startswith("ccl.") else ACME))
    return Registry("algorithm", entries)


def module(**published: Any) -> types.ModuleType:
    """Make a module that keeps the contract, but for what is given; None leaves a name out."""

    def kernel(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):  # type: ignore[no-untyped-def]
        pass

    names = {
        "COLLECTIVE": "all_reduce", "TOPO_NAME_TO_KIND": {"ring": 0}, "kernel": kernel, "kernel_args": kernel_args,
        "__file__": "mine.py",
    }  # fmt: skip
    made = types.ModuleType("mine", "All-reduce my way.\n\nMore of it.")
    for name, value in (names | published).items():
        if value is not None:
            setattr(made, name, value)
    return made


def fault(**published: Any) -> str:
    """Return what is said of a module that publishes this."""
    with pytest.raises(PluginError) as caught:
        read_algorithm(module(**published), "acme.mine")
    return str(caught.value)


@given(st.integers(0, 10_000), st.integers(1, 100))
def test_shares_are_a_fair_cut_without_gaps(count: int, parts: int) -> None:
    """Parts follow each other, cover everything, and differ by at most one element."""
    cuts = [share(count, parts, index) for index in range(parts)]
    assert cuts[0][0] == 0 and cuts[-1][1] == count
    assert all(a[1] == b[0] for a, b in itertools.pairwise(cuts))
    sizes = [end - start for start, end in cuts]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] - sizes[-1] <= 1


def test_a_grid_is_the_networks_own_only_where_it_joins_just_these_ranks() -> None:
    """A group of some SIPs, and a network without columns, get the most square grid."""
    assert Network("mesh_2d", 8, 2, 4).grid(8) == (2, 4)
    assert Network("mesh_2d", 8, 2, 4).grid(6) == (3, 2)
    assert Network("ring", 8, 8).grid(8) == (4, 2)
    assert Network("switch", 7, 7).grid(7) == (7, 1)


def test_a_hop_over_a_switch_is_two_links() -> None:
    """Other networks join neighbours by one link."""
    assert Cost(4, 1.0, 100.0, 500.0, Network("switch", 4, 4)).hop == 1000.0
    assert Cost(4, 1.0, 100.0, 500.0, RING).hop == 500.0


def call(**named: Any) -> Collective:
    """Make an all-reduce of four ranks, but for what is given."""
    return Collective(
        **({"name": "all_reduce", "dtype": "f16", "network": RING, "group": (0, 1, 2, 3), "redop": "sum"} | named)
    )


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        (
            {"name": "allreduce"},
            "a collective must be one of all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, "
            "gather, scatter, send_recv, barrier, not 'allreduce'.",
        ),
        ({"redop": None}, "all_reduce must have a reduction, not None; choose one."),
        ({"name": "all_gather"}, "all_gather must have no reduction, not 'sum'; leave it out."),
        (
            {"redop": "avg", "dtype": "int32"},
            "avg must be of a float dtype, not of int32, which cannot hold the quotient; use sum, or cast first.",
        ),
        (
            {"redop": "xor"},
            "a reduction must be one of sum, avg, product, min, max, not 'xor'; choose one of these.",
        ),
        ({"root": 4}, "the root of all_reduce must be a rank from 0 to 3, not 4."),
        ({"tile": 0}, "tile of all_reduce must be at least 1 element, not 0."),
        ({"contributors": "cube"}, "contributors of all_reduce must be one of sip, pe, not 'cube'."),
    ],
)
def test_a_call_that_does_not_fit_together_is_a_sentence(named: dict[str, Any], sentence: str) -> None:
    """It is refused where it is made."""
    with pytest.raises(UsageError) as caught:
        call(**named)
    assert str(caught.value) == sentence


def test_how_many_tiles_may_be_held_follows_from_their_bytes() -> None:
    """At least one, however large a tile is."""
    assert call(tile=8192).held_tiles == 32
    assert call(tile=1 << 20).held_tiles == 1


def test_kernel_args_are_the_nine_in_order() -> None:
    """The collective is not among them: a kernel reads tl.collective."""
    assert kernel_args(KernelContext(1, 2, 3, 4, 5, 6, 7, 8, 9, call())) == (1, 2, 3, 4, 5, 6, 7, 8, 9)


def test_a_short_name_finds_the_method_of_the_collective() -> None:
    """Of any vendor; a full name is taken as it is."""
    known = registry("ccl.ring_all_reduce", "ccl.ring_all_gather", "acme.ring_bidirectional_all_reduce")
    assert full_name(known, "ring", "all_gather") == "ccl.ring_all_gather"
    assert full_name(known, "ring_bidirectional", "all_reduce") == "acme.ring_bidirectional_all_reduce"
    assert full_name(known, "ccl.ring_all_reduce", "all_reduce") == "ccl.ring_all_reduce"
    assert methods_of(known, "all_reduce") == {
        "ring_bidirectional": "acme.ring_bidirectional_all_reduce", "ring": "ccl.ring_all_reduce"
    }  # fmt: skip


def test_a_short_name_of_two_vendors_is_asked_for_in_full() -> None:
    """Which one comes first must not decide."""
    known = registry("ccl.ring_all_reduce", "acme.ring_all_reduce")
    with pytest.raises(UsageError) as caught:
        full_name(known, "ring", "all_reduce")
    assert str(caught.value) == (
        "algorithm 'ring' must name one algorithm, not acme.ring_all_reduce and ccl.ring_all_reduce; write its full "
        "name."
    )
    assert sorted(methods_of(known, "all_reduce")) == ["acme.ring_all_reduce", "ccl.ring_all_reduce"]


def test_an_unknown_name_lists_the_methods_of_the_collective() -> None:
    """The closest is suggested."""
    with pytest.raises(UsageError) as caught:
        full_name(registry("ccl.ring_all_reduce", "ccl.torus_all_reduce"), "rign", "all_reduce")
    assert str(caught.value) == (
        "algorithm of all_reduce must be one of ring, torus, or a registered name, not 'rign'. Did you mean 'ring'?"
    )


def test_an_algorithm_is_loaded_with_everything_that_it_publishes() -> None:
    """What it leaves out has defaults."""
    found = load_algorithm(registry("ccl.ring_reduce_scatter"), "ring", "reduce_scatter")
    assert (found.name, found.collective, found.contributors) == ("ccl.ring_reduce_scatter", "reduce_scatter", ("sip",))
    assert found.scratch_count(10, 4) == 10 and found.refusal(RING) is None and found.kind_of(RING) == 0
    assert found.file.endswith("ring_reduce_scatter.py")
    assert (
        found.sentence
        == "Reduce-scatter around a ring, in one direction: partial sums travel until they end at their rank."
    )
    plain = read_algorithm(module(), "acme.mine")
    assert (plain.scratch_count(10, 4), plain.formula, plain.sentence) == (0, None, "All-reduce my way.")


def test_an_algorithm_of_another_collective_is_refused() -> None:
    """Its full name does not help."""
    with pytest.raises(UsageError) as caught:
        load_algorithm(registry("ccl.ring_all_reduce"), "ccl.ring_all_reduce", "all_gather")
    file = load_algorithm(registry("ccl.ring_all_reduce"), "ring", "all_reduce").file
    assert str(caught.value) == (
        f"algorithm 'ccl.ring_all_reduce' must do all_gather, not all_reduce, as {file} says; choose another."
    )


def test_what_an_algorithm_does_not_run_on_is_a_sentence() -> None:
    """The network, who contributes, and what the module itself refuses."""
    found = read_algorithm(module(refuses=lambda world, network: "no." if world == 3 else None), "acme.mine")
    assert found.refusal(RING, 3) == "no." and found.refusal(RING, 4) is None
    sentence = "acme.mine must run on one of the networks ring, not 'switch'; choose another."
    assert found.refusal(Network("switch", 4, 4)) == sentence
    with pytest.raises(UsageError) as caught:
        found.kind_of(Network("switch", 4, 4))
    assert str(caught.value) == sentence
    assert found.refusal(RING, 4, "pe") == "acme.mine must be given one vector per sip, not per pe; choose another."


def test_everything_that_a_module_lacks_is_said_at_once() -> None:
    """One sentence for each, with the file."""
    said = fault(COLLECTIVE=None, TOPO_NAME_TO_KIND=None, kernel=None, kernel_args=None).splitlines()
    assert said == [
        "mine.py: COLLECTIVE must be one of all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, "
        "gather, scatter, send_recv, barrier, and the module has no such name; say which one it does.",
        "mine.py: TOPO_NAME_TO_KIND must be a dict of network names with an integer each, and the module has no such "
        "name; name the networks that it runs on.",
        "mine.py: kernel must be a function kernel(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, "
        "topo_kind, tl), and the module has no such name; write def algorithm(…) and kernel = algorithm.",
        "mine.py: kernel_args must be a function kernel_args(ctx), and the module has no such name; import kernel_args "
        "from kernbench_ccl.contract to pass all nine on.",
    ]


@pytest.mark.parametrize(
    ("published", "sentence"),
    [
        (
            {"TOPO_NAME_TO_KIND": {"rings": 0}},
            "mine.py: TOPO_NAME_TO_KIND must have the names of networks as its keys, not 'rings'. Did you mean 'ring'?",
        ),
        (
            {"TOPO_NAME_TO_KIND": {"ring": "0"}},
            "mine.py: TOPO_NAME_TO_KIND['ring'] must be an integer, not '0'; define a constant for it.",
        ),
        (
            {"TOPO_NAME_TO_KIND": {"ring": 1, "switch": 1}},
            "mine.py: TOPO_NAME_TO_KIND must give every network an integer of its own, not {'ring': 1, 'switch': 1}.",
        ),
        ({"CONTRIBUTORS": ("cube",)}, "mine.py: CONTRIBUTORS must be a tuple of 'sip' and 'pe', not ('cube',)."),
        (
            {"kernel": lambda tl: None},
            "mine.py: kernel must take the parameters (in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, "
            "topo_kind, tl), not (tl); write def algorithm(…) and kernel = algorithm.",
        ),
        (
            {"refuses": lambda world: None},
            "mine.py: refuses must take the parameters (world, network), not (world); or leave it out.",
        ),
        ({"WAYS": 0}, "mine.py: WAYS must be a number of PEs from 1, not 0; or leave it out."),
        ({"formula": 3}, "mine.py: formula must be a function formula(cost), not 3; or leave it out."),
    ],
)
def test_a_wrong_name_is_a_sentence(published: dict[str, Any], sentence: str) -> None:
    """It says what must be there and what to do."""
    assert fault(**published) == sentence
