"""What is told of an old place: the new one of a module, and of the names that a failing line asks for."""

from __future__ import annotations

import dis
import importlib
import importlib.metadata
import importlib.util
from collections import ChainMap
from collections.abc import Mapping
from types import CodeType, ModuleType
from typing import Any

from kernbench_core.moved.places import MOVED
from kernbench_core.package import GROUP


def current(target: str) -> str:
    """Return what a "module:attr" is called now."""
    module, colon, attribute = target.partition(":")
    return MOVED.get(module, module) + colon + attribute


def hint(error: BaseException) -> str:
    """Say where that is what could not be imported, or got of a module, from its old place; else nothing.

    A place is told only where it has all the names that were asked for; of others, each name's own is. Of a name that
    its module refuses in words of its own, these are told, which an import hides.
    """
    found: object = getattr(error, "name", None)
    if isinstance(error, ImportError) and isinstance(found, str):
        module, names = found, _wanted(error)
    elif isinstance(error, AttributeError) and isinstance(error.obj, ModuleType) and isinstance(found, str):
        module, names = error.obj.__name__, (found,)
    else:
        return ""
    moved, renamed = _tables(module)
    if module in moved and all(_has(moved[module], name) for name in names):
        return f"; {module} is now {moved[module]}"
    told = [_named(module, name, moved, renamed) or _refused(module, name) for name in names]
    return "".join(f"; {sentence}" for sentence in told if sentence)


def _named(module: str, name: str, moved: Mapping[str, str], renamed: Mapping[str, str]) -> str:
    """Say where a name of a module is, "" where nobody knows."""
    now = moved.get(module, module)
    if f"{module}.{name}" in moved:
        return f"{module}.{name} is now {moved[f'{module}.{name}']}"
    target = renamed.get(f"{module}:{name}") or renamed.get(f"{now}:{name}")
    if target is None and now != module and _has(now, name):
        target = f"{now}:{name}"
    there, _, called = (target or "").partition(":")
    return f"{name} of {module} is now {called} of {there}" if target and _has(there, called) else ""


def _refused(module: str, name: str) -> str:
    """Return the sentence with which a module refuses a name, "" where it only has it not."""
    try:
        getattr(importlib.import_module(module), name)
    except AttributeError as error:
        return "" if type(error) is AttributeError else str(error).rstrip(".")
    except KeyboardInterrupt:
        raise
    except BaseException:
        return ""
    return ""


def _has(module: str, name: str) -> bool:
    """Tell whether a module can be imported and has a name."""
    try:
        found = importlib.import_module(module)
        return hasattr(found, name) or importlib.util.find_spec(f"{module}.{name}") is not None
    except KeyboardInterrupt:
        raise
    except BaseException:
        return False


def _wanted(error: ImportError) -> tuple[str, ...]:
    """Return the names that the line asked for at which an import failed; none where it asked for the module alone."""
    line: tuple[CodeType, int] | None = None
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not code.co_filename.startswith("<frozen importlib"):
            line = code, traceback.tb_lasti
        traceback = traceback.tb_next
    if line is None:
        return ()
    before: Any = None
    for instruction in dis.get_instructions(line[0]):
        if instruction.offset == line[1]:
            if instruction.opname == "IMPORT_FROM":
                return (instruction.argval,)
            names = before.argval if instruction.opname == "IMPORT_NAME" and before is not None else None
            return tuple(name for name in names if name != "*") if isinstance(names, tuple) else ()
        if instruction.opname != "EXTENDED_ARG":
            before = instruction
    return ()


def _tables(module: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return what the packages say of their modules, and of single names.

    The module's own package comes first, then all that have an installed plug-in: what was in one may have gone to
    another.
    """
    roots = {point.value.partition(".")[0] for point in importlib.metadata.entry_points(group=GROUP)}
    own = module.partition(".")[0]
    tables = [_said(root) for root in (own, *sorted(roots - {own}))]
    return ChainMap(*(moved for moved, _ in tables)), ChainMap(*(names for _, names in tables))


def _said(root: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return what the package `root` says in its own `moved`; nothing where it has none that will do."""
    try:
        said = importlib.import_module(f"{root}.moved")
    except KeyboardInterrupt:
        raise
    except BaseException:
        return {}, {}
    tables = (getattr(said, "MOVED", None), getattr(said, "NAMES", None))
    moved, names = (dict(table) if isinstance(table, Mapping) else {} for table in tables)
    return moved, names
