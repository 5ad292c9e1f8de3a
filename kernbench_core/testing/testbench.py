"""The testbench that a driver of hardware models is given, where they are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any, Protocol

from kernbench_core.graph import Edge
from kernbench_core.plugins import Plugins
from kernbench_core.testing.rig import Harness, Model, Placed


class ModelTestbench(Protocol):
    """Where a driver, a kit `components.KIND`, puts the `model` under test; the machine made here is run to its end.

    `random` gives the same numbers each time. A driver makes one machine: by hand, and sends messages over it, or a
    whole one with what runs on it.
    """

    model: Placed
    plugins: Plugins
    random: Random

    def machine(self, nodes: Mapping[str, Model], edges: Iterable[Edge]) -> Harness:
        """Make a machine by hand, as `Harness` does, in which `testbench.model` is at one node or several."""

    def run(self, bench: Callable[..., Any], topology: Any, set: Mapping[str, object] | None = None) -> None:
        """Run a host program on a whole machine, in which the model serves all nodes of its kind.

        A kind that the topology does not have is added to its PEs where `set` says what to, as
        `{"pe.units.pe_sfu.attach": "pe_tcm"}`.
        """
