"""Which tests a run has: one rule for all of them, from what they took and when they ran.

`KB_CASES=3` has of each test function its first case and two more, those that are named for a file that changed, and of
test files that the change touches, the nearest first, a hundred cases more.
`KB_HEAVY=12` has of the heavy tests, those of over a fifth of a CPU second, as many as take a twelfth of their time,
and `KB_HEAVY=0` none. Of the long ones among them, those of over five seconds, `KB_LONG=8` has what takes eight seconds
in each process, or one, and `KB_LONG=0` none. Of both comes first what the change touches, then what passed longest
ago, as far as it fits. Which other cases, and which heavy tests where nothing is known of earlier runs, is a matter
of a hash of the commit: one commit has the same tests everywhere. Without the variables a run has all tests.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from attrs import field, frozen

from tests.selection.records import LONG, Times, key

#: How far tests are that the change does not touch, and how many cases more run of those that it touches.
FAR, NEAR = math.inf, 100
#: What a landing has of the suite.
LANDING = {"KB_CASES": "3", "KB_HEAVY": "12", "KB_LONG": "8"}


class Test(Protocol):
    """A test as pytest collects it."""

    nodeid: str


T = TypeVar("T", bound=Test)


@frozen
class Rule:
    """How many cases of a test function run, and which part of the heavy tests."""

    cases: int | None
    heavy: int | None
    #: CPU seconds of long tests; without it they are as other heavy ones.
    long_s: int | None = None

    @classmethod
    def of_environment(cls) -> Rule:
        """Read KB_CASES, KB_HEAVY and KB_LONG; what is not set, or empty, has no limit."""
        return cls(_number("KB_CASES"), _number("KB_HEAVY"), _number("KB_LONG"))

    @property
    def has_limits(self) -> bool:
        """Whether anything is left out."""
        return self.cases is not None or self.heavy is not None


def _number(name: str) -> int | None:
    given = os.environ.get(name, "")
    if not given:
        return None
    if not given.isdigit():
        raise ValueError(f"{name} must be a whole number, not {given!r}; leave it empty for all tests.")
    return int(given)


@frozen
class Known:
    """What the choice depends on besides the rule."""

    times: Times
    #: The commit.
    seed: str
    #: When tests last passed, by their keys.
    last_passed: Mapping[str, float] = field(factory=dict)
    #: How near the change is to a test, by its node id: 0 where a case is named for it, more where it touches its file.
    distance: Callable[[str], float] = lambda _: FAR

    def turn(self, nodeid: str) -> tuple[float, str]:
        """Return what tests are sorted by: those that passed longest ago come first."""
        name = key(nodeid)
        return self.last_passed.get(name, 0.0), hashlib.sha256(f"{self.seed}\0{name}".encode()).hexdigest()


@frozen
class Choice:
    """What runs and what is left out, in the order of collection."""

    chosen: list[Test]
    #: Cases of a function beyond those that the rule has.
    cases: list[Test]
    #: Heavy tests whose turn it is not.
    heavy: list[Test]
    #: Node ids of chosen tests that another commit may leave out.
    rotated: frozenset[str]


def choose(tests: Sequence[T], rule: Rule, known: Known) -> Choice:
    """Apply the rule to what was collected."""
    left_cases = _cases_left_out(tests, rule, known)
    remaining = [test for test in tests if test.nodeid not in left_cases]
    heavy = [test for test in remaining if known.times.is_heavy(test.nodeid)]
    left_heavy = _heavy_left_out(heavy, rule, known)
    by_turn = {test.nodeid for test in heavy} if rule.heavy else set()
    first = {each[0].nodeid for each in _by_function(tests).values()}
    cut = {test.nodeid.partition("[")[0] for test in tests if test.nodeid in left_cases}
    for test in remaining:
        if test.nodeid.partition("[")[0] in cut and test.nodeid not in first:
            by_turn.add(test.nodeid)
    chosen = [test for test in remaining if test.nodeid not in left_heavy]
    return Choice(
        list(chosen),
        [test for test in tests if test.nodeid in left_cases],
        [test for test in remaining if test.nodeid in left_heavy],
        frozenset(by_turn) & {test.nodeid for test in chosen},
    )


def _by_function(tests: Sequence[T]) -> dict[str, list[T]]:
    found: dict[str, list[T]] = {}
    for test in tests:
        found.setdefault(test.nodeid.partition("[")[0], []).append(test)
    return found


def _cases_left_out(tests: Sequence[T], rule: Rule, known: Known) -> set[str]:
    left: set[str] = set()
    if rule.cases is None:
        return left
    for cases in _by_function(tests).values():
        others = [test.nodeid for test in cases[1:] if known.distance(test.nodeid) > 0]
        left.update(sorted(others, key=known.turn)[rule.cases - 1 :])
    near = [(known.distance(name), known.turn(name), name) for name in left if known.distance(name) < FAR]
    return left - {name for _, _, name in sorted(near)[:NEAR]}


def _heavy_left_out(heavy: Sequence[T], rule: Rule, known: Known) -> set[str]:
    if rule.heavy is None:
        return set()
    names = {test.nodeid for test in heavy}
    long = {name for name in names if known.times.of(name) > LONG} if rule.long_s is not None else set[str]()
    share = sum(known.times.of(name) for name in names - long) / rule.heavy if rule.heavy else 0.0
    return _beyond(names - long, share, known) | _beyond(long, float(rule.long_s or 0) if rule.heavy else 0.0, known)


def _beyond(names: set[str], budget: float, known: Known) -> set[str]:
    """Return the tests that do not fit into so many CPU seconds, in their turn; the first of them always does."""
    left, anything = set(), budget > 0
    for nodeid in sorted(names, key=lambda one: (known.distance(one), *known.turn(one))):
        if anything or known.times.of(nodeid) <= budget:
            budget -= known.times.of(nodeid)
            anything = False
        else:
            left.add(nodeid)
    return left
