"""Which channel, bank, row and column an address of an HBM slice is: the address bits of `builtin.hbm_ctrl_bank`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from kernbench_builtin.components.channelled_memory import hashed
from kernbench_builtin.components.dram import DramPlace
from kernbench_core.values import Region

#: Orders of the fields, the highest first; what is lowest changes first as addresses rise.
MAPPINGS = ("RoBaCo", "RoCoBa")

#: A channel, and (flat bank, row) of bursts of it that follow each other.
BlockRun = tuple[int, tuple[tuple[int, int], ...]]
#: Blocks whose places are remembered.
_MOST_KNOWN = 1 << 14


class BankMapping:
    """Translate byte addresses into bursts of channels, banks, rows and columns, and back. It never changes.

    `channels` take turns every `interleave_bytes`; with `channel_hash` the turn is XORed with the bits above.
    Inside a channel the bursts count up through the fields of `mapping` (RoBaCo: a row to its end, then the next bank;
    RoCoBa: every bank, then the next column). With `group_interleave` the bank group changes with every burst,
    below both. With `bank_hash` the bank is XORed with the low bits of the row.
    """

    __slots__ = (
        "_blocks", "_per_group", "bank_groups", "bank_hash", "banks", "burst_bytes", "channel_hash", "channels",
        "columns", "group_interleave", "interleave_bytes", "row_bytes", "row_first",
    )  # fmt: skip

    def __init__(
        self, *, channels: int, interleave_bytes: int, burst_bytes: int, banks: int, bank_groups: int, row_bytes: int,
        mapping: str, group_interleave: bool, bank_hash: bool, channel_hash: bool,
    ) -> None:  # fmt: skip
        self.channels, self.interleave_bytes, self.burst_bytes = channels, interleave_bytes, burst_bytes
        self.banks, self.bank_groups, self.row_bytes = banks, bank_groups, row_bytes
        self.group_interleave, self.bank_hash, self.channel_hash = group_interleave, bank_hash, channel_hash
        #: Whether a row counts up before the bank: RoBaCo.
        self.row_first = mapping == "RoBaCo"
        #: How many bursts a row holds.
        self.columns = row_bytes // burst_bytes
        self._per_group = banks // bank_groups
        self._blocks: Callable[[int], BlockRun] = lru_cache(_MOST_KNOWN)(self._block)

    def runs(self, regions: tuple[Region, ...]) -> list[BlockRun]:
        """Return what `split` says of the bursts that hold bytes of `regions`: a channel, and several (flat bank, row).

        Upwards, a burst that rows share comes once.
        """
        found: list[BlockRun] = []
        block, burst, known = self.interleave_bytes, self.burst_bytes, self._blocks
        if len(regions) == 1:
            region = regions[0]
            if region.rows == 1 and 0 < region.row_bytes <= burst - region.base % burst:
                channel, bank, row = self.split(region.base)  # random traffic is made of these
                return [(channel, ((bank, row),))]
        for region in regions:
            moved_to = 0
            for number in range(region.rows):
                first = region.base + number * region.pitch
                at = first // burst * burst
                end = -(-(first + region.row_bytes) // burst) * burst
                if region.pitch > 0 and at < moved_to:
                    at = moved_to
                moved_to = max(moved_to, end)
                while at < end:
                    stop = min(end, (at // block + 1) * block)
                    found.append(known(at // block) if stop - at == block else self._bursts(at, stop))
                    at = stop
        return found

    def _bursts(self, at: int, stop: int) -> BlockRun:
        """Return the channel and the places of some bursts of one interleaved block."""
        channel, bank, row = self.split(at)
        if stop - at <= self.burst_bytes:
            return channel, ((bank, row),)
        places = [(bank, row)]
        for address in range(at + self.burst_bytes, stop, self.burst_bytes):
            places.append(self.split(address)[1:])
        return channel, tuple(places)

    def _block(self, number: int) -> BlockRun:
        """Return the channel and the places of the bursts of one interleaved block."""
        channel, line = self._channel_line(number * self.interleave_bytes)
        lines, groups = self.interleave_bytes // self.burst_bytes, self.bank_groups
        if self.group_interleave and self.row_first and not (lines % groups or self.columns * groups % lines):
            per_group = self.banks // groups  # the block lies in one row of each group
            row, inner = divmod(line // groups // self.columns, per_group)
            flip = row & (self.banks - 1) if self.bank_hash else 0
            once = tuple([(group * per_group + inner ^ flip, row) for group in range(groups)])
            return channel, once * (lines // groups)
        first, burst = number * self.interleave_bytes, self.burst_bytes
        return channel, tuple([self.split(at)[1:] for at in range(first, first + self.interleave_bytes, burst)])

    def split(self, address: int) -> tuple[int, int, int]:
        """Return (channel, flat bank, row) of the burst at `address`; banks of a group follow each other."""
        block = address // self.interleave_bytes
        stripe = block // self.channels
        channel = block - stripe * self.channels
        line = (address - (block - stripe) * self.interleave_bytes) // self.burst_bytes
        if self.channel_hash:
            channel = hashed(channel, stripe, self.channels)
        group, of_group = 0, self.banks
        if self.group_interleave:
            group, line = line % self.bank_groups, line // self.bank_groups
            of_group = self._per_group
        if self.row_first:
            line //= self.columns
            bank, row = line % of_group, line // of_group
        else:
            bank, row = line % of_group, line // of_group // self.columns
        bank += group * of_group
        if self.bank_hash:
            bank ^= row & (self.banks - 1)
        return channel, bank, row

    def locate(self, address: int) -> DramPlace:
        """Return the place of the burst that holds the byte at `address`."""
        channel, bank, row = self.split(address)
        _, line = self._channel_line(address)
        if self.row_first:
            column = (line // self.bank_groups if self.group_interleave else line) % self.columns
        else:
            column = line // self.banks % self.columns
        return DramPlace(channel, bank, row, column)

    def address(self, place: DramPlace) -> int:
        """Return the byte address of a burst: the inverse of `locate`."""
        bank = place.bank ^ (place.row & (self.banks - 1)) if self.bank_hash else place.bank
        per_group = self.banks // self.bank_groups
        group, inner = divmod(bank, per_group)
        if not self.row_first:
            bits = inner * self.bank_groups + group if self.group_interleave else bank
            line = (place.row * self.columns + place.column) * self.banks + bits
        elif self.group_interleave:
            line = ((place.row * per_group + inner) * self.columns + place.column) * self.bank_groups + group
        else:
            line = (place.row * self.banks + bank) * self.columns + place.column
        stripe, offset = divmod(line * self.burst_bytes, self.interleave_bytes)
        channel = hashed(place.channel, stripe, self.channels) if self.channel_hash else place.channel
        return (stripe * self.channels + channel) * self.interleave_bytes + offset

    def _channel_line(self, address: int) -> tuple[int, int]:
        """Return the channel, and the number of the burst among those of the channel."""
        block, offset = divmod(address, self.interleave_bytes)
        stripe, channel = divmod(block, self.channels)
        if self.channel_hash:
            channel = hashed(channel, stripe, self.channels)
        return channel, (stripe * self.interleave_bytes + offset) // self.burst_bytes
