"""A kit is the checks of one sort of thing that plug-ins register: components, say, or network shapes.

A check is a function of what is under test. It returns when that keeps its word, and raises
`CheckFailed` with a sentence when it does not, or `NotApplicable` where it has nothing to check; anything else that
comes out of it counts as a failure too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Generic, TypeVar

from attrs import asdict, frozen

from kernbench_core.errors import in_words
from kernbench_core.plugins import Plugins
from kernbench_core.process.interrupt import INTERRUPTS

S = TypeVar("S")


class CheckFailed(AssertionError):
    """What is checked does not do what it must; the message is the sentence that says what."""


class NotApplicable(Exception):
    """A check has nothing to look at; the message says why."""


class CheckOutcome(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"
    EXPECTED = "expected to fail"
    UNEXPECTED = "passed, but is expected to fail"

    @property
    def right(self) -> bool:
        """Whether it ended as it must."""
        return self not in (CheckOutcome.FAILED, CheckOutcome.UNEXPECTED)


@frozen
class CheckResult:
    """How one check of one entry ended, why, and how long it took in s."""

    sort: str
    entry: str
    check: str
    outcome: CheckOutcome
    reason: str = ""
    wall_s: float = 0.0

    def to_json(self) -> dict[str, object]:
        """Return this as JSON has it."""
        return {**asdict(self), "outcome": str(self.outcome)}

    def __str__(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"{self.entry} {self.check} {self.outcome}{why}"


@frozen
class Check(Generic[S]):
    """A check by its name: that of a function, whose docstring says what must hold."""

    function: Callable[[S], None]

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.__name__

    @property
    def sentence(self) -> str:
        """The first line of its docstring."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]

    def result(self, sort: str, entry: str, under_test: S, expected: Mapping[str, str]) -> CheckResult:
        """Carry it out; `expected` has the checks that the entry is known to fail, with the reasons."""
        began = time.perf_counter()
        outcome, reason = self._tried(under_test)
        if self.name in expected and outcome is not CheckOutcome.NOT_APPLICABLE:
            failed = outcome is CheckOutcome.FAILED
            outcome, reason = (CheckOutcome.EXPECTED if failed else CheckOutcome.UNEXPECTED), expected[self.name]
        return CheckResult(sort, entry, self.name, outcome, reason, time.perf_counter() - began)

    def _tried(self, under_test: S) -> tuple[CheckOutcome, str]:
        try:
            self.function(under_test)
        except NotApplicable as why:
            return CheckOutcome.NOT_APPLICABLE, str(why)
        except CheckFailed as fault:
            return CheckOutcome.FAILED, str(fault)
        except (*INTERRUPTS, MemoryError):
            raise
        except BaseException as error:
            return CheckOutcome.FAILED, f"it raised {in_words(error)}"
        return CheckOutcome.PASSED, ""


@frozen
class Kit(Generic[S]):
    """The checks of one sort of thing, and how a registered one becomes what they are given.

    `opens(plugins, name)` returns what is under test; what it raises fails the check `opens`, which every entry has.
    Where entries share something that is dear, `together(plugins, names)` returns what opens one of those by its name.
    """

    opens: Callable[[Plugins, str], S]
    checks: tuple[Check[S], ...]
    together: Callable[[Plugins, Sequence[str]], Callable[[str], S]] | None = None

    def opener(self, plugins: Plugins, names: Sequence[str]) -> Callable[[str], S]:
        """Return what opens entries that are checked together, by their names."""
        return partial(self.opens, plugins) if self.together is None else self.together(plugins, names)


def kit_of(
    opens: Callable[[Plugins, str], S],
    *functions: Callable[[S], None],
    together: Callable[[Plugins, Sequence[str]], Callable[[str], S]] | None = None,
) -> Kit[S]:
    """Make a kit of the functions that check, in their order."""
    return Kit(opens, tuple(Check(each) for each in functions), together)
