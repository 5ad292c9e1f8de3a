"""The kit for shapes of the scale-up network: ours pass it, and each planted fault is found by the check for it."""

from __future__ import annotations

import itertools

import pytest
from attrs import evolve

from kernbench_builtin.checks.network_checks import KIT, ShapeUnderTest, shape_under_test
from kernbench_core.plugins import load_plugins, own_plugins
from kernbench_core.testing import CheckFailed, CheckOutcome
from kernbench_core.topology import Extent, NetworkFault, NetworkShape, ScaleUpLink

CALLS = itertools.count()


def links(extent: Extent) -> list[ScaleUpLink]:
    """Close a ring; of two packages it is one link."""
    joined = [ScaleUpLink(sip, "next", (sip + 1) % extent.sips, "last") for sip in range(extent.sips)]
    return joined[:1] if extent.sips == 2 else joined


def step(extent: Extent, here: int, there: int) -> int:
    ahead = (there - here) % extent.sips
    return (here + (1 if ahead <= extent.sips - ahead else -1)) % extent.sips


def verdicts(shape: object) -> dict[str, tuple[CheckOutcome, str]]:
    """Try every check on a shape."""
    under_test = shape_under_test("acme.loop", shape)
    found = [check.result("networks", "acme.loop", under_test, {}) for check in KIT.checks]
    return {each.check: (each.outcome, each.reason) for each in found}


def failed(shape: NetworkShape) -> dict[str, str]:
    return {name: reason for name, (outcome, reason) in verdicts(shape).items() if outcome is CheckOutcome.FAILED}


@pytest.mark.parametrize("name", ["ring", "mesh_2d", "torus_2d", "fully_connected", "switch"])
def test_our_shapes_pass(name: str) -> None:
    """All of them, at each number of packages."""
    plugins = load_plugins(own_plugins("builtin.machines"), installed=False)
    under_test: ShapeUnderTest = KIT.opens(plugins, name)
    assert [extent.sips for extent in under_test.extents] == list(range(2, 18))
    outcomes = {check.result("networks", name, under_test, {}).outcome for check in KIT.checks}
    assert outcomes == {CheckOutcome.PASSED, CheckOutcome.NOT_APPLICABLE}


def test_a_ring_of_a_plugins_own_passes() -> None:
    """What the faults below are planted in."""
    assert failed(NetworkShape(links, step)) == {}


def odd_only(extent: Extent) -> list[ScaleUpLink]:
    if extent.sips % 2 == 0:
        raise ValueError(f"no {extent.sips}")
    return links(extent)


def odd_in_other_words(extent: Extent) -> list[ScaleUpLink]:
    if extent.sips % 2 == 0:
        raise NetworkFault("sips", "not even numbers")
    return links(extent)


def by_turns(extent: Extent) -> list[ScaleUpLink]:
    return links(extent)[:: 1 if next(CALLS) % 2 else -1]


def doubled(extent: Extent) -> list[ScaleUpLink]:
    return [*links(extent), ScaleUpLink(0, "again", 1, "back")]


def one_port(extent: Extent) -> list[ScaleUpLink]:
    return [ScaleUpLink(link.sip, "port", link.other_sip, "port") for link in links(extent)]


def beyond(extent: Extent) -> list[ScaleUpLink]:
    return [*links(extent), ScaleUpLink(0, "out", extent.sips, "in")]


def straight(extent: Extent, here: int, there: int) -> int:
    return there


def to_and_fro(extent: Extent, here: int, there: int) -> int:
    """Between 0 and 1 for ever, on the way to the last of five."""
    if extent.sips == 5 and there == 3 and here in (0, 1):
        return 1 - here
    return step(extent, here, there)


def one_way(extent: Extent, here: int, there: int) -> int:
    return (here + 1) % extent.sips


def shouted(extent: Extent) -> list[ScaleUpLink]:
    return [evolve(link, port=link.port.upper() + "!") for link in links(extent)]


def in_floats(extent: Extent, here: int, there: int) -> int:
    return float(step(extent, here, there))  # type: ignore[return-value]


def as_it_falls(extent: Extent, here: int, there: int) -> int:
    if extent.sips == 4 and (there - here) % 4 == 2:
        return (here + (1 if next(CALLS) % 2 else -1)) % 4
    return step(extent, here, there)


@pytest.mark.parametrize(
    ("shape", "check", "reason"),
    [
        (NetworkShape(odd_only, step), "refuses_in_words",
         "2 packages must be refused by a NetworkFault, not by ValueError: no 2"),
        (NetworkShape(odd_in_other_words, step), "refuses_in_words",
         "what it says of 2 packages must begin with 'must', as it follows a key, not 'not even numbers'"),
        (NetworkShape(by_turns, step), "says_the_same_twice",
         "links of 3 packages must be the same each time, in the same order"),
        (NetworkShape(links, as_it_falls), "says_the_same_twice",
         "the step from 0 to 2 of 4 must be the same each time"),
        (NetworkShape(doubled, step), "joins_packages_once",
         "each pair of ends of 2 packages must be there once, not twice as [0, 1]"),
        (NetworkShape(one_port, step), "joins_packages_once",
         "each port of 3 packages must be there once, not twice as (1, 'port')"),
        (NetworkShape(beyond, step), "joins_packages_once",
         "ScaleUpLink(sip=0, port='out', other_sip=2, other_port='in') must join packages from 0 to 1"),
        (NetworkShape(links, straight), "steps_along_links",
         "on the way from 0 to 2 of 4 packages it steps to 2, which no link joins"),
        (NetworkShape(links, to_and_fro), "reaches_every_package",
         "from 0 to 3 of 5 packages it goes in a circle: 0, 1, 0"),
        (NetworkShape(links, one_way), "takes_shortest_routes",
         "from 0 to 2 of 3 packages the fewest hops are 1, and it takes 2"),
        (NetworkShape(shouted, step), "builds_a_machine",
         "of 2 packages it must name ports in lower-case letters, digits and '_', not 'NEXT!' in "
         "ScaleUpLink(sip=0, port='NEXT!', other_sip=1, other_port='last')"),
        (NetworkShape(links, in_floats), "builds_a_machine",
         "of 2 packages it must step to packages by their whole numbers, but on the way to sip0 it goes from sip1 to "
         "0.0"),
    ],
)  # fmt: skip
def test_a_planted_fault_is_found_by_the_check_for_it(shape: NetworkShape, check: str, reason: str) -> None:
    """And says in a sentence what it is."""
    found = failed(shape)
    assert found[check] == reason
    assert len(found) == 1 or shape.links in (beyond, doubled, one_port)


def test_a_hop_that_takes_longer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a message is that of a closed form, not of what was simulated."""
    monkeypatch.setattr("kernbench_builtin.checks.network_checks._Hop.overhead", lambda self, msg: 4.0)
    found = failed(NetworkShape(links, step))
    assert found == {
        "takes_the_time_of_its_hops": "4096 B from 0 to 1 of 2 packages, hops: 1, must take 213 ns, not 215"
    }


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        (5, "its target must be a NetworkShape, not 5"),
        (NetworkShape(3, step), "must have as links a function of the extent, not 3"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_shape_cannot_be_checked(shape: object, reason: str) -> None:
    """It fails as it is opened."""
    with pytest.raises(CheckFailed) as caught:
        shape_under_test("acme.loop", shape)
    assert str(caught.value) == reason


def test_a_shape_that_takes_no_number_of_packages_is_found() -> None:
    """With what it said of two."""

    def none(extent: Extent) -> list[ScaleUpLink]:
        raise NetworkFault("sips", f"must be 1, not {extent.sips}")

    with pytest.raises(CheckFailed) as caught:
        shape_under_test("acme.loop", NetworkShape(none, step))
    assert str(caught.value) == "it must take some number of packages from 2 to 17, and takes none: must be 1, not 2"

