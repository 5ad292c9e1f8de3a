"""The collectives that plug-ins registered, each checked when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve

from kernbench_ccl.collectives import COLLECTIVES, CallShape, CollectiveKind, Piece
from kernbench_core.errors import KernbenchError
from kernbench_core.process import INTERRUPTS
from kernbench_core.registry import CollectiveEntry, Registry

_COUNT = 6
"""nccl's count of the calls that a record is tried on."""


class Collectives(Mapping[str, CollectiveKind]):
    """The registered collectives by their names: those that come with kernbench first, in the order of lists."""

    def __init__(self, registry: Registry[CollectiveEntry]) -> None:
        self._registry = registry
        shipped = list(COLLECTIVES)
        self._names = sorted(registry, key=lambda n: (shipped.index(n) if n in shipped else len(shipped), n))
        self._known: dict[str, CollectiveKind] = {}

    def __getitem__(self, name: str) -> CollectiveKind:
        """Import and check a record; KeyError for a name that is none, PluginError for a record that will not do."""
        if name not in self._registry:
            raise KeyError(name)
        if name not in self._known:
            self._known[name] = self._checked(name)
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._registry

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def sentence(self, name: str) -> str:
        """Return what a registered collective does."""
        return self._registry[name].sentence

    def usable(self) -> tuple[dict[str, CollectiveKind], dict[str, str]]:
        """Return the records that can be used, and by the names of the others what is wrong with them."""
        found: dict[str, CollectiveKind] = {}
        broken: dict[str, str] = {}
        for name in self:
            try:
                found[name] = self[name]
            except KernbenchError as error:
                broken[name] = str(error).partition("\n")[0]
        return found, broken

    def _checked(self, name: str) -> CollectiveKind:
        kind = self._registry.load(name)
        if not isinstance(kind, CollectiveKind) or kind.name != name:
            raise self._registry.fault(name, f"must be a CollectiveKind of that name, not {kind!r}")
        try:
            fault = next(_faults(kind), None)
        except (*INTERRUPTS, MemoryError):
            raise
        except BaseException as error:
            raise self._registry.raised(name, error) from error
        if fault is not None:
            raise self._registry.fault(name, fault)
        return kind


def _faults(kind: CollectiveKind) -> Iterator[str]:
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


def _fits(size: tuple[int, int], world: int) -> bool:
    """Whether an input and an output may share memory: one, or one a part of the other that it has for each rank."""
    less, more = sorted(size)
    return less == more or not less or more >= world * less
