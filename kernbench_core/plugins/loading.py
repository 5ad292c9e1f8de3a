"""Find the installed plug-ins, ask each once what it offers, and freeze the answers into registries.

Plug-ins are entry points of group `kernbench`; what each offers, the room `registration` asks and checks.
Loading is guarded and sorted: a plug-in that cannot be used is left out and recorded as a `PluginFailure`,
and no result depends on the order in which plug-ins were found.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs

from kernbench_core.errors import PluginError, UsageError, in_words
from kernbench_core.params import did_you_mean
from kernbench_core.plugins import registry
from kernbench_core.plugins.chosen import WITHOUT, Chosen
from kernbench_core.plugins.entry_points import import_named, installed_plugins
from kernbench_core.plugins.hooks import collect
from kernbench_core.plugins.plugin_file import import_file, vendor_of
from kernbench_core.plugins.registry import PluginFailure, Provider, Registry
from kernbench_core.plugins.shared_names import told_apart
from kernbench_core.plugins.sorts import OFFERS, HookRaised
from kernbench_core.process.interrupt import INTERRUPTS

_REGISTRIES: dict[str, type[Registry[Any]]] = {
    "components": registry.ComponentRegistry, "networks": registry.NetworkRegistry,
    "machines": registry.MachineRegistry, "commands": registry.CommandRegistry,
    "programs": registry.ProgramRegistry,
}  # fmt: skip


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


@attrs.frozen
class Plugins:
    """Everything that the loaded plug-ins offer, in frozen registries.

    `sources` are those that were loaded, `failures` those that cannot be used, or entries of them, and `blocked` those
    that nobody wanted; `strict` says whether one that fails when it is used is an error, wherever nobody names it.
    """

    components: registry.ComponentRegistry
    benches: Registry[registry.BenchEntry]
    programs: registry.ProgramRegistry
    topologies: Registry[registry.TopologyEntry]
    networks: registry.NetworkRegistry
    machines: registry.MachineRegistry
    exporters: Registry[registry.ExporterEntry]
    ops: Registry[registry.OpEntry]
    algorithms: Registry[registry.AlgorithmEntry]
    collectives: Registry[registry.CollectiveEntry]
    commands: Registry[registry.CommandEntry]
    calibrators: Registry[registry.CalibratorEntry]
    report_sections: Registry[registry.ReportSectionEntry]
    kits: Registry[registry.KitEntry]
    run_parts: Registry[registry.RunPartEntry]
    folders: Registry[registry.FolderEntry]
    pictures: Registry[registry.PictureEntry]
    sources: tuple[PluginSource, ...]
    failures: tuple[PluginFailure, ...]
    blocked: tuple[PluginFailure, ...]
    strict: bool = False

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
    offers: dict[str, list[tuple[Any, Provider]]] = {kind: [] for kind in OFFERS}
    failures: list[PluginFailure] = []
    sources: list[PluginSource] = []
    for source in sorted(found):
        try:
            collected, wrong = collect(source.provider, source.load())
        except (HookRaised, UsageError) as error:
            failures.append(PluginFailure(source.provider, str(error).rstrip(".")))
            continue
        except (*INTERRUPTS, MemoryError):
            raise
        except BaseException as error:
            failures.append(PluginFailure(source.provider, in_words(error).partition("\n")[0].rstrip(".: ")))
            continue
        failures += wrong
        sources.append(source)
        for kind, entries in collected.items():
            offers[kind].extend((entry, source.provider) for entry in entries)
    plugins = _frozen(offers, tuple(sources), tuple(failures), blocked)
    tried = {source.provider for source in found if source.file}
    apart = told_apart(getattr(plugins, kind) for kind in OFFERS)
    fatal = [each for each in plugins.failures if chosen.strict or (each.provider in tried and each not in apart)]
    if fatal:
        raise PluginError("\n".join(f"{failure}." for failure in fatal))
    return attrs.evolve(plugins, strict=chosen.strict)


def _wanted(
    found: set[PluginSource], without: tuple[str, ...]
) -> tuple[set[PluginSource], tuple[PluginFailure, ...]]:
    """Return the plug-ins that are wanted, and who the others are; raise UsageError for a name that none has."""
    names = {name for source in found for name in (source.name, source.distribution)}
    for name in without:
        if name not in names:
            raise UsageError(
                f"plug-in to be left out (--no-plugin, {WITHOUT}) must be one that is installed, not {name!r}."
                f"{did_you_mean(name, names)}"
            )
    blocked = sorted(source for source in found if source.name in without or source.distribution in without)
    reason = f"--no-plugin or {WITHOUT} names it"
    return found.difference(blocked), tuple(PluginFailure(source.provider, reason) for source in blocked)


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


def _frozen(
    offers: dict[str, list[tuple[Any, Provider]]],
    sources: tuple[PluginSource, ...],
    failures: tuple[PluginFailure, ...],
    blocked: tuple[PluginFailure, ...],
) -> Plugins:
    registries: dict[str, Any] = {}
    for kind, (_, noun) in OFFERS.items():
        registries[kind] = _REGISTRIES.get(kind, Registry)(noun, offers[kind], failures + blocked)
    taken = tuple(failure for kind in OFFERS for failure in registries[kind].taken.values())
    return Plugins(**registries, sources=sources, failures=failures + taken, blocked=blocked)
