"""Choose between the compiled modules and the sources that these were compiled from: all of the one, or of the other.

`setup.py` compiles them, and writes into built.txt what each was compiled from. Where a source is another now, where
something was not built for this Python, or where KERNBENCH_PURE is set, all are taken as Python.

Every command and every test suite imports this file first: it imports next to nothing.
"""

from __future__ import annotations

import os
import sys
from binascii import crc32
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from importlib.machinery import ModuleSpec

#: The folder of the packages.
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
#: Of that folder, the file that says what was compiled: a line of a module and its checksum.
BUILT = "kernbench_core/compiled/built.txt"
#: What a module may be made of.
_SUFFIXES = (".py", ".pxd", ".pyx")


def checksum(root: str, module: str) -> str:
    """Return a checksum, in hex, of the sources of a module below the folder `root`."""
    found = 0
    for suffix in _SUFFIXES:
        try:
            with open(_place(root, module) + suffix, "rb") as file:  # noqa: PTH123
                found = crc32(file.read(), crc32(suffix.encode(), found))
        except OSError:
            pass
    return f"{found:08x}"


def compiled_file(root: str, module: str) -> str | None:
    """Return the file of a compiled module below the folder `root`, for this Python; None where there is none."""
    from importlib.machinery import EXTENSION_SUFFIXES

    files = (_place(root, module) + suffix for suffix in EXTENSION_SUFFIXES)
    return next((file for file in files if os.path.isfile(file)), None)  # noqa: PTH113


def built(root: str) -> Mapping[str, str]:
    """Return the modules that were compiled below the folder `root`, each with the checksum of its sources then."""
    try:
        with open(os.path.join(root, BUILT), encoding="utf-8") as file:  # noqa: PTH118, PTH123
            words = file.read().split()
    except (OSError, ValueError):
        return {}
    return dict(zip(words[::2], words[1::2], strict=False))


def what_is_missing(root: str) -> str | None:
    """Say why what was built below the folder `root` cannot be used, as the end of a sentence; None where it can."""
    sources = built(root)
    if not sources:
        return "it was not compiled when it was installed"
    for module, found in sources.items():
        file = compiled_file(root, module)
        if file is None:
            return f"{module} was not compiled for this Python"
        if not os.path.getsize(file):  # noqa: PTH202
            return f"{file} is empty, as after a full disk; install again"
        if found != checksum(root, module):
            return f"the source of {module} was changed after it was compiled; install again"
    return None


@cache
def why_pure() -> str | None:
    """Say why the core runs as Python, as the end of a sentence; None where it is compiled."""
    if os.environ.get("KERNBENCH_PURE", "0") not in ("", "0"):
        return "KERNBENCH_PURE is set"
    return what_is_missing(_ROOT)


@cache
def made_files() -> frozenset[str]:
    """Return the paths of what was compiled, and of the list of that: they say no more than the sources beside them."""
    files = {compiled_file(_ROOT, module) for module in built(_ROOT)}
    return frozenset({os.path.join(_ROOT, BUILT), *(file for file in files if file is not None)})  # noqa: PTH118


def is_compiled() -> bool:
    """Whether the compiled modules are those that run."""
    return why_pure() is None


def in_words() -> str:
    """Say which form runs, and why it is Python where it is."""
    why = why_pure()
    return "compiled core" if why is None else f"pure Python: {why}"


class SourceFinder:
    """Find the sources of modules that lie beside compiled ones, which Python would take first."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return where the source of a module is; None for one that was not compiled."""
        if name not in self._names:
            return None
        from importlib.machinery import SourceFileLoader
        from importlib.util import spec_from_file_location

        file = _place(_ROOT, name) + ".py"
        return spec_from_file_location(name, file, loader=SourceFileLoader(name, file))


def choose() -> None:
    """Have the one form or the other be imported from now on."""
    if why_pure() is not None and (names := built(_ROOT)):
        sys.meta_path.insert(0, SourceFinder(names))


def _place(root: str, module: str) -> str:
    return os.path.join(root, *module.split("."))  # noqa: PTH118
