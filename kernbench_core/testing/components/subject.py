"""A model that is checked: where it comes from, how it is driven, and what came of that."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import zip_longest

from kernbench_core.component import ComponentBase
from kernbench_core.plugins import Plugins
from kernbench_core.testing.components.drivers import BY_KIND
from kernbench_core.testing.components.stand import Course, Driver, Stand
from kernbench_core.testing.hand_made import Placed
from kernbench_core.testing.kit import CheckFailed, NotApplicable

#: What a kit of a plug-in is called that has the driver of a kind of node.
DRIVES = "components."
#: Where a plug-in's module says which models are others in another style: {"acme.unit_events": "acme.unit"}.
SAME = "kernbench_same_models"


class ComponentUnderTest:
    """A registered model, its class, the kind of node that it is tried as, and its driver.

    `why` says why there is no driver, where there is none.
    """

    def __init__(self, name: str, plugins: Plugins, kind: str | None = None) -> None:
        cls = plugins.components.load(name)
        if not isinstance(cls, type) or not issubclass(cls, ComponentBase):
            raise CheckFailed(f"its target must be a ComponentBase class, not {cls!r}")
        plugins.components.declared(name)
        self.name = name
        self.cls: type[ComponentBase] = cls
        self.plugins = plugins
        self.driver: Driver | None = None
        self.kind = kind
        #: The logs that processes of their own gave, once they have been asked.
        self.elsewhere: list[list[str]] | None = None
        kinds = plugins.components.made_for(name) or ("",)
        for each in kinds if kind is None else (kind,):
            self._choose(each)
            if self.driver is not None:
                break
        self.why = f"nothing drives nodes of kind {kinds[0]!r}; a kit '{DRIVES}{kinds[0]}' of a plug-in would"

    def _choose(self, kind: str) -> None:
        """Take the driver of a kind: that of a plug-in, or one of core's."""
        kits = self.plugins.kits
        self.kind = kind
        if f"{DRIVES}{kind}" in kits:
            self.driver = kits.load(f"{DRIVES}{kind}")
            if not callable(self.driver):
                raise kits.fault(f"{DRIVES}{kind}", f"must be a function that drives a stand, not {self.driver!r}")
        elif kind in BY_KIND:
            self.driver = BY_KIND[kind]

    @property
    def other(self) -> str | None:
        """The model that its plug-in says to be the same, in another style; None where it names none.

        Raises:
            CheckFailed: what it says is no mapping from names of models to those of others.
        """
        provider = self.plugins.components.provider(self.name)
        source = next(each for each in self.plugins.sources if each.provider == provider)
        said = vars(sys.modules[source.module]).get(SAME, {})
        other = said.get(self.name) if isinstance(said, Mapping) else said
        if other is not None and (not isinstance(other, str) or other not in self.plugins.components):
            raise CheckFailed(f"{SAME} of its plug-in must map names of models to those of others, not {said!r}")
        return other

    def drive(self, params: Mapping[str, object] | None = None) -> Course:
        """Build it anew from its name and parameters, drive it, and return what came of it."""
        if self.driver is None:
            raise NotApplicable(self.why)
        placed = Placed(self.name, params or {}, self.kind or "under_test")
        return Stand(placed, self.plugins).drive(self.driver)

    def built_with(self, params: Mapping[str, object]) -> BaseException | None:
        """Return what a model with these parameters raises when it is built, None where it raises nothing."""
        return self.drive(params).error

    @cached_property
    def course(self) -> Course:
        """What came of driving it once; all checks look at that."""
        return self.drive()

    def course_for(self, check: str) -> Course:
        """Return what came of the drive, for a check of this name.

        Raises:
            CheckFailed: the drive did not come to its end, and the check is the one that says why.
            NotApplicable: another one is, or there is no driver.
        """
        course = self.course
        if course.blame is not None:
            blamed, sentence = course.blame
            if blamed == check:
                raise CheckFailed(sentence)
            raise NotApplicable(f"the drive did not come to its end, as {blamed} tells")
        return course


def first_difference(one: Sequence[str], other: Sequence[str]) -> str:
    """Say which line of two logs differs first; "" where they are the same."""
    for number, (a, b) in enumerate(zip_longest(one, other), 1):
        if a != b:
            return f"line {number} of the log must be the same, not {a or 'nothing'!r} and {b or 'nothing'!r}"
    return ""
