"""A naive reference for DRAM timing: read a trace of commands, and list every rule that it breaks.

It knows the rules as data sheets print them, as pairs of commands and the least time between them, and compares each
command with every earlier one. It shares nothing with the scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

#: (ns, command, bank, row); commands are ACT, PRE, RD, WR, REF.
Command = tuple[float, str, int, int]
COLUMN = ("RD", "WR")


def violations(trace: Sequence[Command], t: Mapping[str, float], banks: int, groups: int) -> list[str]:
    """Return a sentence for every rule that `trace` breaks."""
    ordered = sorted(trace, key=lambda command: command[0])
    return [*_pairs(ordered, t, banks // groups), *_states(ordered, banks), *_four(ordered, t), *_bus(ordered, t)]


def _least(first: Command, second: Command, t: Mapping[str, float], per_group: int) -> float:
    """Return the least time from one command to a later one, 0 where there is no rule."""
    (_, a, bank_a, _), (_, b, bank_b, _) = first, second
    same_bank, same_group = bank_a == bank_b, bank_a // per_group == bank_b // per_group
    written = t["tCWL"] + t["tBL"]
    rules = {
        ("ACT", "ACT"): max(t["tRRD_L" if same_group else "tRRD_S"], t["tRC"] if same_bank else 0.0),
        ("ACT", "RD"): t["tRCDRD"] if same_bank else 0.0,
        ("ACT", "WR"): t["tRCDWR"] if same_bank else 0.0,
        ("ACT", "PRE"): t["tRAS"] if same_bank else 0.0,
        ("PRE", "ACT"): t["tRP"] if same_bank else 0.0,
        ("RD", "PRE"): t["tRTP"] if same_bank else 0.0,
        ("WR", "PRE"): written + t["tWR"] if same_bank else 0.0,
        ("RD", "RD"): t["tCCD_L" if same_group else "tCCD_S"],
        ("WR", "WR"): t["tCCD_L" if same_group else "tCCD_S"],
        ("WR", "RD"): written + t["tWTR_L" if same_group else "tWTR_S"],
        ("RD", "WR"): t["tRTW"],
        ("PRE", "REF"): t["tRP"],
        ("REF", "ACT"): t["tRFC"],
        ("REF", "REF"): t["tRFC"],
    }
    return rules.get((a, b), 0.0)


def _pairs(ordered: Sequence[Command], t: Mapping[str, float], per_group: int) -> list[str]:
    found = []
    for index, second in enumerate(ordered):
        for first in ordered[:index]:
            least = _least(first, second, t, per_group)
            if second[0] - first[0] < least:
                found.append(f"{second} must come {least} ns after {first}")
    return found


def _states(ordered: Sequence[Command], banks: int) -> list[str]:
    found, opened = [], [None] * banks
    for time, what, bank, row in ordered:
        if what == "ACT":
            if opened[bank] is not None:
                found.append(f"ACT at {time} of bank {bank}, which is open")
            opened[bank] = row
        elif what == "PRE":
            opened[bank] = None
        elif what == "REF":
            if any(each is not None for each in opened):
                found.append(f"REF at {time} with open banks")
        elif opened[bank] != row:
            found.append(f"{what} at {time} of row {row}, but bank {bank} holds {opened[bank]}")
    return found


def _four(ordered: Sequence[Command], t: Mapping[str, float]) -> list[str]:
    times = [time for time, what, _, _ in ordered if what == "ACT"]
    fives = zip(times, times[4:], strict=False)
    return [f"activations from {a} to {b} are five in tFAW" for a, b in fives if b - a < t["tFAW"]]


def _bus(ordered: Sequence[Command], t: Mapping[str, float]) -> list[str]:
    starts = sorted(time + t["tCL" if what == "RD" else "tCWL"] for time, what, _, _ in ordered if what in COLUMN)
    pairs = pairwise(starts)
    return [f"data at {a} and {b} overlap on the bus" for a, b in pairs if b - a < t["tBL"]]
