"""What plug-ins offer, by name: entries that are imported on first use, in registries that never change.

A registry is built once, from everything that the loaded plug-ins returned, and has no method that
changes it. An entry holds `"module:attr"` strings, so that knowing a name costs no import.
"""

from __future__ import annotations

import difflib
import importlib
import operator
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final, Generic, TypeVar

import attrs

from kernbench_core.callsite import user_traceback
from kernbench_core.errors import PluginError, UnknownName, in_words
from kernbench_core.params import Param, did_you_mean
from kernbench_core.process.interrupt import INTERRUPTS


@attrs.frozen
class Provider:
    """Say where an entry comes from: the plug-in's entry-point name, and its distribution with version."""

    plugin: str
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}".strip()


CORE: Final = Provider("core", "kernbench", "")
"""Who core's own entries come from."""
_PLUGIN: Final = "kernbench_core.plugin"


@attrs.frozen
class Entry:
    """Name one thing and say, as `"module:attr"`, where it is imported from on first use."""

    name: str
    target: str
    NOUN: ClassVar[str] = ""

    def __attrs_post_init__(self) -> None:
        if self.NOUN and self.name != self.name.lower():  # what is named vendor.thing: its other rules are the loader's
            raise PluginError(
                f"{self.NOUN} {self.name!r} must have a name in lower case; call it {self.name.lower()!r}, and write "
                "the name of the plug-in's entry point in lower case too."
            )


@attrs.frozen
class _Described(Entry):
    sentence: str


@attrs.frozen
class ComponentEntry(Entry):
    """A hardware model: `target` is a `ComponentBase` class, `kind` the node kind that it is made for.
    Several kinds are separated by commas; an empty text stands for any.

    >>> def kernbench_components():
    ...     return [kb.ComponentEntry("acme.sfu", "acme_models.sfu:Sfu", "pe_math", "A unit for special functions.")]
    """

    kind: str
    sentence: str
    NOUN = "component"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The node kinds that it is made for, none for any."""
        return tuple(kind.strip() for kind in self.kind.split(",") if kind.strip())


@attrs.frozen
class BenchEntry(Entry):
    """A bench: `target` is a function `bench(rt, …)`; docstring and signature are its sentence and parameters.

    >>> kernbench_benches = lambda: [kb.BenchEntry("saxpy", "acme_models.saxpy:bench")]
    """


@attrs.frozen
class ProgramEntry(_Described):
    """A kind of program, what `run FILE:NAME` may name: `target` is a `ProgramKind` of `kernbench_core.host`.

    >>> kernbench_programs = lambda: [kb.ProgramEntry("loops", "acme_models.loops:LOOPS", "Loops that are dealt out.")]
    """


@attrs.frozen
class TopologyEntry(_Described):
    """A topology preset: `target` is `"package:file.yaml"`, a resource inside an importable package.

    >>> def kernbench_topologies():
    ...     return [kb.TopologyEntry("pod", "acme_models:presets/pod.yaml", "Eight packages on a switch.")]
    """


@attrs.frozen
class NetworkEntry(_Described):
    """A shape of the scale-up network: `target` is a `NetworkShape` of `kernbench_core.topology`.

    >>> kernbench_networks = lambda: [kb.NetworkEntry("acme.star", "acme_models.star:SHAPE", "All around the first.")]
    """

    NOUN = "network"


@attrs.frozen
class MachineEntry(_Described):
    """A kind of machine: `target` is a `MachineKind` of `kernbench_core.topology`, `name` the section that it owns.

    `sections` are further ones that are its own.

    >>> kernbench_machines = lambda: [kb.MachineEntry("tree", "acme_models.tree:TREE", "Routers in a tree.")]
    """

    sections: tuple[str, ...] = ()


@attrs.frozen
class ExporterEntry(Entry):
    """A file format of `--trace`: `target` is a function `export(op_log, out)` for an open binary file.
    With `takes` "timeline" it is given a `Timeline` of `kernbench_builtin.pages.timeline` instead of the op log.

    >>> def kernbench_exporters():
    ...     return [kb.ExporterEntry("vcd", "acme_models.vcd:export", (".vcd",), "For viewers of waves.")]
    """

    suffixes: tuple[str, ...]
    sentence: str
    takes: str = "op_log"


@attrs.frozen
class OpEntry(Entry):
    """An op that phase 2 computes: `target` is `fn(params, inputs) -> ndarray`, `name` the op_name it serves.

    Where `target` is a record (`kernbench_core.compute.ops.MathOp`), kernels call the op `tl.NAME`.

    >>> kernbench_ops = lambda: [kb.OpEntry("hard_swish", "acme_models.ops:HARD_SWISH")]
    """


@attrs.frozen
class AlgorithmEntry(_Described):
    """A collective algorithm; `target` is its module's kernel, `collective` the one that it does, if it says so.

    >>> def kernbench_algorithms():
    ...     return [kb.AlgorithmEntry("acme.star_all_reduce", "acme_models.star:kernel", "Over rank 0.")]
    """

    collective: str = ""
    NOUN = "algorithm"


@attrs.frozen
class CollectiveEntry(_Described):
    """A collective: `target` is the record of what ranks bring and end with, for whoever runs collectives.

    >>> def kernbench_collectives():
    ...     return [kb.CollectiveEntry("shift", "acme_models.shift:SHIFT", "Each rank gets the vector before its own.")]
    """


@attrs.frozen
class CommandEntry(_Described):
    """A sub-command of `kernbench`: `target` is a click command. The help lists it under the title `panel`.

    A command called `"plugins roof"` is one of the group `plugins`, or of any group that is a `CommandGroup` of
    `kernbench_core.cli.group`.

    >>> kernbench_commands = lambda: [kb.CommandEntry("roof", "acme_models.cli:roof", "Draw the roofline.")]
    """

    panel: str = "Commands"


@attrs.frozen
class CalibratorEntry(_Described):
    """A format of measurements: `target` is a `Calibrator` class of `kernbench_core.calibration`.

    >>> kernbench_calibrators = lambda: [kb.CalibratorEntry("ping", "acme_models.ping:PingLog", "acme-ping's output.")]
    """


@attrs.frozen
class ReportSectionEntry(_Described):
    """A section of the HTML report: `target` is a `Section` of `kernbench_builtin.pages.report`.

    >>> kernbench_report_sections = lambda: [kb.ReportSectionEntry("ops", "acme_models.ops:SECTION", "Ops by name.")]
    """


@attrs.frozen
class RunPartEntry(_Described):
    """A part of runs: `target` is a `RunPart` class of `kernbench_core.runs.parts`, `name` its `NAME`.

    >>> kernbench_run_parts = lambda: [kb.RunPartEntry("energy", "acme_models.energy:EnergyPart", "Sum up energy.")]
    """


@attrs.frozen
class FolderEntry(_Described):
    """What `kernbench report` and `web` show besides runs: `target` has `is_one`, `write_page` and `read_page`.

    >>> kernbench_folders = lambda: [kb.FolderEntry("tuning", "acme_models.pages:TUNING", "Folders of acme-tune.")]
    """


@attrs.frozen
class PictureEntry(_Described):
    """Pictures for notebooks: `target` is a function of a thing that returns HTML, None for what it does not draw.

    >>> kernbench_pictures = lambda: [kb.PictureEntry("acme", "acme_models.cells:picture", "Pictures of our models.")]
    """


@attrs.frozen
class KitEntry(_Described):
    """A kit of checks, a `Kit` of `kernbench_core.testing`, named after what it checks; or a driver, `components.KIND`.

    >>> kernbench_kits = lambda: [kb.KitEntry("exporters", "acme_models.kits:EXPORTERS", "Formats of traces.")]
    """


@attrs.frozen
class PluginFailure:
    """A plug-in that could not be used, or one `entry` of it, as "algorithm 'ring'", and why in one line."""

    provider: Provider
    reason: str
    entry: str = ""

    def __str__(self) -> str:
        what = self.entry or f"plug-in {self.provider.plugin!r} ({self.provider})"
        return f"{what} is left out: {self.reason}"


E = TypeVar("E", bound=Entry)
#: Sorts whose entries are all used, whatever they are called: of two with one name, both are, as `VENDOR:name`.
_ALL_USED = frozenset({"section of the report"})
#: What may be given instead of a registered name, by the noun of the registry.
_OR_ELSE = {"bench": " or the path of a .py file"}


class Registry(Generic[E], Mapping[str, E]):
    """Map names to entries of one sort, sorted by name; `load` imports what an entry points at.

    `noun` is the word for one entry in messages. Of a `KIND` that core has a hook for, its own entries are there
    whichever plug-ins are. `failures` are the plug-ins that were left out, or entries of them: a name that is missing
    because of one is reported as that failure. `taken` are the names that were given twice, which raise PluginError.
    `VENDOR:name` is one of them, and may be written for any name: the vendor is the name of a plug-in or of its
    distribution.
    """

    NOUN: ClassVar[str] = "entry"
    KIND: ClassVar[str] = ""

    def __init__(
        self, noun: str = "", entries: Iterable[tuple[E, Provider]] = (), failures: tuple[PluginFailure, ...] = ()
    ) -> None:
        self.noun = noun or self.NOUN
        self.failures = failures
        self.given = (*_own(self.KIND), *entries)
        unique, taken = _unique(self.noun, self.given)
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
        names = ", ".join(f"{each.provider.plugin!r} ({each.provider})" for each in self.failures if not each.entry)
        return f" It may belong to a plug-in that was left out: {names}." if names else ""

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
        of_vendor = [pair for pair in self.given if vendor in (pair[1].plugin, pair[1].distribution)]
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


class ComponentRegistry(Registry[ComponentEntry]):
    """The registry of hardware models; it is also the catalogue that a topology is compiled against."""

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
        return tuple(params or ())

    def made_for(self, impl: str) -> tuple[str, ...]:
        """Return the node kinds that `impl` is registered for, none for any; raise UnknownName or PluginError."""
        return self[impl].kinds


class NetworkRegistry(Registry[NetworkEntry]):
    """The registry of shapes of the scale-up network."""

    NOUN, KIND = "network", "networks"


class ProgramRegistry(Registry[ProgramEntry]):
    """The registry of kinds of program."""

    NOUN, KIND = "kind of program", "programs"


class MachineRegistry(Registry[MachineEntry]):
    """The registry of kinds of machine."""

    NOUN, KIND = "machine", "machines"

    def __init__(
        self,
        noun: str = "",
        entries: Iterable[tuple[MachineEntry, Provider]] = (),
        failures: tuple[PluginFailure, ...] = (),
    ) -> None:
        super().__init__(noun, entries, failures)
        further = {section: name for name, (entry, _) in self._entries.items() for section in entry.sections}
        right, taken = dict(self._entries), dict(self.taken)
        for name in further.keys() & right.keys():
            _, provider = right.pop(name)
            reason = f"it must not be called as a section of machine {further[name]!r}; rename it"
            taken[name] = PluginFailure(provider, reason, f"machine {name!r}")
        self._entries, self.taken = MappingProxyType(right), MappingProxyType(taken)

    def owner(self, section: str) -> str | None:
        """Return the name of the kind whose section this is, None where there is none."""
        found = next((name for name, (entry, _) in self._entries.items() if section in entry.sections), None)
        return found or (section if section in self else None)


class CommandRegistry(Registry[CommandEntry]):
    """The registry of commands."""

    NOUN, KIND = "command", "commands"


def _own(kind: str) -> list[Any]:
    """Return what core itself registers of a sort."""
    hook = getattr(importlib.import_module(_PLUGIN), f"kernbench_{kind}") if kind else list
    return [(entry, CORE) for entry in hook()]


def _unique(
    noun: str, entries: Iterable[tuple[E, Provider]]
) -> tuple[dict[str, tuple[E, Provider]], dict[str, PluginFailure]]:
    """Return the entries by name, sorted, and a failure for each name that was given twice; core's own stay."""
    named: dict[str, list[tuple[E, Provider]]] = {}
    for entry, provider in sorted(entries, key=lambda pair: (pair[0].name, str(pair[1]), pair[0].target)):
        named.setdefault(entry.name, []).append((entry, provider))
    found: dict[str, tuple[E, Provider]] = {}
    taken: dict[str, PluginFailure] = {}
    for name, given in named.items():
        own = next((pair for pair in given if pair[1] == CORE), None)
        if own is not None or len(given) == 1:
            found[name] = own or given[0]
        else:
            plugins, distributions = ([getattr(pair[1], part) for pair in given] for part in ("plugin", "distribution"))
            vendors = next((each for each in (plugins, distributions) if len(set(each)) == len(given)), [])
            found.update(zip((f"{vendor}:{name}" for vendor in vendors), given, strict=False))
        picks = [pick for pick in found if pick.endswith(f":{name}")]
        if len(given) > 1 and not (picks and noun in _ALL_USED):
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
