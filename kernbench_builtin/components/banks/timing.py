"""What a channel with banks keeps to: the times between its commands, and the sizes of its queues."""

from __future__ import annotations

import attrs


@attrs.frozen
class BankTiming:
    """Hold the times between commands of one channel, in ns on the time grid; `tREFI` is infinite without refresh."""

    tBL: float  # noqa: N815
    tCL: float  # noqa: N815
    tCWL: float  # noqa: N815
    tRCDRD: float  # noqa: N815
    tRCDWR: float  # noqa: N815
    tRP: float  # noqa: N815
    tRAS: float  # noqa: N815
    tRC: float  # noqa: N815
    tCCD_S: float  # noqa: N815
    tCCD_L: float  # noqa: N815
    tRRD_S: float  # noqa: N815
    tRRD_L: float  # noqa: N815
    tFAW: float  # noqa: N815
    tWR: float  # noqa: N815
    tWTR_S: float  # noqa: N815
    tWTR_L: float  # noqa: N815
    tRTP: float  # noqa: N815
    tRTW: float  # noqa: N815
    tRFC: float  # noqa: N815
    tREFI: float  # noqa: N815


@attrs.frozen
class QueueSizes:
    """Hold how many bursts a channel sees at once, and at how many writes draining begins and ends."""

    reads: int
    writes: int
    drain_from: int
    drain_to: int
