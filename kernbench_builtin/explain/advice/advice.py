"""What to try, read from the figures of a run: rules, each of one change and its evidence, the most promising first."""

from __future__ import annotations

from typing import Final

import attrs

from kernbench_builtin.explain.advice.computing import (
    by_hand,
    computed_again,
    divisions,
    issue,
    masked,
    small_composites,
    small_ops,
    small_tiles,
    wide,
)
from kernbench_builtin.explain.advice.facts import Facts
from kernbench_builtin.explain.advice.moving import (
    between_launches,
    far_data,
    hot_place,
    moved_again,
    not_ahead,
    small_transfers,
    stored_before,
)
from kernbench_builtin.explain.advice.rule import FACT, LEAST, Advice, Rule
from kernbench_builtin.explain.advice.sharing import around, atomics, idle_pes, in_sequence, in_turn, messages, uneven

OF_LONGEST: Final[tuple[Rule, ...]] = (
    idle_pes, uneven, not_ahead, moved_again, stored_before, small_transfers, small_tiles, small_ops, computed_again,
    issue, atomics, messages, in_turn,
)  # fmt: skip
"""Those that look at the longest launch: they save a share of its time, and of that of launches alike."""
RULES: Final[tuple[Rule, ...]] = (
    *OF_LONGEST, far_data, between_launches, masked, small_composites, hot_place, divisions, by_hand, wide, around,
    in_sequence,
)  # fmt: skip
"""All of them, in no order."""
OF_LAUNCHES: Final[tuple[Rule, ...]] = (
    idle_pes, uneven, not_ahead, moved_again, stored_before, computed_again, issue, messages, in_turn, around,
    in_sequence,
)  # fmt: skip
"""Those that look at launches of one kernel alone, and not at what a run shows as a whole."""

COMPUTE_LESS: Final[tuple[Rule, ...]] = (masked, divisions, by_hand, wide, computed_again, atomics)
"""Those whose change leaves units less to do: what they save, the roof of units does not bound."""


def advise(facts: Facts) -> tuple[Advice, ...]:
    """Return what the rules say of a run, what could gain most first; then what is about the run, and facts."""
    rules = OF_LAUNCHES if facts.mixed else RULES
    moving = facts.above(max(facts.roof.hbm_ns, facts.roof.noc_ns))
    most = {rule: moving if rule in COMPUTE_LESS else facts.above_roof for rule in rules}
    seen = {rule: facts.of_longest if rule in OF_LONGEST else facts for rule in rules}
    told = (_of_all(each, facts, most[rule], rule in OF_LONGEST) for rule in rules for each in rule(seen[rule]))
    kinds, found = ("kernel", "run", FACT), (each for each in told if each.gain >= LEAST)
    return tuple(sorted(found, key=lambda each: (kinds.index(each.about), -each.gain, each.rule)))


def _of_all(each: Advice, facts: Facts, most: float, of_longest: bool) -> Advice:
    """Return advice on the kernel, or launch, that ran longest, with what it gains at `most` of the time of all."""
    if each.about != "kernel":
        return each
    launches, gain = facts.in_launches(each.gain) if of_longest else (facts.launches, each.gain)
    gain, of_it = min(gain, most) * facts.part, f"about {each.gain:.0%} less time."
    of_all = f" of all kernels, in {facts.kernel}" if facts.kernels > 1 else ""
    of_all += f", in {launches} of {facts.launches} launches" if launches < facts.launches else ""
    told = each.sentence.replace(of_it, f"about {gain:.0%} less time{of_all}.")
    return attrs.evolve(each, sentence=told, gain=gain)
