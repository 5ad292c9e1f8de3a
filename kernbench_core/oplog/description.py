"""What a message says of itself when it is logged: kind, name, parameters, and the bytes that it reads and writes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from reprlib import Repr
from types import MappingProxyType
from typing import Final

from kernbench_core.values.region import Region, total_bytes
from kernbench_core.values.value import OpId, Value

_MOST_PATTERNS: Final = 4096
#: Gives the repr of parameters and accesses, of many or long ones the first only.
_BRIEF: Final = Repr()
_BRIEF.maxtuple, _BRIEF.maxdict, _BRIEF.maxstring, _BRIEF.maxother = 3, 20, 80, 400


class Access:
    """Bytes that an op reads or writes: `regions`, one after the other, are the row-major tensor `value`.

    `value` is None in records that name addresses only. An access never changes.
    """

    # no frozen attrs class, for speed: every op makes some (tools/bench_oplog.py)
    __slots__ = ("regions", "space", "value")

    def __init__(self, space: str, regions: tuple[Region, ...], value: Value | None = None) -> None:
        self.space = space
        self.regions = regions
        self.value = value

    def __reduce__(self) -> tuple[type[Access], tuple[str, tuple[Region, ...], Value | None]]:
        return Access, (self.space, self.regions, self.value)

    def __repr__(self) -> str:
        return f"Access(space={self.space!r}, regions={_BRIEF.repr(self.regions)}, value={self.value!r})"

    @property
    def nbytes(self) -> int:
        """Bytes of all regions."""
        return total_bytes(self.regions)


class OpPattern:
    """What the descriptions of many commands share: kind, name, function, and parameters of which some are left open.

    `params` are those of one of them, an example. `open` names what differs in others: integers, lists of as many
    integers, and `handle_id`, which is always that of the op and is open where it is there. Give the integers of a
    command to `described`, those of lists one by one, in the order of `open`. Make a pattern once for all commands
    that are alike: the log works out what they share once for each.
    """

    __slots__ = ("function", "op_kind", "op_name", "open", "params")

    def __init__(
        self, op_kind: str, op_name: str, params: Mapping[str, object], open: tuple[str, ...],
        function: str | None = None,
    ) -> None:  # fmt: skip
        self.op_kind = op_kind
        self.op_name = op_name
        self.params = params
        self.open = open
        self.function = function

    def described(
        self, numbers: tuple[int, ...], reads: tuple[Access, ...], writes: Access | None, op_id: OpId | None
    ) -> OpDescription:
        """Describe a command of this pattern by its integers, its accesses and its number."""
        found = OpDescription(self.op_kind, self.op_name, _LATER, reads, writes, op_id, None, self.function)
        found.pattern = self
        found.numbers = numbers
        return found

    def filled(self, numbers: tuple[int, ...], op_id: OpId | None) -> dict[str, object]:
        """Return the parameters of a command, by its integers and its number."""
        found = {name: [*value] if isinstance(value, list) else value for name, value in self.params.items()}
        at = 0
        for name in self.open:
            value = found[name]
            if isinstance(value, list):
                found[name] = list(numbers[at : at + len(value)])
                at += len(value)
            else:
                found[name] = numbers[at]
                at += 1
        if "handle_id" in found:
            found["handle_id"] = handle_of(op_id)
        return found


class Patterns:
    """The patterns of a kind of commands, by all that tells one from another; very many of them are made anew."""

    __slots__ = ("_known", "find")

    def __init__(self) -> None:
        self._known: dict[Hashable, OpPattern] = {}
        #: Returns the pattern of a key, None where there is none.
        self.find = self._known.get

    def add(self, key: Hashable, pattern: OpPattern) -> OpPattern:
        """Keep a pattern, and return it."""
        if len(self._known) >= _MOST_PATTERNS:
            self._known.clear()
        self._known[key] = pattern
        return pattern


def handle_of(op_id: OpId | None) -> str | None:
    """Return the name that a record's `handle_id` has by custom."""
    return None if op_id is None else f"pe{op_id[0]}.{op_id[1]}"


#: Stands for parameters that are filled in from a pattern where somebody asks for them.
_LATER: Mapping[str, object] = MappingProxyType({})


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

    __slots__ = (
        "_params", "function", "numbers", "op_id", "op_kind", "op_name", "pattern", "reads", "stage_of", "writes",
    )  # fmt: skip

    def __init__(
        self,
        op_kind: str,
        op_name: str,
        params: Mapping[str, object],
        reads: tuple[Access, ...] = (),
        writes: Access | None = None,
        op_id: OpId | None = None,
        stage_of: OpId | None = None,
        function: str | None = None,
    ) -> None:
        self.op_kind = op_kind
        self.op_name = op_name
        self._params = params
        self.reads = reads
        self.writes = writes
        self.op_id = op_id
        self.stage_of = stage_of
        self.function = function
        #: What it was made from, and the integers that are its own there.
        self.pattern: OpPattern | None = None
        self.numbers: tuple[int, ...] = ()

    @property
    def params(self) -> Mapping[str, object]:
        """The parameters."""
        if self._params is _LATER and self.pattern is not None:
            self._params = self.pattern.filled(self.numbers, self.op_id)
        return self._params

    def __repr__(self) -> str:
        return (
            f"OpDescription(op_kind={self.op_kind!r}, op_name={self.op_name!r}, "
            f"params={_BRIEF.repr(dict(self.params))}, reads={_BRIEF.repr(self.reads)}, "
            f"writes={self.writes!r}, op_id={self.op_id!r}, stage_of={self.stage_of!r}, function={self.function!r})"
        )
