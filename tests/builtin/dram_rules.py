"""A naive reference for DRAM timing: read the commands of a channel, and list every rule that they break.

It knows the rules as data sheets print them, as pairs of commands and the least time between them, and compares each
command with every earlier one. It shares nothing with the scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

#: (ns, command, bank, row). PREA closes all banks and REF refreshes them, PREpb and REFpb do so for one bank.
Command = tuple[float, str, int, int]
COLUMN = ("RD", "WR")
#: As which command of a pair something counts.
LIKE = {"PREpb": "PRE", "PREA": "PRE"}
ALL_BANKS = ("PREA", "REF")


def violations(
    trace: Sequence[Command], t: Mapping[str, float], banks: int, groups: int, stacks: int = 1
) -> list[str]:
    """Return a sentence for every rule that the commands of one pseudo-channel break.

    A group of a stack ID is so many banks that follow each other, and stack IDs take turns with each.
    """
    ordered = sorted(trace, key=lambda command: command[0])
    return [
        *_pairs(ordered, t, banks // (groups * stacks), stacks), *_states(ordered, banks), *_four(ordered, t),
        *_bus(ordered, t), *_clocks(ordered, t),
    ]  # fmt: skip


def bus_violations(traces: Sequence[Sequence[Command]], t: Mapping[str, float]) -> list[str]:
    """Return a sentence for every two commands of pseudo-channels that share buses and meet on one of them."""
    found = []
    everything = sorted((command for trace in traces for command in trace), key=lambda command: command[0])
    rows = [command for command in everything if command[1] not in COLUMN]
    for first, second in pairwise(rows):
        takes = t["tACT"] if first[1] == "ACT" else t["tPRE"]
        if second[0] - first[0] < takes:
            found.append(f"{second} must leave the row-command bus to {first} for {takes} ns")
    columns = [command for command in everything if command[1] in COLUMN]
    for first, second in pairwise(columns):
        if second[0] - first[0] < t["tCK"]:
            found.append(f"{second} must leave the column-command bus to {first} for {t['tCK']} ns")
    return found


def _least(first: Command, second: Command, t: Mapping[str, float], per_group: int, stacks: int) -> float:
    """Return the least time from one command to a later one, 0 where there is no rule."""
    (_, a, bank_a, _), (_, b, bank_b, _) = first, second
    same_bank = bank_a == bank_b or a in ALL_BANKS or b in ALL_BANKS
    same_group = bank_a // per_group == bank_b // per_group
    same_stack = bank_a // per_group % stacks == bank_b // per_group % stacks
    written = t["tCWL"] + t["tBL"]
    rules = {
        ("ACT", "ACT"): max(t["tRRD_L" if same_group else "tRRD_S"], t["tRC"] if same_bank else 0.0),
        ("ACT", "RD"): t["tRCDRD"] if same_bank else 0.0,
        ("ACT", "WR"): t["tRCDWR"] if same_bank else 0.0,
        ("ACT", "PRE"): t["tRAS"] if same_bank else 0.0,
        ("ACT", "REF"): t["tRC"],
        ("ACT", "REFpb"): t["tRC"] if same_bank else t["tRRD_S"],
        ("PRE", "ACT"): t["tRP"] if same_bank else 0.0,
        ("RD", "PRE"): t["tRTP"] if same_bank else 0.0,
        ("WR", "PRE"): written + t["tWR"] if same_bank else 0.0,
        ("PRE", "PRE"): t["tPPD"],
        ("RD", "RD"): t["tCCD_L" if same_group else "tCCD_S" if same_stack else "tCCD_R"],
        ("WR", "WR"): t["tCCD_L" if same_group else "tCCD_S"],
        ("WR", "RD"): written + t["tWTR_L" if same_group else "tWTR_S"],
        ("RD", "WR"): t["tRTW"],
        ("PRE", "REF"): t["tRP"],
        ("PRE", "REFpb"): t["tRP"] if same_bank else 0.0,
        ("REF", "ACT"): t["tRFC"],
        ("REF", "REF"): t["tRFC"],
        ("REFpb", "ACT"): t["tRFCpb"] if same_bank else t["tRREFD"],
        ("REFpb", "REFpb"): t["tRFCpb"] if same_bank else t["tRREFD"],
    }
    return rules.get((LIKE.get(a, a), LIKE.get(b, b)), 0.0)


def _pairs(ordered: Sequence[Command], t: Mapping[str, float], per_group: int, stacks: int) -> list[str]:
    found = []
    for index, second in enumerate(ordered):
        for first in ordered[:index]:
            least = _least(first, second, t, per_group, stacks)
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
        elif what in ("PRE", "PREpb"):
            opened[bank] = None
        elif what == "PREA":
            opened = [None] * banks
        elif what == "REF":
            if any(each is not None for each in opened):
                found.append(f"REF at {time} with open banks")
        elif what == "REFpb":
            if opened[bank] is not None:
                found.append(f"REFpb at {time} of bank {bank}, which is open")
        elif opened[bank] != row:
            found.append(f"{what} at {time} of row {row}, but bank {bank} holds {opened[bank]}")
    return found


def _four(ordered: Sequence[Command], t: Mapping[str, float]) -> list[str]:
    times = [time for time, what, _, _ in ordered if what == "ACT"]
    fives = zip(times, times[4:], strict=False)
    return [f"activations from {a} to {b} are five in tFAW" for a, b in fives if b - a < t["tFAW"]]


def _bus(ordered: Sequence[Command], t: Mapping[str, float]) -> list[str]:
    """Return the bursts that overlap on the data bus."""
    starts = sorted(time + (t["tCL"] if what == "RD" else t["tCWL"]) for time, what, _, _ in ordered if what in COLUMN)
    pairs = pairwise(starts)
    return [f"data at {a} and {b} overlap on the bus" for a, b in pairs if b - a < t["tBL"]]


def _clocks(ordered: Sequence[Command], t: Mapping[str, float]) -> list[str]:
    return [f"{command} must be at a clock edge" for command in ordered if command[0] % t["tCK"]]


def _unused(trace: Sequence[Command]) -> list[tuple[float, float]]:
    """Return from when to when each row was open and not used."""
    found, since = [], dict[int, float]()
    for time, what, bank, _ in sorted(trace, key=lambda command: command[0]):
        if what == "ACT":
            since[bank] = time
        elif what in COLUMN and bank in since:
            found.append((since.pop(bank), time))
    return found


def late_refreshes(trace: Sequence[Command], t: Mapping[str, float], until: float, all_bank: bool) -> list[str]:
    """Return a sentence for each refresh that should have come in a busy time (to `until` ns), and did not in time.

    One is due every tREFI, and what is under way then may take a precharge, an activation, and a write or a read: one
    for each row that was opened and not used yet.
    """
    found = []
    refreshes = sorted(time for time, what, _, _ in trace if what == ("REF" if all_bank else "REFpb"))
    column = max(t["tCWL"] + t["tBL"] + t["tWR"], t["tRTP"])
    grace = t["tRC"] + column + t["tRP"] + (0 if all_bank else t["tRREFD"])
    turn = max(t["tCCD_L"], t["tRTW"], t["tCWL"] + t["tBL"] + t["tWTR_L"])
    opened = _unused(trace)
    number, usual = 1, grace
    while number * t["tREFI"] + grace < until:
        due = number * t["tREFI"]
        grace = usual + turn * sum(since <= due < used for since, used in opened)
        if len(refreshes) < number or not due <= refreshes[number - 1] <= due + grace:
            found.append(f"refresh {number}, due at {due} ns, is not there in time")
            break
        number += 1
    return found
