"""Find the installed plug-ins, ask each once what it offers, and freeze the answers into registries.

Plug-ins are entry points of group `kernbench`; what each offers, the room `registration` asks and checks.
Loading is guarded and sorted: a plug-in that cannot be used is left out and recorded as a `PluginFailure`,
and no result depends on the order in which plug-ins were found.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Iterable
from typing import Any

import attrs

from kernbench_core import registry
from kernbench_core.errors import PluginError, in_words
from kernbench_core.package import GROUP
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.registration.entries import OFFERS, HookRaised
from kernbench_core.registration.hooks import collect
from kernbench_core.registry import PluginFailure, Provider, Registry

_REGISTRIES: dict[str, type[Registry[Any]]] = {
    "components": registry.ComponentRegistry, "networks": registry.NetworkRegistry,
    "machines": registry.MachineRegistry,
}  # fmt: skip

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
    calibrators: Registry[registry.CalibratorEntry]
    report_sections: Registry[registry.ReportSectionEntry]
    providers: tuple[Provider, ...]
    failures: tuple[PluginFailure, ...]


def load_plugins(extra: Iterable[str | PluginSource] = (), *, installed: bool = True) -> Plugins:
    """Load the installed plug-ins and `extra` ones; return their frozen registries.

    `extra` holds entry points written as in a pyproject (`"acme = acme_models.plugin"`), for a
    source tree that is not installed. One that is also installed counts once. A plug-in that fails is in
    `.failures` of the result, and so is an entry that is wrong, or whose name another plug-in has, too: who names it
    gets a PluginError. Raise PluginError when a hook is misspelt.

    >>> print(*kb.load_plugins(["acme = acme_models.plugin"], installed=False).failures)
    plug-in 'acme' (acme_models (source tree)) is left out: ModuleNotFoundError: No module named 'acme_models'
    """
    found = set(_installed()) if installed else set()
    known = {(source.name, source.module) for source in found}
    given = (_parsed(item) if isinstance(item, str) else item for item in extra)
    found.update(source for source in given if (source.name, source.module) not in known)
    offers: dict[str, list[tuple[Any, Provider]]] = {kind: [] for kind in OFFERS}
    failures: list[PluginFailure] = []
    providers: list[Provider] = []
    for source in sorted(found):
        try:
            collected, wrong = collect(source.provider, importlib.import_module(source.module))
        except PluginError:
            raise
        except HookRaised as error:
            failures.append(PluginFailure(source.provider, str(error).rstrip(".")))
            continue
        except (*INTERRUPTS, MemoryError):
            raise
        except BaseException as error:
            failures.append(PluginFailure(source.provider, _one_line(error)))
            continue
        failures += wrong
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


def _frozen(
    offers: dict[str, list[tuple[Any, Provider]]], providers: tuple[Provider, ...], failures: tuple[PluginFailure, ...]
) -> Plugins:
    registries: dict[str, Any] = {}
    for kind, (_, noun) in OFFERS.items():
        registries[kind] = _REGISTRIES.get(kind, Registry)(noun, offers[kind], failures)
    taken = tuple(failure for kind in OFFERS for failure in registries[kind].taken.values())
    return Plugins(**registries, providers=providers, failures=failures + taken)


def _one_line(error: BaseException) -> str:
    return in_words(error).partition("\n")[0].rstrip(": ")
