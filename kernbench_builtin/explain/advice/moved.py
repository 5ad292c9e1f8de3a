"""What the loads, stores and atomics of a run moved from and to HBM, and how: figures that its advice is read from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np
import numpy.typing as npt

from kernbench_builtin.explain.roof import HbmAccess, distinct, length, spans_of
from kernbench_core.oplog.spill import take
from kernbench_core.topology.address import place_of

if TYPE_CHECKING:
    from kernbench_core.host.session import GraphEngine

#: An address without these says in which unit it is.
_OFFSET_BITS = 36
BURST: Final = 64
"""So many bytes a memory gives at least: a burst."""
#: Regions of an access that are looked at to see how its pieces lie.
_LOOKED_AT: Final = 4096


@attrs.define
class Moved:
    """Add up what PEs moved from and to HBM, in bytes, and in ns what transfers took, from issue to end.

    Of `nbytes`, moved by so many `transfers` in `ns`, in so many `pieces` without a gap, `package` came from, or went
    to, another package, `cube` another cube of theirs. Pieces of less than a burst, of equal steps mostly, are `short`:
    `folded` of them lie one beside the other in the tile (a transposed one), `near` ones less than a burst apart.
    `far_ns` is what transfers to other packages or cubes took that have alike ones in their own cube, `as_near_ns` what
    they would take as these do. Of the `blocks` of the scratchpad that all moved, `taken` are the bytes that no mask
    left out. In one launch, `again` are the bytes of `loaded` ones that the same program had loaded before, at least;
    `atomics_again` the atomics, of `atomics`, at a place where it had one before.
    """

    nbytes: int = 0
    ns: float = 0.0
    transfers: int = 0
    pieces: int = 0
    short: int = 0
    folded: int = 0
    near: int = 0
    package: int = 0
    cube: int = 0
    far_ns: float = 0.0
    as_near_ns: float = 0.0
    blocks: int = 0
    taken: int = 0
    loaded: int = 0
    again: int = 0
    atomics: int = 0
    atomics_again: int = 0

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
    found, before = Moved(), -1
    for access in accesses:
        form, pe = columns.form(access.template), take(columns.op_pe, access.rows)
        start, nbytes = take(columns.t_start, access.rows), access.each(access.table[:, 1] * access.table[:, 2])
        own = access.launch == launch
        took = take(columns.t_end, access.rows) - start
        if access.template != before:
            found.transfers += len(access.rows)
            found.ns += float(took.sum())
        before = access.template
        units = access.bases() >> _OFFSET_BITS  # of a scattered one its first address stands for all
        some = distinct(units)
        of_units = np.array([place_of(int(each) << _OFFSET_BITS) for each in some], np.int64).reshape(-1, 2)
        places = of_units[np.searchsorted(some, units)]
        away = places[:, 0] != sip[pe]
        other = ~away & (places[:, 1] != cube[pe])
        found.nbytes += int(nbytes.sum())
        found.package += int(nbytes[away].sum())
        found.cube += int(nbytes[other].sum())
        far = away | other
        if far.any() and not far.all():
            found.far_ns += float(took[far].sum())
            found.as_near_ns += float(np.minimum(took[far], took[~far].mean()).sum())
        _count_pieces(access, found)
        blocks = [each[2] * each[3] for each in form.geometry if each[0] == "tcm" and each[2] is not None]
        if form.op_kind == "memory" and len(blocks) == 1:
            found.blocks += len(access.rows) * blocks[0]
            found.taken += min(len(access.rows) * blocks[0], int(nbytes.sum()))
        again = _again(access, pe, own, programs)
        if form.op_name == "dma_read":
            found.loaded += int(nbytes[own].sum())
            found.again += int(nbytes[again].sum())
        elif access.writes and form.op_name.startswith("atomic"):
            found.atomics += int(own.sum())
            found.atomics_again += int(again.sum())
    return found


def _count_pieces(access: HbmAccess, found: Moved) -> None:
    """Count the pieces without a gap that all records are of, and how short ones lie, as in the first list of them."""
    _, row_bytes, count, _ = access.table.T
    pieces, nbytes = access.each(count), access.each(row_bytes * count)
    found.pieces += int(pieces.sum())
    short = (pieces > 2) & (nbytes < BURST * pieces)
    if not short.any():
        return
    first = access.table[access.owner == access.at[np.argmax(short)]][:_LOOKED_AT]
    which = np.repeat(np.arange(len(first)), first[:, 2])
    row = np.arange(len(which)) - np.repeat(np.cumsum(first[:, 2]) - first[:, 2], first[:, 2])
    between = np.diff(first[which, 0] + row * first[which, 3])
    steps = distinct(between)
    times = np.bincount(np.searchsorted(steps, between))
    step = int(abs(steps[np.argmax(times)]))
    if times.max() < len(which) / 3:  # a gather
        return
    spans, all_short = spans_of(first), int(pieces[short].sum())
    found.short += all_short
    found.near += all_short if step < BURST else 0
    found.folded += all_short if step >= BURST and length(spans) > 2 * len(spans) * int(first[0, 1]) else 0


def _again(
    access: HbmAccess, pe: npt.NDArray[Any], own: npt.NDArray[np.bool_], programs: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Return which of a launch's `own` records access what the same program accessed in a record before, at least.

    Of those of a PE that access the same, each of its programs may have been the first once.
    """
    at = np.flatnonzero(own)
    at = at[np.lexsort((access.at[at], pe[at]))]
    found = np.zeros(len(own), bool)
    if len(at):
        first = np.concatenate([[True], (pe[at[1:]] != pe[at[:-1]]) | (access.at[at[1:]] != access.at[at[:-1]])])
        begins = np.flatnonzero(first)
        found[at] = np.arange(len(at)) - begins[np.cumsum(first) - 1] >= programs[pe[at]]
    return found
