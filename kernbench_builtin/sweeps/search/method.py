"""How a search is asked for: `nsga2:200`, `tpe:100`, `random:50`."""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

from kernbench_core.errors import UsageError
from kernbench_core.params import did_you_mean
from kernbench_core.wording import brief

SEARCHERS: Final = ("nsga2", "tpe", "random")
_MOST_TRIALS: Final = 10**6
#: A generation of NSGA-II is an eighth of the trials, within these bounds, so that it has some generations.
_LEAST_POPULATION, _MOST_POPULATION, _GENERATIONS = 8, 50, 8
#: What is drawn at random does not depend on what came of the points before: so many are asked for at once.
_AT_ONCE: Final = 32


@frozen
class SearchMethod:
    """Which sampler of Optuna chooses points, and how many `trials` it has: a point that it repeats is one of them."""

    sampler: str
    trials: int

    @property
    def population(self) -> int:
        """How many trials a generation of NSGA-II has."""
        return min(_MOST_POPULATION, max(_LEAST_POPULATION, self.trials // _GENERATIONS))

    def batch(self, completed: int, processes: int) -> int:
        """Return how many trials are asked for before any of them is told, when `completed` ones were told a value.

        What NSGA-II and random draws choose depends on whole generations, or on nothing, and so not on `processes`.
        """
        if self.sampler == "nsga2":
            return self.population - completed % self.population
        return _AT_ONCE if self.sampler == "random" else processes


def parse_search(text: str) -> SearchMethod:
    """Read SAMPLER:TRIALS; UsageError for what is none."""
    match = re.fullmatch(r"(\w+):([1-9][\d_]{0,8})", text)
    if match is None or match[1] not in SEARCHERS or int(match[2]) > _MOST_TRIALS:
        word = text.partition(":")[0]
        hint = did_you_mean(word, SEARCHERS) if word not in SEARCHERS else ""
        raise UsageError(
            f"--search must be nsga2:N, tpe:N or random:N with N from 1 to {_MOST_TRIALS:,} trials, not {brief(text)}."
            f"{hint}"
        )
    return SearchMethod(match[1], int(match[2]))
