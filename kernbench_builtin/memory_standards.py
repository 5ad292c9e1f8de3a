"""Standards of memories by name: the organisation and the times of a pseudo-channel, each figure with its source.

A figure is written as in YAML. Times between commands are whole clocks of the standard's clock, in which a
pseudo-channel of each of them moves `CLOCK_BYTES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import attrs

#: Bytes that a pseudo-channel moves in one clock: 64 bit twice (HBM2), or 32 bit four times (HBM3, HBM4).
CLOCK_BYTES = 16
#: The source of a figure that nobody has looked up, or that its source calls typical only.
UNVERIFIED = "unverified"


@attrs.frozen
class Figure:
    """Be one figure of a standard: its value as written in YAML, and where it was read."""

    value: object
    source: str

    @property
    def verified(self) -> bool:
        """Whether the source has the figure, and not just something like it."""
        return not self.source.startswith(UNVERIFIED)


@attrs.frozen(kw_only=True)
class MemoryStandard:
    """Be a standard: a figure for each parameter of `builtin.hbm_ctrl_bank` that follows its `standard`.

    `kernbench components builtin.hbm_ctrl_bank` says what each is. Raise TypeError for what is no Figure.
    """

    channel_bandwidth: Figure
    burst_bytes: Figure
    banks: Figure
    bank_groups: Figure
    stack_ids: Figure
    row_bytes: Figure
    tCL: Figure  # noqa: N815
    tCWL: Figure  # noqa: N815
    tRCDRD: Figure  # noqa: N815
    tRCDWR: Figure  # noqa: N815
    tRP: Figure  # noqa: N815
    tRAS: Figure  # noqa: N815
    tRC: Figure  # noqa: N815
    tCCD_S: Figure  # noqa: N815
    tCCD_L: Figure  # noqa: N815
    tCCD_R: Figure  # noqa: N815
    tWR: Figure  # noqa: N815
    tWTR_S: Figure  # noqa: N815
    tWTR_L: Figure  # noqa: N815
    tRTP: Figure  # noqa: N815
    tPPD: Figure  # noqa: N815
    turnaround_clocks: Figure
    tRRD_S: Figure  # noqa: N815
    tRRD_L: Figure  # noqa: N815
    tFAW: Figure  # noqa: N815
    tRFC: Figure  # noqa: N815
    tRFCpb: Figure  # noqa: N815
    tRREFD: Figure  # noqa: N815
    tREFI: Figure  # noqa: N815

    def __attrs_post_init__(self) -> None:
        for field in attrs.fields(type(self)):
            if not isinstance(given := getattr(self, field.name), Figure):
                raise TypeError(f"{field.name} must be a Figure of a value and its source, not {given!r}")

    @property
    def figures(self) -> Mapping[str, Figure]:
        """The figures by name."""
        return {field.name: getattr(self, field.name) for field in attrs.fields(type(self))}

    @property
    def defaults(self) -> Mapping[str, object]:
        """The values of the parameters, as written in YAML."""
        return {name: figure.value for name, figure in self.figures.items()}

    @property
    def unverified(self) -> tuple[str, ...]:
        """The parameters whose figures are unverified."""
        return tuple(name for name, figure in self.figures.items() if not figure.verified)


def _clocks(preset: str, clock: float) -> Callable[[int], Figure]:
    """Return a maker of figures that a preset of Ramulator gives in clocks (of `clock` ns)."""

    def figure(number: int) -> Figure:
        return Figure(f"{number * clock:g} ns", f"Ramulator 2.1, {preset}: {number} clocks of {clock:g} ns")

    return figure


_2 = _clocks("HBM2_2000Mbps", 1.0)
_3 = _clocks("HBM3_6400Mbps", 0.625)
_4 = _clocks("HBM4_8000Mbps", 0.5)
_PAGE = "Ramulator 2.1, organisation presets: 32 columns of 32 B"

HBM2_2000 = MemoryStandard(
    channel_bandwidth=Figure("16 GB/s", "JESD235: 64 bit at 2 Gb/s"),
    burst_bytes=Figure("32 B", "JESD235: burst length 4 of 64 bit"),
    banks=Figure(16, "Ramulator 2.1, organisation presets of HBM2: 4 groups of 4"),
    bank_groups=Figure(4, "Ramulator 2.1, organisation presets of HBM2: 4 groups of 4"),
    row_bytes=Figure("1 KiB", _PAGE),
    tCL=_2(14), tCWL=_2(5), tRCDRD=_2(14), tRCDWR=_2(12), tRP=_2(14), tRAS=_2(34), tRC=_2(48),
    tCCD_S=_2(2), tCCD_L=_2(4), tWR=_2(16), tWTR_S=_2(6), tWTR_L=_2(8), tRTP=_2(5),
    tCCD_R=Figure("2 ns", "Ramulator 2.1, HBM2: no time of its own, tCCD_S"),
    tPPD=Figure("1 ns", "Ramulator 2.1, HBM2: no time of its own, a clock"),
    turnaround_clocks=Figure(2, "Ramulator 2.1, HBM2: tRTW is tCL + tBL + 2 clocks - tCWL"),
    stack_ids=Figure(1, "Ramulator 2.1, organisation preset HBM2_2Gb: none"),
    tRRD_S=Figure("4 ns", "JESD235D, as in Ramulator 2.1"),
    tRRD_L=Figure("4 ns", "JESD235D, as in Ramulator 2.1"),
    tFAW=Figure("15 ns", f"{UNVERIFIED}: vendors differ, Ramulator 2.1 calls it typical; DRAMsim3 has 30 ns"),
    tRFC=Figure("160 ns", "JESD235D, as in Ramulator 2.1: 2 Gb a channel"),
    tRFCpb=Figure("160 ns", "JESD235D, as in Ramulator 2.1: to 8 Gb a channel"),
    tRREFD=Figure("8 ns", "JESD235D, as in Ramulator 2.1"),
    tREFI=Figure("3900 ns", "JESD235D, as in Ramulator 2.1"),
)  # fmt: skip

HBM3_6400 = MemoryStandard(
    channel_bandwidth=Figure("25.6 GB/s", "JESD238: 32 bit at 6.4 Gb/s"),
    burst_bytes=Figure("32 B", "JESD238: burst length 8 of 32 bit"),
    banks=Figure(16, "Ramulator 2.1, organisation preset HBM3_4Gb: 4 groups of 4"),
    bank_groups=Figure(4, "Ramulator 2.1, organisation preset HBM3_4Gb: 4 groups of 4"),
    row_bytes=Figure("1 KiB", _PAGE),
    tCL=_3(20), tCWL=_3(10), tRCDRD=_3(31), tRCDWR=_3(15), tRP=_3(26), tRAS=_3(45), tRC=_3(72),
    tCCD_S=_3(2), tCCD_L=_3(4), tCCD_R=_3(3), tPPD=_3(2), tRRD_S=_3(4), tRRD_L=_3(5), tFAW=_3(24), tWR=_3(33),
    tWTR_S=_3(7), tWTR_L=_3(10), tRTP=_3(9),
    turnaround_clocks=Figure(8, "Ramulator 2.1, HBM3_6400Mbps: tRTW, 20 clocks, less tCL + tBL - tCWL"),
    stack_ids=Figure(1, "Ramulator 2.1, organisation preset HBM3_4Gb: one"),
    tRFC=Figure("260 ns", "JESD238 table 84, as in Ramulator 2.1: to 4 Gb a channel"),
    tRFCpb=_3(320),
    tRREFD=Figure("8 ns", "JESD238, as in Ramulator 2.1: max(3 clocks, 8 ns)"),
    tREFI=_3(6240),
)  # fmt: skip

HBM4_8000 = MemoryStandard(
    channel_bandwidth=Figure("32 GB/s", "JEDEC's announcement of HBM4: 64 pseudo-channels, 2 TB/s at 8 Gb/s"),
    burst_bytes=Figure("32 B", "Ramulator 2.1, HBM4: burst length 8 of 32 bit"),
    banks=Figure(16, "Ramulator 2.1, organisation preset HBM4_32Gb_4Hi: 2 groups of 8"),
    bank_groups=Figure(2, "Ramulator 2.1, organisation preset HBM4_32Gb_4Hi: 2 groups of 8"),
    row_bytes=Figure("1 KiB", _PAGE),
    tCL=_4(20), tCWL=_4(10), tRCDRD=_4(39), tRCDWR=_4(19), tRP=_4(33), tRAS=_4(57), tRC=_4(90),
    tCCD_S=_4(2), tCCD_L=_4(4), tCCD_R=_4(2), tPPD=_4(2), tRRD_S=_4(5), tRRD_L=_4(7), tFAW=_4(30), tWR=_4(42),
    tWTR_S=_4(9), tWTR_L=_4(13), tRTP=_4(12),
    turnaround_clocks=Figure(13, "Ramulator 2.1, HBM4_8000Mbps: tRTW, 25 clocks, less tCL + tBL - tCWL"),
    stack_ids=Figure(1, "Ramulator 2.1, organisation preset HBM4_32Gb_4Hi: one"),
    tRFC=Figure("450 ns", "Ramulator 2.1, HBM4: to 8 Gb a channel"),
    tRFCpb=_4(560),
    tRREFD=Figure("8 ns", "Ramulator 2.1, HBM4: max(3 clocks, 8 ns)"),
    tREFI=Figure("3900 ns", "Ramulator 2.1, HBM4"),
)  # fmt: skip

HBM3_6400_8HI = attrs.evolve(
    HBM3_6400,
    banks=Figure(32, "Ramulator 2.1, organisation preset HBM3_8Gb_8hi: 2 stack IDs of 4 groups of 4"),
    stack_ids=Figure(2, "Ramulator 2.1, organisation preset HBM3_8Gb_8hi"),
    tRFC=Figure("260 ns", "JESD238 table 84, as in Ramulator 2.1: to 4 Gb of a stack ID"),
)

HBM4_8000_8HI = attrs.evolve(
    HBM4_8000,
    banks=Figure(32, "Ramulator 2.1, organisation preset HBM4_32Gb_8Hi: 2 stack IDs of 2 groups of 8"),
    stack_ids=Figure(2, "Ramulator 2.1, organisation preset HBM4_32Gb_8Hi"),
)

#: Those that come with the model, by the names that `standard` has for them.
STANDARDS: Mapping[str, MemoryStandard] = MappingProxyType({
    "hbm2_2000": HBM2_2000, "hbm3_6400": HBM3_6400, "hbm3_6400_8hi": HBM3_6400_8HI, "hbm4_8000": HBM4_8000,
    "hbm4_8000_8hi": HBM4_8000_8HI,
})  # fmt: skip
DEFAULT = "hbm3_6400"


def figures(parameter: str) -> dict[object, object]:
    """Return the value of one parameter, as written in YAML, for each standard."""
    return {name: standard.defaults[parameter] for name, standard in STANDARDS.items()}
