"""Every link of a machine, with what passed it: wires, and the channels inside components."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kernbench_core.host.figures.columns import ColumnTable, TextColumn

if TYPE_CHECKING:
    from kernbench_core.engine.hardware import Hardware


def links(hardware: Hardware) -> ColumnTable:
    """Return the links, used or not, by name; `utilisation` is over the time that has passed.

    A channel has its component as `source` and as `destination`. Rates are GB/s, times ns, bytes payload.
    """
    total = hardware.env.now
    found = [
        (wire.name, source.id, to, f"{hardware.graph.edges[source.id, to].kind.value} wire", wire)
        for source in hardware.components.values()
        for to, wire in source.out_ports.items()
    ]
    for each in hardware.components.values():
        kind = f"{each.node.kind} channel"
        found += ((wire.name, each.id, each.id, kind, wire) for wire in each.internal_wires)
    found.sort(key=lambda row: row[0])
    wires = [row[-1] for row in found]
    busy = np.array([wire.busy_by(total) for wire in wires], np.float64)
    return ColumnTable(
        len(found),
        {
            "name": _texts([row[0] for row in found]),
            "source": _texts([row[1] for row in found]),
            "destination": _texts([row[2] for row in found]),
            "kind": _texts([row[3] for row in found]),
            "gb_per_s": np.array([wire.bandwidth for wire in wires], np.float64),
            "latency_ns": np.array([wire.latency for wire in wires], np.float64),
            "bytes": np.array([wire.bytes_carried for wire in wires], np.int64),
            "messages": np.array([wire.deliveries for wire in wires], np.int64),
            "busy_ns": busy,
            "utilisation": busy / total if total else np.zeros(len(wires)),
            "waits": np.array([wire.waits for wire in wires], np.int64),
            "waited_ns": np.array([wire.waited_ns for wire in wires], np.float64),
            "longest_wait_ns": np.array([wire.longest_wait_ns for wire in wires], np.float64),
        },
    )


def _texts(found: list[str]) -> TextColumn:
    known: dict[str, int] = {}
    numbers = [known.setdefault(text, len(known)) for text in found]
    return TextColumn(np.array(numbers, np.int32), tuple(known))
