"""The least time that a DRAM controller can take for a case, in whatever order: from its times alone (docs/hbm.md)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, frozen

from kernbench_builtin.components.dram import DramGeometry
from kernbench_builtin.probe.dram_workload import READ, WRITE, RequestPart


@frozen
class DramBound:
    """Say that a case takes at least `ns`, and what of; a refresh of all banks adds at least `stop` (ns)."""

    ns: float
    rule: str
    stop: float = 0.0


def least_time(parts: Mapping[int, Sequence[RequestPart]], g: DramGeometry, *, reopens: bool) -> DramBound:
    """Return the least time for what each pseudo-channel is asked.

    With `reopens` every row that is asked for after another one of its bank is opened anew, as it comes too late for
    any queue; else each row is opened once.
    """
    wanted = {channel: _Wanted.of(asked, g, reopens=reopens) for channel, asked in parts.items()}
    bounds = [bound for each in wanted.values() for bound in each.bounds(g)]
    for first in range(0, g.channels, g.buses):
        sharing = [wanted[channel] for channel in range(first, first + g.buses) if channel in wanted]
        bounds.append(_row_commands(sharing, g))
    return max((_with_refresh(bound, g) for bound in bounds), key=lambda bound: bound.ns)


def _row_commands(sharing: Sequence[_Wanted], g: DramGeometry) -> DramBound:
    """Return what the row-command bus of some pseudo-channels needs; the first row of a bank closes none.

    Nor does one after a refresh of all banks, for which one command closes them; but from when it is due nothing else
    comes for tRFC. Of very many banks that may save more than it takes.
    """
    act, pre = g.timing.get("tACT", 0.0), g.timing.get("tPRE", 0.0)
    activations, banks = sum(each.activations for each in sharing), g.banks * len(sharing)
    needed = activations * act + max(0.0, activations - banks) * pre
    rule = f"row commands of {len(sharing)} pseudo-channel{'s' * (len(sharing) > 1)}"
    stop = g.timing["tRFC"] - banks * pre if g.refresh == "all_bank" else 0.0
    return DramBound(needed / (1 + max(0.0, -stop) / g.timing["tREFI"]), rule, max(0.0, stop))


def _with_refresh(bound: DramBound, g: DramGeometry) -> DramBound:
    """Add the refreshes of all banks that certainly fall in the time of a bound.

    What is under way when one is due may take as long as a row and a write of it.
    """
    t = g.timing
    if g.refresh != "all_bank" or math.isinf(t["tREFI"]):
        return bound
    begun = t["tRC"] + t["tCWL"] + t["tBL"] + t["tWR"]
    number = math.floor(max(0.0, bound.ns - bound.stop - begun) / (t["tREFI"] - bound.stop))
    if not number or bound.stop <= 0.0:
        return bound
    return evolve(bound, ns=bound.ns + number * bound.stop, rule=f"{bound.rule}, refresh {bound.stop / t['tREFI']:.1%}")


@frozen
class _Wanted:
    """Count what one pseudo-channel is asked: bursts of each kind, and bursts and rows of its banks."""

    kinds: tuple[int, int]
    bursts: Mapping[int, int]
    rows: Mapping[int, int]

    @classmethod
    def of(cls, asked: Sequence[RequestPart], g: DramGeometry, *, reopens: bool) -> _Wanted:
        kinds, bursts, rows = [0, 0], Counter[int](), Counter[int]()
        opened: dict[int, int] = {}
        seen: set[tuple[int, int]] = set()
        for kind, places in asked:
            kinds[kind] += len(places)
            for place in places:
                bank, row = place
                bursts[bank] += 1
                if opened.get(bank) != row and (reopens or place not in seen):
                    rows[bank] += 1
                opened[bank] = row
                seen.add(place)
        return cls((kinds[READ], kinds[WRITE]), bursts, rows)

    @property
    def activations(self) -> int:
        """How many rows are opened at least."""
        return sum(self.rows.values())

    def bounds(self, g: DramGeometry) -> Iterator[DramBound]:
        """Yield what each of the things that it uses needs."""
        t = g.timing
        number, activations = sum(self.kinds), self.activations
        # from the last column command before a refresh of all banks to the first one after it
        around = t["tRTP"] + t["tRP"] + t["tRFC"] + min(t["tRCDRD"], t["tRCDWR"])
        yield DramBound(number * t["tBL"], "data bus, tBL a burst", around - t["tBL"])
        apart = t["tCCD_L"]
        if all(self.kinds):
            apart = min(apart, t["tRTW"], t["tCWL"] + t["tBL"] + t["tWTR_L"])
        of_groups = Counter[int]()
        for bank, count in self.bursts.items():
            of_groups[bank // max(1, g.banks // g.bank_groups)] += count
        yield DramBound((max(of_groups.values()) - 1) * apart, "a bank group, tCCD_L a burst", around - t["tCCD_L"])
        least = max((activations - 1) // 4 * t["tFAW"], (activations - 1) * t["tRRD_S"])
        opened = max(0.0, t["tRAS"] + t["tRP"] + t["tRFC"] - t["tFAW"])
        yield DramBound(least, "activations, max(tFAW / 4, tRRD)", opened)
        yield max((self._of_bank(bank, g) for bank in self.rows), key=lambda bound: bound.ns)

    def _of_bank(self, bank: int, g: DramGeometry) -> DramBound:
        """Return what a bank needs: from each of its activations to the next one, with the bursts of its row."""
        t, rows, bursts = g.timing, self.rows[bank], self.bursts[bank]
        cycles = {"tRC": (rows - 1) * t["tRC"]}
        more = (bursts - rows) * t["tCCD_L"] if not all(self.kinds) else 0.0
        read = (rows - 1) * (t["tRCDRD"] + t["tRTP"] + t["tRP"])
        write = (rows - 1) * (t["tRCDWR"] + t["tCWL"] + t["tBL"] + t["tWR"] + t["tRP"])
        if not self.kinds[WRITE] or (self.kinds[READ] and read <= write):
            cycles["tRCD + tRTP + tRP"] = read + more
        else:
            cycles["tRCD + tCWL + tBL + tWR + tRP"] = write + more
        cycle = max(cycles, key=lambda name: cycles[name])
        return DramBound(cycles[cycle], f"one bank, {cycle}", t["tRFC"])
