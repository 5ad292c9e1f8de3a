"""A folder on the path of imports, where plug-ins are installed by writing them down."""

from __future__ import annotations

from pathlib import Path


class Site:
    """Write modules and distributions into a folder; each module says that it is written for our hooks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def module(self, name: str, source: str) -> str:
        """Write a module, and return its name."""
        (self.folder / f"{name}.py").write_text(f"kernbench_api = 1\n{source}")
        return name

    def distribution(self, name: str, version: str, point: str, source: str) -> None:
        """Install a distribution with one plug-in, called `point`."""
        module = self.module(f"{name}_plugin", source)
        info = self.folder / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[kernbench]\n{point} = {module}\n")
