"""How nodes are spelled: the single owner of node ids, which are dotted paths such as `sip0.cube3.pe5.pe_gemm`."""

from __future__ import annotations

import re

from attrs import frozen

HOST = "host"
"""The node that every request enters the machine by."""

SIDES = ("n", "s", "w", "e")
"""The sides of a cube that have a UCIe port: north (smaller row), south, west (smaller column), east."""


def io_unit(sip: int, io: int, kind: str) -> str:
    """Name a unit of an IO chiplet: `pcie_ep`, `io_noc`, `io_cpu`, `io_ucie`."""
    return f"sip{sip}.io{io}.{kind}"


def link(sip: int, io: int, peer: str) -> str:
    """Name a scale-up link port after its peer or direction: `sip0.io0.link_sip1`."""
    return f"sip{sip}.io{io}.link_{peer}"


def switch(index: int) -> str:
    """Name a switch of the scale-up network."""
    return f"fabric.switch{index}"


def cube_unit(sip: int, cube: int, kind: str) -> str:
    """Name a unit that a cube has once: `m_cpu`, `sram`."""
    return f"sip{sip}.cube{cube}.{kind}"


def router(sip: int, cube: int, row: int, column: int) -> str:
    """Name a router of a cube's mesh."""
    return f"sip{sip}.cube{cube}.r{row}c{column}"


def ucie(sip: int, cube: int, side: str) -> str:
    """Name the UCIe port on one of `SIDES` of a cube."""
    return f"sip{sip}.cube{cube}.ucie_{side}"


def hbm_ctrl(sip: int, cube: int, index: int) -> str:
    """Name an HBM controller of a cube; its index is that of the PE whose slice it owns."""
    return f"sip{sip}.cube{cube}.hbm_ctrl{index}"


def pe(sip: int, cube: int, index: int) -> str:
    """Name a PE: the prefix that its units share."""
    return f"sip{sip}.cube{cube}.pe{index}"


def pe_unit(prefix: str, kind: str) -> str:
    """Name a unit inside the PE of that prefix."""
    return f"{prefix}.{kind}"


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


def router_cell(node_id: str) -> tuple[str, int, int] | None:
    """Return what names the mesh of a router, a cube's or a stand-alone one, and its row and column; None of others."""
    match = _ROUTER.fullmatch(node_id)
    return None if match is None else (match[1], int(match[2]), int(match[3]))


_ROUTER = re.compile(r"(.*\.)r(\d+)c(\d+)")
_MESH_CELL = re.compile(r"mesh\.r(\d+)c(\d+)(?:\.ni)?")


@frozen
class Place:
    """A node id taken apart; `name` is the last part, the rest is None where it does not apply."""

    name: str
    sip: int | None = None
    io: int | None = None
    cube: int | None = None
    pe: int | None = None


_SEGMENT = re.compile(r"(sip|io|cube|pe)(\d+)")


def parse(node_id: str) -> Place:
    """Take a node id apart: the inverse of the functions above (`fabric.switch0` and `host` have a name only)."""
    *segments, name = node_id.split(".")
    found: dict[str, int] = {}
    for segment in segments:
        match = _SEGMENT.fullmatch(segment)
        if match is not None:
            found[match[1]] = int(match[2])
    return Place(name, **found)


def pe_prefix(node_id: str) -> str | None:
    """Return the prefix of the PE that holds this node, or None when the node is in no PE."""
    prefix, _, _ = node_id.rpartition(".")
    segment = _SEGMENT.fullmatch(prefix.rpartition(".")[2])
    return prefix if segment is not None and segment[1] == "pe" else None
