"""A plug-in that is one file: imported as the module that its name says, without being installed."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from kernbench_core.errors import UsageError

_STEM: Final = re.compile(r"[a-z][a-z0-9_]*")
_TEXT: Final = "__kernbench_text__"


def vendor_of(path: str) -> str:
    """Return the vendor of a plug-in file, which is its name without `.py`; UsageError for one that cannot be."""
    file = Path(path)
    if file.suffix != ".py" or not _STEM.fullmatch(file.stem):
        raise UsageError(
            f"plug-in file must be a .py file whose name, the vendor, is of lower-case letters, digits and '_', not "
            f"{path!r}; rename it."
        )
    if not file.is_file():
        raise UsageError(f"plug-in file must exist, and {path!r} does not.")
    return file.stem


def import_file(path: str) -> ModuleType:
    """Import a plug-in file, and return its module; its folder comes last on the path of imports.

    A file that is imported already is taken as it is unless its text has changed. UsageError where its name is that of
    another module, which it would hide.
    """
    file = Path(path).resolve()
    name, text = vendor_of(path), file.read_bytes()
    there = sys.modules.get(name)
    if there is not None and getattr(there, _TEXT, None) == text and getattr(there, "__file__", None) == str(file):
        return there
    other = importlib.util.find_spec(name) if there is None else there.__spec__
    if other is not None and (other.origin is None or Path(other.origin).resolve() != file):
        raise UsageError(f"plug-in file {path!r} must not have the name of another module, {name!r}; rename it.")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    setattr(module, _TEXT, text)
    sys.modules[name] = module
    try:
        exec(compile(text, str(file), "exec"), vars(module))  # not from a cache, whose times are whole seconds
    except BaseException:
        del sys.modules[name]
        raise
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    return module
