"""Advice, and what rules make it with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import attrs

from kernbench_builtin.explain.advice.facts import Facts

if TYPE_CHECKING:
    from kernbench_builtin.machines.figures.launch import PathCall

FACT: Final = "fact"
"""What advice is about that names a cause, and no change of which it is known that it gains."""
LEAST: Final = 0.08
"""What gains less by its estimate is not worth a line."""
SHARED: Final = 0.7
"""Where less of what programs move is moved by one alone, they share it."""
LARGER: Final = 4
"""Blocks are to be so many times as large, at most."""


@attrs.frozen
class Advice:
    """Say what to try and why: `rule` names it, `gain` is the share of the time that it could save, an upper bound.

    `about` is "kernel", "run" for what happens around kernels, or "fact" for what nothing is advised of.
    """

    rule: str
    sentence: str
    gain: float
    about: str = "kernel"

    @property
    def line(self) -> str:
        """The line of a verdict that says it."""
        return f"{'note' if self.about == FACT else 'try'}: {self.sentence}"


Rule = Callable[[Facts], Iterator[Advice]]
"""What gives advice, where figures call for it."""


def suggested(rule: str, change: str, evidence: str, gain: float, about: str = "kernel") -> Advice:
    """Advise a change, for what figures say; it saves such a share of the time."""
    gain = min(gain, 0.95)
    whole = " of the run" if about == "run" else ""
    return Advice(rule, f"{change}: {evidence}; about {gain:.0%} less time{whole}.", gain, about)


def noted(rule: str, evidence: str, gain: float) -> Advice:
    """Name a cause."""
    return Advice(rule, f"{evidence}.", gain, FACT)


def at_line(call: PathCall | None) -> str:
    """Say where a call stands, in brackets."""
    return "" if call is None or not call.line else f" ({call.line})"


def waits(facts: Facts) -> float:
    """Return the share of the path of loads and stores."""
    return facts.share("load") + facts.share("store")


def larger_turns(facts: Facts) -> str:
    """Say how each turn of a program's loop does more.

    Where arrays are dealt to programs by the blocks of a grid, and each turn stores what is its own, it is a program.
    """
    if facts.triton and facts.packages > 1 and facts.turns("store")[1] >= LARGER:
        return f"blocks of {LARGER} times as many rows, and a program of the grid for each instead of a loop's turn"
    return f"a loop with {LARGER} times as much in each turn"


def own_share(facts: Facts) -> float:
    """Return which share of what programs move no other program moves, about."""
    return min(1.0, facts.distinct / facts.moved.nbytes) if facts.moved.nbytes else 1.0
