"""How nodes are spelled: ids are dotted paths such as `sip0.cube3.pe5.pe_gemm`.

Here are those that a machine of any kind must have that runs kernels, and how an id is taken apart; a kind of machine
spells what else it has.
"""

from __future__ import annotations

import functools
import re

from attrs import frozen


def link(sip: int, io: int, peer: str) -> str:
    """Name a scale-up link port after its peer or direction: `sip0.io0.link_sip1`."""
    return f"sip{sip}.io{io}.link_{peer}"


def switch(index: int) -> str:
    """Name a switch of the scale-up network."""
    return f"fabric.switch{index}"


def cube_unit(sip: int, cube: int, kind: str) -> str:
    """Name a unit that a cube has once: `m_cpu`, `sram`."""
    return f"sip{sip}.cube{cube}.{kind}"


def hbm_ctrl(sip: int, cube: int, index: int) -> str:
    """Name an HBM controller of a cube; its index is that of the PE whose slice it owns."""
    return f"sip{sip}.cube{cube}.hbm_ctrl{index}"


def pe(sip: int, cube: int, index: int) -> str:
    """Name a PE: the prefix that its units share."""
    return f"sip{sip}.cube{cube}.pe{index}"


def pe_unit(prefix: str, kind: str) -> str:
    """Name a unit inside the PE of that prefix."""
    return f"{prefix}.{kind}"


def router_cell(node_id: str) -> tuple[str, int, int] | None:
    """Return what names the mesh of a router, a cube's or a stand-alone one, and its row and column; None of others."""
    match = _ROUTER.fullmatch(node_id)
    return None if match is None else (match[1], int(match[2]), int(match[3]))


_ROUTER = re.compile(r"(.*\.)r(\d+)c(\d+)")


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
    """Take a node id apart: the inverse of what spells it (`fabric.switch0` and `host` have a name only)."""
    *segments, name = node_id.split(".")
    found: dict[str, int] = {}
    for segment in segments:
        match = _SEGMENT.fullmatch(segment)
        if match is not None:
            found[match[1]] = int(match[2])
    return Place(name, **found)


@functools.lru_cache(maxsize=1 << 16)
def pe_prefix(node_id: str) -> str | None:
    """Return the prefix of the PE that holds this node, or None when the node is in no PE."""
    prefix, _, _ = node_id.rpartition(".")
    segment = _SEGMENT.fullmatch(prefix.rpartition(".")[2])
    return prefix if segment is not None and segment[1] == "pe" else None
