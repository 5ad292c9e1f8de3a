"""Find the installed plug-ins, ask each once what it offers, and freeze the answers into registries.

Plug-ins are entry points of group `kernbench`; core itself is asked as they are. Loading is guarded and sorted: a
plug-in that cannot be used is left out and recorded as a `PluginFailure`, and no result depends on the order in which
plug-ins were found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Final, TypeVar, cast

import attrs

from kernbench_core.callsite import user_traceback
from kernbench_core.errors import PluginError, UsageError, in_words
from kernbench_core.params import did_you_mean
from kernbench_core.plugins import entries, points
from kernbench_core.plugins.chosen import WITHOUT, Chosen, several_plugins
from kernbench_core.plugins.entries import CORE, HookRaised, Provider
from kernbench_core.plugins.hooks import collect, declared
from kernbench_core.plugins.installed import import_file, import_named, installed_plugins, vendor_of
from kernbench_core.plugins.points import Point
from kernbench_core.plugins.registry import (
    UNWANTED,
    ComponentRegistry,
    DefaultsRegistry,
    E,
    MachineRegistry,
    NetworkRegistry,
    PluginFailure,
    Registry,
)
from kernbench_core.process.interrupt import INTERRUPTS

_CORE: Final = "kernbench_core.plugin"
_Loaded = TypeVar("_Loaded")


@attrs.frozen(order=True)
class PluginSource:
    """One plug-in to load: its distribution, its entry-point name and the module that holds its hooks.

    `file` is where that module is read from when the plug-in is a file which is not installed.
    """

    distribution: str
    name: str
    module: str
    version: str = ""
    file: str = ""

    @property
    def provider(self) -> Provider:
        """Who the entries of this plug-in come from."""
        return Provider(self.name, self.distribution, self.version)

    def load(self) -> ModuleType:
        """Import its module; whatever that raises is not caught."""
        return import_file(self.file) if self.file else import_named(self.module)


@attrs.frozen(repr=False)
class Plugins:
    """Everything that the loaded plug-ins offer, in frozen registries: `plugins.of(POINT)`.

    `sources` are those that were loaded, `failures` those that cannot be used, or entries of them, and `blocked` those
    that nobody wanted; `strict` says whether one that fails when it is used is an error, wherever nobody names it.
    `points` are the sorts of entries that were declared, by kind.
    """

    points: Mapping[str, Point[Any]]
    registries: Mapping[str, Registry[Any]]
    sources: tuple[PluginSource, ...]
    failures: tuple[PluginFailure, ...]
    blocked: tuple[PluginFailure, ...]
    strict: bool = False

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} that cannot be used" if self.failures else ""
        return f"<Plugins of {len(self.sources)} sources{failed}>"

    def of(self, point: Point[E]) -> Registry[E]:
        """Return the entries of a point; none where the plug-in that declares it is left out."""
        found = self.registries.get(point.kind)
        return point.registry(point.noun, (), self.failures + self.blocked) if found is None else found

    def having(self, point: Point[E], registry: Registry[E]) -> Plugins:
        """Return these plug-ins with other entries of a point."""
        points, registries = {**self.points, point.kind: point}, {**self.registries, point.kind: registry}
        return attrs.evolve(self, points=points, registries=registries)

    @property
    def components(self) -> ComponentRegistry:
        """The hardware models."""
        return cast(ComponentRegistry, self.of(points.COMPONENTS))

    @property
    def benches(self) -> Registry[entries.BenchEntry]:
        """The benches."""
        return self.of(points.BENCHES)

    @property
    def programs(self) -> Registry[entries.ProgramEntry]:
        """The kinds of program, beside benches."""
        return self.of(points.PROGRAMS)

    @property
    def topologies(self) -> Registry[entries.TopologyEntry]:
        """The presets of configurations."""
        return self.of(points.TOPOLOGIES)

    @property
    def networks(self) -> NetworkRegistry:
        """The shapes of the scale-up network."""
        return cast(NetworkRegistry, self.of(points.NETWORKS))

    @property
    def machines(self) -> MachineRegistry:
        """The kinds of machine."""
        return cast(MachineRegistry, self.of(points.MACHINES))

    @property
    def run_parts(self) -> Registry[entries.RunPartEntry]:
        """The parts of runs."""
        return self.of(points.RUN_PARTS)

    @property
    def ops(self) -> Registry[entries.OpEntry]:
        """The ops of plug-ins."""
        return self.of(points.OPS)

    @property
    def commands(self) -> Registry[entries.CommandEntry]:
        """The commands."""
        return self.of(points.COMMANDS)

    @property
    def providers(self) -> tuple[Provider, ...]:
        """Who the plug-ins come from that were loaded."""
        return tuple(source.provider for source in self.sources)


def load_plugins(
    extra: Iterable[str | PluginSource] = (),
    *,
    installed: bool = True,
    without: Iterable[str] = (),
    strict: bool = False,
) -> Plugins:
    """Load the installed plug-ins and `extra` ones; return their frozen registries.

    `extra` holds entry points written as in a pyproject (`"acme = acme_models.plugin"`), for a
    source tree that is not installed, and paths of `.py` files. One that is also installed counts once. Installed ones
    named in `without` are left out. A plug-in that fails is in `.failures` of the result, and so is an entry that is
    wrong, or whose name another plug-in has, too: who names it gets a PluginError. With `strict`, and of a file, a
    failure is a PluginError at once. Unless `installed` is False, the environment may say more, as
    `plugins.chosen` has it.

    >>> print(*kb.load_plugins(["acme = acme_models.plugin"], installed=False).failures)
    plug-in 'acme' (acme_models (source tree)) is left out: ModuleNotFoundError: No module named 'acme_models'
    """
    chosen = (Chosen.of_environment() if installed else Chosen()).with_more((), tuple(without), strict)
    there = installed_plugins() if installed else ()
    found, blocked = _wanted({PluginSource(*each) for each in there}, chosen.without)
    known = {(source.name, source.module) for source in found}
    given = [_given(item) if isinstance(item, str) else item for item in (*chosen.files, *extra)]
    found.update(source for source in given if (source.name, source.module) not in known)
    loader = _Loader()
    for source in sorted(found):
        loader.load(source)
    plugins = loader.plugins(blocked)
    tried = {source.provider for source in found if source.file}
    apart = {failure for registry in plugins.registries.values() for failure in registry.name_conflicts()}
    fatal = [each for each in plugins.failures if chosen.strict or (each.provider in tried and each not in apart)]
    if fatal:
        raise PluginError("\n".join(f"{failure}." for failure in fatal))
    return attrs.evolve(plugins, strict=chosen.strict)


class _Loader:
    """Load plug-ins, core first, each guarded; then ask them, when it is known which points there are."""

    def __init__(self) -> None:
        self._failures: list[PluginFailure] = []
        self._points: dict[str, Point[Any]] = {}
        self._modules: list[tuple[PluginSource | None, Provider, ModuleType]] = []
        core = import_named(_CORE)
        self._declare(core)
        self._modules.append((None, CORE, core))

    def load(self, source: PluginSource) -> None:
        """Import a plug-in, and take the points that it declares."""

        def imported() -> ModuleType:
            module = source.load()
            self._declare(module)
            return module

        module = self._guarded(source.provider, imported)
        if module is not None:
            self._modules.append((source, source.provider, module))

    def plugins(self, blocked: tuple[PluginFailure, ...]) -> Plugins:
        """Ask all of them for their entries, and freeze these."""
        kinds = [hook.removeprefix(points.PREFIX) for hook in points.known_hooks()]
        known = {kind: self._points[kind] for kind in kinds if kind in self._points}
        offers: dict[str, list[tuple[Any, Provider]]] = {kind: [] for kind in known}
        sources = []
        for source, provider, module in self._modules:
            answer = self._guarded(provider, lambda: collect(provider, module, tuple(known.values())))  # noqa: B023
            if answer is None:
                continue
            collected, wrong = answer
            self._failures += wrong
            sources += [] if source is None else [source]
            for kind, given in collected.items():
                offers[kind].extend((entry, provider) for entry in given)
        failures = tuple(self._failures)
        registries = {
            kind: point.registry(point.noun, offers[kind], failures + blocked, all_used=point.all_used)
            for kind, point in known.items()
        }
        choosable = {kind: registry for kind, registry in registries.items() if isinstance(registry, DefaultsRegistry)}
        cast(ComponentRegistry, registries[points.COMPONENTS.kind]).choosable = MappingProxyType(choosable)
        taken = tuple(failure for registry in registries.values() for failure in registry.taken.values())
        frozen = MappingProxyType(known), MappingProxyType(registries)
        return Plugins(*frozen, tuple(sources), failures + taken, blocked)

    def _declare(self, module: ModuleType) -> None:
        for point in declared(module):
            if self._points.setdefault(point.kind, point) is not point:
                raise HookRaised(f"it must not declare {point.kind!r}, which another plug-in does; rename it")

    def _guarded(self, provider: Provider, load: Callable[[], _Loaded]) -> _Loaded | None:
        """Return what is loaded; None, with a failure, for a plug-in that cannot be."""
        try:
            return load()
        except (HookRaised, UsageError) as error:
            told = str(error).rstrip(".")
        except (*INTERRUPTS, MemoryError):
            raise
        except BaseException as error:
            told = in_words(error).partition("\n")[0].rstrip(".: ") + _place_of(error)
        self._failures.append(PluginFailure(provider, told))
        return None


def _place_of(error: BaseException) -> str:
    """Return the file and line of a plug-in that raised, as ` (acme_plugin.py:7)`; "" where it was not its own code."""
    if isinstance(error, SyntaxError):  # which says its place
        return ""
    places = re.findall(r'File "(.+)", line (\d+)', user_traceback(error))
    own = [(Path(file), line) for file, line in places if Path(file).parent.name != "importlib"]
    return f" ({own[-1][0].name}:{own[-1][1]})" if own else ""


def _wanted(
    found: set[PluginSource], without: tuple[str, ...]
) -> tuple[set[PluginSource], tuple[PluginFailure, ...]]:
    """Return the plug-ins that are wanted, and who the others are; raise UsageError for a name that none has."""
    blocked = sorted({source for name in without for source in _called(found, name)})
    return found.difference(blocked), tuple(PluginFailure(source.provider, UNWANTED) for source in blocked)


def _called(found: set[PluginSource], name: str) -> Iterator[PluginSource]:
    """Yield the plug-ins of a name, of a distribution of that name, or else the only one whose name ends with it."""
    named = {source for source in found if name in (source.name, source.distribution)}
    named = named or {source for source in found if source.name.endswith(f".{name}")}
    if len({source.name for source in named}) > 1 and all(source.name.endswith(f".{name}") for source in named):
        raise several_plugins(name, [(source.name, source.distribution) for source in named])
    if not named:
        names = {name for source in found for name in (source.name, source.distribution)}
        raise UsageError(
            f"plug-in to be left out (--no-plugin, {WITHOUT}) must be one that is installed, not {name!r}."
            f"{did_you_mean(name, names)}"
        )
    yield from named


def _given(text: str) -> PluginSource:
    """Return the plug-in that a text names: a path, or an entry point."""
    name, equals, module = (part.strip() for part in text.partition("="))
    if name and equals and module:
        return PluginSource(f"{module.partition('.')[0]} (source tree)", name, module)
    if not equals and text.endswith(".py"):
        vendor = vendor_of(text)
        return PluginSource(f"file {text}", vendor, vendor, file=str(Path(text).resolve()))
    raise PluginError(
        f"an extra plug-in must be written 'name = package.module', or be the path of a .py file, not {text!r}."
    )
