"""The files of the presets, by the names that they are registered under."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path

from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.registry import Registry, TopologyEntry


class PresetFiles(Mapping[str, Path]):
    """Find the file of a preset in the package that it is in, when it is asked for."""

    def __init__(self, presets: Registry[TopologyEntry]) -> None:
        self._presets = presets

    def __getitem__(self, name: str) -> Path:
        """Return the file, there or not; KeyError for a name that nobody has, PluginError for one of several."""
        if name not in self._presets:
            raise KeyError(name)
        package, _, resource = self._presets[name].target.partition(":")
        try:
            return Path(str(resources.files(package) / resource))
        except (*INTERRUPTS, MemoryError):
            raise
        except BaseException as error:
            raise self._presets.raised(name, error) from error

    def __contains__(self, name: object) -> bool:
        return name in self._presets

    def __iter__(self) -> Iterator[str]:
        return iter(self._presets)

    def __len__(self) -> int:
        return len(self._presets)
