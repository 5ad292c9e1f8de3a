"""The files of the presets, by the names that they are registered under."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module, resources
from pathlib import Path

from kernbench_core.errors import in_words
from kernbench_core.plugins import Registry, TopologyEntry
from kernbench_core.process.interrupt import INTERRUPTS


class PresetFiles(Mapping[str, Path]):
    """Find the file of a preset in its package, or beside its module of one file, when it is asked for."""

    def __init__(self, presets: Registry[TopologyEntry]) -> None:
        self._presets = presets

    def __getitem__(self, name: str) -> Path:
        """Return the file, there or not; KeyError for a name that nobody has, PluginError for one of several."""
        if name not in self._presets:
            raise KeyError(name)
        target = self._presets[name].target
        module, _, resource = target.partition(":")
        try:
            return _folder_of(module) / resource
        except (*INTERRUPTS, MemoryError):
            raise
        except BaseException as error:
            why = f"not at {target!r}, which raised {in_words(error).rstrip('.')}"
            told = f"must have its file beside a module that can be imported, {why}"
            raise self._presets.fault(name, told) from error

    def __contains__(self, name: object) -> bool:
        return name in self._presets

    def __iter__(self) -> Iterator[str]:
        return iter(self._presets)

    def __len__(self) -> int:
        return len(self._presets)


def _folder_of(name: str) -> Path:
    """Return the folder of a package, or the one that a module of one file is in; raise what importing it raises."""
    module = import_module(name)
    if hasattr(module, "__path__"):
        return Path(str(resources.files(module)))
    return Path(str(module.__file__)).parent
