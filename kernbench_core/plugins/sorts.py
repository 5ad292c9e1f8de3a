"""The sorts of entries that plug-ins return, and what each must be."""

from __future__ import annotations

import keyword
import re
from typing import Final

import attrs

from kernbench_core.errors import PluginError
from kernbench_core.plugins import hookspecs, registry
from kernbench_core.plugins.own_ops import is_own
from kernbench_core.plugins.registry import Entry, Provider

OFFERS: Final[dict[str, tuple[type[Entry], str]]] = {
    "components": (registry.ComponentEntry, "component"),
    "benches": (registry.BenchEntry, "bench"),
    "programs": (registry.ProgramEntry, "kind of program"),
    "topologies": (registry.TopologyEntry, "topology preset"),
    "networks": (registry.NetworkEntry, "network"),
    "machines": (registry.MachineEntry, "machine"),
    "exporters": (registry.ExporterEntry, "exporter"),
    "ops": (registry.OpEntry, "op"),
    "algorithms": (registry.AlgorithmEntry, "algorithm"),
    "collectives": (registry.CollectiveEntry, "collective"),
    "commands": (registry.CommandEntry, "command"),
    "calibrators": (registry.CalibratorEntry, "format of measurements"),
    "report_sections": (registry.ReportSectionEntry, "section of the report"),
    "run_parts": (registry.RunPartEntry, "part of runs"),
    "folders": (registry.FolderEntry, "kind of folder"),
    "pictures": (registry.PictureEntry, "set of pictures"),
    "kits": (registry.KitEntry, "kit of checks"),
}
"""The class of entry that each hook returns a list of, and the word for one."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]*")
_SECTION: Final = re.compile(r"[a-z][a-z0-9_]*")
_SUFFIX: Final = re.compile(r"\.[^/\\\s]+")
_SECTIONS: Final = ("base", "components", "overrides", "title")
_SEVERAL: Final = ("suffixes", "sections")
_VENDOR_NAMED: Final = frozenset({"components", "networks", "algorithms"})


class HookRaised(Exception):
    """A hook made what is no entry, or an entry that says itself what is wrong with it."""


def checked(provider: Provider, kind: str, entry: object) -> Entry:
    """Return `entry` if it is of the right sort and well named; raise PluginError otherwise."""
    expected, noun = OFFERS[kind]
    where = f"plug-in {provider.plugin!r} ({provider})"
    if not isinstance(entry, expected):
        raise PluginError(
            f"{where} must return {expected.__name__} objects from {hookspecs.PREFIX}{kind}, not {entry!r}."
        )
    for field in attrs.fields(type(entry)):
        value = getattr(entry, field.name)
        texts = value if isinstance(value, tuple) else (value,)
        if not all(isinstance(text, str) for text in texts) or isinstance(value, tuple) != (field.name in _SEVERAL):
            must = "a tuple of texts" if field.name in _SEVERAL else "a text"
            raise HookRaised(f"{field.name} of {noun} {entry.name!r} must be {must}, not {value!r}")
    if isinstance(entry, registry.ExporterEntry) and entry.takes not in ("op_log", "timeline"):
        raise HookRaised(f"takes of exporter {entry.name!r} must be 'op_log' or 'timeline', not {entry.takes!r}")
    if isinstance(entry, registry.ExporterEntry) and not (entry.suffixes and all(map(_is_suffix, entry.suffixes))):
        raise PluginError(
            f"{where} must give {noun} {entry.name!r} suffixes like '.vcd', none that ends in .gz, which compresses "
            f"what any exporter writes, not {entry.suffixes!r}."
        )
    if ":" not in entry.target:
        raise PluginError(
            f"{where} must write the target of {noun} {entry.name!r} as 'module:attr', not {entry.target!r}."
        )
    if isinstance(entry, registry.MachineEntry) and not _is_section(entry.name):
        raise PluginError(
            f"{where} must name its machines as a section of a configuration, in lower-case letters, digits and '_', "
            f"and none of {', '.join(_SECTIONS)}, not {entry.name!r}; rename it."
        )
    if kind in _VENDOR_NAMED and not (entry.name.startswith(f"{provider.plugin}.") and _named(entry.name)):
        letters = "" if _named(f"{provider.plugin}.{entry.name}") else ", in lower-case letters, digits, '-' and '_'"
        raise PluginError(
            f"{where} must name its {kind} '{provider.plugin}.<thing>'{letters}, not {entry.name!r}; "
            f"rename the {noun} or the entry point."
        )
    if kind == "run_parts" and not _is_section(entry.name):
        raise PluginError(f"{where} must name its run_parts in lower-case letters, digits and '_', not {entry.name!r}.")
    if kind == "ops" and is_own(entry.name):
        raise PluginError(f"{provider} must not call it as kernbench calls its own; rename it")
    known = {"kits": _named, "commands": _worded}.get(kind, _NAME.fullmatch)
    if kind not in _VENDOR_NAMED and kind != "ops" and not known(entry.name):
        raise PluginError(
            f"{where} must name its {kind} in lower-case letters, digits, '-' and '_', not {entry.name!r}."
        )
    return entry


def _is_suffix(text: str) -> bool:
    return bool(_SUFFIX.fullmatch(text)) and not text.endswith(".gz")


def _is_section(name: str) -> bool:
    return bool(_SECTION.fullmatch(name)) and not keyword.iskeyword(name) and name not in _SECTIONS


def _worded(name: str) -> bool:
    return all(_NAME.fullmatch(word) for word in name.split(" "))


def _named(name: str) -> bool:
    return all(_NAME.fullmatch(part) for part in name.split("."))
