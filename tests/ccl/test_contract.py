"""The contract: how vectors are shared, what a call may be, and how a module is found, checked and refused."""

from __future__ import annotations

import itertools
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_ccl.catalogue import read_algorithm, read_file
from kernbench_ccl.collectives import COLLECTIVES
from kernbench_ccl.contract import SWITCH, Collective, Cost, KernelContext, Network, kernel_args, share
from kernbench_ccl.templates import all_reduce
from kernbench_core.errors import KernelError, PluginError, UsageError
from tests.ccl.catalogues import catalogue

RING = Network("ring", 4, 4)


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


def test_a_switch_that_stores_adds_a_packet_to_a_hop() -> None:
    """The largest that there is, or a PE's piece of what its rank sends; a ring has no switch."""
    over = Cost(4, 1e6, 100.0, 500.0, Network("switch", 4, 4), message=2048.0, stored=4096.0, pes=2)
    assert over.hop == 1000.0 + 2048 / 100
    assert over.hop_of(3000.0) == 1000.0 + 1500 / 100
    assert over.hop_of(0) == 1000.0
    assert Cost(4, 1e6, 100.0, 500.0, RING, stored=4096.0).hop == 500.0


def call(**named: Any) -> Collective:
    """Make an all-reduce of four ranks, but for what is given."""
    given = {"kind": COLLECTIVES["all_reduce"], "dtype": "f16", "network": RING, "group": (0, 1, 2, 3), "redop": "sum"}
    return Collective(**(given | named))


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ({"redop": None}, "all_reduce must have a reduction, not None; choose one."),
        ({"kind": COLLECTIVES["all_gather"]}, "all_gather must have no reduction, not 'sum'; leave it out."),
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


@pytest.mark.parametrize(
    ("named", "elements", "messages"),
    [
        ({}, 4096, 16),  # nobody knows: half of 512 KiB that may be held, in f32
        ({"window_bytes": 40_000}, 4096, 2),
        ({"window_bytes": 40_000}, 1000, 10),  # small messages: more of them
        ({"window_bytes": 40_000}, 1 << 20, 2),  # none is larger than a tile
        ({"window_bytes": 40_000}, 0, 10_000),
        ({"window_bytes": 10}, 4096, 1),
    ],
)
def test_how_many_messages_are_under_way_follows_from_their_bytes(
    named: dict[str, Any], elements: int, messages: int
) -> None:
    """At least one; empty blocks count as an element."""
    assert call(dtype="f32", **named).window(elements) == messages


def test_kernel_args_are_the_nine_in_order() -> None:
    """The collective is not among them: a kernel reads tl.collective."""
    assert kernel_args(KernelContext(1, 2, 3, 4, 5, 6, 7, 8, 9, call())) == (1, 2, 3, 4, 5, 6, 7, 8, 9)


def said(function: Any, *arguments: Any) -> tuple[str, int]:
    """Return what is raised, and its exit code."""
    with pytest.raises(KernelError) as caught:
        function(*arguments)
    return str(caught.value), caught.value.exit_code


def test_arguments_that_are_not_nine_are_refused_with_the_line_of_kernel_args() -> None:
    """Too few, or no sequence at all."""

    def short(ctx: KernelContext) -> Any:
        return ctx.in_ptr, ctx.out_ptr

    def nothing(ctx: KernelContext) -> Any:
        return None

    context = KernelContext(1, 2, 3, 4, 5, 6, 7, 8, 9, call())
    for function, found in ((short, "2 of them"), (nothing, "None")):
        line = f"{__file__}:{function.__code__.co_firstlineno}"
        assert said(read_algorithm(module(kernel_args=function), "acme.mine").arguments, context) == (
            f"{line}: kernel_args must return the nine arguments (in_ptr, out_ptr, scratch_ptr, count, rank, world, "
            f"pe, n_pe, topo_kind), not {found}; leave it out, and all nine are passed on.",
            6,
        )


def test_what_functions_of_a_module_raise_or_return_wrongly_is_told_with_their_line() -> None:
    """An algorithm's refusal, scratch memory and arguments."""

    def refuses(world: int, network: Network) -> Any:
        return world == 3

    def scratch_count(count: int, world: int) -> Any:
        return count / world

    def peers(world: int) -> Any:
        return world - 3

    def raising(ctx: KernelContext) -> Any:
        return ctx.nothing  # type: ignore[attr-defined]

    found = read_algorithm(
        module(refuses=refuses, scratch_count=scratch_count, peers=peers, kernel_args=raising), "acme.mine"
    )
    lines = [f"{__file__}:{each.__code__.co_firstlineno}" for each in (refuses, scratch_count, peers)]
    assert said(found.queues, 2) == (f"{lines[2]}: peers must return a number of ranks from 0, not -1.", 6)
    assert said(found.refusal, RING) == (
        f"{lines[0]}: refuses must return a sentence or None, not False; say why not.",
        6,
    )
    assert said(found.scratch, 3, 2) == (
        f"{lines[1]}: scratch_count must return a number of elements from 0, not 1.5.",
        6,
    )
    assert said(found.arguments, KernelContext(1, 2, 3, 4, 5, 6, 7, 8, 9, call())) == (
        f"{__file__}:{raising.__code__.co_firstlineno + 1}: kernel_args of acme.mine raised AttributeError: "
        "'KernelContext' object has no attribute 'nothing'.",
        6,
    )


def always(value: object) -> Any:
    """Return a formula that gives one value."""
    return lambda cost: value


COST = Cost(4, 1e6, 100.0, 500.0, RING)


@pytest.mark.parametrize("nonsense", ["abc", float("nan"), float("inf"), -5, True, [1.0]])
def test_a_closed_form_is_a_time_or_says_why_there_is_none(nonsense: object) -> None:
    """Whatever else a formula returns is told with its line; numbers of numpy are numbers."""
    formula = always(nonsense)
    assert said(read_algorithm(module(formula=formula), "acme.mine").closed_form, COST) == (
        f"{__file__}:{formula.__code__.co_firstlineno}: formula must return a finite time in ns from 0, or None or "
        f"a sentence where it has no closed form, not {nonsense!r}.",
        6,
    )
    for right in (np.float64(5.5), np.int64(5), 0, 5):
        assert read_algorithm(module(formula=always(right)), "acme.mine").closed_form(COST) == right
    for formula, reason in (
        ({"formula": always("links are shared")}, "links are shared"),
        ({"formula": always(None)}, "its module has none for this on ring"),
        ({}, "its module publishes none"),
    ):
        assert read_algorithm(module(**formula), "acme.mine").closed_form(COST) == reason


def test_what_a_closed_form_raises_is_told_with_its_line() -> None:
    """As what the other functions of a module raise."""

    def formula(cost: Cost) -> float:
        return cost.nbytes / 0

    assert said(read_algorithm(module(formula=formula), "acme.mine").closed_form, COST) == (
        f"{__file__}:{formula.__code__.co_firstlineno + 1}: formula of acme.mine raised ZeroDivisionError: float "
        "division by zero.",
        6,
    )

    def sentence(cost: Cost) -> float:
        raise ValueError("there must be two ranks.")

    assert said(read_algorithm(module(formula=sentence), "acme.mine").closed_form, COST)[0].endswith(
        " formula of acme.mine raised ValueError: there must be two ranks."
    )


def test_an_algorithm_is_loaded_with_everything_that_it_publishes() -> None:
    """What it leaves out has defaults."""
    found = catalogue("ccl.ring_reduce_scatter").open("ring", "reduce_scatter")
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
        catalogue("ccl.ring_all_reduce").open("ccl.ring_all_reduce", "all_gather")
    file = catalogue("ccl.ring_all_reduce").open("ring", "all_reduce").file
    assert str(caught.value) == (
        f"algorithm 'ccl.ring_all_reduce' must do all_gather, not all_reduce, as {file} says; choose another."
    )


def test_what_an_algorithm_does_not_run_on_is_a_sentence() -> None:
    """The network, who contributes, and what the module itself refuses."""
    refusals = {3: "no.", 5: "mine must have fewer."}
    found = read_algorithm(module(refuses=lambda world, network: refusals.get(world)), "acme.mine")
    assert found.refusal(RING, 3) == "acme.mine must not be asked for 3 ranks on ring: no."
    assert found.refusal(RING, 5) == "mine must have fewer."
    assert found.refusal(RING, 4) is None
    file = read_algorithm(module(refuses=lambda world, network: "a copy has none."), "./my/mine.py")
    assert file.refusal(RING) == "./my/mine.py must not be asked for 4 ranks on ring: a copy has none."
    sentence = "acme.mine must run on one of the networks ring, not 'switch'; choose another."
    assert found.refusal(Network("switch", 4, 4)) == sentence
    with pytest.raises(UsageError) as caught:
        found.kind_of(Network("switch", 4, 4))
    assert str(caught.value) == sentence
    assert found.refusal(RING, 4, "pe") == "acme.mine must be given one vector per sip, not per pe; choose another."


def test_a_star_stands_for_every_network_that_is_not_named() -> None:
    """Those of core, on which it is proved, and those that plug-ins bring; without it the latter are refused."""
    cube = Network("acme.cube", 4, 4)
    found = read_algorithm(module(TOPO_NAME_TO_KIND={"ring": 3, "*": 7}), "acme.mine")
    assert found.topologies == {"ring": 3, "fully_connected": 7, "mesh_2d": 7, "switch": 7, "torus_2d": 7}
    assert [found.kind_of(each) for each in (RING, Network("switch", 4, 4), cube)] == [3, 7, 7]
    assert found.refusal(cube) is None
    alone = read_algorithm(module(), "acme.mine")
    assert alone.refusal(cube) == "acme.mine must run on one of the networks ring, not 'acme.cube'; choose another."


def test_a_module_that_names_no_networks_runs_on_all() -> None:
    """Those of plug-ins among them; its kernel gets all nine arguments, with the contract's integer of the network."""
    found = read_algorithm(module(TOPO_NAME_TO_KIND=None, kernel_args=None), "acme.mine")
    assert list(found.topologies) == ["ring", "mesh_2d", "torus_2d", "fully_connected", "switch"]
    known = [found.kind_of(Network(name, 4, 4)) for name in (*found.topologies, "acme.cube")]
    assert known == [0, 1, 2, 3, 4, 5] and known[4] == SWITCH
    assert found.arguments(KernelContext(1, 2, 3, 4, 5, 6, 7, 8, 9, call())) == (1, 2, 3, 4, 5, 6, 7, 8, 9)


@pytest.mark.parametrize(
    ("written", "meant"), [("TOPO_NAMES_TO_KIND", "TOPO_NAME_TO_KIND"), ("kernel_arguments", "kernel_args")]
)
def test_a_misspelt_name_is_not_taken_for_one_that_is_left_out(written: str, meant: str) -> None:
    """The module would run on every network, or with other arguments; beside the right name it is the module's own."""
    said = fault(**{written: {"ring": 0}, meant: None})
    assert said == f"mine.py: {written} must be called {meant}, which the module has not; or leave it out."
    assert read_algorithm(module(**{written: {"ring": 0}}), "acme.mine").kind_of(RING) == 0


def test_everything_that_a_module_lacks_is_said_at_once() -> None:
    """One sentence for each, with the file."""
    said = fault(COLLECTIVE=None, TOPO_NAME_TO_KIND={}, kernel=None, kernel_args=3).splitlines()
    assert said == [
        "mine.py: COLLECTIVE must be one of all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, "
        "gather, scatter, send_recv, barrier, and the module has no such name; say which one it does.",
        "mine.py: TOPO_NAME_TO_KIND must be a dict of network names with an integer each, not {}; or leave it out, "
        "where it runs on every network.",
        "mine.py: kernel must be a function kernel(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, "
        "topo_kind, tl), and the module has no such name; write def algorithm(…) and kernel = algorithm.",
        "mine.py: kernel_args must be a function kernel_args(ctx), not 3; or leave it out.",
    ]


@pytest.mark.parametrize(
    ("published", "sentence"),
    [
        (
            {"TOPO_NAME_TO_KIND": {"rings": 0}},
            "mine.py: TOPO_NAME_TO_KIND must have the names of networks as its keys, or '*' for any other, not "
            "'rings'. Did you mean 'ring'?",
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


def test_an_algorithm_file_may_import_what_lies_beside_it(tmp_path: Path) -> None:
    """As the file of a bench may; nobody else finds that module, and what the file raises is told with its line."""
    template = Path(all_reduce.__file__).read_text()
    (tmp_path / "mine.py").write_text(f"{template}\nfrom beside_mine import WAYS as WAYS\n")
    (tmp_path / "beside_mine.py").write_text("WAYS = 3\n")
    assert read_file(tmp_path / "mine.py").ways == 3
    assert "beside_mine" not in sys.modules
    (tmp_path / "beside_mine.py").write_text("raise ValueError('no')\n")
    with pytest.raises(KernelError) as caught:
        read_file(tmp_path / "mine.py")
    told, _, lines = str(caught.value).partition("\n")
    assert told == f"algorithm file '{tmp_path}/mine.py' must run to its end, but it raised ValueError: no."
    assert f'File "{tmp_path}/beside_mine.py", line 1, in <module>' in lines
