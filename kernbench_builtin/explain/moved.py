"""What the loads, stores and atomics of a run moved from and to HBM, and how: figures that its advice is read from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np
import numpy.typing as npt

from kernbench_builtin.explain.roof import HbmAccess, distinct, hbm_accesses
from kernbench_core.oplog.spill import take
from kernbench_core.topology.address import place_of

if TYPE_CHECKING:
    from kernbench_builtin.machines.figures.launch import LaunchFigures
    from kernbench_core.host.session import GraphEngine

#: An address without these says in which unit it is.
_OFFSET_BITS = 36
BURST: Final = 64
"""So many bytes a memory gives at least: a burst."""


@attrs.define
class Moved:
    """Add up what PEs moved from and to HBM, in bytes.

    Of `nbytes`, moved by so many `transfers` in so many `pieces` without a gap, of which `strided` are of equal steps,
    `package` came from, or went to, another package, `cube` another cube of theirs. Of the `blocks` of the scratchpad
    that they moved, `taken` are the bytes that no mask left out. In one launch, `again` are the bytes of `loaded` ones
    that the same PE had loaded before, `atomics_again` the atomics, of `atomics`, at a place where it had one before.
    """

    nbytes: int = 0
    transfers: int = 0
    pieces: int = 0
    strided: int = 0
    package: int = 0
    cube: int = 0
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


def moved_by(session: GraphEngine, launch: LaunchFigures) -> Moved:
    """Return what a session moved; of one launch, what it moved again."""
    pes, columns = session.hardware.layout.pes, session.op_log.columns
    sip, cube = (np.array([getattr(pe, name) for pe in pes], np.int64) for name in ("sip", "cube"))
    found = Moved()
    template, op_pe = np.asarray(columns.template[:]), np.asarray(columns.op_pe[:])
    plain = (np.asarray(columns.stage_pe[:]) < 0) & (op_pe >= 0)
    for number in distinct(template[plain]).tolist():
        form = columns.form(number)
        if "hbm" not in form.spaces:
            continue
        rows = np.flatnonzero(plain & (template == number))
        started = take(columns.t_start, rows)
        own = (started >= launch.started_ns) & (started <= launch.ended_ns)
        held = [each for each in form.geometry if each[0] == "tcm"]
        blocks = [row_bytes * count for _, _, row_bytes, count, _ in held if row_bytes is not None]
        found.transfers += len(rows)
        for access in hbm_accesses(columns, number, rows):
            nbytes = _sized(access, found)
            units = access.bases >> _OFFSET_BITS  # of a scattered one its first address stands for all
            some = distinct(units)
            of_units = np.array([place_of(int(each) << _OFFSET_BITS) for each in some], np.int64).reshape(-1, 2)
            places = of_units[np.searchsorted(some, units)]
            away = places[:, 0] != sip[op_pe[rows]]
            found.nbytes += int(nbytes.sum())
            found.package += int(nbytes[away].sum())
            found.cube += int(nbytes[~away & (places[:, 1] != cube[op_pe[rows]])].sum())
            if form.op_kind == "memory" and len(blocks) == 1:
                found.blocks += len(rows) * blocks[0]
                found.taken += min(len(rows) * blocks[0], int(nbytes.sum()))
            again = _again(access, op_pe[rows], own)
            if form.op_name == "dma_read":
                found.loaded += int(nbytes[own].sum())
                found.again += int(nbytes[again].sum())
            elif access.writes and form.op_name.startswith("atomic"):
                found.atomics += int(own.sum())
                found.atomics_again += int(again.sum())
    return found


def _sized(access: HbmAccess, found: Moved) -> npt.NDArray[np.int64]:
    """Return the bytes that each record accesses; count the pieces without a gap that all are of."""
    if not access.regions:
        pieces = len(access.bases) * access.rows
        found.pieces += pieces
        found.strided += pieces
        return np.full(len(access.bases), access.row_bytes * access.rows)
    known = {id(each): each for each in access.regions}
    sizes = {key: sum(region.row_bytes * region.rows for region in each) for key, each in known.items()}
    pieces_of = {key: sum(region.rows for region in each) for key, each in known.items()}
    even = {key: sum(region.rows for region in each if region.rows > 1) for key, each in known.items()}
    found.pieces += sum(pieces_of[id(each)] for each in access.regions)
    found.strided += sum(even[id(each)] for each in access.regions)
    return np.array([sizes[id(each)] for each in access.regions], np.int64)


def _again(access: HbmAccess, pe: npt.NDArray[Any], own: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which of a launch's `own` records access what the same PE accessed in a record before."""
    where = access.bases if not access.regions else np.array([id(each) for each in access.regions], np.int64)
    at = np.flatnonzero(own)
    at = at[np.lexsort((where[at], pe[at]))]
    found = np.zeros(len(own), bool)
    found[at[1:]] = (pe[at[1:]] == pe[at[:-1]]) & (where[at[1:]] == where[at[:-1]])
    return found
