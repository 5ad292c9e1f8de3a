"""For tests with pytest: a case for each check of a plug-in, and a fixture that makes rigs.

    pytest_plugins = ["kernbench_builtin.checks.pytest_plugin"]       # in conftest.py, for the fixture

    @parametrize_checks("acme")
    def test_it_keeps_its_word(check):
        check()

PYTEST_DONT_REWRITE: test modules import it, too, and there is no assertion in it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import Any, Protocol

import pytest

from kernbench_builtin.checks.conformance import Conformance
from kernbench_core.errors import in_words
from kernbench_core.plugins import Plugins
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.testing.kit import CheckOutcome, Kit
from kernbench_core.testing.rig import Model, Rig

_OPENS = "opens"


class RigMaker(Protocol):
    """What the fixture `component_rig` is: it takes what `Rig` takes, and whether the model is at rest in the end."""

    def __call__(
        self, model: Model, params: Mapping[str, object] | None = None, *, at_rest: bool = True, **options: Any
    ) -> Rig:
        """Make a rig with a model in it."""


def parametrize_checks(
    plugin: str, plugins: Plugins | None = None, *, only: Collection[str] = (), kits: Collection[str] = ()
) -> pytest.MarkDecorator:
    """Give a test a case for each check of what a plug-in registers, as its argument `check`, to be called.

    `only` chooses entries or checks by their names, `kits` one of several kits of a name. What has nothing to look at
    is skipped, and what the plug-in says to fail (`kernbench_expected_failures`) must fail. Raise UsageError for a
    plug-in that is not loaded, PluginError for what it says of checks that there are not.
    """
    conformance = Conformance.of(plugin, plugins, kits)
    chosen = [each for each in conformance if not only or not {each[1], each[2]}.isdisjoint(only)]
    openers = conformance.openers(dict.fromkeys((sort, name) for sort, name, _ in chosen))
    opened = {(sort, name): _Opened(conformance.kits[sort], openers[sort], sort, name) for sort, name, _ in chosen}
    cases = []
    for sort, name, check in chosen:
        reason = conformance.expected_of(name).get(check)
        marks = [] if reason is None else [pytest.mark.xfail(reason=reason, strict=True)]
        cases.append(pytest.param(_Case(opened[sort, name], check), id=f"{name}-{check}", marks=marks))
    return pytest.mark.parametrize("check", cases)


@pytest.fixture
def component_rig() -> Iterator[RigMaker]:
    """Make rigs, as `Rig` does: `component_rig(MyModel, {"overhead": "5 ns"}, inputs=2)`.

    When the test is over each is run to its end, and its model must hold nothing then, unless `at_rest` is False.
    """
    made: list[Rig] = []

    def make(
        model: Model, params: Mapping[str, object] | None = None, *, at_rest: bool = True, **options: Any
    ) -> Rig:
        rig = Rig(model, params, **options)
        if at_rest:
            made.append(rig)
        return rig

    yield make
    for rig in made:
        model = rig.run().under_test
        left = [*(msg for msg, _ in model.serving), *model.waiting, *model.awaiting()]
        if left:
            pytest.fail(f"{model!r} must hold nothing in the end, and holds {left}", pytrace=False)


class _Opened:
    """An entry, opened by the first check that needs it."""

    def __init__(self, kit: Kit[Any], opener: Callable[[str], Any], sort: str, name: str) -> None:
        self.kit, self.sort, self.name = kit, sort, name
        self._opener = opener

        self.under_test: Any = None

    @cached_property
    def fault(self) -> str:
        """Open it; say what that raised, "" where it raised nothing and `under_test` is what its kit checks."""
        try:
            self.under_test = self._opener(self.name)
        except (*INTERRUPTS, MemoryError):
            raise
        except BaseException as error:
            return in_words(error)
        return ""


class _Case:
    """One check of one entry."""

    def __init__(self, opened: _Opened, check: str) -> None:
        self._opened = opened
        self._check = check

    def __call__(self) -> None:
        """Carry it out: fail with its sentence, or skip with its reason."""
        __tracebackhide__ = True
        opened = self._opened
        if opened.fault:
            if self._check == _OPENS:
                pytest.fail(opened.fault, pytrace=False)
            pytest.skip("it does not open")
        for check in opened.kit.checks:
            if check.name != self._check:
                continue
            result = check.result(opened.sort, opened.name, opened.under_test, {})
            if result.outcome is CheckOutcome.NOT_APPLICABLE:
                pytest.skip(result.reason)
            if not result.outcome.right:
                pytest.fail(result.reason, pytrace=False)

    def __repr__(self) -> str:
        return f"<{self._check} of {self._opened.name}>"
