"""What a message says of itself when it is logged: kind, name, parameters, and the bytes that it reads and writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import field, frozen

from kernbench_core.values.region import Region
from kernbench_core.values.value import OpId, Value
from kernbench_core.wording import brief

#: Letters that reprs show of parameters, of one of them, of the regions of an access, and of many of anything else.
_PARAMS, _PARAM, _REGIONS, _MANY = 700, 80, 200, 500


def _first(told: Iterable[str], count: int, letters: int) -> str:
    """Join the first of `count` texts, as many as so many letters hold and at least one, and say how many more."""
    shown: list[str] = []
    for each in told:
        letters -= len(each) + len(", ")
        if letters < 0 and shown:
            break
        shown.append(each)
    more = [f"… {count - len(shown):,} more"] if count > len(shown) else []
    return ", ".join([*shown, *more])


def brief_items(items: Sequence[object], letters: int = _MANY) -> str:
    """Return the repr of a tuple or list, of many items the first only."""
    told = _first((brief(each, letters) for each in items), len(items), letters)
    return f"[{told}]" if isinstance(items, list) else f"({told}{',' if len(items) == 1 else ''})"


def brief_params(params: Mapping[str, object]) -> str:
    """Return the repr of parameters, of each value its beginning, and of very many the first only."""
    told = (f"{name!r}: {brief(value, _PARAM)}" for name, value in params.items())
    return f"{{{_first(told, len(params), _PARAMS)}}}"


def _brief_regions(regions: Sequence[Region]) -> str:
    return brief_items(regions, _REGIONS)


@frozen(eq=False)
class Access:
    """Bytes that an op reads or writes: `regions`, one after the other, are the row-major tensor `value`.

    `value` is None in records that name addresses only.
    """

    space: str
    regions: tuple[Region, ...] = field(repr=_brief_regions)
    value: Value | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all regions."""
        return sum(r.nbytes for r in self.regions)


@frozen(eq=False)
class OpDescription:
    """What a message says of itself when it is logged.

    `op_kind` is memory, gemm or math. `stage_of` is the op that this is a stage of (then it is timing only). `function`
    is the "module:attr" that computes the op, when it is not one of core's: `fn(params, inputs) -> ndarray`. Commands
    of the kernel language give these `params` (addresses are physical, in bytes; an address of -1 is an operand that
    comes with the command):

    - copies: src_addr, src_space, dst_addr, dst_space, nbytes, shape, dtype, handle_id ("pe3.17"); snapshot, the value
      read, where a copy starts in HBM;
    - GEMMs: src_a_addr, src_b_addr, dst_addr, the space of each (src_a_space, …), shape_a, shape_b, shape_out, m, k, n,
      dtype_in, dtype_acc, dtype_out, transpose_a, transpose_b, layout_a, layout_b, layout_out, addr_space, accumulate;
    - math: op, dst_addr, dst_space, shape_out, dtype, axis, keepdims, mask, addr_space, and lists with one item per
      operand: input_addrs, input_shapes, input_spaces, input_dtypes (also as in_dtypes), input_snapshots (the values);
      immediateN, the 0-d value of a number that is operand N;
    - atomic ops (math ops on what memory held, operands of lanes and the places that these meet) also: turn, its place
      among all of the run, and turn_ns, when it had its turn at the memory; data follows the turns;
    - composites also: out_addr, out_nbytes, tile_m, tile_k, tile_n, a_pinned, b_pinned, math_op, and epilogue, one
      (kind, scope, numbers of the operands among the reads, per_tile) for each step.

    A parameter that repeats values of `reads` may be given as `OF_READS`; the record has the values.
    """

    op_kind: str
    op_name: str
    params: Mapping[str, object] = field(repr=brief_params)
    reads: tuple[Access, ...] = field(default=(), repr=brief_items)
    writes: Access | None = None
    op_id: OpId | None = None
    stage_of: OpId | None = None
    function: str | None = None
