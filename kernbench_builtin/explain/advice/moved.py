"""What the loads, stores and atomics of a run moved from and to HBM, and how: figures that its advice is read from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np
import numpy.typing as npt

from kernbench_builtin.explain.accesses import ByteRanges, HbmAccess, distinct, joined, length, spans_of
from kernbench_core.oplog.spill import take
from kernbench_core.topology.address import place_of

if TYPE_CHECKING:
    from kernbench_core.host.session import GraphEngine

#: An address without these says in which unit it is.
_OFFSET_BITS = 36
#: Models of HBM that tell their burst; others may call anything by that name.
_WITH_BURSTS: Final = ("builtin.hbm_ctrl", "builtin.hbm_ctrl_bank")
#: A cube is numbered by its package above so many bits.
_CUBE_BITS: Final = 32
#: Bits of a page, which placement=kb.Interleave(4096) gives one place, and of an area that may have a place of its own.
_PAGE_BITS: Final = 12
_AREA_BITS: Final = 17
#: Records of a launch of which it is looked at whether they load what was stored.
_COMPARED: Final = 1 << 16
#: Regions of an access that are looked at to see whose they are.
_REGIONS: Final = 1 << 20
#: Pieces of which so many follow each other are in line.
_IN_LINE: Final = 0.9
#: Regions of an access that are looked at to see how its pieces lie.
_LOOKED_AT: Final = 4096


@attrs.define
class Moved:
    """Add up what PEs moved from and to HBM, in bytes, and in ns what transfers took, from issue to end.

    Of `nbytes`, moved by so many `transfers` in `ns`, in so many `pieces` without a gap, `package` came from, or went
    to, another package, `cube` another cube of theirs. Pieces of less than a burst, of equal steps mostly, are `short`,
    of `short_bytes` together: `folded` of them lie one beside the other in the tile (a transposed one; `folded_stores`
    are stored), `near` ones less than a burst apart: of loads, `repeated` ones the same again, `backward` ones each
    before the last. `far_ns` is what transfers to other packages or cubes took that have alike ones in their own cube,
    `as_near_ns` what they would take as these do; `package_ns` is what those to other packages took, `as_own_ns` what
    they would take in their own, about. Of bytes in other cubes, `owned` are those that mostly one cube moves, and of
    those in other packages `owned_package` those that mostly one package does. The slice of HBM that moves most moves
    `hot_times` the mean of those that move any, of `hot_pages` of 4 KiB, about. Of the `blocks` of the scratchpad that
    all moved, `taken` are the bytes that no mask left out. In one launch, `again` are the bytes of `loaded` ones that
    the same program had loaded before, at least (in `again_ns` of the `loads_ns` of all), and `back` those that its PE
    had stored; of those that all launches load, `loaded_ever`, it had stored so many in another launch, `between`;
    `atomics_again` the atomics, of `atomics`, at a place where it had one before. `burst` is how many bytes HBM gives
    at least: it gave so many `bursts`, of these `again_bursts` of what is loaded again.
    """

    nbytes: int = 0
    bursts: int = 0
    ns: float = 0.0
    transfers: int = 0
    pieces: int = 0
    short: int = 0
    short_bytes: int = 0
    folded: int = 0
    folded_stores: int = 0
    near: int = 0
    repeated: int = 0
    backward: int = 0
    package: int = 0
    cube: int = 0
    far_ns: float = 0.0
    as_near_ns: float = 0.0
    package_ns: float = 0.0
    as_own_ns: float = 0.0
    owned: int = 0
    owned_package: int = 0
    hot_times: float = 1.0
    hot_pages: float = 0.0
    blocks: int = 0
    taken: int = 0
    loaded: int = 0
    again: int = 0
    loads_ns: float = 0.0
    again_ns: float = 0.0
    again_bursts: int = 0
    back: int = 0
    between: int = 0
    loaded_ever: int = 0
    atomics: int = 0
    atomics_again: int = 0
    burst: int = 1

    @property
    def piece(self) -> float:
        """The mean length of what is moved without a gap."""
        return self.nbytes / self.pieces if self.pieces else 0.0

    @property
    def of_burst(self) -> float:
        """Which part of a burst short pieces have, on average."""
        return self.short_bytes / (self.short * self.burst) if self.short else 1.0

    @property
    def masked(self) -> float:
        """The share of blocks that masks left out."""
        return 1.0 - self.taken / self.blocks if self.blocks else 0.0


def moved_by(
    session: GraphEngine, launch: int, accesses: Sequence[HbmAccess], programs: npt.NDArray[np.int64]
) -> Moved:
    """Return what a session moved by its `accesses`; of one `launch`, of so many `programs` on each PE, what again."""
    pes, columns = session.hardware.layout.pes, session.op_log.columns
    sip, cube = (np.array([getattr(pe, name) for pe in pes], np.int64) for name in ("sip", "cube"))
    found, before = Moved(burst=_burst(session)), -1
    stores = [access for access in accesses if access.writes]
    written = joined(*(access.bytes_of(access.launch == launch) for access in stores)) if stores else None
    for access in accesses:
        form, pe = columns.form(access.template), take(columns.op_pe, access.rows)
        start, nbytes = take(columns.t_start, access.rows), access.each(access.table[:, 1] * access.table[:, 2])
        bursts = access.each(-(-access.table[:, 1] // found.burst) * access.table[:, 2])
        own = access.launch == launch
        took = take(columns.t_end, access.rows) - start
        if access.template != before:
            found.transfers += len(access.rows)
            found.ns += float(took.sum())
        places, own_cube = _places(access), cube[pe] + (sip[pe] << _CUBE_BITS)
        in_package, in_cube = _bytes_in(access, places[:, 0], sip[pe]), _bytes_in(access, places[:, 1], own_cube)
        away, other = in_package < nbytes, (in_cube < in_package) & (in_package == nbytes)
        found.nbytes += int(nbytes.sum())
        found.bursts += int(bursts.sum())
        found.package += int((nbytes - in_package).sum())
        found.cube += int((in_package - in_cube).sum())
        far = away | other
        if far.any() and not far.all():
            found.far_ns += float(took[far].sum())
            found.as_near_ns += float(np.minimum(took[far], took[~far].mean()).sum())
        found.owned += int(_owned(access, own_cube, far) * nbytes[far].sum())
        found.owned_package += int(_owned(access, sip[pe], away) * nbytes[away].sum())
        if access.template != before and away.any():
            found.package_ns += float(took[away].sum())
            share = 1 - float(in_package[away].sum() / nbytes[away].sum())
            near = took[~away].mean() if not away.all() else took.mean() / (2 if 0.4 < share < 0.9 else 4)
            found.as_own_ns += float(np.minimum(took[away], near).sum())
        before = access.template
        _count_pieces(access, found)
        blocks = [each[2] * each[3] for each in form.geometry if each[0] == "tcm" and each[2] is not None]
        if form.op_kind == "memory" and len(blocks) == 1:
            found.blocks += len(access.rows) * blocks[0]
            found.taken += min(len(access.rows) * blocks[0], int(nbytes.sum()))
        again = _again(access, (pe, take(columns.op_issue, access.rows)), own, programs, written)
        if form.op_name == "dma_read":
            found.loaded += int(nbytes[own].sum())
            found.again += int(nbytes[again].sum())
            found.loads_ns += float(took[own].sum())
            found.again_ns += float(took[again].sum())
            found.again_bursts += int(bursts[again].sum())
        elif access.writes and form.op_name.startswith("atomic"):
            found.atomics += int(own.sum())
            found.atomics_again += int(again.sum())
    found.back, found.between, found.loaded_ever = _stored_before(session, accesses, launch)
    found.hot_times, found.hot_pages = _hottest(accesses)
    return found


def _burst(session: GraphEngine) -> int:
    """Return how many bytes HBM gives at least, 1 where its models do not tell."""
    units: Iterator[Any] = (each for each in session.hardware.components.values() if each.node.impl in _WITH_BURSTS)
    return max((int(each.geometry().burst_bytes) for each in units), default=1)


def _stored_before(session: GraphEngine, accesses: Sequence[HbmAccess], launch: int) -> tuple[int, int, int]:
    """Return how many bytes the PEs of a launch load as they stored them there before, in the same pieces.

    And those that any launch loads as the same PE stored them in another one, and those of all loads.
    """
    columns = session.op_log.columns
    stored: dict[tuple[int, bytes], tuple[float, int]] = {}
    if sum(len(access.rows) for access in accesses) > _COMPARED:
        return 0, 0, 0
    back = between = every = 0
    for access in sorted(accesses, key=lambda each: not each.writes):
        if columns.form(access.template).op_name.startswith("atomic"):
            continue
        order = np.argsort(access.owner, kind="stable")
        parts = np.split(access.table[order], np.cumsum(np.bincount(access.owner, minlength=access.lists))[:-1])
        keys = [part.tobytes() for part in parts]
        nbytes = access.each(access.table[:, 1] * access.table[:, 2]).tolist()
        columns_of = (take(each, access.rows).tolist() for each in (columns.op_pe, columns.t_start, columns.t_end))
        records = zip(*columns_of, access.at.tolist(), access.launch.tolist(), nbytes, strict=True)
        for pe, start, end, at, of_launch, moved in records:
            before = stored.get((pe, keys[at]))
            if access.writes:
                if before is None or end < before[0]:
                    stored[pe, keys[at]] = end, of_launch
                continue
            every += moved
            if before is not None and before[0] <= start:
                back += moved if before[1] == of_launch == launch else 0
                between += moved if before[1] != of_launch else 0
    return back, between, every


def _hottest(accesses: Sequence[HbmAccess]) -> tuple[float, float]:
    """Return of the slice of HBM that moves most: how many times the mean of those in use, of how many pages, about."""
    if not any(len(access.table) for access in accesses):
        return 1.0, 0.0
    pages = np.concatenate([access.table[:, 0] >> _PAGE_BITS for access in accesses])
    moved = np.concatenate([
        access.table[:, 1] * access.table[:, 2] * np.bincount(access.at, minlength=access.lists)[access.owner]
        for access in accesses
    ])  # fmt: skip
    some = distinct(pages)
    of_pages = np.bincount(np.searchsorted(some, pages), moved)
    units = distinct(some >> (_OFFSET_BITS - _PAGE_BITS))
    of_units = np.bincount(np.searchsorted(units, some >> (_OFFSET_BITS - _PAGE_BITS)), of_pages)
    hot = int(np.argmax(of_units))
    own, every = float(of_units[hot]), float(of_units.sum())
    if not own:
        return 1.0, 0.0
    inside = some >> (_OFFSET_BITS - _PAGE_BITS) == units[hot]
    weight = sum(float((access.each(access.table[:, 1] * access.table[:, 2]) ** 2.0).sum()) for access in accesses)
    of_one = max(1.0, weight / every / (1 << _PAGE_BITS))  # pages of what is moved at once
    return own * len(units) / every, of_one * own**2 / float((of_pages[inside] ** 2).sum())


def _places(access: HbmAccess) -> npt.NDArray[np.int64]:
    """Return of each region the package that it lies in and, in the second column, the cube of all."""
    units = access.table[:, 0] >> _OFFSET_BITS
    some = distinct(units)
    places = np.array([place_of(int(each) << _OFFSET_BITS) for each in some], np.int64).reshape(-1, 2)
    places[:, 1] += places[:, 0] << _CUBE_BITS
    found: npt.NDArray[np.int64] = places[np.searchsorted(some, units)]
    return found


def _bytes_in(
    access: HbmAccess, places: npt.NDArray[np.int64], own: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return how many bytes of each record lie in its `own` place, of regions in `places`."""
    if not len(places):
        return np.zeros(len(own), np.int64)
    some = distinct(places)
    keys = access.owner * len(some) + np.searchsorted(some, places)
    known = distinct(keys)
    nbytes = np.bincount(np.searchsorted(known, keys), access.table[:, 1] * access.table[:, 2]).astype(np.int64)
    at = np.minimum(np.searchsorted(some, own), len(some) - 1)
    wanted = access.at * len(some) + at
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where((some[at] == own) & (known[place] == wanted), nbytes[place], 0)


def _owned(access: HbmAccess, owners: npt.NDArray[np.int64], far: npt.NDArray[np.bool_]) -> float:
    """Return which share of the bytes of far records lies in an area of which most is moved by one of the `owners`.

    These say the cube, or package, of each record's PE. An area is where a region begins; of many regions some count.
    """
    rows = np.flatnonzero(far)
    if not len(rows) or not len(access.table):
        return 0.0
    counts = np.bincount(access.owner, minlength=access.lists)
    rows = rows[:: max(1, int(counts[access.at[rows]].sum()) // _REGIONS)]
    lists = access.at[rows]
    which = np.repeat(np.arange(len(rows)), counts[lists])
    behind = np.arange(len(which)) - (np.cumsum(counts[lists]) - counts[lists])[which]
    regions = np.argsort(access.owner, kind="stable")[(np.cumsum(counts) - counts)[lists][which] + behind]
    areas, some = access.table[regions, 0] >> _AREA_BITS, distinct(owners[rows])
    known = distinct(areas)
    at = np.searchsorted(known, areas) * len(some) + np.searchsorted(some, owners[rows])[which]
    nbytes = access.table[regions, 1] * access.table[regions, 2]
    each = np.bincount(at, nbytes, len(known) * len(some)).reshape(len(known), -1)
    most = each.max(axis=1)
    return float(most[3 * most > 2 * each.sum(axis=1)].sum() / max(each.sum(), 1.0))


def _count_pieces(access: HbmAccess, found: Moved) -> None:
    """Count the pieces without a gap that all records are of, and how short ones lie, as in the first list of them."""
    _, row_bytes, count, _ = access.table.T
    pieces, nbytes = access.each(count), access.each(row_bytes * count)
    found.pieces += int(pieces.sum())
    short = (pieces > 2) & (nbytes < found.burst * pieces)
    if not short.any():
        return
    first = access.table[access.owner == access.at[np.argmax(short)]][:_LOOKED_AT]
    which = np.repeat(np.arange(len(first)), first[:, 2])
    row = np.arange(len(which)) - np.repeat(np.cumsum(first[:, 2]) - first[:, 2], first[:, 2])
    between = np.diff(first[which, 0] + row * first[which, 3])
    steps = distinct(between)
    times = np.bincount(np.searchsorted(steps, between))
    most = int(steps[np.argmax(times)])
    step = abs(most)
    if times.max() < len(which) / 3:  # a gather
        return
    spans, all_short = spans_of(first), int(pieces[short].sum())
    found.short += all_short
    found.short_bytes += int(nbytes[short].sum())
    found.near += all_short if step < found.burst else 0
    found.repeated += all_short if not (most or access.writes) else 0
    in_line = most == -int(first[0, 1]) and times.max() > _IN_LINE * len(which)
    found.backward += all_short if in_line and not access.writes else 0
    folded = all_short if step >= found.burst and length(spans) > 2 * len(spans) * int(first[0, 1]) else 0
    found.folded += folded
    found.folded_stores += folded if access.writes else 0


def _again(
    access: HbmAccess, ops: tuple[npt.NDArray[Any], npt.NDArray[Any]], own: npt.NDArray[np.bool_],
    programs: npt.NDArray[np.int64], written: ByteRanges | None,
) -> npt.NDArray[np.bool_]:  # fmt: skip
    """Return which of a launch's `own` records access what the same program accessed in a record before, at least.

    `ops` are their PEs and numbers there. Where programs of a PE have as many records each, it is seen which are whose;
    else each program may have been the first once. What the launch has `written` may have changed; so only atomics may
    access that again.
    """
    (pe, issue), kept = ops, own.copy()
    if written is not None and not access.writes:
        first, row_bytes, count, pitch = access.table.T
        end = first + np.maximum(count - 1, 0) * pitch + row_bytes
        at = np.searchsorted(written[:, 1], first, "right")
        changed = written[np.minimum(at, len(written) - 1), 0] < end if len(written) else np.zeros(len(first), bool)
        kept &= np.bincount(access.owner, changed & (at < len(written)), access.lists)[access.at] == 0
    at = np.flatnonzero(kept)
    found = np.zeros(len(own), bool)
    if not len(at):
        return found
    of_pe = np.bincount(pe[own], minlength=len(programs))
    known = bool((of_pe % np.maximum(programs, 1) == 0).all())
    program = np.zeros(len(own), np.int64)
    if known:
        order = np.flatnonzero(own)
        order = order[np.lexsort((issue[order], pe[order]))]
        begins = np.cumsum(of_pe) - of_pe
        each = np.maximum(of_pe // np.maximum(programs, 1), 1)
        program[order] = (np.arange(len(order)) - begins[pe[order]]) // each[pe[order]]
    at = at[np.lexsort((program[at], access.at[at], pe[at]))]
    keys = np.stack([pe[at], access.at[at], program[at]])
    first_of = np.concatenate([[True], (keys[:, 1:] != keys[:, :-1]).any(axis=0)])
    begin_of = np.flatnonzero(first_of)
    behind = np.arange(len(at)) - begin_of[np.cumsum(first_of) - 1]
    found[at] = behind >= (1 if known else programs[pe[at]])
    return found
