"""A chain of routers: a kind of machine of its own, of one row of kernbench's mesh."""

from __future__ import annotations

from typing import Annotated

from attrs import evolve, frozen

from kernbench_builtin.machines import mesh
from kernbench_core.plugins import NetworkRegistry
from kernbench_core.topology import Config, read_section, sections


@frozen
class ChainSpec:
    """The section `chain`: routers, their clock, and the wires between them, as long as those to their interfaces."""

    routers: Annotated[Annotated[int, sections.Quantity("int", minimum=2, maximum=64)], "Routers of the chain."]
    clock: Annotated[sections.Frequency, "Clock of routers and wires."]
    link: mesh.ChannelSpec


def read(config: Config, networks: NetworkRegistry) -> mesh.MeshSpec:
    """Return the mesh of one row that a chain is."""
    chain = read_section(config, "chain", ChainSpec)
    return mesh.MeshSpec(1, chain.routers, chain.clock, chain.link, mesh.InterfaceSpec(chain.link.latency))


CHAIN = evolve(mesh.MESH, what="a chain of routers on its own", read=read, section=ChainSpec)
