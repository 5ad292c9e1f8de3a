"""What a channel with banks keeps to: the times between its commands, the sizes of its queues, what may not be."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from kernbench_builtin.memory_standards import CLOCK_BYTES
from kernbench_core.units import grid_ceil

#: Kinds of bursts.
READ, WRITE = 0, 1
#: The row of a bank that has none open.
CLOSED = -1
#: In place of the number of a bank: none of them, and all.
NONE, ALL = -1, -2
#: A time (ns) that does not come.
NEVER = math.inf
#: A part of a clock that rounding up to whole clocks forgives: what a division may be off by.
_SLACK = 1e-9


@attrs.frozen
class BankTiming:
    """Hold the times between commands of a pseudo-channel, in ns, whole clocks `tCK` on the time grid.

    `tACT` and `tPRE` are how long an activation and any other row command occupy the row-command bus; a column command
    takes one clock of the other. `tREFI` is from one refresh command to the next, of whatever it refreshes; infinite
    without.
    """

    tCK: float  # noqa: N815
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
    tCCD_R: float  # noqa: N815
    tRRD_S: float  # noqa: N815
    tRRD_L: float  # noqa: N815
    tFAW: float  # noqa: N815
    tWR: float  # noqa: N815
    tWTR_S: float  # noqa: N815
    tWTR_L: float  # noqa: N815
    tRTP: float  # noqa: N815
    tPPD: float  # noqa: N815
    tRTW: float  # noqa: N815
    tRFC: float  # noqa: N815
    tRFCpb: float  # noqa: N815
    tRREFD: float  # noqa: N815
    tREFI: float  # noqa: N815
    tACT: float  # noqa: N815
    tPRE: float  # noqa: N815

    @classmethod
    def of(cls, p: Mapping[str, Any]) -> BankTiming:
        """Return the times that the parameters of a controller mean, each rounded up to whole clocks.

        The clock follows from the rate. Bursts never overlap on the data bus, and no command takes no time, whatever
        the parameters say.
        """
        clock = grid_ceil(CLOCK_BYTES / p["channel_bandwidth"])

        def whole(ns: float, least: int = 0) -> float:
            return max(least, math.ceil(ns / clock - _SLACK)) * clock

        burst = p["burst_bytes"] // CLOCK_BYTES * clock
        names = ("tCL", "tCWL", "tRCDRD", "tRCDWR", "tRP", "tRAS", "tRC", "tRRD_S", "tRRD_L", "tFAW", "tWR", "tWTR_S",
                 "tWTR_L", "tRTP", "tPPD", "tRFC", "tRFCpb", "tRREFD")  # fmt: skip
        times = {name: whole(p[name], least=1) for name in names}
        times["tCCD_S"] = max(whole(p["tCCD_S"]), burst)
        for name in ("tCCD_L", "tCCD_R"):
            times[name] = max(whole(p[name]), times["tCCD_S"])
        times["tRTW"] = times["tCL"] + burst + p["turnaround_clocks"] * clock - times["tCWL"]
        every = p["tREFI"] / (p["banks"] if p["refresh"] == "per_bank" else 1)
        times["tREFI"] = whole(every) if every and p["refresh"] != "none" else math.inf
        return cls(
            tCK=clock, tBL=burst, tACT=p["activate_clocks"] * clock, tPRE=p["precharge_clocks"] * clock, **times
        )


@attrs.frozen
class QueueSizes:
    """Hold how many bursts a queue shows its scheduler, and at how many writes draining begins and ends."""

    reads: int
    writes: int
    drain_from: int
    drain_to: int


#: (what must not be less, times or their sum, than what times or their sum), and which of them is the one to correct.
_AT_LEAST: tuple[tuple[str, tuple[str, ...], int], ...] = (
    ("tRC", ("tRAS", "tRP"), 1),
    ("tRAS", ("tRCDRD",), 1),
    ("tRAS", ("tRCDWR",), 1),
    ("tCL", ("tCWL",), 1),
    ("tCCD_L", ("tCCD_S",), 1),
    ("tCCD_R", ("tCCD_S",), 1),
    ("tRRD_L", ("tRRD_S",), 1),
    ("tFAW", ("tRRD_S",), 3),
    ("tWTR_L", ("tWTR_S",), 1),
    ("tRFC", ("tRFCpb",), 1),
)
_WHY = {"tFAW": ", what four activations take"}


def contradictions(p: Mapping[str, Any]) -> Iterator[str]:
    """Yield what times say against each other, as it follows the name of a controller."""
    for name, parts, times in _AT_LEAST:
        if name == "tCCD_R" and p["stack_ids"] == 1:
            continue
        least = times * sum(p[part] for part in parts)
        if p[name] < least * (1 - 1e-9):
            said = " + ".join(parts) if times == 1 else f"{times} x {parts[0]}"
            values = " + ".join(f"{p[part]:.10g}" for part in parts) + " = " if len(parts) > 1 else ""
            yield (
                f"{name} must be at least {said}, {values}{least:.10g} ns{_WHY.get(name, '')}, not {p[name]:.10g} ns; "
                "correct one of them."
            )
    if not p["tREFI"] or p["refresh"] == "none":
        return
    if p["refresh"] == "per_bank":
        every, needs = p["tREFI"] / p["banks"], p["tRREFD"] + p["tRAS"] + p["tRP"]
        if every <= needs:
            yield (
                f"tREFI must be longer for each of {p['banks']} banks than tRREFD + tRAS + tRP, {needs:.10g} ns, not "
                f"{every:.10g} ns; correct one of them, or give refresh: none."
            )
    needs = p["tRTP"] + 2 * p["tRP"] + p["tRFC"] + p["tRCDRD"] + p["tRC"]
    if p["tREFI"] <= needs:
        yield (
            f"tREFI must be longer than a refresh with what surrounds it, {needs:.10g} ns, not {p['tREFI']:.10g} ns; "
            "correct one, or give refresh: none."
        )
