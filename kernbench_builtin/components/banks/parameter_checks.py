"""What the parameters of a controller with banks must be together."""

from __future__ import annotations

from kernbench_builtin.components.banks.timing import BankTiming, contradictions
from kernbench_builtin.components.dram import hashes_channels
from kernbench_builtin.memory_standards import CLOCK_BYTES
from kernbench_core.errors import ConfigError
from kernbench_core.graph import Node


def check_parameters(node: Node) -> None:
    """Raise ConfigError with every fault that the parameters have together."""
    p, problems = node.params, []
    for part, whole in (("burst_bytes", "interleave_bytes"), ("burst_bytes", "row_bytes"), ("bank_groups", "banks")):
        if p[whole] % p[part]:
            problems.append(
                f"{node.id}: {whole} must be a multiple of {part}, not {p[whole]} of {p[part]}; correct one."
            )
    if not p["banks"] % p["bank_groups"] and p["banks"] % (p["bank_groups"] * p["stack_ids"]):
        problems.append(
            f"{node.id}: banks must be a multiple of bank_groups x stack_ids, not {p['banks']} of {p['bank_groups']} x "
            f"{p['stack_ids']}; correct one."
        )
    hashes = ((hashes_channels(p), "channel_hash on", "channels"), (p["bank_hash"], "bank_hash", "banks"))
    for chosen, option, counted in hashes:
        if chosen and p[counted] & (p[counted] - 1):
            problems.append(
                f"{node.id}: {counted} must be a power of two with {option}, not {p[counted]}; correct one."
            )
    if not 0.0 <= p["drain_to"] < p["drain_from"] <= 1.0:
        problems.append(
            f"{node.id}: drain_to must be below drain_from and both from 0 to 1, not {p['drain_to']:g} and "
            f"{p['drain_from']:g}; correct one."
        )
    if p["burst_bytes"] % CLOCK_BYTES:
        problems.append(
            f"{node.id}: burst_bytes must be a multiple of {CLOCK_BYTES}, what a pseudo-channel moves in a clock, not "
            f"{p['burst_bytes']}; correct it."
        )
    problems += [f"{node.id}: {said}" for said in contradictions(p)]
    if not problems:
        timing = BankTiming.of(p)
        most = round(timing.tCCD_S / timing.tCK)
        if p["pseudo_channels"] > most:
            problems.append(
                f"{node.id}: pseudo_channels must be at most {most}, the clocks of tCCD_S, not {p['pseudo_channels']}: "
                "the column-command bus carries no more; correct one."
            )
    if problems:
        raise ConfigError(*problems)
