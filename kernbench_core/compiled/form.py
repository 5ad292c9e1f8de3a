"""Choose between the compiled modules and the sources that these were compiled from: all of the one, or of the other.

`setup.py` compiles them, and writes into a list what each was compiled from; every Python has a list of its own. Where
a source is another now, where something was not built for this Python, or where KERNBENCH_PURE is set, all are taken as
Python.

Every command and every test suite imports this file first: it imports next to nothing.
"""

from __future__ import annotations

import os
import sys
from binascii import crc32
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.machinery import ModuleSpec

#: The folder of the packages.
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
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


def suffix_here() -> str:
    """Return how the files of compiled modules end that are for this Python."""
    from importlib.machinery import EXTENSION_SUFFIXES

    return EXTENSION_SUFFIXES[0]


def compiled_file(root: str, module: str) -> str:
    """Return the path of a compiled module below the folder `root`, for this Python."""
    return _place(root, module) + suffix_here()


def list_file(root: str) -> str:
    """Return the path of the list of what was compiled for this Python below the folder `root`.

    It has a line for each module: its name, and the checksum of its sources then.
    """
    name = f"built{suffix_here().rpartition('.')[0]}.txt"
    return os.path.join(root, "kernbench_core", "compiled", name)  # noqa: PTH118


def write_list(root: str, checksums: Mapping[str, str]) -> None:
    """Write the list of what lies compiled below the folder `root`, with the checksums of what it was compiled from."""
    os.makedirs(os.path.dirname(list_file(root)), exist_ok=True)  # noqa: PTH103, PTH120
    with open(list_file(root), "w", encoding="utf-8") as file:  # noqa: PTH123
        file.writelines(f"{name} {found}\n" for name, found in checksums.items())


def built(root: str) -> Mapping[str, str]:
    """Return the modules that were compiled below the folder `root`, each with the checksum of its line."""
    try:
        with open(list_file(root), encoding="utf-8") as file:  # noqa: PTH123
            return dict(line.split() for line in file)
    except (OSError, ValueError):
        return {}


def what_is_missing(root: str) -> str | None:
    """Say why what was built below the folder `root` cannot be used, as the end of a sentence; None where it can."""
    sources = built(root)
    if not sources:
        return "it was not compiled when it was installed"
    for module, found in sources.items():
        if not os.path.isfile(file := compiled_file(root, module)):  # noqa: PTH113
            return f"{file} is not there; install again"
        if found != checksum(root, module):
            return f"the source of {module} was changed after it was compiled; install again"
    return None


@cache
def why_pure() -> str | None:
    """Say why the core runs as Python, as the end of a sentence; None where it is compiled."""
    if os.environ.get("KERNBENCH_PURE", "0") not in ("", "0"):
        return "KERNBENCH_PURE is set"
    return what_is_missing(_ROOT)


def is_compiled() -> bool:
    """Whether the compiled modules are those that run."""
    return why_pure() is None


def in_words() -> str:
    """Say which form runs, and why it is Python where it is."""
    why = why_pure()
    return "compiled core" if why is None else f"pure Python: {why}"


class SourceFinder:
    """Find the sources of modules that lie beside compiled ones, which Python would take first.

    A list may be missing while these are there: building was stopped, or another version left them.
    """

    def __init__(self) -> None:
        self._suffix = suffix_here()

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return where the source of a module of kernbench is; None for one that has nothing compiled beside it."""
        if not name.startswith("kernbench_"):
            return None
        place = _place(_ROOT, name)
        if not os.path.isfile(place + self._suffix):  # noqa: PTH113
            return None
        from importlib.machinery import SourceFileLoader
        from importlib.util import spec_from_file_location

        return spec_from_file_location(name, place + ".py", loader=SourceFileLoader(name, place + ".py"))


def choose() -> None:
    """Have the one form or the other be imported from now on."""
    if why_pure() is not None:
        sys.meta_path.insert(0, SourceFinder())


def _place(root: str, module: str) -> str:
    return os.path.join(root, *module.split("."))  # noqa: PTH118
