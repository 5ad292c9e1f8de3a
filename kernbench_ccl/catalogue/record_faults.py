"""What the record of a collective must be, field by field, and tried on calls of a few ranks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import evolve

from kernbench_ccl.catalogue.checked_answers import ARGUMENTS
from kernbench_ccl.collectives import CallShape, CollectiveKind
from kernbench_ccl.collectives.traffic import Traffic

_COUNT = 6
"""nccl's count of the calls that a record is tried on."""
_SPELLING = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


def field_faults(kind: CollectiveKind) -> Iterator[str]:
    """Yield which fields of a record are not what they must be, in words that follow its name."""
    for name, of in ARGUMENTS.items():
        function: object = getattr(kind, name)
        if not callable(function) and not (name == "traffic" and function is None):
            yield f"must have as {name} a function of {of}, not {function!r}"
    for name in ("reduces", "rooted", "takes_counts", "in_place", "per_pe", "barrier"):
        if not isinstance(getattr(kind, name), bool):
            yield f"must have True or False as {name}, not {getattr(kind, name)!r}"
    spelling: object = kind.spelling
    if spelling != "" and not (isinstance(spelling, str) and _SPELLING.fullmatch(spelling)):
        yield f"must have letters, digits, '_' and '-' as spelling, or \"\" for none, not {spelling!r}"
    named: object = kind.function
    if named != "" and not (isinstance(named, str) and named.isidentifier() and named[0] != "_"):
        yield f"must have the name of a function as function, or \"\" for none, not {named!r}"
    template: object = kind.template
    if not isinstance(template, str):
        yield f"must have text as template, or \"\" for none, not {template!r}"


def call_faults(kind: CollectiveKind) -> Iterator[str]:
    """Yield what a record must be of its calls as a whole, tried on two and three ranks.

    The record is a `checked` one: every answer of it on the way is checked as at any other call.
    """
    redop = "sum" if kind.reduces else None
    for world in (2, 3):
        call = CallShape(world, _COUNT, redop, world - 1 if kind.rooted else 0)
        sizes = [(kind.in_count(call, rank), kind.out_count(call, rank)) for rank in range(world)]
        double = evolve(call, count=2 * call.count)
        for rank, (n_in, n_out) in enumerate(sizes):
            if (kind.in_count(double, rank), kind.out_count(double, rank)) != (2 * n_in, 2 * n_out):
                yield f"must have inputs and outputs in proportion to the count, rank {rank} of {world}"
        if not kind.barrier and not any(map(any, sizes)):
            yield "must either move data or be a barrier"
        kind.factor(world)
        if kind.traffic is not None:
            _ask_all(kind.traffic(call, float(_COUNT)), world)


def _ask_all(traffic: Traffic, world: int) -> None:
    for rank in range(world):
        traffic.send(rank)
        traffic.receive(rank)
        traffic.cross(frozenset({rank}))
    traffic.work(lambda a, b: int(a != b))
