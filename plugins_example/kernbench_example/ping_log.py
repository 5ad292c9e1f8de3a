"""A format of measurements: the times of pings over several hops of the scale-up network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernbench_core.calibration import CsvForm, LogOptions, LogRow, MachineChoice, SimulatedRow, Unknown

CSV = CsvForm({"hops": CsvForm.whole})
HOP = Unknown("hop", "system.network.latency", "time", 1.0, 1e4, "wires and cables", "pings over several hops")


class PingLog:
    """Pings: each takes the latency of a link for every hop."""

    FORM = "a CSV of pings with the columns hops and time"

    def __init__(self, plugins: Any, options: LogOptions) -> None:
        self._plugins = plugins

    @staticmethod
    def recognises(text: str) -> bool:
        """Tell whether a text is one, by its columns."""
        return CSV.recognises(text)

    def read(self, name: str, text: str) -> list[LogRow]:
        """Return its rows with their places."""
        return [LogRow(f"{name}:{row.line}", "ping", row.ns, row.values["hops"]) for row in CSV.read(name, text)]

    def settings(self, rows: Sequence[Any]) -> tuple[str, ...]:
        """Make the machine as large as the longest way."""
        return (f"system.sips={1 + max(row.case for row in rows)}",)

    def unknowns(self, rows: Sequence[Any], machine: MachineChoice) -> list[Unknown]:
        """Name what the rows tell of."""
        return [HOP]

    def slopes(
        self, rows: Sequence[Any], machine: MachineChoice, values: Mapping[str, float]
    ) -> list[Mapping[str, float]]:
        """Say how much longer a row takes for an ns more of a hop."""
        return [{"hop": float(row.case)} for row in rows]

    def simulate(self, rows: Sequence[Any], machine: MachineChoice) -> list[SimulatedRow]:
        """Return what a machine takes for each row."""
        from kernbench_core.runs import configure
        from kernbench_core.topology import compile_topology

        config = configure(self._plugins, machine.topology, None, machine.sets)
        graph = compile_topology(config, self._plugins)
        (latency, *_) = {edge.latency for edge in graph.edges.values() if edge.kind.value == "scale_up"}
        return [SimulatedRow(row.case * latency) for row in rows]
