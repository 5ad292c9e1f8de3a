"""Entries: what plug-ins return from their hooks. Each names one thing, says where it is, and checks itself."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from typing import ClassVar, Final

import attrs

from kernbench_core.errors import PluginError
from kernbench_core.package import OUR_DISTRIBUTIONS

_WORD: Final = "[a-z0-9][a-z0-9_-]*"
_DOTTED: Final = re.compile(rf"{_WORD}(\.{_WORD})*")
_ANY: Final = re.compile(".*", re.DOTALL)
_SECTION: Final = re.compile(r"[a-z][a-z0-9_]*")
_SUFFIX: Final = re.compile(r"\.[^/\\\s]+")
_SECTIONS: Final = ("base", "components", "overrides", "title")
_TEXTS: Final = "tuple[str, ...]"
_LETTERS: Final = "in lower-case letters, digits, '-' and '_'"


class HookRaised(Exception):
    """A hook made what is no entry, or an entry that says itself what is wrong with it."""


@attrs.frozen
class Provider:
    """Say where an entry comes from: the plug-in's entry-point name, and its distribution with version."""

    plugin: str
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}".strip()

    @property
    def names(self) -> tuple[str, ...]:
        """What may stand before `:` for it."""
        return self.plugin, self.plugin.partition(".")[0], self.distribution

    @property
    def is_ours(self) -> bool:
        """Whether kernbench itself has it, installed or as a source tree: nobody else may take the names of these."""
        return self.distribution in OUR_DISTRIBUTIONS


CORE: Final = Provider("core", "kernbench", "")
"""Who core's own entries come from."""


@attrs.frozen
class Entry:
    """Name one thing and say, as `"module:attr"`, where it is imported from on first use.

    A class of entries has the `KIND` of its hook, `kernbench_KIND`, and the word for one. One with a `VENDOR` is named
    after its plug-in, `acme.thing`; the names of others are as `NAMED` has them.
    """

    name: str
    target: str
    KIND: ClassVar[str] = ""
    NOUN: ClassVar[str] = ""
    VENDOR: ClassVar[bool] = False
    NAMED: ClassVar[re.Pattern[str]] = re.compile(_WORD)

    def __attrs_post_init__(self) -> None:
        if self.VENDOR and self.name != self.name.lower():
            raise PluginError(
                f"{self.NOUN} {self.name!r} must have a name in lower case; call it {self.name.lower()!r}, and write "
                "the name of the plug-in's entry point in lower case too."
            )

    def check(self, provider: Provider) -> None:
        """Raise PluginError where this cannot be an entry of `provider`, HookRaised where a field has another type."""
        for field in attrs.fields(type(self)):
            value, must = getattr(self, field.name), ""
            if field.type in ("str", str) and not isinstance(value, str):
                must = "a text"
            if field.type == _TEXTS and not (type(value) is tuple and all(isinstance(each, str) for each in value)):
                must = "a tuple of texts"
            if must:
                raise HookRaised(f"{field.name} of {self.NOUN} {self.name!r} must be {must}, not {value!r}")
        for fault in self.faults(provider):
            raise PluginError(f"plug-in {provider.plugin!r} ({provider}) {fault}.")

    def faults(self, provider: Provider) -> Iterator[str]:
        """Yield what it must be, and is not."""
        if ":" not in self.target:
            yield f"must write the target of {self.NOUN} {self.name!r} as 'module:attr', not {self.target!r}"
        if self.VENDOR and not provider.is_ours:
            yield from self._faults_of_vendor(provider)
        elif not (_DOTTED if self.VENDOR else self.NAMED).fullmatch(self.name):
            yield f"must name its {self.KIND} {_LETTERS}, not {self.name!r}"

    def _faults_of_vendor(self, provider: Provider) -> Iterator[str]:
        vendor = provider.plugin
        if not (self.name.startswith(f"{vendor}.") and _DOTTED.fullmatch(self.name)):
            letters = "" if _DOTTED.fullmatch(f"{vendor}.{self.name}") else f", {_LETTERS}"
            yield (
                f"must name its {self.KIND} '{vendor}.<thing>'{letters}, not {self.name!r}; rename the {self.NOUN} or "
                "the entry point"
            )


def _is_section(name: str) -> bool:
    return bool(_SECTION.fullmatch(name)) and not keyword.iskeyword(name) and name not in _SECTIONS


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

    KIND, NOUN, VENDOR = "components", "component", True
    kind: str
    sentence: str

    @property
    def kinds(self) -> tuple[str, ...]:
        """The node kinds that it is made for, none for any."""
        return tuple(kind.strip() for kind in self.kind.split(",") if kind.strip())


class BenchEntry(Entry):
    """A bench: `target` is a function `bench(rt, …)`; docstring and signature are its sentence and parameters.

    >>> kernbench_benches = lambda: [kb.BenchEntry("saxpy", "acme_models.saxpy:bench")]
    """

    KIND, NOUN = "benches", "bench"


class ProgramEntry(_Described):
    """A kind of program, what `run FILE:NAME` may name: `target` is a `ProgramKind` of `kernbench_core.host`.

    >>> kernbench_programs = lambda: [kb.ProgramEntry("loops", "acme_models.loops:LOOPS", "Loops that are dealt out.")]
    """

    KIND, NOUN = "programs", "kind of program"


class TopologyEntry(_Described):
    """A topology preset: `target` is `"package:file.yaml"`, a resource inside an importable package.

    >>> def kernbench_topologies():
    ...     return [kb.TopologyEntry("pod", "acme_models:presets/pod.yaml", "Eight packages on a switch.")]
    """

    KIND, NOUN = "topologies", "topology preset"


class MemoryStandardEntry(_Described):
    """A standard of memories: `target` is a `MemoryStandard` of `kernbench_builtin.memory_standards`.

    >>> def kernbench_memory_standards():
    ...     return [kb.MemoryStandardEntry("acme.hbm3e", "acme_models.hbm3e:STANDARD", "HBM3E at 9.2 Gb/s.")]
    """

    KIND, NOUN, VENDOR = "memory_standards", "standard of memories", True


class NetworkEntry(_Described):
    """A shape of the scale-up network: `target` is a `NetworkShape` of `kernbench_core.topology`.

    >>> kernbench_networks = lambda: [kb.NetworkEntry("acme.star", "acme_models.star:SHAPE", "All around the first.")]
    """

    KIND, NOUN, VENDOR = "networks", "network", True


@attrs.frozen
class MachineEntry(_Described):
    """A kind of machine: `target` is a `MachineKind` of `kernbench_core.topology`, `name` the section that it owns.

    `sections` are further ones that are its own.

    >>> kernbench_machines = lambda: [kb.MachineEntry("tree", "acme_models.tree:TREE", "Routers in a tree.")]
    """

    KIND, NOUN, NAMED = "machines", "machine", _ANY  # see its faults
    sections: tuple[str, ...] = ()

    def faults(self, provider: Provider) -> Iterator[str]:
        """Yield what its name must be, as that of a section."""
        yield from super().faults(provider)
        if not _is_section(self.name):
            yield (
                "must name its machines as a section of a configuration, in lower-case letters, digits and '_', and "
                f"none of {', '.join(_SECTIONS)}, not {self.name!r}; rename it"
            )


@attrs.frozen
class ExporterEntry(Entry):
    """A file format of `--trace`: `target` is a function `export(op_log, out)` for an open binary file.
    With `takes` "timeline" it is given a `Timeline` of `kernbench_builtin.pages.timeline` instead of the op log.

    >>> def kernbench_exporters():
    ...     return [kb.ExporterEntry("vcd", "acme_models.vcd:export", (".vcd",), "For viewers of waves.")]
    """

    KIND, NOUN = "exporters", "exporter"
    suffixes: tuple[str, ...]
    sentence: str
    takes: str = "op_log"

    def faults(self, provider: Provider) -> Iterator[str]:
        """Yield what its suffixes must be, too; HookRaised for something else that nobody hands out."""
        if self.takes not in ("op_log", "timeline"):
            raise HookRaised(f"takes of exporter {self.name!r} must be 'op_log' or 'timeline', not {self.takes!r}")
        if not self.suffixes or not all(_SUFFIX.fullmatch(each) and not each.endswith(".gz") for each in self.suffixes):
            yield (
                f"must give {self.NOUN} {self.name!r} suffixes like '.vcd', none that ends in .gz, which compresses "
                f"what any exporter writes, not {self.suffixes!r}"
            )
        yield from super().faults(provider)


class OpEntry(Entry):
    """An op that phase 2 computes: `target` is `fn(params, inputs) -> ndarray`, `name` the op_name it serves.

    Where `target` is a record (`kernbench_core.compute.ops.MathOp`), kernels call the op `tl.NAME`.

    >>> kernbench_ops = lambda: [kb.OpEntry("hard_swish", "acme_models.ops:HARD_SWISH")]
    """

    KIND, NOUN, NAMED = "ops", "op", _ANY


class LanguageEntry(_Described):
    """A call of the kernel language: `target` is `fn(tl, …)`, which kernels call as `tl.NAME(…)`.

    >>> kernbench_language = lambda: [kb.LanguageEntry("outer", "acme_models.calls:outer", "Products of two tiles.")]
    """

    KIND, NOUN, NAMED = "language", "name of tl", _SECTION


@attrs.frozen
class BackendEntry(_Described):
    """What computes floats in phase 2: `target` is a `Backend` class of `kernbench_core.compute`.

    `devices` are those that may stand behind its name, as in `torch:cuda`.

    >>> kernbench_backends = lambda: [kb.BackendEntry("acme.jax", "acme_models.jax:Jax", "JAX.", ("cpu", "gpu"))]
    """

    KIND, NOUN, VENDOR = "backends", "backend", True
    devices: tuple[str, ...] = ()


@attrs.frozen
class AlgorithmEntry(_Described):
    """A collective algorithm; `target` is its module's kernel, `collective` the one that it does, if it says so.

    >>> def kernbench_algorithms():
    ...     return [kb.AlgorithmEntry("acme.star_all_reduce", "acme_models.star:kernel", "Over rank 0.")]
    """

    KIND, NOUN, VENDOR = "algorithms", "algorithm", True
    collective: str = ""


class CollectiveEntry(_Described):
    """A collective: `target` is the record of what ranks bring and end with, for whoever runs collectives.

    >>> def kernbench_collectives():
    ...     return [kb.CollectiveEntry("shift", "acme_models.shift:SHIFT", "Each rank gets the vector before its own.")]
    """

    KIND, NOUN = "collectives", "collective"


@attrs.frozen
class CommandEntry(_Described):
    """A sub-command of `kernbench`: `target` is a click command. The help lists it under the title `panel`.

    A command called `"plugins roof"` is one of the group `plugins`, or of any group that is a `CommandGroup` of
    `kernbench_core.cli.group`.

    >>> kernbench_commands = lambda: [kb.CommandEntry("roof", "acme_models.cli:roof", "Draw the roofline.")]
    """

    KIND, NOUN, NAMED = "commands", "command", re.compile(rf"{_WORD}( {_WORD})*")
    panel: str = "Commands"


class CalibratorEntry(_Described):
    """A format of measurements: `target` is a `Calibrator` class of `kernbench_core.calibration`.

    >>> kernbench_calibrators = lambda: [kb.CalibratorEntry("ping", "acme_models.ping:PingLog", "acme-ping's output.")]
    """

    KIND, NOUN = "calibrators", "format of measurements"


class ReportSectionEntry(_Described):
    """A section of the HTML report: `target` is a `Section` of `kernbench_builtin.pages.report`.

    >>> kernbench_report_sections = lambda: [kb.ReportSectionEntry("ops", "acme_models.ops:SECTION", "Ops by name.")]
    """

    KIND, NOUN = "report_sections", "section of the report"


class RunPartEntry(_Described):
    """A part of runs: `target` is a `RunPart` class of `kernbench_core.runs.parts`, `name` its `NAME`.

    >>> kernbench_run_parts = lambda: [kb.RunPartEntry("energy", "acme_models.energy:EnergyPart", "Sum up energy.")]
    """

    KIND, NOUN, NAMED = "run_parts", "part of runs", _ANY

    def faults(self, provider: Provider) -> Iterator[str]:
        """Yield what its name must be, as that of an attribute of results."""
        yield from super().faults(provider)
        if not _is_section(self.name):
            yield f"must name its {self.KIND} in lower-case letters, digits and '_', not {self.name!r}"


class FolderEntry(_Described):
    """What `kernbench report` and `web` show besides runs: `target` has `is_one`, `write_page` and `read_page`.

    >>> kernbench_folders = lambda: [kb.FolderEntry("tuning", "acme_models.pages:TUNING", "Folders of acme-tune.")]
    """

    KIND, NOUN = "folders", "kind of folder"


class PictureEntry(_Described):
    """Pictures for notebooks: `target` is a function of a thing that returns HTML, None for what it does not draw.

    >>> kernbench_pictures = lambda: [kb.PictureEntry("acme", "acme_models.cells:picture", "Pictures of our models.")]
    """

    KIND, NOUN = "pictures", "set of pictures"


class DiagnosisEntry(_Described):
    """What tells who waits when a run stands still: `target` is `fn(session, over)`, which returns lines.

    With `over` nothing is left to happen, else a limit has stopped the run.

    >>> kernbench_diagnoses = lambda: [kb.DiagnosisEntry("acme", "acme_models.waits:lines", "What our units await.")]
    """

    KIND, NOUN = "diagnoses", "diagnosis"


class KitEntry(_Described):
    """A kit of checks, a `Kit` of `kernbench_core.testing`, named after what it checks; or a driver, `components.KIND`.

    >>> kernbench_kits = lambda: [kb.KitEntry("exporters", "acme_models.kits:EXPORTERS", "Formats of traces.")]
    """

    KIND, NOUN, NAMED = "kits", "kit of checks", _DOTTED
