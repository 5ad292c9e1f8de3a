"""The parameters of benches as their source has them, read and not executed: quick, and without consequences."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from kernbench_core.host.programs import ProgramKinds
from kernbench_core.host.sources import file_and_function

if TYPE_CHECKING:
    from kernbench_core.plugins import Plugins

_ARRAYS = frozenset({"ndarray", "NDArray"})
_FLAG = ("true", "false")
_FURTHER = 3
"""How many modules are read on the way to where something is defined."""
_KNOWN = frozenset({"ml_dtypes", "numpy", "typing"})
"""Packages whose names are known by themselves: long to read, and a part of one would be imported for that."""


@frozen
class WrittenParam:
    """A parameter as it is written: its annotation and default in `words`, its `choices`, and whether it is a file."""

    words: str
    choices: tuple[str, ...] = ()
    is_file: bool = False


def parameters_of(bench: str, plugins: Plugins) -> dict[str, WrittenParam]:
    """Return the parameters of a bench, by name or by the path of its file; none where they cannot be read."""
    named = file_and_function(bench)
    if named is not None:
        module, name = _read(Path(named[0])), named[1]
    elif bench in plugins.benches:
        where, _, name = plugins.benches[bench].target.partition(":")
        module = _module(where)
    else:
        return {}
    found = _found(module, name)
    if found is None:
        return {}
    module, function = found
    if not isinstance(function, ast.FunctionDef):
        return {}
    taken = [*function.args.posonlyargs, *function.args.args]
    defaults = dict(zip(reversed([arg.arg for arg in taken]), reversed(function.args.defaults), strict=False))
    keywords = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    defaults |= {arg.arg: default for arg, default in keywords if default is not None}
    asked = [*taken, *function.args.kwonlyargs]
    if ProgramKinds(plugins).is_written(function):  # any of whose arguments may be a file
        parameters = {arg.arg: _written(module, arg.annotation, defaults.get(arg.arg)) for arg in asked}
        return {name: evolve(each, is_file=True) for name, each in parameters.items() if name != "tl"}
    return {arg.arg: _written(module, arg.annotation, defaults.get(arg.arg)) for arg in asked[1:]}


def _read(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])


def _module(name: str) -> ast.Module:
    """Read a module where it would be imported from; that imports the packages that it is in."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, AttributeError, ValueError):
        spec = None
    return ast.Module([], []) if spec is None or spec.origin is None else _read(Path(spec.origin))


def _found(module: ast.Module, name: str, further: int = _FURTHER) -> tuple[ast.Module, ast.AST] | None:
    """Return what a name of a module is, as written, and the module in which it is; None where that is not clear."""
    for part in _statements(module.body):
        if isinstance(part, ast.FunctionDef) and part.name == name:
            return module, part
        if isinstance(part, ast.Assign) and [getattr(to, "id", "") for to in part.targets] == [name]:
            return module, part.value
        if isinstance(part, ast.AnnAssign) and getattr(part.target, "id", "") == name and part.value is not None:
            return module, part.value
        if isinstance(part, ast.ImportFrom) and part.module and not part.level and further:
            if part.module.partition(".")[0] in _KNOWN:
                continue
            for alias in part.names:
                if (alias.asname or alias.name) == name:
                    return _found(_module(part.module), alias.name, further - 1)
    return None


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, those for type checkers too."""
    for part in body:
        yield part
        if isinstance(part, ast.If):
            yield from _statements(part.body)


def _written(module: ast.Module, annotation: ast.expr | None, default: ast.expr | None) -> WrittenParam:
    words = "" if annotation is None else ast.unparse(annotation)
    if default is not None:
        words = f"{words} = {ast.unparse(default)}".strip()
    if annotation is None:
        flag = isinstance(default, ast.Constant) and isinstance(default.value, bool)
        return WrittenParam(words, _FLAG if flag else ())
    parts = [part for whole in _meant(module, annotation) for part in ast.walk(whole)]
    names = {part.attr if isinstance(part, ast.Attribute) else getattr(part, "id", "") for part in parts}
    return WrittenParam(words, _FLAG if "bool" in names else _literal(parts), not _ARRAYS.isdisjoint(names))


def _meant(module: ast.Module, annotation: ast.AST, further: int = _FURTHER) -> Iterator[ast.AST]:
    """Yield an annotation, and what its names stand for."""
    yield annotation
    for each in ast.walk(annotation):
        found = _found(module, each.id) if isinstance(each, ast.Name) and further else None
        if found is not None and isinstance(found[1], ast.expr):
            yield from _meant(*found, further - 1)


def _literal(parts: Iterable[ast.AST]) -> tuple[str, ...]:
    """Return the texts of the first `Literal[…]` among the parts of an annotation."""
    for each in parts:
        if isinstance(each, ast.Subscript) and ast.unparse(each.value).rpartition(".")[2] == "Literal":
            of = each.slice.elts if isinstance(each.slice, ast.Tuple) else [each.slice]
            return tuple(one.value for one in of if isinstance(one, ast.Constant) and isinstance(one.value, str))
    return ()
