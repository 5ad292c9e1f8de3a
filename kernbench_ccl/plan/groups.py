"""Groups of ranks: which SIP each rank is, which of its PEs move data, and the queues that they use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from attrs import frozen

from kernbench_core.errors import UsageError
from kernbench_core.host import pick_pes
from kernbench_core.peers import Channel

if TYPE_CHECKING:
    from kernbench_core.graph import PeSite

__tracebackhide__ = True

CHOSEN_BY: Final = (
    'slots, slot_bytes and tier in ccl.yaml, as dist.init_process_group(set=["defaults.tier={tier}"]) or kernbench ccl '
    "--config FILE has it"
)
"""How a user chooses the slots of collectives."""


@frozen
class Group:
    """Ranks that take part in collectives together. Rank r is the SIP `sips[r]`.

    `pes[r]` are the machine's indices of the PEs of rank r that may move data, the same number for each rank, in PE
    order. Groups with channels of different names have different queues.
    """

    name: str
    sips: tuple[int, ...]
    pes: tuple[tuple[int, ...], ...]
    channel: Channel

    @property
    def world(self) -> int:
        """How many ranks there are."""
        return len(self.sips)

    @property
    def n_pe(self) -> int:
        """How many PEs of each rank may move data."""
        return len(self.pes[0])


def make_group(
    sites: Sequence[PeSite],
    sips: Sequence[int] | None = None,
    *,
    pes: Iterable[int] | None = None,
    name: str = "world",
    channel: Channel | None = None,
) -> Group:
    """Make a group whose rank r is the SIP `sips[r]`; by default every SIP of `sites`, in order.

    `pes` are the positions, among the PEs of each SIP, of those that may move data; by default all. UsageError when a
    SIP is not there, or is named twice.
    """
    known: dict[int, list[PeSite]] = {}
    for site in sites:
        known.setdefault(site.sip, []).append(site)
    chosen = tuple(known) if sips is None else tuple(sips)
    if not chosen or len(set(chosen)) < len(chosen) or not set(chosen) <= set(known):
        raise UsageError(
            f"group {name!r} must be of different SIPs of this run, not {list(chosen)}; this run has {list(known)}."
        )
    positions = None if pes is None else tuple(pes)
    picked = tuple(
        tuple(site.index for site in pick_pes(tuple(known[sip]), positions, f"group {name!r}")) for sip in chosen
    )
    return Group(name, chosen, picked, channel or Channel(name))
