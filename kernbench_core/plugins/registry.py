"""Registries: what plug-ins offer by name, imported on first use.

A registry is built once, from everything that the loaded plug-ins returned, and has no method that changes it.
"""

from __future__ import annotations

import difflib
import importlib
import operator
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, ClassVar, Final, Generic, TypeVar

import attrs

from kernbench_core.callsite import user_traceback
from kernbench_core.errors import PluginError, UnknownName, in_words
from kernbench_core.params import Param, closest, did_you_mean
from kernbench_core.plugins.chosen import WITHOUT
from kernbench_core.plugins.entries import ComponentEntry, Entry, MachineEntry, NetworkEntry, Provider
from kernbench_core.process.interrupt import INTERRUPTS


@attrs.frozen
class PluginFailure:
    """A plug-in that could not be used, or one `entry` of it, as "algorithm 'ring'", and why in one line."""

    provider: Provider
    reason: str
    entry: str = ""

    def __str__(self) -> str:
        what = self.entry or f"plug-in {self.provider.plugin!r} ({self.provider})"
        return f"{what} is left out: {self.reason}"


#: Why a plug-in is left out that nobody wants.
UNWANTED: Final = f"--no-plugin or {WITHOUT} names it"
E = TypeVar("E", bound=Entry)
#: What may be given instead of a registered name, by the noun of the registry.
_OR_ELSE = {"bench": " or the path of a .py file"}


class Registry(Generic[E], Mapping[str, E]):
    """Map names to entries of one sort, sorted by name; `load` imports what an entry points at.

    `noun` is the word for one entry in messages. `failures` are the plug-ins that were left out, or entries of them: a
    name that is missing because of one is reported as that failure. `taken` are the names that were given twice, which
    raise PluginError, unless one is kernbench's own, which keeps its name. `VENDOR:name` is one of them, and may be
    written for any name: the vendor is the name of a plug-in, what that has before a dot, or the name of its
    distribution. Where the entries of a sort are `all_used`, both of two with one name are, as `VENDOR:name`.
    """

    NOUN: ClassVar[str] = "entry"

    def __init__(
        self, noun: str = "", entries: Iterable[tuple[E, Provider]] = (), failures: tuple[PluginFailure, ...] = (),
        *, all_used: bool = False,
    ) -> None:  # fmt: skip
        self.noun = noun or self.NOUN
        self.failures = failures
        self.given = tuple(entries)
        unique, taken = _unique(self.noun, self.given, all_used)
        self._entries: Mapping[str, tuple[E, Provider]] = MappingProxyType(unique)
        self.taken: Mapping[str, PluginFailure] = MappingProxyType(taken)

    def __getitem__(self, name: str) -> E:
        return self._found(name)[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self.taken or self._picked(str(name)) is not None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} {self.noun} entries>"

    @property
    def left_out(self) -> str:
        """What a sentence about a name that is not here ends with where plug-ins were left out, whose it may be."""
        found = [each for each in self.failures if not each.entry]
        names = ", ".join(f"{each.provider.plugin!r} ({each.provider})" for each in found)
        why = f"; {UNWANTED}" if {each.reason for each in found} == {UNWANTED} else ""
        return f" It may belong to a plug-in that was left out: {names}{why}." if names else ""

    def name_conflicts(self) -> list[PluginFailure]:
        """Return the failures of names that two plug-ins have, either of which may be called with its vendor."""
        return [failure for name, failure in self.taken.items() if any(each.endswith(f":{name}") for each in self)]

    def provider(self, name: str) -> Provider:
        """Return who registered `name`; raise UnknownName when nobody did."""
        return self._found(name)[1]

    def load(self, name: str) -> Any:
        """Import and return what `name` points at.

        Raise UnknownName for a name that nobody registered, and PluginError when the import fails.
        """
        entry = self[name]
        module_name, _, path = entry.target.partition(":")
        try:
            found: Any = operator.attrgetter(path)(importlib.import_module(module_name))
        except (*INTERRUPTS, MemoryError):
            raise
        except BaseException as error:
            told = f"must be importable from {entry.target!r}, but that raised {in_words(error).rstrip('.')}"
            raise self.fault(name, told) from error
        return found

    def fault(self, name: str, what: str) -> PluginError:
        """Return the error for an entry that is not as it must be: `what` it must be, and what it is."""
        provider = self.provider(name)
        return PluginError(f"{self.noun} {name!r} of {provider} {what}; repair or reinstall {provider.distribution}.")

    def raised(self, name: str, error: BaseException) -> PluginError:
        """Return the error for what an entry raised when it was used."""
        told = self.fault(name, f"raised {in_words(error).removesuffix('.')}")
        return PluginError(f"{told}\n{user_traceback(error)}".rstrip())

    def _found(self, name: str) -> tuple[E, Provider]:
        found = self._entries.get(name) or self._picked(name)
        if found is None:
            raise self._missing(name)
        return found

    def _picked(self, name: str) -> tuple[E, Provider] | None:
        """Return what `VENDOR:name` is; None for what is nothing of the kind."""
        vendor, _, bare = name.partition(":")
        of_vendor = [pair for pair in self.given if vendor in pair[1].names]
        found = [pair for pair in of_vendor if pair[0].name in (bare, f"{vendor}.{bare}")]
        return found[0] if len(found) == 1 else None

    def _missing(self, name: str) -> Exception:
        """Build the error for a name that is not here: of a plug-in that was left out, or of nobody."""
        for failure in (*self.taken.values(), *self.failures):
            if failure.entry == f"{self.noun} {name!r}":
                return PluginError(f"{failure}.")
        vendor = next((name.partition(mark)[0] for mark in ":." if mark in name), None)
        for failure in self.failures:
            if vendor is not None and failure.provider.plugin == vendor and not failure.entry:
                return PluginError(
                    f"{self.noun} {name!r} belongs to plug-in {vendor!r} ({failure.provider}), "
                    f"which could not be loaded: {failure.reason}"
                )
        or_else = _OR_ELSE.get(self.noun, "")
        message = f"{self.noun} must be a registered name{or_else}, not {name!r}.{did_you_mean(name, self._entries)}"
        if vendor is None:
            message += self.left_out
        return UnknownName(message, tuple(difflib.get_close_matches(name, self._entries, n=len(self._entries) or 1)))


class DefaultsRegistry(Registry[E]):
    """The registry of a sort that a parameter of models chooses among, as its `Param.entries` says."""

    def why_not(self, name: str) -> str:
        """Say of a name that is not here which it may be a slip for, or whose it may be."""
        error = self._missing(name)
        if isinstance(error, PluginError):
            return f" {str(error).removesuffix('.')}."
        close = closest(name, self._entries)
        return f" Did you mean {close!r}?" if close else self.left_out


class _Defaults(Mapping[object, object]):
    """The default of one parameter for each choice of another: the model's own, then those of entries, on first use.

    Entries that cannot be had are not listed.
    """

    def __init__(self, param: str, own: Mapping[object, object], entries: DefaultsRegistry[Any]) -> None:
        self._param, self._own, self._entries = param, own, entries

    def __getitem__(self, name: object) -> object:
        if name in self._own:
            return self._own[name]
        if name not in self._entries:
            raise KeyError(name)
        defaults = getattr(self._entries.load(str(name)), "defaults", {})
        if self._param not in defaults:
            raise self._entries.fault(str(name), f"must have a default of {self._param!r}, which it lacks")
        return defaults[self._param]

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._entries

    def __iter__(self) -> Iterator[object]:
        yield from self._own
        for name in self._entries:
            with suppress(PluginError):
                _ = self[name]
                if name not in self._own:
                    yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)


class ComponentRegistry(Registry[ComponentEntry]):
    """The registry of hardware models; it is also the catalogue that a topology is compiled against.

    `choosable` are the registries, by sort, that parameters of models may choose among.
    """

    choosable: Mapping[str, DefaultsRegistry[Any]] = MappingProxyType({})

    def declared(self, impl: str) -> tuple[Param, ...]:
        """Return the `Param`s that the component class `impl` declares; raise UnknownName or PluginError."""
        found = self.load(impl)
        params = getattr(found, "PARAMS", None)
        declared = isinstance(params, tuple) and all(isinstance(param, Param) for param in params)
        if not isinstance(found, type) or not declared:
            raise PluginError(
                f"component {impl!r} of {self.provider(impl)} must be a ComponentBase class whose PARAMS is a tuple of "
                f"Param, not {found!r}; repair {self[impl].target!r}."
            )
        return tuple(self._opened(params or ()))

    def _opened(self, params: tuple[Param, ...]) -> Iterator[Param]:
        """Yield parameters with what entries add: the choices of one, and the defaults of those that follow it."""
        chosen = {param.name: self.choosable[param.entries] for param in params if param.entries in self.choosable}
        for param in params:
            of, defaults = param.follows or ("", {})
            if param.name in chosen:
                names = tuple(dict.fromkeys((*param.choices, *chosen[param.name])))
                yield attrs.evolve(param, choices=names, hint=chosen[param.name].why_not)
            elif of in chosen:
                yield attrs.evolve(param, follows=(of, _Defaults(param.name, defaults, chosen[of])))
            else:
                yield param

    def made_for(self, impl: str) -> tuple[str, ...]:
        """Return the node kinds that `impl` is registered for, none for any; raise UnknownName or PluginError."""
        return self[impl].kinds


class NetworkRegistry(Registry[NetworkEntry]):
    """The registry of shapes of the scale-up network."""

    NOUN = NetworkEntry.NOUN


class MachineRegistry(Registry[MachineEntry]):
    """The registry of kinds of machine."""

    NOUN = MachineEntry.NOUN

    def owner(self, section: str) -> str | None:
        """Return the name of the kind whose section this is, None where there is none."""
        found = next((name for name, (entry, _) in self._entries.items() if section in entry.sections), None)
        return found or (section if section in self else None)


def _unique(
    noun: str, entries: Iterable[tuple[E, Provider]], all_used: bool
) -> tuple[dict[str, tuple[E, Provider]], dict[str, PluginFailure]]:
    """Return the entries by name, sorted, and a failure for each name that was given twice; our own stay."""
    named: dict[str, list[tuple[E, Provider]]] = {}
    for entry, provider in sorted(entries, key=lambda pair: (pair[0].name, str(pair[1]), pair[0].target)):
        named.setdefault(entry.name, []).append((entry, provider))
    found: dict[str, tuple[E, Provider]] = {}
    taken: dict[str, PluginFailure] = {}
    for name, given in named.items():
        ours = [pair for pair in given if pair[1].is_ours and not all_used]
        own = ours[0] if len(ours) == 1 else None
        if own is not None or len(given) == 1:
            found[name] = own or given[0]
        else:
            plugins, distributions = ([getattr(pair[1], part) for pair in given] for part in ("plugin", "distribution"))
            vendors = next((each for each in (plugins, distributions) if len(set(each)) == len(given)), [])
            found.update(zip((f"{vendor}:{name}" for vendor in vendors), given, strict=False))
        picks = [pick for pick in found if pick.endswith(f":{name}")]
        if len(given) > 1 and not (picks and all_used):
            others = [pair for pair in given if pair is not own]
            reason = _twice([provider for _, provider in others], own is not None, picks)
            taken[name] = PluginFailure(others[-1][1], reason, f"{noun} {name!r}")
    return dict(sorted(found.items())), taken


def _twice(providers: list[Provider], ours: bool, picks: list[str]) -> str:
    """Say whose entries have one name, and what to do."""
    who = list(dict.fromkeys(map(str, providers)))
    if ours:
        return f"{' and '.join(who)} must not call it as kernbench calls its own; rename it"
    if len(who) == 1:
        return f"it must be registered once, and {who[0]} registers it twice; rename one of the two"
    pick = f", or write {' or '.join(map(repr, picks))}" if picks else ""
    return f"it must be registered once, not by {' and by '.join(who)}; uninstall all but one{pick}"
