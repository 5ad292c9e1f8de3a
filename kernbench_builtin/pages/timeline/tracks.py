"""The tracks of a timeline: a tree in the order of the machine, with names that a person reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from kernbench_builtin.pages.timeline.columns import Indices
from kernbench_builtin.pages.timeline.levels import PLACE
from kernbench_builtin.pages.timeline.timeline import Track

_SORT: Final = (
    "host", "launches", "io", "m_cpu", "pe", "kernel", "pe_cpu", "pe_scheduler", "pe_dma", "pe_ipcq", "pe_mmu",
    "pe_fetch_store", "pe_gemm", "pe_math", "pe_tcm", "hbm_ctrl", "sram", "r", "ucie", "cube", "sip", "fabric",
)  # fmt: skip
"""What stands first below one place; what is not here stands between, by its name."""

_WORDS: Final[Mapping[str, str]] = {
    "sip": "SIP", "io": "IO chiplet", "cube": "cube", "pe": "PE", "hbm_ctrl": "HBM", "r": "router", "switch": "switch",
    "pc": "channel", "host": "host", "m_cpu": "M_CPU", "sram": "SRAM", "pe_cpu": "CPU", "pe_scheduler": "scheduler",
    "pe_dma": "DMA", "pe_ipcq": "queues", "pe_mmu": "MMU", "pe_fetch_store": "fetch and store", "pe_gemm": "GEMM",
    "pe_math": "math", "pe_tcm": "scratchpad", "pcie_ep": "PCIe endpoint", "io_cpu": "IO_CPU", "io_noc": "IO NoC",
    "io_ucie": "IO UCIe", "ucie_n": "UCIe north", "ucie_s": "UCIe south", "ucie_w": "UCIe west", "ucie_e": "UCIe east",
    "read": "read channel", "write": "write channel", "fabric": "scale-up network", "mesh": "mesh",
}  # fmt: skip

_NUMBERED: Final = re.compile(r"([a-z_]+?)(\d+)(?:c(\d+))?")
WIRES: Final = "~wires"
"""The part of a key that stands for the place, below another one, that its wires are in."""


def words(part: str) -> str:
    """Return what a person calls one part of a node's id: "cube 3", "router 0,1", "DMA"."""
    if part in _WORDS:
        return _WORDS[part]
    match = _NUMBERED.fullmatch(part)
    if match is None or match[1] not in _WORDS or (match[3] is not None and match[1] != "r"):
        return f"link to {part.removeprefix('link_')}" if part.startswith("link_") else part
    return f"{_WORDS[match[1]]} {match[2]}" + ("" if match[3] is None else f",{match[3]}")


def words_of_op(name: str) -> str:
    """Return what a person calls an op: a stage, whose record is named after a class, as "tile: DMA read"."""
    thing, _, stage = name.partition("/")
    if not stage or not thing[0].isupper():
        return name
    of = " ".join(re.findall("[A-Z][^A-Z]*", thing.removesuffix("Token"))).lower()
    return f"{of}: {' '.join(_WORDS.get(f'pe_{word}', word) for word in stage.lower().split('_'))}"


class TrackTree:
    """Collect tracks, by what they stand for; each gets a number at once, and another one in the order of the end."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, ...], int] = {}
        self._tracks: list[tuple[str, str, str]] = []

    def special(self, key: tuple[str, ...], name: str, kind: str, node: str = "") -> int:
        """Add a track below what the rest of its key says, if it is not there; return its number.

        What is there as a place only becomes what it is.
        """
        number = self._numbers.get(key)
        if number is None:
            if key[:-1]:
                self.place(".".join(key[:-1]), key[:-1])
            number = self._numbers[key] = len(self._tracks)
            self._tracks.append((name, kind, node))
        elif self._tracks[number][1] == PLACE:
            self._tracks[number] = name, kind, node
        return number

    def place(self, node: str, key: tuple[str, ...] = ()) -> int:
        """Add a place, if there is no track of it; return its number."""
        key = key or tuple(node.split("."))
        number = self._numbers.get(key)
        return self.special(key, words(key[-1]), PLACE, node) if number is None else number

    def unit(self, node: str) -> int:
        """Add the track of a unit."""
        key = tuple(node.split("."))
        return self.special(key, words(key[-1]), "unit", node)

    def channel(self, name: str) -> int:
        """Add the track of a channel inside a component, `node#name`."""
        node, _, channel = name.partition("#")
        return self.special((*node.split("."), f"#{channel}"), words(channel), "channel", name)

    def wire(self, name: str) -> int:
        """Add the track of a wire, `source->destination`, below the smallest place that holds both ends."""
        ends = [tuple(end.split(".")) for end in name.split("->")]
        shared = 0
        while all(shared < len(end) - 1 for end in ends) and ends[0][shared] == ends[1][shared]:
            shared += 1
        inside = ends[0][:shared]
        self.special((*inside, WIRES), "wires" if inside else "wires between packages", PLACE, ".".join(inside))
        spoken = " → ".join(" ".join(words(part) for part in end[shared:]) for end in ends)
        return self.special((*inside, WIRES, name), spoken, "wire", name)

    def finish(self) -> tuple[tuple[Track, ...], Indices]:
        """Return all tracks, each after the one that it is below, and the number of each in there by its first one."""
        below: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        for key in self._numbers:
            below.setdefault(key[:-1], []).append(key)
        tracks: list[Track] = []
        final = np.full(len(self._tracks), -1)
        waiting = _last_first(below.get((), ()))
        while waiting:
            key = waiting.pop()
            number = self._numbers[key]
            parent = final[self._numbers[key[:-1]]] if key[:-1] else -1
            final[number] = len(tracks)
            tracks.append(Track(len(tracks), int(parent), *self._tracks[number]))
            waiting += _last_first(below.get(key, ()))
        return tuple(tracks), final


def _last_first(keys: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return keys in the order of the machine, the first one last."""
    return sorted(keys, key=lambda key: _rank(key[-1]), reverse=True)


def _rank(part: str) -> tuple[int, list[tuple[int, str]]]:
    natural = [(int(piece), "") if piece.isdigit() else (-1, piece) for piece in re.split(r"(\d+)", part)]
    if part[0] in "#~":
        return (-1 if part[0] == "#" else len(_SORT) + 1), natural
    match = _NUMBERED.fullmatch(part)
    kind = part if match is None else match[1]
    kind = "ucie" if part.startswith("ucie_") else kind
    return (_SORT.index(kind) if kind in _SORT else len(_SORT) // 2), natural
