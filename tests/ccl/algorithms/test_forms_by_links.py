"""Closed forms are what the steps of an algorithm take on its links, which networkx adds up message by message.

What is compared here costs no simulation, so that it goes to 64 ranks; tools/check_forms.py simulates.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kernbench_ccl.contract import Cost, Network
from kernbench_core.topology import find_extent
from tests.ccl.algorithm_cases import algorithm_named
from tests.core.shapes import NETWORKS
from tests.reference import collective_steps

S, B, L = 1e6, 100.0, 500.0
FEW, MANY = (2, 3, 4, 5, 8, 9, 16), range(2, 65)


def network_of(name: str, world: int) -> Network:
    extent = find_extent(name, NETWORKS[name], world)
    return Network(name, world, extent.width, extent.height)


@pytest.mark.parametrize("network", ["ring", "mesh_2d", "torus_2d", "fully_connected", "switch"])
@pytest.mark.parametrize("worlds", [FEW, MANY], ids=["few", "many"])
def test_forms_are_the_steps_on_the_links(network: str, worlds: Sequence[int]) -> None:
    """There is a form just where each message has a link for itself, or a switch; and it is that of the steps."""
    for name, world in collective_steps.cases(worlds):
        graph = collective_steps.links_of(name, network, world)
        steps = collective_steps.STEPS[name](world, S)
        found = algorithm_named(name).closed_form(Cost(world, S, B, L, network_of(network, world), pipeline=False))
        if isinstance(found, str):
            assert collective_steps.shared(graph, steps + _whoever_is_root(name, world)) or _early(name, network, world)
        else:
            assert found == pytest.approx(collective_steps.time_of(graph, steps, B, L), rel=1e-9), (name, world)


def _whoever_is_root(name: str, world: int) -> list[collective_steps.Step]:
    """Return the message around the end of the ring, which a chain from another root has."""
    return [[(world - 1, 0, 1.0)]] if name in ("ring_broadcast", "ring_reduce") else []


def _early(name: str, network: str, world: int) -> bool:
    """Whether some ranks send before others, over links that they share: then steps do not begin together."""
    return (name, network) == ("halving_doubling_all_reduce", "switch") and world & (world - 1) != 0
