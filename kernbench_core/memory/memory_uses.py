"""The uses of one tensor that what comes may be unordered with: which lines and threads used which bytes last.

Uses of the same bytes by one line are kept together, and of each thread the last one alone: a thread is in program
order, so whoever comes after its last use comes after them all. Bytes that lie together are joined where the same
threads used them in the same epochs, so what is kept grows with the places that are used, and not with how often.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kernbench_core.callsite import CallSite
from kernbench_core.memory.clocks import Clock
from kernbench_core.values.region import Region, ascending_pieces, normal, overlaps
from kernbench_core.values.region_pages import Filed, RegionPages
from kernbench_core.values.value import OpId

if TYPE_CHECKING:
    from kernbench_core.memory.device_memory import TensorAllocation

_Key = tuple[tuple[Region, ...], int, int]
"""Physical bytes, and the code and the instruction that use them."""


class LastUse:
    """The last use of some bytes by one line in one thread.

    `epoch` is the last one in which such a use was over; `pending` are those that the kernel has not waited for.
    """

    __slots__ = ("epoch", "group", "issued", "landed", "op_id", "pending", "thread")

    def __init__(self, group: UseGroup, thread: int, op_id: OpId, now: float) -> None:
        self.group = group
        self.thread = thread
        self.op_id = op_id
        self.issued = now
        self.landed: float | None = None
        self.epoch = 0
        self.pending = 0


class UseGroup:
    """The uses of the same bytes by one line: the last of each thread, mostly of one alone.

    `meets` are the groups that share a byte with it and conflict with it. Those that are `atomic`, read-modify-writes,
    may come before or after others of their kind.
    """

    __slots__ = ("_first", "_others", "atomic", "call", "meets", "physical", "site", "tensor", "writes")

    def __init__(
        self, tensor: TensorAllocation, physical: tuple[Region, ...], writes: bool, call: str, site: CallSite
    ) -> None:
        self.tensor = tensor
        self.physical = physical
        self.writes = writes
        self.call = call
        self.site = site
        self._first: LastUse | None = None
        #: By thread the uses of all but the first; a dict for each group would be a quarter of all that is kept.
        self._others: dict[int, LastUse] | None = None
        self.meets: list[UseGroup] = []
        self.atomic = call.startswith("tl.atomic_")

    @property
    def key(self) -> _Key:
        """What finds it."""
        return self.physical, id(self.site[0]), self.site[1]

    @property
    def uses(self) -> Sequence[LastUse]:
        """The last uses, of each thread one."""
        if self._first is None:
            return ()
        return (self._first,) if self._others is None else (self._first, *self._others.values())

    def use_of(self, thread: int) -> LastUse | None:
        """Return the last use of a thread."""
        first = self._first
        if first is None or first.thread == thread:
            return first
        return None if self._others is None else self._others.get(thread)

    def keep(self, use: LastUse) -> None:
        """Have a use be the last of its thread."""
        use.group = self
        if self._first is None or self._first.thread == use.thread:
            self._first = use
            return
        if self._others is None:
            self._others = {}
        self._others[use.thread] = use

    def keep_only(self, uses: Iterable[LastUse]) -> None:
        """Have these be the last uses, and no others."""
        self._first = self._others = None
        for use in uses:
            self.keep(use)

    def pieces(self) -> list[_Piece]:
        """Return the bytes as ascending regions, to be filed."""
        found = []
        for region in self.physical:
            for piece in ascending_pieces(region):
                found.append(_Piece(piece, self))
        return found


class _Piece(Filed):
    """An ascending region of what a group uses: a tile over many shards meets what lies in one of them by that alone.
    """

    __slots__ = ("group",)

    def __init__(self, region: Region, group: UseGroup) -> None:
        self.region = region
        self.group = group


class TensorUses:
    """What is kept of one tensor. Nothing is filed by place before somebody writes: what is only read meets nothing."""

    __slots__ = ("_read_pages", "_write_pages", "reads", "writes")

    def __init__(self) -> None:
        self.reads: dict[_Key, UseGroup] = {}
        self.writes: dict[_Key, UseGroup] = {}
        self._read_pages: RegionPages | None = None
        self._write_pages: RegionPages = RegionPages()

    def add(self, group: UseGroup) -> None:
        """Take in a group that is not there yet, and have it meet what it conflicts with."""
        if not group.writes:
            self.reads[group.key] = group
            if self._read_pages is not None:
                pieces = group.pieces()
                _meet(group, pieces, self._write_pages)
                _file(pieces, self._read_pages)
            return
        if self._read_pages is None:
            self._read_pages = RegionPages()
            for read in self.reads.values():
                _file(read.pieces(), self._read_pages)
        self.writes[group.key] = group
        pieces = group.pieces()
        _meet(group, pieces, self._read_pages)
        _file(pieces, self._write_pages)
        _meet(group, pieces, self._write_pages)

    def tidy(self, floor: Clock) -> int:
        """Drop what is over for everything that comes, whose clocks are at least `floor`; join neighbours.

        Return how many last uses are kept.
        """
        became: dict[UseGroup, UseGroup] = {}
        for groups in (self.reads, self.writes):
            for group in groups.values():
                _drop_over(group, floor)
            left = [group for group in groups.values() if group.uses]
            groups.clear()
            for group, parts in _joined(left):
                known = groups.setdefault(group.key, group)
                if known is not group:
                    _unite(known, group)
                became.update(dict.fromkeys(parts, known))
        self._link(became)
        return sum(len(group.uses) for groups in (self.reads, self.writes) for group in groups.values())

    def _link(self, became: dict[UseGroup, UseGroup]) -> None:
        """Have groups meet those that the ones that they met became, and file them anew."""
        meets: dict[UseGroup, dict[UseGroup, None]] = {group: {} for group in became.values()}
        for old, new in became.items():
            meets[new].update(dict.fromkeys(became[other] for other in old.meets if other in became))
        self._write_pages = RegionPages()
        self._read_pages = RegionPages() if self.writes else None
        for group, met in meets.items():
            group.meets = list(met)
            pages = self._write_pages if group.writes else self._read_pages
            if pages is not None:
                _file(group.pieces(), pages)


def _file(pieces: list[_Piece], pages: RegionPages) -> None:
    for piece in pieces:
        pages.file(piece)


def _meet(group: UseGroup, pieces: list[_Piece], pages: RegionPages) -> None:
    """Have a group, whose pieces these are, and those on pages near it that share a byte with it know each other."""
    near: dict[UseGroup, bool] = {}
    for piece in pieces:
        for other in pages.near(piece.region):
            if not near.get(other.group):
                near[other.group] = overlaps(piece.region, other.region)
    for met, shares in near.items():
        if shares and not (group.atomic and met.atomic):
            group.meets.append(met)
            if met is not group:
                met.meets.append(group)


def _is_unordered(use: LastUse, clock: Clock) -> bool:
    return bool(use.pending or use.thread >= len(clock) or clock[use.thread] < use.epoch)


def _drop_over(group: UseGroup, floor: Clock) -> None:
    uses = group.uses
    left = [last for last in uses if _is_unordered(last, floor)]
    if len(left) < len(uses):
        group.keep_only(left)


def _unite(known: UseGroup, group: UseGroup) -> None:
    """Take over the last uses of a group of the same line and bytes: the later ones, and those that are pending."""
    for last in group.uses:
        own = known.use_of(last.thread)
        kept = own
        if own is None or last.pending or (last.epoch > own.epoch and not own.pending):
            known.keep(last)
            kept = last
        if own is not None and kept is not None:
            kept.epoch = max(own.epoch, last.epoch)


def _joined(groups: list[UseGroup]) -> Iterable[tuple[UseGroup, list[UseGroup]]]:
    """Yield groups, each with those that it stands for: neighbours that the same threads used in the same epochs."""
    alike: dict[tuple[object, ...], list[UseGroup]] = {}
    for group in groups:
        region = group.physical[0]
        if len(group.physical) > 1 or not region.ascending or any(last.pending for last in group.uses):
            yield group, [group]
            continue
        rows = (1, 0) if region.contiguous else (region.rows, region.pitch)
        epochs = tuple(sorted((last.thread, last.epoch) for last in group.uses))
        alike.setdefault((*group.key[1:], *rows, epochs), []).append(group)
    for several in alike.values():
        several.sort(key=lambda group: group.physical[0].base)
        at = 0
        while at < len(several):
            start, region = at, several[at].physical[0]
            longer: Region | None = region
            while longer is not None:
                region, at = longer, at + 1
                longer = _continued(region, several[at].physical[0]) if at < len(several) else None
            parts = several[start:at]
            yield (parts[0] if len(parts) == 1 else _standing_for(region, parts)), parts


def _standing_for(region: Region, parts: list[UseGroup]) -> UseGroup:
    """Return one group for neighbours, with the last uses of the first of them."""
    first = parts[0]
    found = UseGroup(first.tensor, (region,), first.writes, first.call, first.site)
    found.keep_only(first.uses)
    return found


def _continued(first: Region, then: Region) -> Region | None:
    """Return one region of the bytes of both, if `then` begins where `first` ends, or where each of its rows does."""
    if first.contiguous and then.contiguous:
        if then.base > first.base + first.nbytes:
            return None
        return Region(first.base, max(first.base + first.nbytes, then.base + then.nbytes) - first.base)
    if (first.rows, first.pitch) == (then.rows, then.pitch) and then.base == first.base + first.row_bytes:
        width = first.row_bytes + then.row_bytes
        return normal(Region(first.base, width, first.rows, first.pitch)) if width <= first.pitch else None
    return None
