"""What a run says of checked tensors that are wrong: whose, where, and what made the worst element."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from attrs import evolve

from kernbench_core.callsite import describe_site
from kernbench_core.wording import join_names

if TYPE_CHECKING:
    from kernbench_core.compute.verification import Failure, Verification
    from kernbench_core.host.expectation import Checker, Expectation

#: Failures of which it is told what made them.
_MOST_EXPLAINED: Final = 8


def check_names(expectations: Sequence[Expectation]) -> list[str]:
    """Return what failures call each tensor that is checked; one that its program checks again has a number."""
    checks: Counter[Checker | None] = Counter()
    seen: set[tuple[Checker | None, str]] = set()
    names = []
    for each in expectations:
        checks[each.program] += 1
        again = (each.program, each.name) in seen
        seen.add((each.program, each.name))
        names.append(f"tensor {each.name!r}" + (f" (check {checks[each.program]})" if again else ""))
    return names


def in_full(
    verification: Verification,
    expectations: Mapping[str, tuple[str, Expectation]],
    maker_of: Callable[[Failure, str], str],
) -> Verification:
    """Return a verdict whose failures are told in full; those of several programs that are alike, once.

    `expectations` gives, by the name that a failure has, what to call it and what was expected; `maker_of(failure, it)`
    says what made the worst element, which the sentence calls `it`.
    """
    alike: dict[tuple[str, str, str], list[tuple[int, str, Failure]]] = {}
    for failure in verification.found:
        name, expectation = expectations[failure.name]
        line = f", checked at {describe_site(expectation.site)}," if expectation.site is not None else ""
        program = expectation.program
        number, whose = (0, "") if program is None else (program.number, program.name)
        alike.setdefault((name, line, failure.words), []).append((number, whose if number else "", failure))
    told: list[str] = []
    for (name, line, words), found in alike.items():
        found.sort(key=lambda each: each[0])
        _, first, failure = found[0]
        where = f"On {first} it" if first and len({each.maker for _, _, each in found}) > 1 else "It"
        maker = maker_of(failure, where) if len(told) < _MOST_EXPLAINED else failure.maker
        owners = [whose for _, whose, _ in found if whose]
        of = f" of {join_names(owners)}" if owners else ""
        told.append(f"{name}{of}{line} {words}{maker}")
    return evolve(verification, failures=tuple(told))
