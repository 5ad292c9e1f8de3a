"""The checks at the end of a run, on machines of builtin models."""

from __future__ import annotations

from typing import ClassVar

import pytest

from kernbench_builtin.probe.transfers import Prober
from kernbench_core.errors import SanityError
from kernbench_core.host.sanity import check
from kernbench_core.host.session import GraphEngine
from kernbench_core.messages import Command
from kernbench_core.plugins import Plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.topology.compilation import compile_topology
from kernbench_core.values.region import Region


class Move(Command):
    """Ask a pe_dma to move `regions`."""

    serves: ClassVar[str] = "pe_dma"
    data_op: ClassVar[bool] = False

    def __init__(self, regions: tuple[Region, ...], path: tuple[str, ...], op: str) -> None:
        super().__init__((0, 0))
        self.regions, self.path, self.dma_op = regions, path, op


def transferred(plugins: Plugins, source: str, target: str) -> GraphEngine:
    """Return an engine that has moved 1 KiB."""
    prober = Prober(compile_topology(configure(plugins, "tiny", None, ()), plugins), plugins.components)
    (case,) = prober.case(source, target)
    engine = prober.engine(case)
    move = Move((Region(prober.base(case.memory), 1024),), (case.source,), case.op)
    engine.env.inject(move, engine.hardware.components[case.source].arrive)
    engine.advance()
    return engine


@pytest.mark.parametrize("memory", ["hbm_ctrl1", "sram"])
@pytest.mark.parametrize("writes", [False, True])
def test_bytes_are_conserved_at_every_memory(plugins: Plugins, memory: str, writes: bool) -> None:
    """HBM and SRAM: one byte more or less on any of their wires is told, whichever way the data goes."""
    ends = ("sip0.cube0.pe0", f"sip0.cube0.{memory}")
    engine = transferred(plugins, *(ends if writes else ends[::-1]))
    result = engine.get_timing_result()
    check(engine.hardware, result)
    node = f"sip0.cube0.{memory}"
    (wire,) = engine.hardware.components[node].out_ports.values()
    wire.bytes_carried += 1
    with pytest.raises(SanityError) as caught:
        check(engine.hardware, result)
    assert str(caught.value) == (
        f"do not use this result: 1025 B passed the wires of {node}, but its transactions move 1024 B."
    )
