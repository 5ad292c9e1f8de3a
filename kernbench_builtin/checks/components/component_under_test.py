"""A model that is checked: where it comes from, how it is driven, and what came of that."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import cast

from kernbench_builtin.checks.chosen_kits import DRIVES, open_kit
from kernbench_builtin.checks.components.drivers import BY_KIND
from kernbench_builtin.checks.components.testbench import Driver, DriveResult, WatchedTestbench
from kernbench_builtin.checks.plugin import KITS
from kernbench_core.component import ComponentBase
from kernbench_core.params import did_you_mean, resolve_params
from kernbench_core.plugins import Plugins
from kernbench_core.testing.kit import CheckFailed, NotApplicable
from kernbench_core.testing.rig import Placed

#: Where a plug-in's module says which models are others in another style: {"acme.unit_events": "acme.unit"}.
SAME = "kernbench_same_models"
#: Where it gives parameters to try models with: {"acme.unit": {"lanes": 8}}.
GIVEN = "kernbench_checked_with"


class ComponentUnderTest:
    """A registered model, its class, the kind of node that it is tried as, and what drives it: nothing or more.

    `why` says why nothing does, where that is so. `logs_elsewhere` gives the log of a model by process.
    """

    def __init__(
        self,
        name: str,
        plugins: Plugins,
        kind: str | None = None,
        logs_elsewhere: Callable[[str], Mapping[str, list[str]]] = lambda name: {},
    ) -> None:
        cls = plugins.components.load(name)
        if not isinstance(cls, type) or not issubclass(cls, ComponentBase):
            raise CheckFailed(f"its target must be a ComponentBase class, not {cls!r}")
        plugins.components.declared(name)
        self.name = name
        self.cls: type[ComponentBase] = cls
        self.plugins = plugins
        self._refuse_strange_names()
        self.logs_elsewhere = logs_elsewhere
        kinds = (plugins.components.made_for(name) or ("",)) if kind is None else (kind,)
        found = ((each, tuple(_drivers(plugins, each))) for each in kinds)
        self.kind, self.drivers = next((pair for pair in found if pair[1]), (kinds[0], ()))
        self.why = f"nothing drives nodes of kind {kinds[0]!r}; a kit '{DRIVES}{kinds[0]}' of a plug-in would"

    def _mapping(self, what: str) -> object:
        """Return what the plug-in's module says of its models; an empty mapping where it says nothing."""
        provider = self.plugins.components.provider(self.name)
        source = next(each for each in self.plugins.sources if each.provider == provider)
        return vars(sys.modules[source.module]).get(what, {})

    def _said(self, what: str) -> object:
        """Return what the plug-in's module says of this model in a mapping; None where it says nothing.

        Raises:
            CheckFailed: it is no mapping.
        """
        said = self._mapping(what)
        if not isinstance(said, Mapping):
            raise CheckFailed(f"{what} of its plug-in must map names of models, not be {said!r}")
        return said.get(self.name)

    def _refuse_strange_names(self) -> None:
        """Raise CheckFailed where the plug-in's module says something of a model that it does not register."""
        models = self.plugins.components
        own = [models[name].name for name in models if models.provider(name) == models.provider(self.name)]
        for what in (SAME, GIVEN):
            said = self._mapping(what)
            for name in said if isinstance(said, Mapping) else ():
                if name not in own:
                    hint = did_you_mean(str(name), own)
                    raise CheckFailed(f"{what} of its plug-in must name models of it, not {name!r}.{hint}")

    @property
    def other(self) -> str | None:
        """The model that its plug-in says to be the same, in another style; None where it names none.

        Raises:
            CheckFailed: what it names is no model.
        """
        other = self._said(SAME)
        if other is not None and (not isinstance(other, str) or other not in self.plugins.components):
            raise CheckFailed(f"{SAME} of its plug-in must name the same model as {self.name}, not {other!r}")
        return other

    @cached_property
    def given(self) -> Mapping[str, object]:
        """The parameters that it is tried with: those that its plug-in gives, and defaults.

        Raises:
            CheckFailed: what it gives does not fit.
            NotApplicable: it gives none for a parameter that has no default.
        """
        given = self._said(GIVEN) or {}
        if not isinstance(given, Mapping):
            raise CheckFailed(f"{GIVEN} of its plug-in must have the parameters of {self.name}, not {given!r}")
        missing = [param.name for param in self.cls.PARAMS if param.required and param.name not in given]
        if missing:
            raise NotApplicable(f"{missing[0]!r} must be given, and {GIVEN} of its plug-in has no example")
        _, wrong = resolve_params(self.cls.PARAMS, given, lambda *names: ".".join((self.name, *names)))
        if wrong:
            raise CheckFailed(f"{GIVEN} of its plug-in: {wrong[0].rstrip('.')}")
        return given

    def drive(self, driver: Driver, params: Mapping[str, object] | None = None) -> DriveResult:
        """Build it anew from its name and parameters, drive it, and return what came of it."""
        given = {**self.given, **(params or {})}
        return WatchedTestbench(Placed(self.name, given, self.kind or "under_test"), self.plugins).drive(driver)

    def driven(self) -> tuple[DriveResult, ...]:
        """Build and drive it anew, with each of its drivers; NotApplicable where there is none."""
        if not self.drivers:
            raise NotApplicable(self.why)
        return tuple(self.drive(driver) for driver in self.drivers)

    @cached_property
    def again(self) -> tuple[DriveResult, ...]:
        """What came of driving it a second time, built anew."""
        return self.driven()

    @cached_property
    def drives(self) -> tuple[DriveResult, ...]:
        """What came of driving it, with each driver once; all checks look at that."""
        return self.driven()

    def drives_for(self, check: str) -> tuple[DriveResult, ...]:
        """Return what came of the drives, for a check of this name.

        Raises:
            CheckFailed: a drive did not come to its end, and the check is the one that says why.
            NotApplicable: another one is, or there is no driver.
        """
        for drive in self.drives:
            if drive.blame is not None:
                blamed, sentence = drive.blame
                if blamed == check:
                    raise CheckFailed(sentence)
                raise NotApplicable(f"the drive did not come to its end, as {blamed} tells")
        return self.drives


def log_of(drives: Iterable[DriveResult]) -> list[str]:
    """Return the logs of several drives, one after another."""
    return [line for drive in drives for line in drive.log]


def _drivers(plugins: Plugins, kind: str) -> Iterator[Driver]:
    """Yield what drives nodes of a kind: by hand, and as a plug-in does."""
    if kind in BY_KIND:
        yield BY_KIND[kind]
    name = f"{DRIVES}{kind}"
    if name in plugins.of(KITS):
        driver: Driver = cast(Driver, open_kit(plugins, name))
        yield driver


def first_difference(one: Sequence[str], other: Sequence[str]) -> str:
    """Say which line of two logs differs first; "" where they are the same."""
    for number, (a, b) in enumerate(zip_longest(one, other), 1):
        if a != b:
            return f"line {number} of the log must be the same, not {a or 'nothing'!r} and {b or 'nothing'!r}"
    return ""
