"""Every link of a machine, with what passed it: wires, and the channels inside components."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kernbench_builtin.machines.figures.columns import ColumnTable, TextColumn

if TYPE_CHECKING:
    from kernbench_core.engine.hardware import Hardware


def links(hardware: Hardware) -> ColumnTable:
    """Return the links, used or not, component by component; `utilisation` is over the time that has passed.

    A channel has its component as `source` and as `destination`. Rates are GB/s, times ns, bytes payload. `deliveries`
    are those that are events of their own at its far end: of channels that carry a transaction together one delivers,
    and a link whose receiver is told by another event delivers nothing, whatever it moved.
    """
    total, edges = hardware.env.now, hardware.graph.edges
    wires, ends, kinds = [], [], []
    for source in hardware.components.values():
        for to, wire in source.out_ports.items():
            wires.append(wire)
            ends.append((source.id, to))
            kinds.append((edges[source.id, to].kind.value, "wire"))
        for wire in source.internal_wires:
            wires.append(wire)
            ends.append((source.id, source.id))
            kinds.append((source.node.kind, "channel"))
    names = [wire.name for wire in wires]
    busy = np.array([wire.busy_by(total) if wire.busy_ns else 0.0 for wire in wires])
    return ColumnTable(
        len(wires),
        {
            "name": lambda: TextColumn.of(names),
            "source": lambda: TextColumn.of([source for source, _ in ends]),
            "destination": lambda: TextColumn.of([destination for _, destination in ends]),
            "kind": lambda: TextColumn.of([" ".join(kind) for kind in kinds]),
            "gb_per_s": np.array([wire.bandwidth for wire in wires]),
            "latency_ns": np.array([wire.latency for wire in wires]),
            "bytes": np.array([wire.bytes_carried for wire in wires], np.int64),
            "deliveries": np.array([wire.deliveries for wire in wires], np.int64),
            "busy_ns": busy,
            "utilisation": busy / total if total else np.zeros(len(wires)),
            "waits": np.array([wire.waits for wire in wires], np.int64),
            "waited_ns": np.array([wire.waited_ns for wire in wires]),
            "longest_wait_ns": np.array([wire.longest_wait_ns for wire in wires]),
        },
    )

