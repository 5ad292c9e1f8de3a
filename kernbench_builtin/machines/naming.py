"""How the nodes are spelled that systems and meshes have beside those of all machines that run kernels."""

from __future__ import annotations

import re

HOST = "host"
"""The node that every request enters the machine by."""

SIDES = ("n", "s", "w", "e")
"""The sides of a cube that have a UCIe port: north (smaller row), south, west (smaller column), east."""


def io_unit(sip: int, io: int, kind: str) -> str:
    """Name a unit of an IO chiplet: `pcie_ep`, `io_noc`, `io_cpu`, `io_ucie`."""
    return f"sip{sip}.io{io}.{kind}"


def router(sip: int, cube: int, row: int, column: int) -> str:
    """Name a router of a cube's mesh."""
    return f"sip{sip}.cube{cube}.r{row}c{column}"


def ucie(sip: int, cube: int, side: str) -> str:
    """Name the UCIe port on one of `SIDES` of a cube."""
    return f"sip{sip}.cube{cube}.ucie_{side}"


def mesh_router(row: int, column: int) -> str:
    """Name a router of a stand-alone mesh."""
    return f"mesh.r{row}c{column}"


def mesh_interface(row: int, column: int) -> str:
    """Name the network interface at a router of a stand-alone mesh."""
    return f"mesh.r{row}c{column}.ni"


def mesh_cell(node_id: str) -> tuple[int, int]:
    """Return row and column of a router or interface of a stand-alone mesh: the inverse of the two above."""
    match = _MESH_CELL.fullmatch(node_id)
    if match is None:
        raise ValueError(f"node must belong to a stand-alone mesh, not {node_id!r}")
    return int(match[1]), int(match[2])


_MESH_CELL = re.compile(r"mesh\.r(\d+)c(\d+)(?:\.ni)?")
