"""What the record of a collective must be, field by field, and tried on calls of a few ranks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from numbers import Real
from typing import Any

from attrs import evolve

from kernbench_ccl.collectives import CallShape, CollectiveKind, Piece
from kernbench_ccl.collectives.traffic import Traffic

_COUNT = 6
"""nccl's count of the calls that a record is tried on."""
_SPELLING = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


def field_faults(kind: CollectiveKind) -> Iterator[str]:
    """Yield which fields of a record are not what they must be, in words that follow its name."""
    functions = {"brings": "the call and a rank", "ends": "the call and a rank", "factor": "the number of ranks"}
    if kind.traffic is not None:
        functions["traffic"] = "the call and a size in bytes"
    for name, of in functions.items():
        if not callable(getattr(kind, name)):
            yield f"must have as {name} a function of {of}, not {getattr(kind, name)!r}"
    for name in ("reduces", "rooted", "takes_counts", "in_place", "per_pe", "barrier"):
        if not isinstance(getattr(kind, name), bool):
            yield f"must have True or False as {name}, not {getattr(kind, name)!r}"
    spelling: object = kind.spelling
    if spelling != "" and not (isinstance(spelling, str) and _SPELLING.fullmatch(spelling)):
        yield f"must have letters, digits, '_' and '-' as spelling, or \"\" for none, not {spelling!r}"
    template: object = kind.template
    if not isinstance(template, str):
        yield f"must have text as template, or \"\" for none, not {template!r}"


def call_faults(kind: CollectiveKind) -> Iterator[str]:
    """Yield what a record says that cannot be, tried on calls of two and three ranks."""
    redop = "sum" if kind.reduces else None
    for world in (2, 3):
        call = CallShape(world, _COUNT, redop, world - 1 if kind.rooted else 0)
        for rank in range(world):
            yield from (f"{fault}, rank {rank} of {world}" for fault in _rank_faults(kind, call, rank))
        sizes = [(kind.in_count(call, rank), kind.out_count(call, rank)) for rank in range(world)]
        if kind.barrier == any(map(any, sizes)):
            yield "must either move data or be a barrier"
        if kind.in_place and not all(_fits(size, world) for size in sizes):
            yield "must not be in place, as neither input nor output is the other, or a rank's own part of it"
        factor = kind.factor(world)
        if not _is_amount(factor):
            yield f"must give as factor a finite number of at least 0, not {factor!r}, for {world} ranks"
        if kind.traffic is not None:
            yield from _traffic_faults(kind.traffic(call, float(_COUNT)), world)


def _rank_faults(kind: CollectiveKind, call: CallShape, rank: int) -> Iterator[str]:
    double = evolve(call, count=2 * call.count)
    for count in (kind.in_count, kind.out_count):
        if count(double, rank) != 2 * count(call, rank):
            yield "must have inputs and outputs in proportion to the count"
    yield from _piece_faults(kind, call, rank)


def _piece_faults(kind: CollectiveKind, call: CallShape, rank: int) -> Iterator[str]:
    for piece in kind.ends(call, rank) or ():
        if not isinstance(piece, Piece) or not all(0 <= other < call.world for other in piece.ranks):
            yield f"must end with pieces of ranks from 0 to {call.world - 1}, not with {piece!r}"
        elif any(piece.first < 0 or piece.first + piece.count > kind.in_count(call, other) for other in piece.ranks):
            yield f"must end with elements that ranks bring, not with {piece!r}"
        elif len(set(piece.ranks)) < len(piece.ranks) or not piece.ranks:
            yield f"must end with pieces of one rank or of different ones, not with {piece!r}"
        elif piece.reduced and not kind.reduces:
            yield f"must say reduces=True to end with a reduction, {piece!r}"


def _traffic_faults(traffic: object, world: int) -> Iterator[str]:
    """Yield what a traffic for so many ranks has that is no number of bytes."""
    if not isinstance(traffic, Traffic):
        yield f"must give as traffic a Traffic of kernbench_ccl.collectives, not {traffic!r}, for {world} ranks"
        return
    stated: dict[str, Any] = {
        "send": traffic.send(0), "receive": traffic.receive(0), "cross": traffic.cross(frozenset({0})),
        "work": traffic.work(lambda a, b: int(a != b)), "everywhere": traffic.everywhere,
    }  # fmt: skip
    for name, amount in stated.items():
        if not _is_amount(amount):
            yield f"must give as {name} of its traffic bytes, finite and at least 0, not {amount!r}, for {world} ranks"


def _is_amount(given: object) -> bool:
    return isinstance(given, Real) and not isinstance(given, bool) and 0 <= float(given) < math.inf


def _fits(size: tuple[int, int], world: int) -> bool:
    """Whether an input and an output may share memory: one, or one a part of the other that it has for each rank."""
    less, more = sorted(size)
    return less == more or not less or more >= world * less
