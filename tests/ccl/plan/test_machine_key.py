"""What a machine is known by: any change of it shows, its number of packages in one of two only."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from kernbench_ccl.plan.machine_key import links_of, machine_digest, machine_key
from kernbench_core.plugins import load_plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.topology.compilation import compile_topology

PLUGINS = load_plugins()
SIPS = "system.sips=3"


@cache
def graph(*settings: str) -> Any:
    """Return the machine of a configuration."""
    return compile_topology(configure(PLUGINS, "tiny", sets=settings), PLUGINS)


@pytest.mark.parametrize(
    "setting",
    ["cube.pes=2", "system.network.latency=501ns", "system.network.bandwidth=99GB/s", "system.chunk_bytes=2KiB",
     "components.pe_dma.params.overhead=5ns", "pe.tcm.capacity=1MiB"],
)  # fmt: skip
def test_a_change_of_a_package_or_a_link_shows_in_both(setting: str) -> None:
    """One PE less, one more nanosecond, one GB/s less, other chunks, another model's parameter, less memory."""
    changed = graph(SIPS, setting)
    assert machine_key(changed) != machine_key(graph(SIPS))
    assert machine_digest(changed) != machine_digest(graph(SIPS))


@pytest.mark.parametrize("other", [("system.sips=5",), ("system.sips=6", "system.network.topology=torus_2d")])
def test_packages_of_one_kind_are_one_machine_to_a_table(other: tuple[str, ...]) -> None:
    """However many of them in whatever shape; a simulation tells them apart."""
    assert machine_key(graph(*other)) == machine_key(graph(SIPS))
    assert machine_digest(graph(*other)) != machine_digest(graph(SIPS))


def test_one_package_of_another_kind_shows() -> None:
    """An override of a single package."""
    assert machine_key(graph(SIPS, 'overrides=[{match: "sip1.*.pe_dma", params: {overhead: 5ns}}]')) != machine_key(
        graph(SIPS)
    )


def test_the_links_are_those_of_the_configuration() -> None:
    """Bandwidth and latency of both directions."""
    assert links_of(graph(SIPS, "system.network.bandwidth=40GB/s")) == {(40.0, 500.0)}
    assert links_of(graph()) == frozenset()
