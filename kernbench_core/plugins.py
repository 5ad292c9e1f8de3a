"""Find the installed plug-ins, ask each once what it offers, and freeze the answers into registries.

Plug-ins are entry points of group `kernbench`. pluggy is used here, at start-up, and nowhere else.
Loading is guarded and sorted: a plug-in that cannot be used is left out and recorded as a `PluginFailure`,
and no result depends on the order in which plug-ins were found.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import inspect
import re
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import attrs
import pluggy

from kernbench_core import hookspecs, registry
from kernbench_core.errors import PluginError, in_words
from kernbench_core.package import GROUP
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.registry import Entry, PluginFailure, Provider, Registry

_MANAGER_NAME = "kernbench"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_OFFERS: dict[str, tuple[type[Entry], str]] = {
    "components": (registry.ComponentEntry, "component"),
    "benches": (registry.BenchEntry, "bench"),
    "topologies": (registry.TopologyEntry, "topology preset"),
    "networks": (registry.NetworkEntry, "network"),
    "machines": (registry.MachineEntry, "machine"),
    "exporters": (registry.ExporterEntry, "exporter"),
    "ops": (registry.OpEntry, "op"),
    "algorithms": (registry.AlgorithmEntry, "algorithm"),
    "collectives": (registry.CollectiveEntry, "collective"),
    "commands": (registry.CommandEntry, "command"),
}
_REGISTRIES: dict[str, type[Registry[Any]]] = {
    "components": registry.ComponentRegistry, "networks": registry.NetworkRegistry,
    "machines": registry.MachineRegistry,
}  # fmt: skip
_OPEN = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_VENDOR_NAMED = frozenset({"components", "networks", "algorithms"})


@attrs.frozen(order=True)
class PluginSource:
    """One plug-in to load: its distribution, its entry-point name and the module that holds its hooks."""

    distribution: str
    name: str
    module: str
    version: str = ""

    @property
    def provider(self) -> Provider:
        """Who the entries of this plug-in come from."""
        return Provider(self.name, self.distribution, self.version)


@attrs.frozen
class Plugins:
    """Everything that the loaded plug-ins offer, in frozen registries, and the plug-ins that were left out."""

    components: registry.ComponentRegistry
    benches: Registry[registry.BenchEntry]
    topologies: Registry[registry.TopologyEntry]
    networks: registry.NetworkRegistry
    machines: registry.MachineRegistry
    exporters: Registry[registry.ExporterEntry]
    ops: Registry[registry.OpEntry]
    algorithms: Registry[registry.AlgorithmEntry]
    collectives: Registry[registry.CollectiveEntry]
    commands: Registry[registry.CommandEntry]
    providers: tuple[Provider, ...]
    failures: tuple[PluginFailure, ...]


class _HookRaised(Exception):
    """A hook made what is no entry, or an entry that says itself what is wrong with it."""


class _HookManager(pluggy.PluginManager):
    """A plug-in manager that takes every function named `kernbench_…` as a hook, decorated or not."""

    def parse_hookimpl_opts(self, plugin: object, name: str) -> Any:
        options = super().parse_hookimpl_opts(plugin, name)
        if options is None and name.startswith(hookspecs.PREFIX) and callable(getattr(plugin, name)):
            return {}
        return options


def load_plugins(extra: Iterable[str | PluginSource] = (), *, installed: bool = True) -> Plugins:
    """Load the installed plug-ins and `extra` ones; return their frozen registries.

    `extra` holds entry points written as in a pyproject (`"acme = acme_models.plugin"`), for a
    source tree that is not installed. One that is also installed counts once. A plug-in that fails is in
    `.failures` of the result, and so is an algorithm whose entry is wrong. Raise PluginError when two plug-ins register
    one name, when a hook is misspelt, or when an entry of another sort is badly named.

    >>> print(*kb.load_plugins(["acme = acme_models.plugin"], installed=False).failures)
    plug-in 'acme' (acme_models (source tree)) is left out: ModuleNotFoundError: No module named 'acme_models'
    """
    found = set(_installed()) if installed else set()
    known = {(source.name, source.module) for source in found}
    given = (_parsed(item) if isinstance(item, str) else item for item in extra)
    found.update(source for source in given if (source.name, source.module) not in known)
    offers: dict[str, list[tuple[Any, Provider]]] = {kind: [] for kind in _OFFERS}
    failures: list[PluginFailure] = []
    providers: list[Provider] = []
    for source in sorted(found):
        try:
            collected = _collect(source, importlib.import_module(source.module), failures)
        except PluginError:
            raise
        except _HookRaised as error:
            failures.append(PluginFailure(source.provider, str(error).rstrip(".")))
            continue
        except (*INTERRUPTS, MemoryError):
            raise
        except BaseException as error:
            failures.append(PluginFailure(source.provider, _one_line(error)))
            continue
        providers.append(source.provider)
        for kind, entries in collected.items():
            offers[kind].extend((entry, source.provider) for entry in entries)
    return _frozen(offers, tuple(providers), tuple(failures))


def _installed() -> Iterable[PluginSource]:
    for point in importlib.metadata.entry_points(group=GROUP):
        dist = point.dist
        name, version = (dist.name, dist.version) if dist is not None else ("an unnamed distribution", "")
        yield PluginSource(name, point.name, point.value, version)


def _parsed(text: str) -> PluginSource:
    name, equals, module = (part.strip() for part in text.partition("="))
    if not (name and equals and module):
        raise PluginError(f"an extra plug-in must be written 'name = package.module', not {text!r}.")
    return PluginSource(f"{module.partition('.')[0]} (source tree)", name, module)


def _collect(source: PluginSource, module: ModuleType, failures: list[PluginFailure]) -> dict[str, list[Entry]]:
    """Call every hook of one plug-in; return its checked entries by sort.

    An algorithm with a wrong entry goes to `failures`: nothing but who names it has to do without.
    """
    manager = _HookManager(_MANAGER_NAME)
    manager.add_hookspecs(hookspecs)
    _refuse_unknown_hooks(source, module)
    _refuse_no_hooks(module)
    try:
        manager.register(module, source.name)
    except pluggy.PluginValidationError as error:
        raise _HookRaised(" ".join(str(error).split())) from error
    try:
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        raise PluginError(
            f"plug-in {source.name!r} ({source.provider}) must define only known hooks: {error}."
        ) from error
    collected: dict[str, list[Entry]] = {}
    for kind in _OFFERS:
        hook, expected = getattr(manager.hook, hookspecs.PREFIX + kind), _OFFERS[kind][0].__name__
        try:
            returned = hook()
        except PluginError as error:
            raise _HookRaised(str(error)) from error
        if not returned and hook.get_hookimpls():  # pluggy leaves out what is None
            returned = [None]
        for entries in returned:
            if not isinstance(entries, Iterable):
                raise _HookRaised(f"{hook.name} must return a list of {expected} objects, not {entries!r}")
        collected[kind] = []
        for entry in (entry for entries in returned for entry in entries):
            if kind != "algorithms" and not isinstance(entry, _OFFERS[kind][0]):
                raise _HookRaised(f"{hook.name} must return {expected} objects, not {entry!r}")
            try:
                collected[kind].append(_checked(source, kind, entry))
            except PluginError as error:
                if kind != "algorithms":
                    raise
                name = repr(entry.name) if isinstance(entry, Entry) else repr(entry)
                failures.append(PluginFailure(source.provider, str(error).rstrip("."), f"algorithm {name}"))
    return collected


def _refuse_unknown_hooks(source: PluginSource, module: ModuleType) -> None:
    """Raise PluginError for a function whose name looks like a hook and is none: pluggy names no remedy."""
    known = [hookspecs.PREFIX + kind for kind in _OFFERS]
    for name in sorted(vars(module)):
        if name.startswith(hookspecs.PREFIX) and name not in known and callable(getattr(module, name)):
            close = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise PluginError(
                f"plug-in {source.name!r} ({source.provider}) must define hooks among {', '.join(known)}, "
                f"not {name!r}.{hint}"
            )


def _refuse_no_hooks(module: ModuleType) -> None:
    """Raise _HookRaised for what has a hook's name and cannot be called as one."""
    for kind, (expected, _) in _OFFERS.items():
        name = hookspecs.PREFIX + kind
        if name not in vars(module):
            continue
        hook = vars(module)[name]
        shown = repr(hook)
        if inspect.isfunction(hook):
            signature = inspect.signature(hook)
            needed = [p for p in signature.parameters.values() if p.default is p.empty and p.kind not in _OPEN]
            options = getattr(hook, f"{_MANAGER_NAME}_impl", None) or {}
            if not needed and not options.get("wrapper") and not options.get("hookwrapper"):
                continue
            shown = f"{name}{signature.replace(return_annotation=signature.empty)}" if needed else "a wrapper of pluggy"
        raise _HookRaised(
            f"{name} must be a function without arguments that returns a list of {expected.__name__} objects, not "
            f"{shown}"
        )


def _checked(source: PluginSource, kind: str, entry: object) -> Entry:
    """Return `entry` if it is of the right sort and well named; raise PluginError otherwise."""
    expected, noun = _OFFERS[kind]
    where = f"plug-in {source.name!r} ({source.provider})"
    if not isinstance(entry, expected):
        raise PluginError(
            f"{where} must return {expected.__name__} objects from {hookspecs.PREFIX}{kind}, not {entry!r}."
        )
    for field in attrs.fields(type(entry)):
        value = getattr(entry, field.name)
        texts = value if isinstance(value, tuple) else (value,)
        if not all(isinstance(text, str) for text in texts) or isinstance(value, tuple) != (field.name == "suffixes"):
            must = "a tuple of texts" if field.name == "suffixes" else "a text"
            raise _HookRaised(f"{field.name} of {noun} {entry.name!r} must be {must}, not {value!r}")
    if ":" not in entry.target:
        raise PluginError(
            f"{where} must write the target of {noun} {entry.name!r} as 'module:attr', not {entry.target!r}."
        )
    if kind in _VENDOR_NAMED and not (entry.name.startswith(f"{source.name}.") and _named(entry.name)):
        raise PluginError(
            f"{where} must name its {kind} '{source.name}.<thing>', not {entry.name!r}; "
            f"rename the {noun} or the entry point."
        )
    if kind not in _VENDOR_NAMED and kind != "ops" and not _NAME.fullmatch(entry.name):
        raise PluginError(
            f"{where} must name its {kind} in lower-case letters, digits, '-' and '_', not {entry.name!r}."
        )
    return entry


def _named(name: str) -> bool:
    return all(_NAME.fullmatch(part) for part in name.split("."))


def _frozen(
    offers: dict[str, list[tuple[Any, Provider]]], providers: tuple[Provider, ...], failures: tuple[PluginFailure, ...]
) -> Plugins:
    registries: dict[str, Any] = {}
    for kind, (_, noun) in _OFFERS.items():
        registries[kind] = _REGISTRIES.get(kind, Registry)(noun, offers[kind], failures)
    return Plugins(**registries, providers=providers, failures=failures)


def _one_line(error: BaseException) -> str:
    return in_words(error).partition("\n")[0].rstrip(": ")
