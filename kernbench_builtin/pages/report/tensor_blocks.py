"""What of a tensor lies where, as a drawing: its shards as blocks, in the colours of the cubes that hold them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kernbench_builtin.pages.plots import COLOURS, blocks
from kernbench_core.host.device_tensor import DeviceTensor
from kernbench_core.topology.address import place_of
from kernbench_core.wording import spell_numbers

if TYPE_CHECKING:
    from kernbench_core.memory.device_memory import TensorSegment
    from kernbench_core.memory.placement import Layout

_Box: TypeAlias = tuple[int, int, int, int]
_Part: TypeAlias = tuple[int, str, str, Sequence[_Box]]
#: Shards that are drawn, and with a title each; blocks of an interleaved tensor in a row and in all; cubes listed.
_MOST: Final = 1024
_TITLED: Final = 128
_ROW: Final = 16
_BLOCKS: Final = 64
_CUBES: Final = 16


def tensor_blocks(name: str, tensor: DeviceTensor | None, *, drawn: bool) -> Mapping[str, Any]:
    """Return the facts of a tensor in words, and where it is `drawn` its drawing and the cubes that hold it."""
    if tensor is None:
        return {"name": name, "facts": ["left behind, as its result was pickled"], "plot": ""}
    allocation = tensor.allocation
    copies = "" if tensor.replicas == 1 else f"{tensor.replicas} copies"
    placed = "rows dealt" if tensor.placement is None else ", ".join(map(str, tensor.placement))
    facts = [f"{tensor.dtype}{list(tensor.shape)}", f"{tensor.nbytes:,} B", placed,
             f"over {len(allocation.segments)} PEs", copies]  # fmt: skip
    found: dict[str, Any] = {"name": name, "facts": [fact for fact in facts if fact], "plot": ""}
    if not drawn or not tensor.nbytes or not allocation.segments:
        return found
    cubes = list(dict.fromkeys(place_of(segment.pa) for segment in allocation.segments))
    plot, caption = _drawn(tensor, cubes)
    places = list(_places(allocation.segments, cubes[:_CUBES]))
    return {**found, "plot": plot, "caption": caption, "places": places, "others": max(0, len(cubes) - _CUBES)}


def _places(segments: Sequence[TensorSegment], cubes: Sequence[tuple[int, int]]) -> Iterator[Mapping[str, Any]]:
    """Yield which cubes hold how much, on which PEs, each with the colour of its blocks."""
    for number, (sip, cube) in enumerate(cubes):
        held = [segment for segment in segments if place_of(segment.pa) == (sip, cube)]
        pes = sorted({segment.pe for segment in held})
        yield {
            "colour": number % COLOURS,
            "name": f"SIP {sip} cube {cube}",
            "nbytes": sum(segment.nbytes for segment in held),
            "pes": f"on {'PE' if len(pes) == 1 else 'PEs'} {spell_numbers(pes)}",
        }


def _drawn(tensor: DeviceTensor, cubes: Sequence[tuple[int, int]]) -> tuple[str, str]:
    """Draw the shards of a tensor, or the first blocks of an interleaved one; return the drawing and its caption."""
    layout = tensor.allocation.layout
    held: dict[int, list[TensorSegment]] = {}
    for segment in tensor.allocation.segments:
        held.setdefault(segment.cell, []).append(segment)
    boxes = {cell: (layout.index(cell, tensor.shape) if layout else ()) for cell in [*held][:_MOST]}
    indices = {cell: index for cell, index in boxes.items() if index is not None}
    if len(indices) < len(boxes) and layout is not None:
        return _interleaved(layout, held, cubes)
    axes = _axes(tensor.shape, [*indices.values()])
    rows, columns = (1 if axis is None else tensor.shape[axis] for axis in axes)
    placed = {cell: (*_along(axes[0], index), *_along(axes[1], index)) for cell, index in indices.items()}
    if len(placed) > _TITLED:
        parts = _by_cube(placed, held, cubes)
    else:
        parts = [_part(f"[{_spelt(indices[cell])}]", held[cell], cubes, [box]) for cell, box in placed.items()]
    ways = [(axis, way) for axis, way in zip(axes, ("down", "across"), strict=True) if axis is not None]
    caption = ", ".join(f"dimension {axis} of {tensor.shape[axis]:,} {way}" for axis, way in ways) or "one element"
    more = len(held) - len(boxes)
    return blocks((rows, columns), parts), caption + (f"; {more:,} more shards are not drawn" if more else "")


def _part(what: str, held: Sequence[TensorSegment], cubes: Sequence[tuple[int, int]], boxes: Sequence[_Box]) -> _Part:
    pes = spell_numbers(sorted({segment.pe for segment in held}))
    label = f"{'PE' if len(held) == 1 else 'PEs'} {pes}"
    return cubes.index(place_of(held[0].pa)), label, f"{what} on {label}", boxes


def _by_cube(
    placed: Mapping[int, _Box], held: Mapping[int, Sequence[TensorSegment]], cubes: Sequence[tuple[int, int]]
) -> list[_Part]:
    """Return the shards of each cube as one part."""
    found: dict[tuple[int, int], list[_Box]] = {}
    for cell, box in placed.items():
        found.setdefault(place_of(held[cell][0].pa), []).append(box)
    return [(cubes.index(cube), "", f"SIP {cube[0]} cube {cube[1]}", boxes) for cube, boxes in found.items()]


def _axes(shape: tuple[int, ...], indices: Sequence[tuple[slice, ...]]) -> tuple[int | None, int | None]:
    """Return the two dimensions that are drawn: those that are cut, else the last ones."""
    cut = [dim for dim in range(len(shape)) if len({each[dim].start for each in indices if each}) > 1]
    others = [dim for dim in reversed(range(len(shape))) if dim not in cut]
    chosen = sorted([*cut, *others][:2])
    if len(chosen) == 2:
        return chosen[0], chosen[1]
    return None, (chosen[0] if chosen else None)


def _along(axis: int | None, index: tuple[slice, ...]) -> tuple[int, int]:
    return (0, 1) if axis is None or not index else (index[axis].start, index[axis].stop)


def _spelt(index: tuple[slice, ...]) -> str:
    return ", ".join(f"{each.start}:{each.stop}" for each in index)


def _interleaved(
    layout: Layout, held: Mapping[int, Sequence[TensorSegment]], cubes: Sequence[tuple[int, int]]
) -> tuple[str, str]:
    """Draw the first blocks that a tensor is dealt out in, row by row."""
    size = layout.regions(0)[0].row_bytes
    count = min(_BLOCKS, math.ceil(layout.nbytes / size))
    parts = []
    for number in range(count):
        row, column = divmod(number, _ROW)
        cell, _ = layout.locate(number * size)
        told = f"bytes {number * size:,} to {min((number + 1) * size, layout.nbytes):,}"
        parts.append(_part(told, held[cell], cubes, [(row, row + 1, column, column + 1)]))
    drawn = blocks((math.ceil(count / _ROW), min(count, _ROW)), parts)
    return drawn, f"the first {count} blocks of {size:,} B, row by row"
