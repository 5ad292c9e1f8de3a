"""How a tensor is spread over a machine: DTensor's `Shard` and `Replicate`, `Interleave`, and what they resolve to.

The mesh of a device has the dimensions `sip`, `cube` and `pe`. Whatever the placement, an offset into the row-major
tensor is a number in mixed radix, whose digits either choose a *cell* (a shard) or count inside it: so translation is
arithmetic, and no list of ranges is kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from attrs import field, frozen

from kernbench_core.errors import ShapeError, UsageError
from kernbench_core.units import format_bytes
from kernbench_core.values.region import Region
from kernbench_core.wording import brief

MESH_DIMS = ("sip", "cube", "pe")
"""Names of the dimensions of every device mesh, outermost first."""


@frozen
class Shard:
    """Cut a dimension of the tensor into equal parts, one for each index of the mesh dimension; -1 is the last.

    ShapeError where the dimension does not exist or does not divide.

    >>> def bench(rt):
    ...     x = rt.zeros((8, 64), "f32", placement={"pe": kb.Shard(0)})
    ...     print([shard.index[0] for shard in x.shards])
    >>> ran = kb.run(bench, "tiny")
    [slice(0, 2, None), slice(2, 4, None), slice(4, 6, None), slice(6, 8, None)]
    """

    dim: int


@frozen
class Replicate:
    """Keep a copy for each index of the mesh dimension.

    >>> def bench(rt):
    ...     print(rt.zeros((8, 64), "f32", placement={"pe": kb.Replicate()}).replicas, "copies on", rt.n_pes, "PEs")
    >>> ran = kb.run(bench, "tiny")
    4 copies on 4 PEs
    """


@frozen
class Interleave:
    """Deal the row-major tensor out in blocks of `nbytes` bytes, in turn; the last round may be short.

    UsageError where a block is not of whole elements, ShapeError where shards do not divide into rounds.

    >>> def bench(rt):
    ...     x = rt.zeros((6, 64), "f32", placement=kb.Interleave(256))
    ...     print([shard.nbytes for shard in x.shards])
    >>> ran = kb.run(bench, "tiny")
    [512, 512, 256, 256]
    """

    nbytes: int


Placement: TypeAlias = Shard | Replicate | Interleave
Placements: TypeAlias = Placement | Sequence[Placement] | Mapping[str, Placement]


@frozen
class Digit:
    """One digit of an offset into a tensor: it is worth `weight` bytes there and counts to `extent`.

    It adds `cell` to the number of the cell, or `local` bytes to the offset inside it; the other is 0.
    """

    extent: int
    weight: int
    cell: int
    local: int


@frozen(eq=False)
class Layout:
    """Say which bytes of a row-major tensor of `nbytes` lie in which cell, and which cell each PE of the mesh holds.

    `digits` run from the most to the least significant; the last counts bytes inside a cell. `cell_of` names the cell
    of each mesh position, in order. `local_shape` is the shape of every cell, where a placement made boxes.
    """

    nbytes: int
    digits: tuple[Digit, ...]
    cells: int
    cell_of: tuple[int, ...]
    placements: tuple[Placement, ...] | None = None
    local_shape: tuple[int, ...] | None = None
    _sizes: tuple[int, ...] = field(init=False)

    @_sizes.default
    def _count(self) -> tuple[int, ...]:
        return tuple(sum(region.nbytes for region in self.regions(cell)) for cell in range(self.cells))

    @property
    def in_order(self) -> bool:
        """Whether the cells, one after another, are the tensor."""
        return len(self.digits) == 1 or (len(self.digits) == 2 and bool(self.digits[0].cell))

    @property
    def replicas(self) -> int:
        """How many PEs hold each cell."""
        return len(self.cell_of) // self.cells if self.cells else 1

    def size(self, cell: int) -> int:
        """Bytes of a cell."""
        return self._sizes[cell]

    def locate(self, offset: int) -> tuple[int, int]:
        """Give the cell that holds the byte at `offset` of the tensor, and the byte's offset there."""
        cell = local = 0
        for digit in self.digits:
            count, offset = divmod(offset, digit.weight)
            cell += count * digit.cell
            local += count * digit.local
        return cell, local

    def regions(self, cell: int) -> tuple[Region, ...]:
        """Give the regions of the tensor, in bytes from its start, that one after another are a cell."""
        base, free = 0, []
        for digit in self.digits:
            if digit.cell:
                base += cell // digit.cell % digit.extent * digit.weight
            else:
                free.append(digit)
        *outer, inner = free
        found = [Region(base, inner.extent)]
        if outer:
            rows = outer.pop()
            found = [Region(base, inner.extent, rows.extent, rows.weight)]
        for digit in reversed(outer):
            found = [region.shifted(step * digit.weight) for step in range(digit.extent) for region in found]
        return tuple(piece for region in found for piece in _clipped(region, self.nbytes))

    def index(self, cell: int, shape: tuple[int, ...]) -> tuple[slice, ...] | None:
        """Give the slice of each dimension of a tensor of `shape` that a cell is, or None where it is not a box."""
        own = self.local_shape
        size = self.size(cell)
        row = self.nbytes // shape[0] if shape and self.nbytes else 0
        if own is None and self.in_order and row and size and size % row == 0:
            own = (size // row, *shape[1:])
        if own is None:
            return None if shape else ()
        element, slices = self.regions(cell)[0].base * math.prod(shape) // self.nbytes, []
        for extent, part in zip(reversed(shape), reversed(own), strict=True):
            element, first = divmod(element, extent)
            slices.append(slice(first, first + part))
        return tuple(reversed(slices))

    def shape_of(self, cell: int, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Give the shape of a cell of a tensor of `shape`: that of its box, or its number of elements."""
        index = self.index(cell, shape)
        if index is None:
            return (self.size(cell) * math.prod(shape) // self.nbytes,)
        return tuple(part.stop - part.start for part in index)


def _clipped(region: Region, end: int) -> list[Region]:
    """Cut off what lies at or past `end`, of a region that rises."""
    if region.end <= end:
        return [region]
    if region.rows == 1:
        return [Region(region.base, end - region.base)] if region.base < end else []
    whole = max(0, (end - region.base - region.row_bytes) // region.pitch + 1)
    found = [Region(region.base, region.row_bytes, whole, region.pitch if whole > 1 else 0)] if whole else []
    last = region.base + whole * region.pitch
    return [*found, Region(last, end - last)] if last < end else found


def dealt_rows(shape: tuple[int, ...], nbytes: int, pes: int) -> Layout:
    """Deal the first dimension in equal blocks over `pes` PEs, the last ones shorter or missing: no placement given."""
    rows = shape[0] if shape and nbytes else 1
    block = -(-rows // pes) * (nbytes // rows)
    cells = -(-nbytes // block) if block else 0
    return Layout(nbytes, _joined([(True, cells), (False, block)]), cells, tuple(range(cells)))


def resolve(
    name: str, shape: tuple[int, ...], item: int, placement: Placements, mesh: tuple[int, ...], dims: tuple[str, ...]
) -> Layout:
    """Work out where the elements (`item` bytes each) of tensor `name` go on a mesh of these extents.

    `placement` is one for the flattened mesh, one for each mesh dimension, or a mapping from names of mesh dimensions,
    those that are not named replicating. Several shards of one dimension cut it again, outermost first. UsageError for
    anything else, ShapeError when a dimension does not exist or does not divide.
    """
    whole = isinstance(placement, Shard | Replicate | Interleave)
    chosen = _normal(name, shape, placement, dims)
    parts, dealt = _cuts(name, shape, chosen, mesh, dims, whole)
    digits: list[tuple[bool, int]] = []
    for extent, count in zip(shape, parts, strict=True):
        digits += [(True, count), (False, extent // count)]
    digits.append((False, item))
    nbytes = math.prod(shape) * item
    inside = True
    if dealt is not None:
        digits, inside = _interleaved(name, digits, dealt, item)
    cells = math.prod(extent for chooses, extent in digits if chooses)
    local = None
    if dealt is None:
        local = tuple(extent // count for extent, count in zip(shape, parts, strict=True))
    cell_of = tuple(_cell(chosen, mesh, where, parts, dealt, inside) for where in range(math.prod(mesh)))
    return Layout(nbytes, _joined(digits), cells, cell_of, chosen, local)


def _normal(name: str, shape: tuple[int, ...], placement: object, dims: tuple[str, ...]) -> tuple[Placement, ...]:
    """Give one placement for each mesh dimension, the dimensions of shards counted from the front."""
    chosen: list[object]
    if isinstance(placement, Mapping):
        chosen = [placement.get(dim, Replicate()) for dim in dims]
        fits = set(placement) <= set(dims)
    elif isinstance(placement, tuple | list):
        chosen, fits = list(placement), len(placement) == len(dims)
    else:
        chosen, fits = [placement] * len(dims), True
    if not fits or any(not isinstance(one, Shard | Replicate | Interleave) for one in chosen):
        raise UsageError(
            f"tensor {name!r}: placement must be Shard(dim), Replicate() or Interleave(nbytes), a tuple of one for "
            f"each of {', '.join(dims)}, or a mapping from these names, not {brief(placement)}; correct it."
        )
    return tuple(_counted(name, shape, one) for one in chosen)  # type: ignore[arg-type]


def _counted(name: str, shape: tuple[int, ...], placement: Placement) -> Placement:
    if not isinstance(placement, Shard):
        return placement
    rank, dim = len(shape), placement.dim
    if type(dim) is not int or not -rank <= dim < rank:
        allowed = f"give a dim from {-rank} to {rank - 1}" if rank else "replicate a tensor without dimensions"
        raise ShapeError(
            f"tensor {name!r} of shape {shape} must be sharded along one of its dimensions, not {placement}; {allowed}."
        )
    return Shard(dim % rank)


def _cuts(
    name: str,
    shape: tuple[int, ...],
    chosen: tuple[Placement, ...],
    mesh: tuple[int, ...],
    dims: tuple[str, ...],
    whole: bool,
) -> tuple[list[int], tuple[int, int] | None]:
    """Give the parts of each dimension of the tensor, and what is interleaved: (bytes of a block, over how many)."""
    parts = [1] * len(shape)
    who: list[list[str]] = [[] for _ in shape]
    dealt: tuple[int, int] | None = None
    for placement, extent, dim in zip(chosen, mesh, dims, strict=True):
        if isinstance(placement, Shard):
            if dealt is not None:
                raise UsageError(
                    f"tensor {name!r}: {placement} over {dim} must come before Interleave, not inside it; swap them."
                )
            parts[placement.dim] *= extent
            who[placement.dim].append(dim)
        elif isinstance(placement, Interleave):
            if dealt is not None and dealt[0] != placement.nbytes:
                raise UsageError(
                    f"tensor {name!r}: Interleave over several mesh dimensions must have one block size, not "
                    f"{dealt[0]} and {placement.nbytes} B; choose one."
                )
            dealt = (placement.nbytes, extent * (1 if dealt is None else dealt[1]))
    for axis, (extent, count) in enumerate(zip(shape, parts, strict=True)):
        if extent % count:
            over = "the whole mesh" if whole else " and ".join(who[axis])
            raise ShapeError(
                f"tensor {name!r} of shape {shape} must have a dimension {axis} that divides into the {count} parts of "
                f"Shard({axis}) over {over}, not one of {extent}; pad it to {-(-extent // count) * count}, or shard "
                "another dimension."
            )
    return parts, dealt


def _interleaved(
    name: str, digits: list[tuple[bool, int]], dealt: tuple[int, int], item: int
) -> tuple[list[tuple[bool, int]], bool]:
    """Deal what is inside the shards out in blocks: of bytes where a shard lies together, else of its whole rows.

    Also tells whether the turn counts inside all shards, or only inside those of the first dimension.
    """
    block, over = dealt
    if type(block) is not int or block < 1 or block % item:
        raise UsageError(
            f"tensor {name!r}: Interleave must deal blocks of a positive multiple of {item} B, its element, not "
            f"{block!r}; correct it."
        )
    used = [digit for digit in digits if digit[1] != 1]
    outer = [digit for digit in used if digit[0]]
    nbytes = math.prod(extent for chooses, extent in digits if not chooses)
    together = used[: len(outer)] == outer
    if together and not outer:
        return [(False, -(-nbytes // (block * over))), (True, over), (False, block)], True
    rows = 1 if together else digits[1][1]
    row = nbytes // rows
    if not together and block % row:
        raise UsageError(
            f"tensor {name!r}: Interleave must deal whole rows of its shards, of {row} B, as a shard is not "
            f"contiguous, not blocks of {block} B; give a multiple of {row}, shard the first dimension only, or "
            "interleave alone."
        )
    if nbytes % (block * over):
        raise ShapeError(
            f"tensor {name!r} must have shards that divide into rounds of {over} blocks of {block} B, not shards of "
            f"{format_bytes(nbytes)}; choose another block size, or interleave it alone."
        )
    rounds = (False, nbytes // (block * over))
    if together:
        return [*outer, rounds, (True, over), (False, block)], True
    return [digits[0], rounds, (True, over), (False, block // row), *digits[2:]], False


def _cell(
    chosen: tuple[Placement, ...],
    mesh: tuple[int, ...],
    where: int,
    parts: list[int],
    dealt: tuple[int, int] | None,
    inside: bool,
) -> int:
    """Give the number of the cell at a mesh position: its shard along each tensor dimension, with its turn among them.

    The turn comes last, or where it does not count `inside` all shards, after that of the first dimension.
    """
    place, left = [], where
    for extent in reversed(mesh):
        left, index = divmod(left, extent)
        place.append(index)
    shards, turn = [0] * len(parts), 0
    for placement, extent, index in zip(chosen, mesh, reversed(place), strict=True):
        if isinstance(placement, Shard):
            shards[placement.dim] = shards[placement.dim] * extent + index
        elif isinstance(placement, Interleave):
            turn = turn * extent + index
    counted = list(zip(parts, shards, strict=True))
    if dealt is not None:
        counted.insert(len(counted) if inside else 1, (dealt[1], turn))
    cell = 0
    for count, index in counted:
        cell = cell * count + index
    return cell


def _joined(digits: list[tuple[bool, int]]) -> tuple[Digit, ...]:
    """Give digits their weights, neighbours of one kind joined; the last counts bytes."""
    joined: list[tuple[bool, int]] = []
    for chooses, extent in digits:
        if extent == 1:
            continue
        if joined and joined[-1][0] == chooses:
            joined[-1] = (chooses, joined[-1][1] * extent)
        else:
            joined.append((chooses, extent))
    if not joined or joined[-1][0]:
        joined.append((False, 1))
    found: list[Digit] = []
    weight = cell = local = 1
    for chooses, extent in reversed(joined):
        found.append(Digit(extent, weight, cell if chooses else 0, 0 if chooses else local))
        weight *= extent
        if chooses:
            cell *= extent
        else:
            local *= extent
    return tuple(reversed(found))
