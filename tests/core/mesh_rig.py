"""A stand-alone mesh of tiny models for tests: latencies in ns, at 1 GHz as many cycles."""

from __future__ import annotations

from typing import ClassVar

from kernbench_builtin.machines.mesh import Mesh
from kernbench_core.component import ComponentBase
from kernbench_core.engine.hardware import Hardware
from kernbench_core.graph import Node
from kernbench_core.messages import MsgBase
from kernbench_core.params import Param
from kernbench_core.topology.compilation import compile_topology
from tests.core.offered import offered
from tests.core.topology.text_config import parse_config

LINK, INTERFACE_WIRE, ROUTER, INTERFACE = 1, 2, 3, 4


class Hop(ComponentBase):
    """Pass messages on, first byte first.

    Ignores: Everything else.
    """

    ON_HEAD = True
    PARAMS: ClassVar[tuple[Param, ...]] = (Param("overhead", "time", "0 ns", "Latency."),)

    def __init__(self, node: Node, hardware: Hardware) -> None:
        super().__init__(node, hardware)
        self._overhead: float = node.params["overhead"]

    def overhead(self, msg: MsgBase) -> float:
        return self._overhead


class Hops:
    """Know one model, by any name; what compilers and engines ask."""

    def declared(self, impl: str) -> tuple[Param, ...]:
        return Hop.PARAMS

    def made_for(self, impl: str) -> tuple[str, ...]:
        return ()

    def load(self, name: str) -> type[ComponentBase]:
        return Hop


HOPS = Hops()


def mesh_text(rows: int = 3, columns: int = 3, *, wrap: bool = False, clock: str = "1 GHz") -> str:
    """Return a topology file of the rig."""
    return f"""\
mesh:
  rows: {rows}
  columns: {columns}
  wrap: {str(wrap).lower()}
  clock: {clock}
  link: {{width: 16 B, latency: {LINK} ns}}
  interface: {{latency: {INTERFACE_WIRE} ns}}
components:
  router: {{impl: test.hop, params: {{overhead: {ROUTER} ns}}}}
  interface: {{impl: test.hop, params: {{overhead: {INTERFACE} ns}}}}
"""


def make_mesh(rows: int = 3, columns: int = 3, *sets: str, wrap: bool = False, clock: str = "1 GHz") -> Mesh:
    """Compile the rig, with settings over it."""
    text = mesh_text(rows, columns, wrap=wrap, clock=clock)
    mesh = compile_topology(parse_config(text, "mesh.yaml", sets=sets), offered(HOPS))
    assert isinstance(mesh, Mesh)
    return mesh
