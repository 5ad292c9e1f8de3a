"""Which algorithm a call gets: that of ccl.yaml, else the best of those that will do it."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import attrs
import pytest

from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.plan import CclConfig, choose_algorithm, load_ccl, machine_network, make_group
from kernbench_ccl.plan.selection import make_collective
from kernbench_core.errors import ConfigError, UsageError
from kernbench_core.plugins import NetworkRegistry, load_plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.topology.compilation import compile_topology
from kernbench_core.topology.design import design_of

PLUGINS = load_plugins()


def design(*settings: str) -> Any:
    """Return the machine of a configuration."""
    return design_of(compile_topology(configure(PLUGINS, "tiny", sets=settings), PLUGINS))


def config(**collectives: str) -> CclConfig:
    """Return the built-in configuration with algorithms for some collectives."""
    return attrs.evolve(load_ccl(), collectives=MappingProxyType(collectives))


def test_the_network_of_a_machine() -> None:
    """Its own shape, with columns and rows; or another one over the same SIPs."""
    torus = design("system.sips=6", "system.network.topology=torus_2d")
    found = machine_network(torus)
    assert (found.name, found.world, found.width, found.height) == ("torus_2d", 6, 3, 2)
    ring = machine_network(torus, "ring")
    assert (ring.name, ring.world, ring.width, ring.height) == ("ring", 6, 6, 1)


def test_the_configured_algorithm_wins() -> None:
    """With the settings of its entry; auto asks who is able."""
    machine = design("system.sips=4")
    algorithms = Catalogue.of(PLUGINS)
    chosen, settings = choose_algorithm(algorithms, config(all_reduce="ring"), "all_reduce", machine, 4, 1 << 20)
    assert (chosen.name, settings.chunk) == ("ccl.ring_all_reduce", 16384)
    auto, _ = choose_algorithm(algorithms, config(), "all_reduce", machine, 3, 1 << 20)
    assert auto.refusal(machine_network(machine), 3) is None and auto.collective == "all_reduce"


def test_what_nobody_does_is_refused() -> None:
    """Each algorithm's own sentence follows."""
    machine = design("system.sips=4")
    empty = Catalogue()
    with pytest.raises(UsageError) as caught:
        choose_algorithm(empty, config(), "all_reduce", machine, 4, 8)
    assert str(caught.value) == "no registered algorithm does all_reduce of 4 ranks; register one."


def test_what_kernels_are_told() -> None:
    """The tile is the chunk in elements; cubes are those of the machine."""
    machine = design("system.sips=4", "sip.mesh.width=2")
    algorithm, settings = choose_algorithm(
        Catalogue.of(PLUGINS), config(all_reduce="ring"), "all_reduce", machine, 2, 1 << 20
    )
    group = make_group(machine.pes, [1, 3])
    told = make_collective(group, algorithm, settings, machine, "f16", NetworkRegistry(), redop="sum", sequence=4)
    assert (told.tile, told.pipeline, told.group, told.cubes, told.sequence) == (8192, True, (1, 3), (2, 1), 4)
    assert (told.algorithm, told.redop, told.world) == ("ccl.ring_all_reduce", "sum", 2)


@pytest.mark.parametrize("collectives", [{}, {"all_reduce": "ring"}])
def test_more_pes_than_a_sip_has_are_refused_where_they_are_written(collectives: dict[str, str]) -> None:
    """By auto and by name."""
    asked = attrs.evolve(load_ccl(sets=["defaults.pes=5"]), collectives=MappingProxyType(collectives))
    with pytest.raises(ConfigError) as caught:
        choose_algorithm(Catalogue.of(PLUGINS), asked, "all_reduce", design("system.sips=4"), 4, 1024)
    assert caught.value.problems == (
        "--set defaults.pes=5: defaults.pes must be at most 4, the PEs of a SIP, not 5; give fewer.",
    )
