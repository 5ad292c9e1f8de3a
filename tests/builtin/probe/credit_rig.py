"""Meshes and tori of `builtin.router_vc` for tests, and packets that are given to them one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernbench_builtin.components.forwarding import Forwarding
from kernbench_builtin.components.router_vc import RouterVc
from kernbench_builtin.machines.mesh import Mesh
from kernbench_builtin.probe.traffic import Meter, Packet
from kernbench_builtin.probe.traffic_patterns import make_pattern
from kernbench_core.component import ComponentBase
from kernbench_core.engine.hardware import Hardware
from kernbench_core.environment import Environment
from kernbench_core.params import Param
from kernbench_core.topology.compilation import compile_topology
from tests.core.offered import offered
from tests.core.topology.text_config import parse_config

MODELS: dict[str, type[ComponentBase]] = {"builtin.router_vc": RouterVc, "builtin.forwarding": Forwarding}
SentPacket = tuple[int, int, int, int]
"""Cycle, source, goal, flits."""


class Models:
    """Know the two models; what compilers and engines ask."""

    def declared(self, impl: str) -> tuple[Param, ...]:
        return MODELS[impl].PARAMS

    def made_for(self, impl: str) -> tuple[str, ...]:
        return ()

    def load(self, name: str) -> type[ComponentBase]:
        return MODELS[name]


CATALOGUE = Models()


def make_mesh(
    rows: int,
    columns: int,
    *,
    wrap: bool = False,
    impl: str = "builtin.router_vc",
    interface: str = "builtin.forwarding",
    more: str = "",
    **params: object,
) -> Mesh:
    """Compile a mesh at 1 GHz with links of 32 B and 1 ns, and interfaces of 4 ns and wires of 1 ns.

    `params` are those of the routers, `more` further sections of the topology.
    """
    written = ", ".join(
        f"{name}: {str(value).lower() if value in (True, False) else value}" for name, value in params.items()
    )
    text = f"""\
mesh:
  rows: {rows}
  columns: {columns}
  wrap: {str(wrap).lower()}
  clock: 1 GHz
  link: {{width: 32 B, latency: 1 ns}}
  interface: {{latency: 1 ns}}
components:
  router: {{impl: {impl}, params: {{{written}}}}}
  interface: {{impl: {interface}, params: {{overhead: 4 ns}}}}
{more}"""
    mesh = compile_topology(parse_config(text, "mesh.yaml"), offered(CATALOGUE))
    assert isinstance(mesh, Mesh)
    return mesh


def draw(mesh: Mesh, pattern: str, load: float, flits: int, cycles: int, seed: int = 0) -> list[SentPacket]:
    """Return packets of so many cycles at a load in flits per node and cycle."""
    dice = np.random.default_rng(seed)
    when, sources = np.nonzero(dice.random((cycles, mesh.places)) < load / flits)
    goals = make_pattern(pattern, mesh).draw(dice, sources)
    return [(int(t), int(s), int(g), flits) for t, s, g in zip(when, sources, goals, strict=True)]


class _Numbered(Packet):
    __slots__ = ("number",)
    number: int


class _Latencies(Meter):
    def __init__(self) -> None:
        super().__init__(0.0, float("inf"))
        self.of: dict[int, float] = {}

    def note(self, packet: Packet) -> None:
        assert isinstance(packet, _Numbered)
        self.of[packet.number] = packet.tail - packet.born


def latencies(mesh: Mesh, packets: Sequence[SentPacket]) -> list[float | None]:
    """Return the latency of each packet in ns, None of those that never came, once nothing more happens."""
    env = Environment()
    hardware = Hardware(env, mesh)
    hardware.build(CATALOGUE)
    meter = _Latencies()
    for number, (cycle, source, goal, flits) in enumerate(packets):
        path = mesh.route(source, goal)
        packet = _Numbered(flits * mesh.flit_bytes, path, meter)
        packet.number = number
        env.inject(packet, hardware.components[path[0]].arrive, float(cycle))
    env.advance(10**9)
    held = sum(len(component.waiting) for component in hardware.components.values())
    assert held == len(packets) - len(meter.of), "what has not come is held somewhere"
    return [meter.of.get(number) for number in range(len(packets))]
