"""What arithmetic promises for a DRAM controller, by pattern: derived in docs/hbm.md, from its times alone."""

from __future__ import annotations

import math

from attrs import frozen

from kernbench_builtin.components.dram import DramGeometry
from kernbench_builtin.probe.dram_workload import DramCase, workload


@frozen
class ClosedForm:
    """Say what arithmetic promises for a saturated controller: part of the peak, and the rule that decides."""

    share: float
    rule: str


def closed_form(case: DramCase, g: DramGeometry, peak: float) -> ClosedForm | None:
    """Return what a saturated controller should reach of `peak` (B/ns), or None where no form is known."""
    if g.locate is None:
        return _rowless(case, g)
    uses = Uses.of(case, g, peak)
    read = case.reads > 0.0
    rule, time = _slowest(case, g, uses, read=read)
    lost = refresh_loss(g, rule)
    share = uses.bursts * g.timing["tBL"] / time
    if 0.0 < case.reads < 1.0:
        mixed = _mixed(case, g, uses)
        if mixed is None:
            return None
        share, rule = mixed
    return ClosedForm(share * (1 - lost) * uses.useful, rule + (f", less refresh {lost:.1%}" if lost else ""))


def refresh_loss(g: DramGeometry, rule: str) -> float:
    """Return the part of the time that refresh takes from what `rule` names.

    A refresh of one bank leaves the data bus alone, holds activations for tRREFD, and its bank until it is over.
    """
    t = g.timing
    if g.refresh == "none" or math.isinf(t["tREFI"]):
        return 0.0
    if g.refresh == "all_bank":
        return (t["tRTP"] + t["tRP"] + t["tRFC"] + t["tRCDRD"]) / t["tREFI"]
    if rule.startswith("one bank"):
        return (t["tRTP"] + t["tRP"] + t["tRFCpb"] + t["tRCDRD"]) / (t["tREFI"] * g.banks)
    return t["tRREFD"] / t["tREFI"] if rule.startswith(("activations", "row commands")) else 0.0


def _slowest(case: DramCase, g: DramGeometry, uses: Uses, *, read: bool) -> tuple[str, float]:
    """Return what all requests of a case need longest, if they are of one kind, and how long (ns)."""
    t = g.timing
    more = (uses.bursts_of_bank / uses.of_bank - 1) * t["tCCD_L"]  # the bursts of a row after its first one
    cycles = {"tRC": t["tRC"]}
    if read:
        cycles["tRCD + tRTP + tRP"] = t["tRCDRD"] + more + t["tRTP"] + t["tRP"]
    else:
        cycles["tRCD + tCWL + tBL + tWR + tRP"] = t["tRCDWR"] + more + t["tCWL"] + t["tBL"] + t["tWR"] + t["tRP"]
    cycle = max(cycles, key=lambda name: cycles[name])
    together = min(g.buses, uses.places)
    times = {
        "data bus, tBL a burst": uses.bursts * t["tBL"],
        "bank groups, tCCD_L a burst": uses.bursts_of_group * t["tCCD_L"],
        "activations, max(tFAW / 4, tRRD)": uses.activations * max(t["tFAW"] / 4, t["tRRD_S"]),
        "row commands, precharge and activation of each pseudo-channel": (
            uses.activations * together * (t.get("tACT", 0.0) + t.get("tPRE", 0.0))
        ),
        f"one bank, {cycle}": uses.of_bank * cycles[cycle],
    }
    window = g.window[0 if read else 1] if g.window else 0
    of_row = case.chunk / g.burst_bytes if case.pattern == "rows" else 1.0
    if window and (case.pattern == "rows" or (case.pattern == "random" and case.chunk <= g.burst_bytes)):
        seen = (window + of_row - 1) / of_row
        every = cycles[cycle] * (seen + g.banks - 1) / (seen * g.banks)
        times[f"{seen:.0f} rows seen, in {g.banks} banks of {cycle}"] = uses.activations * every
        every = t["tCCD_L"] * (seen + g.bank_groups - 1) / (seen * g.bank_groups)
        times[f"{seen:.0f} rows seen, in {g.bank_groups} groups of tCCD_L"] = uses.bursts * every
    rule = max(times, key=lambda name: times[name])
    return rule, times[rule]


def _mixed(case: DramCase, g: DramGeometry, uses: Uses) -> tuple[float, str] | None:
    """Return the share of a mix, refresh apart: writes are drained so many at a time, and the bus turns twice."""
    if g.drain is None or case.pattern in ("stride", "rows"):
        return None
    t = g.timing
    of_reads, of_writes = (_slowest(case, g, uses, read=read)[1] / uses.bursts for read in (True, False))
    each = case.reads * of_reads + (1 - case.reads) * of_writes
    if case.pattern == "onebank":
        return t["tBL"] / each, "one bank, reads and writes in proportion"
    at_once = max(1.0, uses.bursts / case.requests)  # bursts of a request on one pseudo-channel, where it uses several
    writes = at_once * max(math.ceil((g.drain[0] - g.drain[1]) / at_once), case.turns[1] if case.turns else 0)
    total = writes / (1 - case.reads)
    to_write = t["tRTW"]
    to_read = t["tCWL"] + t["tBL"] + t["tWTR_L"]
    if case.pattern != "sequential":  # the rows of the others are not open
        to_write = max(to_write, t["tRP"] + t["tRCDWR"])
        if at_once == 1.0:
            to_read = max(to_read, t["tRP"] + t["tRCDRD"])
    return total * t["tBL"] / ((total - 2) * each + to_write + to_read), f"turning around every {writes:.0f} writes"


def _rowless(case: DramCase, g: DramGeometry) -> ClosedForm:
    """Return the promise of a model without rows, for the channels that a case uses, in whole bursts."""
    moved: dict[int, int] = {}
    if g.shares is None:
        return ClosedForm(g.sustained, "efficiency x peak")
    for _, regions in workload(case, g):
        for channel, nbytes in g.shares(regions):
            moved[channel] = moved.get(channel, 0) + nbytes
    useful = case.requests * case.chunk / sum(moved.values())
    rule = "efficiency x peak"
    if len(moved) < g.channels:
        rule += f", {len(moved)} of {g.channels} channels"
    if useful < 1.0:
        rule += f", {useful:.0%} of the bursts' bytes"
    return ClosedForm(g.sustained * useful * len(moved) / g.channels, rule)


@frozen
class Uses:
    """Count what the requests of a case use, on an average pseudo-channel, group and bank of those used."""

    bursts: float
    bursts_of_group: float
    bursts_of_bank: float
    activations: float
    of_bank: float
    places: int
    useful: float

    @classmethod
    def of(cls, case: DramCase, g: DramGeometry, peak: float) -> Uses:
        """Count them, each request after the one before."""
        assert g.locate is not None
        per_group = max(1, g.banks // g.bank_groups)
        opened: dict[tuple[int, int], int] = {}
        bursts: dict[int, int] = {}
        groups: set[tuple[int, int]] = set()
        activations: dict[tuple[int, int], int] = {}
        for _, regions in workload(case, g):
            for region in regions:
                first = region.base // g.burst_bytes * g.burst_bytes
                for at in range(first, region.base + region.nbytes, g.burst_bytes):
                    place = g.locate(at)
                    bank = (place.channel, place.bank)
                    bursts[place.channel] = bursts.get(place.channel, 0) + 1
                    groups.add((place.channel, place.bank // per_group))
                    if opened.get(bank) != place.row:
                        opened[bank] = place.row
                        activations[bank] = activations.get(bank, 0) + 1
        total, acts = sum(bursts.values()), sum(activations.values())
        channels = len(bursts)
        return cls(
            total / channels, total / len(groups), total / len(activations), acts / channels, acts / len(activations),
            channels,
            case.requests * case.chunk / (total * g.burst_bytes) * channels * g.channel_bandwidth / peak,
        )  # fmt: skip
