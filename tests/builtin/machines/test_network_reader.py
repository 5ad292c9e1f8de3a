"""Shapes that plug-ins register: they are used like core's own, and what breaks the contract is told with its owner."""

from __future__ import annotations

from itertools import count, product
from typing import Any

import networkx as nx
import pytest
from attrs import evolve

from kernbench_core.errors import ConfigError, PluginError, UnknownName
from kernbench_core.plugins import NetworkRegistry, PluginFailure
from kernbench_core.topology.design import design_of
from kernbench_core.topology.networks import (
    Extent,
    NetworkFault,
    NetworkShape,
    ScaleUpLink,
    ScaleUpNetwork,
    ShapeFault,
    build_alone,
    build_network,
    find_extent,
)
from tests.core.offered import NETWORKS
from tests.core.small_machine import TEXT, machine
from tests.core.topology import odd_shapes
from tests.core.topology.odd_shapes import ACME, STRANGERS

SMALL = "sip.mesh={width: 1, height: 1}"


def network(shape: str, sips: int, *sets: str) -> ScaleUpNetwork:
    wanted = [f"system.network.topology={shape}", f"system.sips={sips}", SMALL, *sets]
    found = design_of(machine(sets=wanted, networks=STRANGERS)).network
    assert found is not None
    return found


def problems(shape: str, sips: int, *sets: str) -> tuple[str, ...]:
    """Return what is said of a machine whose file names the shape in line 3."""
    text = TEXT.replace("topology: ring", f"topology: {shape}")
    with pytest.raises(ConfigError) as caught:
        machine(text, sets=[f"system.sips={sips}", SMALL, *sets], networks=STRANGERS)
    return caught.value.problems


def test_a_shape_gets_its_parameters_and_their_defaults() -> None:
    """The links of a circulant graph of networkx, with the chord that is given or the default."""
    for sets, chord in (((), 2), (("system.network.params.chord=3",), 3)):
        built = network("acme.chordal", 9, *sets)
        found = {frozenset((link.first.sip, link.second.sip)) for link in built.links}
        assert found == {frozenset(edge) for edge in nx.circulant_graph(9, [1, chord]).edges}
        assert built.extent.params == {"chord": chord}


def test_routes_go_where_the_shape_says() -> None:
    """By chords as far as it goes, then by single steps, through the ports that the links have."""
    built = network("acme.chordal", 9, "system.network.params={chord: 4}")
    assert built.route(1, 7) == (("sip1.io0.link_up4", "sip5.io0.link_down4"),
                                 ("sip5.io0.link_up1", "sip6.io0.link_down1"),
                                 ("sip6.io0.link_up1", "sip7.io0.link_down1"))  # fmt: skip
    assert all(len(built.route(a, b)) == sum(divmod((b - a) % 9, 4)) for a, b in product(range(9), repeat=2))


def test_a_link_of_two_packages_is_taken_before_the_switch() -> None:
    built = network("acme.mixed", 3)
    assert built.route(0, 1) == (("sip0.io0.link_near", "sip1.io0.link_near"),)
    assert built.route(1, 2) == (("sip1.io0.link_switch0", "fabric.switch0", "sip2.io0.link_switch0"),)


def test_an_empty_mapping_of_a_later_layer_drops_the_parameters() -> None:
    """Without it they are in the way of another shape, and said to be."""
    first = ("system.network={topology: acme.chordal, params: {chord: 3}}", "system.network.topology=ring")
    with pytest.raises(ConfigError) as caught:
        machine(sets=["system.sips=9", SMALL, *first], networks=STRANGERS)
    assert caught.value.problems == (f"--set {first[0]}: system.network.params.chord must be a declared parameter.",)
    built = machine(sets=["system.sips=9", SMALL, *first, "system.network.params={}"], networks=STRANGERS)
    assert design_of(built) == design_of(machine(sets=["system.sips=9", SMALL]))


def test_faults_of_a_shape_and_its_parameters_are_told_together_with_others() -> None:
    wanted = ("system.network.params={chord: 1, cord: 3}", "system.network.width=3", "sip.io_chiplets=5")
    assert problems("acme.chordal", 9, *wanted)[:4] == (
        f"--set {wanted[0]}: system.network.params.cord must be a declared parameter. Did you mean 'chord'?",
        f"--set {wanted[0]}: system.network.params.chord must be an integer of at least 2, not 1.",
        f"--set {wanted[1]}: system.network.width must be left out, as acme.chordal has no columns and rows, not 3.",
        f"--set {wanted[2]}: sip.io_chiplets must be at most 4, not 5; the address fields or the package have no room.",
    )


def test_packages_that_do_not_fit_are_told_at_the_key_that_the_shape_names() -> None:
    assert problems("acme.chordal", 4) == (
        "m.yaml:3:3: system.network.params.chord must be less than half of the 4 packages, not 2.",
    )


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        ("circle", "must lead every package to every other, but on the way to sip2 it goes sip0, sip1, sip0; repair or "
                   "reinstall acme-nets."),
        ("leap", "must lead along its links, but on the way to sip0 it goes from sip2 to 0, which no link joins; "
                 "repair or reinstall acme-nets."),
        ("half", "must step to packages by their whole numbers, but on the way to sip0 it goes from sip1 to 0.0; "
                 "repair or reinstall acme-nets."),
        ("text", "must be a NetworkShape of kernbench_core.topology, not 'a text'; repair or reinstall acme-nets."),
        ("gone", "must be importable from 'tests.core.topology.odd_shapes:GONE', but that raised AttributeError: "
                 "module 'tests.core.topology.odd_shapes' has no attribute 'GONE'; repair or reinstall acme-nets."),
    ],
)  # fmt: skip
def test_a_shape_that_breaks_the_contract_is_told_with_its_distribution(shape: str, sentence: str) -> None:
    """Before anything runs, at the line that names it."""
    assert problems(f"acme.{shape}", 3) == (
        f"m.yaml:3:13: system.network.topology must be usable, not 'acme.{shape}': network 'acme.{shape}' of acme-nets "
        f"1.2 {sentence}",
    )


@pytest.mark.parametrize(
    ("field", "must"),
    [
        ({"params": ("x",)}, "must have as params a tuple of Param, not ('x',)"),
        ({"params": None}, "must have as params a tuple of Param, not None"),
        ({"links": "ring"}, "must have as links a function of the extent, not 'ring'"),
        ({"step": 1}, "must have as step a function of the extent and two packages, not 1"),
        ({"flat": "no"}, "must have True or False as flat, not 'no'"),
        ({"closed": 1}, "must have True, False or None as closed, not 1"),
    ],
)
def test_a_field_of_a_shape_that_will_not_do_is_told_with_its_distribution(
    field: dict[str, Any], must: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a machine at the line that names it, and for the network alone."""
    monkeypatch.setattr(odd_shapes, "MIXED", evolve(odd_shapes.MIXED, **field))
    told = f"network 'acme.mixed' of acme-nets 1.2 {must}; repair or reinstall acme-nets."
    assert problems("acme.mixed", 3) == (
        f"m.yaml:3:13: system.network.topology must be usable, not 'acme.mixed': {told}",
    )
    with pytest.raises(PluginError) as caught:
        build_alone(STRANGERS, "acme.mixed", 3)
    assert str(caught.value) == told


def test_a_step_may_be_a_whole_number_of_numpy() -> None:
    """The network is the one of the same steps in Python's own."""
    assert network("acme.numpy", 5)._next == network("acme.mixed", 5)._next
    assert {type(sip) for row in network("acme.numpy", 5)._next for sip in row} == {int}


def test_a_link_may_name_its_packages_by_whole_numbers_of_numpy() -> None:
    """The network is the one of the same links in Python's own."""
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    own = NetworkShape(lambda _: [ScaleUpLink(a, f"to{b}", b, f"to{a}") for a, b in pairs], lambda _, __, there: there)
    found = network("acme.numpy_links", 4)
    assert found.links == build_network("x", own, find_extent("x", own, 4), 1).links
    assert {type(end.sip) for link in found.links for end in link.ends} == {int}


@pytest.mark.parametrize("odd", [True, 1.0, "1"])
def test_a_link_names_its_packages_by_nothing_else(odd: Any) -> None:
    link = ScaleUpLink(0, "e", odd, "w")
    shape = NetworkShape(lambda _: [link], lambda _, __, there: there)
    with pytest.raises(ShapeFault) as caught:
        build_network("x", shape, find_extent("x", shape, 2), 1)
    assert str(caught.value) == f"must link packages from 0 to 1, not {odd!r} in {link}"
    assert f"other_sip={odd!r}" in str(link)


def test_what_a_shape_raises_is_the_fault_of_its_distribution() -> None:
    with pytest.raises(PluginError) as caught:
        network("acme.broken", 3)
    first, *lines = str(caught.value).splitlines()
    assert first == (
        "network 'acme.broken' of acme-nets 1.2 raised LookupError: no table for 3; repair or reinstall acme-nets."
    )
    assert 'raise LookupError(f"no table for {extent.sips}")' in lines[-1]


def faulty(key: Any, text: str) -> NetworkShape:
    def links(_: Extent) -> list[ScaleUpLink]:
        raise NetworkFault(key, text)

    return evolve(odd_shapes.CHORDAL, links=links)


@pytest.mark.parametrize(
    ("shape", "must"),
    [
        (faulty("banana", "must be yellow."),
         "must raise NetworkFault for one of the keys sips, width, height, chord, not for 'banana'"),
        (faulty(["sips"], "must be x."),
         "must raise NetworkFault for one of the keys sips, width, height, chord, not for ['sips']"),
        (faulty("sips", " "), "must say in its NetworkFault what sips must be, not ' '"),
        (NetworkShape(lambda _: None, odd_shapes.straight),  # type: ignore[arg-type,return-value]
         "must return as links a list of ScaleUpLink objects, not None"),
        (NetworkShape(lambda _: (ScaleUpLink(0, f"p{n}", 1, f"p{n}") for n in count()), odd_shapes.straight),
         "must link two packages, or a package and the switch, and once only, not as in ScaleUpLink(sip=0, port='p1', "
         "other_sip=1, other_port='p1')"),
        (NetworkShape(odd_shapes.line_links, lambda _, a, b: a + (1 if b > a else -1), closed=True),
         "must have a link from each package to its neighbours, as closed=True says, but none joins sip0 and sip3"),
        (NetworkShape(odd_shapes.line_links, lambda _, a, b: a + (1 if b > a else -1), flat=True, closed=False),
         "must have a link from each package to its neighbours, as closed=False says, but none joins sip0 and sip2"),
    ],
)  # fmt: skip
def test_what_a_shape_says_that_cannot_be_is_told_with_its_distribution(
    shape: NetworkShape, must: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a machine of four packages at the line that names it, and of the network alone."""
    monkeypatch.setattr(odd_shapes, "MIXED", shape)
    told = f"network 'acme.mixed' of acme-nets 1.2 {must}; repair or reinstall acme-nets."
    assert problems("acme.mixed", 4) == (
        f"m.yaml:3:13: system.network.topology must be usable, not 'acme.mixed': {told}",
    )
    with pytest.raises(PluginError) as caught:
        build_alone(STRANGERS, "acme.mixed", 4)
    assert str(caught.value) == told


def test_what_a_shape_prints_is_no_result(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It goes to stderr, so that --json stays one object."""

    def links(extent: Extent) -> list[ScaleUpLink]:
        print("hello")
        return odd_shapes.pair_and_switch(extent)

    monkeypatch.setattr(odd_shapes, "MIXED", evolve(odd_shapes.MIXED, links=links))
    network("acme.mixed", 3)
    build_alone(STRANGERS, "acme.mixed", 3)
    assert capsys.readouterr() == ("", "hello\nhello\n")


def test_an_unknown_shape_lists_those_there_are_and_suggests_one() -> None:
    known = ("acme.broken", "acme.chordal", "acme.circle", "acme.demanding", "acme.gone", "acme.half", "acme.leap",
             "acme.mixed", "acme.numpy", "acme.numpy_links", "acme.text", "fully_connected", "mesh_2d", "ring",
             "switch", "torus_2d")  # fmt: skip
    assert problems("acme.cordal", 3) == (
        f"m.yaml:3:13: system.network.topology must be one of {', '.join(map(repr, known))}, not 'acme.cordal'. Did "
        "you mean 'acme.chordal'?",
    )


def test_a_shape_of_a_plugin_that_was_left_out_is_told_with_the_reason() -> None:
    left_out = NetworkRegistry(entries=NETWORKS, failures=(PluginFailure(ACME, "ImportError: no tables"),))
    with pytest.raises(ConfigError) as caught:
        machine(TEXT.replace("topology: ring", "topology: acme.cube"), networks=left_out)
    assert caught.value.problems == (
        "m.yaml:3:13: system.network.topology must be usable, not 'acme.cube': network 'acme.cube' belongs to plug-in "
        "'acme' (acme-nets 1.2), which could not be loaded: ImportError: no tables",
    )


def test_a_network_alone_is_that_of_a_machine_of_as_many_packages() -> None:
    """With the defaults of its parameters."""
    assert build_alone(STRANGERS, "acme.chordal", 9) == network("acme.chordal", 9)
    assert build_alone(STRANGERS, "ring", 5) == network("ring", 5)


@pytest.mark.parametrize(
    ("shape", "sips", "raised", "sentence"),
    [
        ("chordal", 4, NetworkFault, "must be less than half of the 4 packages, not 2."),
        ("demanding", 9, NetworkFault, "must be given: How far."),
        ("circle", 3, PluginError, "network 'acme.circle' of acme-nets 1.2 must lead every package to every other, but "
                                   "on the way to sip2 it goes sip0, sip1, sip0; repair or reinstall acme-nets."),
        ("broken", 3, PluginError, "network 'acme.broken' of acme-nets 1.2 raised LookupError: no table for 3; "
         "repair or reinstall acme-nets."),
        ("cube", 3, UnknownName, "network must be a registered name, not 'acme.cube'."),
    ],
)  # fmt: skip
def test_a_network_alone_that_cannot_be_built_is_a_sentence(
    shape: str, sips: int, raised: type[Exception], sentence: str
) -> None:
    with pytest.raises(raised) as caught:
        build_alone(STRANGERS, f"acme.{shape}", sips)
    assert str(caught.value).startswith(sentence)
    if raised is NetworkFault:
        assert caught.value.key == "chord"
