"""What a notebook shows: a tensor as blocks of who holds them, both sides of a hazard when they were, small HTML."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.pages.report.notebook import picture, tensors_cell
from kernbench_core.host.device_tensor import DeviceTensor
from kernbench_core.memory.device_memory import TensorAllocation, TensorSegment
from kernbench_core.memory.hazard import UNORDERED_WRITES, Hazard, HazardUse
from kernbench_core.memory.placement import MESH_DIMS, Interleave, Layout, Placements, Replicate, Shard, resolve
from kernbench_core.runs.listing import Listing
from kernbench_core.topology.address import AddressMap

MESH = (2, 2, 4)
ADDRESSES = AddressMap(*MESH, hbm_bytes=1 << 30, sram_bytes=1, tcm_bytes=1)


def tensor(shape: tuple[int, ...], placement: Placements, name: str = "x") -> DeviceTensor:
    """Return a tensor of f32 on two SIPs of two cubes of four PEs, which is nobody's."""
    layout = resolve(name, shape, 4, placement, MESH, MESH_DIMS)
    segments = []
    for pe, cell in enumerate(layout.cell_of):
        sip, cube, slot = (int(at) for at in np.unravel_index(pe, MESH))
        segments.append(TensorSegment(0, ADDRESSES.encode(sip, cube, f"hbm{slot}"), layout.size(cell), pe, cell))
    nothing: Any = None
    return DeviceTensor(nothing, TensorAllocation(name, 0, shape, "f32", 4 * math.prod(shape), tuple(segments), layout))


def holders(layout: Layout, offset: int) -> set[int]:
    """Return the PEs that hold the byte at an offset, as the layout finds one byte."""
    cell, _ = layout.locate(offset)
    return {pe for pe, held in enumerate(layout.cell_of) if held == cell}


def numbers(text: str) -> set[int]:
    """Read "0-3, 8" as numbers."""
    ends = [part.split("-") for part in text.split(", ")]
    return {number for end in ends for number in range(int(end[0]), int(end[-1]) + 1)}


def parts(html: str) -> list[tuple[int, str, list[tuple[float, ...]]]]:
    """Return the colour, the title and the boxes (left, top, right, bottom) of each part that is drawn."""
    found = re.findall(r'<path class="kb-c(\d) kb-cut" d="([^"]*)"><title>([^<]*)</title>', html)
    box = r"M([\d.]+) ([\d.]+)H([\d.]+)V([\d.]+)H"
    return [(int(colour), title, [tuple(map(float, each)) for each in re.findall(box, path)])
            for colour, path, title in found]  # fmt: skip


CUTS = st.sampled_from([Shard(0), Shard(1), Replicate()])


@given(st.tuples(CUTS, CUTS, CUTS), st.integers(0, 31), st.integers(0, 47))
def test_the_block_over_an_element_names_who_holds_it(placement: Placements, row: int, column: int) -> None:
    """However a tensor is cut and copied; each block has the colour of the cube of its first holder."""
    x = tensor((32, 48), placement)
    layout = x.allocation.layout
    assert layout is not None
    html = tensors_cell({"x": x})
    drawn = parts(html)
    wide = max(box[2] for _, _, boxes in drawn for box in boxes)
    high = max(box[3] for _, _, boxes in drawn for box in boxes)
    across, down = (column + 0.5) / 48 * wide, (row + 0.5) / 32 * high
    over = [(colour, title) for colour, title, boxes in drawn
            for left, top, right, bottom in boxes if left < across < right and top < down < bottom]  # fmt: skip
    assert len(over) == 1
    (colour, title), held = over[0], holders(layout, 4 * (48 * row + column))
    assert numbers(re.sub(r".* on PEs? ", "", title)) == held
    assert f"SIP {min(held) // 8} cube {min(held) // 4 % 2}" in html and colour == min(held) // 4


def test_an_interleaved_tensor_is_drawn_block_by_block() -> None:
    """The first blocks in the order of their bytes, each with its PE; what holds how much stands beside them."""
    x = tensor((64, 64), Interleave(128))
    layout = x.allocation.layout
    assert layout is not None
    html = tensors_cell({"x": x})
    titles = [title for _, title, _ in parts(html)]
    assert titles[:2] == ["bytes 0 to 128 on PE 0", "bytes 128 to 256 on PE 1"] and len(titles) == 64
    assert [int(title.rpartition(" ")[2]) for title in titles] == [min(holders(layout, 128 * at)) for at in range(64)]
    assert "the first 64 blocks of 128 B, row by row" in html and html.count("<b>4 KiB</b>") == 4


@pytest.mark.parametrize(
    ("shape", "placement", "caption"),
    [
        ((), Replicate(), "one element"),
        ((64,), Shard(0), "dimension 0 of 64 across"),
        ((3, 64, 5, 32), (Shard(1), Shard(3), Replicate()), "dimension 1 of 64 down, dimension 3 of 32 across"),
    ],
)
def test_the_dimensions_that_are_cut_are_drawn(shape: tuple[int, ...], placement: Placements, caption: str) -> None:
    assert f"<figcaption>{caption}</figcaption>" in tensors_cell({"x": tensor(shape, placement)})


class Tags(HTMLParser):
    """Collect what a page is made of, and see that what is opened is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.words: set[str] = set()
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.names.add(tag)
        self.words |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.words |= {name for name, _ in attrs}


def hazard(number: int, landed: float | None = 30.0) -> Hazard:
    first = HazardUse((0, 1), "tl.store", "sip0.cube0.pe0", "/home/k.py:3", 10.0, 20.0, True)
    second = HazardUse((1, 1), "tl.store", "sip0.cube0.pe1", "/home/k.py:3", 15.0, landed, True)
    return Hazard(UNORDERED_WRITES, f"<y{number}>", (0,), 0, 4, first, second, 1)


def test_a_hazard_is_both_uses_over_time() -> None:
    """One that did not land lasts to the end of what is drawn; files are told by their names."""
    html = picture(hazard(0, None)) or ""
    bars = re.findall(r'<rect class="kb-c(\d) kb-cut" x="([\d.]+)" y="\d+" width="([\d.]+)"', html)
    (_, x0, w0), (_, x1, w1) = bars
    assert float(x0) + float(w0) == pytest.approx(float(x1) + float(w1), abs=0.2)
    assert (float(x1) - float(x0)) / float(w0) == pytest.approx(0.5, abs=0.01)
    assert "unordered writes: &lt;y0&gt;[0], 4 B" in html and "tl.store at k.py:3 on sip0.cube0.pe1, 15 ns" in html


def test_cells_are_small_and_stand_alone() -> None:
    """No id that another cell could have, no script, nothing that is fetched; many things are not drawn."""
    many = {f"<t{at}>": tensor((1024, 4), (Shard(0), Shard(0), Shard(0)), f"<t{at}>") for at in range(40)}
    for html in (picture(Listing(hazard(at) for at in range(50))) or "", tensors_cell(many), tensors_cell({})):
        assert type(html) is str
        tags = Tags(html)
        assert tags.open == [] and "id" not in tags.words and not tags.names & {"script", "link", "img", "iframe"}
        assert "url(" not in html and "@import" not in html and len(html) < 100_000
        assert '[data-jp-theme-light="false"] .kb-cell' in html  # as a style has it: not escaped
        assert html.count("http") == html.count('xmlns="http://www.w3.org/2000/svg"')
    assert picture(Listing([1, 2])) is None and picture(Listing()) is None
    assert "<p>44 more</p>" in (picture(Listing(hazard(at) for at in range(50))) or "")
    assert tensors_cell(many).count("<path") == 3 * 16 and "&lt;t19&gt;" in tensors_cell(many)
