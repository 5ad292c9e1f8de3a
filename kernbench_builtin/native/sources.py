"""The sources of the engine in C++: what setup.py compiles, and by what a compiled engine is known to be of them."""

from __future__ import annotations

from binascii import crc32
from pathlib import Path

#: What the engine is compiled to, as a module is called; it is loaded by `ctypes`.
MODULE = "kernbench_builtin.native._engine"


def engine_sources() -> list[Path]:
    """Return its files; the last is the one to compile, which includes the others."""
    folder = Path(__file__).parent / "engine"
    return [*sorted(folder.glob("*.hpp")), folder / "engine.cpp"]


def engine_checksum() -> int:
    """Return the checksum of its files, which the compiled engine says, too."""
    found = 0
    for file in engine_sources():
        found = crc32(file.read_bytes(), crc32(file.name.encode(), found))
    return found
