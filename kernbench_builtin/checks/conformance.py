"""Check what plug-ins register, with the kits that core and plug-ins have for the sorts of it.

A plug-in's module may say which checks are known to fail, and why, in `kernbench_expected_failures`: a mapping from the
name of an entry to a mapping from the name of a check to the reason. A check that is said to fail must fail.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from attrs import frozen

from kernbench_builtin.checks.chosen_kits import kit_for, kit_names, with_kits
from kernbench_builtin.checks.default_kits import default_kit
from kernbench_core.errors import PluginError, UsageError
from kernbench_core.params import did_you_mean
from kernbench_core.plugins import Plugins, PluginSource, Provider, load_plugins
from kernbench_core.plugins.chosen import several_plugins
from kernbench_core.testing.kit import Check, CheckOutcome, CheckResult, Kit

_EXPECTED: Final = "kernbench_expected_failures"
#: The check that every kit begins with: that an entry can be had at all.
_OPENS: Final = "opens"


@frozen
class Conformance:
    """The checks of everything that one plug-in registers: by kits, and of other sorts that each entry opens.

    `of` finds them; `results` carries them out, one after another.
    """

    plugins: Plugins
    plugin: str
    provider: Provider
    entries: tuple[tuple[str, str], ...]
    kits: Mapping[str, Kit[Any]]
    expected: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, plugin: str, plugins: Plugins | None = None, kits: Collection[str] = ()) -> Conformance:
        """Find the checks of a plug-in, of the installed ones unless others are given.

        Of two kits with one name its own is taken, or the one that `kits` names, as `VENDOR:name`.

        Raises:
            UsageError: it is not loaded, or there are several; `kits` names one that there is not.
            PluginError: a kit cannot be loaded, or what it says of expected failures names nothing that there is.
        """
        plugins = plugins or load_plugins()
        found = [each for each in plugins.sources if plugin in (each.name, each.distribution)]
        if not found:
            names = [each.name for each in plugins.sources]
            raise UsageError(f"plug-in must be one that is loaded, not {plugin!r}.{did_you_mean(plugin, names)}")
        if len(found) > 1:
            raise several_plugins(plugin, [(each.name, each.distribution) for each in found])
        source = found[0]
        plugins = with_kits(plugins, source.provider, kits)
        with_a_kit = [sort for sort in kit_names(plugins) if sort in plugins.points]
        entries = tuple(
            (sort, name)
            for sort in (*with_a_kit, *(each for each in plugins.points if each not in with_a_kit))
            for name in plugins.registries[sort]
            if plugins.registries[sort].provider(name) == source.provider
        )
        found_kits = {sort: kit_for(plugins, sort) or default_kit(sort) for sort, _ in dict.fromkeys(entries)}
        return cls(plugins, plugin, source.provider, entries, found_kits, _expected(source, entries, found_kits))

    def __iter__(self) -> Iterator[tuple[str, str, str]]:
        """Yield each check as the sort of entry, its name, and the name of the check."""
        for sort, name in self.entries:
            for check in (_OPENS, *(each.name for each in self.kits[sort].checks)):
                yield sort, name, check

    def results(self, names: Collection[str] = ()) -> Iterator[CheckResult]:
        """Carry the checks out, or those of entries and checks called `names`; yield how each ended.

        Raises:
            UsageError: neither an entry nor a check has such a name.
        """
        known = {name for _, name, check in self} | {check for _, _, check in self}
        for name in names:
            if name not in known:
                raise UsageError(
                    f"what is checked must be an entry of plug-in {self.plugin!r} or a check, not {name!r}."
                    f"{did_you_mean(name, known)}"
                )
        if not names:
            yield from self._left_out()
        chosen = []
        for sort, name in self.entries:
            whole = not names or name in names
            checks = [each for each in self.kits[sort].checks if whole or each.name in names]
            if checks or whole or _OPENS in names:
                chosen.append((sort, name, checks, whole or _OPENS in names))
        openers = self.openers((sort, name) for sort, name, _, _ in chosen)
        for sort, name, checks, told in chosen:
            yield from self._of_entry(sort, name, openers[sort], checks, told)

    def _left_out(self) -> Iterator[CheckResult]:
        """Yield that entries of the plug-in do not open which were left out when it was loaded: they are wrong."""
        sorts = {point.noun: sort for sort, point in self.plugins.points.items()}
        for failure in self.plugins.failures:
            noun, _, name = failure.entry.rpartition(" ")
            sort = sorts.get(noun, "")
            given_twice = self.plugins.registries[sort].taken.values() if sort else ()
            if failure.provider == self.provider and sort and failure not in given_twice:
                yield CheckResult(sort, name.strip("'"), _OPENS, CheckOutcome.FAILED, failure.reason)

    def expected_of(self, name: str) -> Mapping[str, str]:
        """Return the checks that an entry is said to fail, with the reasons; its vendor does not count."""
        return self.expected.get(_bare(name), {})

    def openers(self, entries: Iterable[tuple[str, str]]) -> Mapping[str, Callable[[str], Any]]:
        """Return what opens entries that are checked together, by their sort."""
        names: dict[str, list[str]] = {}
        for sort, name in entries:
            names.setdefault(sort, []).append(name)
        return {sort: self.kits[sort].opener(self.plugins, found) for sort, found in names.items()}

    def _of_entry(
        self, sort: str, name: str, opener: Callable[[str], Any], checks: list[Check[Any]], told: bool
    ) -> Iterator[CheckResult]:
        """Open an entry, and carry out its checks; whether it opens is `told` where somebody asked, or it does not."""
        expected = self.expected_of(name)
        found: list[Any] = []

        def opens(_: None) -> None:
            found.append(opener(name))

        opening = Check(opens).result(sort, name, None, expected)
        if told or not found:
            yield opening
        for check in checks if found else []:
            yield check.result(sort, name, found[0], expected)


def conform(plugin: str, plugins: Plugins | None = None, kits: Collection[str] = ()) -> None:
    """Check everything that a plug-in registers, as `Conformance.of` finds it: what a test of its own may call.

    Raises:
        AssertionError: a check did not end as it must; a line for each.

    >>> from kernbench_builtin.checks import conform
    >>> conform("builtin")
    """
    wrong = [each for each in Conformance.of(plugin, plugins, kits).results() if not each.outcome.right]
    if wrong:
        raise AssertionError("\n".join(map(str, wrong)))


def _bare(name: str) -> str:
    """Return the name as its plug-in has it: before that of one of two its vendor stands."""
    return name.rpartition(":")[2]


def _expected(
    source: PluginSource, entries: tuple[tuple[str, str], ...], kits: Mapping[str, Kit[Any]]
) -> Mapping[str, Mapping[str, str]]:
    """Return which checks a plug-in says that it fails; raise PluginError where it names what is not there."""
    found: object = vars(sys.modules[source.module]).get(_EXPECTED, {})
    checks: dict[str, set[str]] = {}
    for sort, name in entries:
        checks.setdefault(_bare(name), set()).update((_OPENS, *(each.name for each in kits[sort].checks)))
    try:
        said = {str(name): dict(reasons) for name, reasons in dict(found).items()}  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise PluginError(
            f"{_EXPECTED} of plug-in {source.name!r} must map names of entries to mappings from checks to reasons, "
            f"not {found!r}."
        ) from None
    wrong = [
        f"{_EXPECTED} of plug-in {source.name!r} must name checks of its entries, not {check!r} of {name!r}."
        for name, reasons in said.items()
        for check in reasons
        if check not in checks.get(name, ())
    ]
    if wrong:
        raise PluginError("\n".join(wrong))
    return said
