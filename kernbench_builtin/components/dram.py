"""What a DRAM controller tells about itself, so that tools can drive it without knowing its model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import attrs

from kernbench_core.params import Param
from kernbench_core.values import Region

CHANNEL_HASH = Param(
    "channel_hash", "str", "auto",
    "XOR the channel with the address bits above it: auto does where channels is a power of two.",
    choices=("auto", "on", "off"),
)  # fmt: skip


def hashes_channels(params: Mapping[str, Any]) -> bool:
    """Say whether parameters of a controller, `channels` and `channel_hash`, ask for a hash of its channels."""
    channels, chosen = params["channels"], params["channel_hash"]
    return chosen == "on" or (chosen == "auto" and not channels & (channels - 1))


def without_hash(params: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a controller leaves out where its channels cannot be hashed, as sentences for its users."""
    if params["channel_hash"] != "auto" or hashes_channels(params):
        return ()
    return (
        f"No hash spreads rows over the channels, which it needs a power of two of and has {params['channels']}: "
        "at some pitches few of them serve all.",
    )


@attrs.frozen
class DramPlace:
    """Name one burst of a controller: channel, bank of the channel (all groups counted), row, burst of the row."""

    channel: int
    bank: int
    row: int
    column: int


@attrs.frozen
class DramGeometry:
    """Describe a controller: what `geometry()` of a component returns; asked once, before it is driven.

    `channel_bandwidth` is the peak of one channel in bytes/ns. `interleave_bytes` consecutive bytes lie on one
    channel and `span_bytes` are addressed. A model without rows has `banks` 0 and neither `address` nor `locate`:
    `address(place)` is the byte address of a burst, `locate(address)` its inverse. `timing` holds times in ns, by the
    names of data sheets (tRC, tFAW, …) and tBL, the time of a burst on the data bus. `sustained` is the fraction of
    the peak that a model without rows promises for any pattern, of the channels that are used: `shares(regions)` gives
    the bytes that each channel moves for a request. `outcomes()` says how many bursts so far found their
    row open, their bank closed, and another row open. Banks of a group follow each other. `buses` pseudo-channels share
    command buses, `queue_of` of them a queue, of which a scheduler sees so many reads and writes (`window`),
    writes are drained from so many to so many (`drain`), at most `front_end` requests wait in front of the queues (0:
    any number) and take `overhead` ns to come there, `refresh` is all_bank, per_bank or none, and `standard` names
    where figures are from.
    """

    channels: int
    channel_bandwidth: float
    interleave_bytes: int
    burst_bytes: int
    span_bytes: int
    row_bytes: int = 0
    banks: int = 0
    bank_groups: int = 1
    timing: Mapping[str, float] = attrs.field(factory=lambda: MappingProxyType({}))
    sustained: float = 1.0
    address: Callable[[DramPlace], int] | None = None
    locate: Callable[[int], DramPlace] | None = None
    shares: Callable[[tuple[Region, ...]], Iterable[tuple[int, int]]] | None = None
    outcomes: Callable[[], tuple[int, int, int]] | None = None
    buses: int = 1
    queue_of: int = 1
    window: tuple[int, int] | None = None
    drain: tuple[int, int] | None = None
    front_end: int = 0
    overhead: float = 0.0
    refresh: str = "none"
    standard: str = ""

    @property
    def peak(self) -> float:
        """The rate of all channels together, in bytes/ns."""
        return self.channels * self.channel_bandwidth
