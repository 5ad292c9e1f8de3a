"""The grid of a kernel that is run alone, as `--grid` has it: numbers, or arithmetic on the kernel's parameters."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from attrs import frozen

from kernbench_core.errors import UsageError
from kernbench_core.wording import brief

_MOST_EXTENTS, _MOST_DIGITS, _LONGEST = 3, 18, 200
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)
_CALLS: Mapping[str, Callable[..., int]] = MappingProxyType(
    {"cdiv": lambda a, b: -(-a // b), "min": min, "max": max}
)


class KernelGrid(Protocol):
    """How many programs a kernel has, as a kind of program is given it."""

    @property
    def text(self) -> str:
        """What messages call it."""

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters of the kernel that it is made of."""

    @property
    def of(self) -> Callable[[Mapping[str, Any]], Any]:
        """What gives the extents for values of the kernel's parameters."""


@frozen
class LaunchGrid:
    """One to three extents. UsageError for a text that is none.

    >>> from kernbench_core.host.parameters.grid import LaunchGrid
    >>> LaunchGrid("8,4").of({}), LaunchGrid("cdiv(n, BLOCK)").of({"n": 1000, "BLOCK": 256})
    ((8, 4), (4,))
    """

    text: str

    def __attrs_post_init__(self) -> None:
        _ = list(self._trees())

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that it is made of, in order."""
        found = [each for tree in self._trees() for each in ast.walk(tree) if isinstance(each, ast.Name)]
        return tuple(dict.fromkeys(each.id for each in found if each.id not in _CALLS))

    def of(self, values: Mapping[str, Any]) -> tuple[int, ...]:
        """Return the extents for values of the kernel's parameters; UsageError for what is no number, or below 1."""
        for name in self.names:
            value = values.get(name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise UsageError(
                    f"--grid {self.text} must be made of the kernel's parameters that are integers, not of {name!r}, "
                    f"which is {'missing' if value is None else f'of type {type(value).__name__}'}; correct it."
                )
        try:
            extents = tuple(eval(ast.unparse(tree), {**values, **_CALLS}) for tree in self._trees())
        except ZeroDivisionError:
            raise UsageError(
                f"--grid {self.text} must not divide by 0 for the kernel's parameters; correct it."
            ) from None
        if any(extent < 1 for extent in extents):
            raise UsageError(
                f"--grid {self.text} must be of positive integers for the kernel's parameters, not {extents}; correct "
                "it."
            )
        return extents

    def _trees(self) -> Iterator[ast.expr]:
        try:
            if len(self.text) > _LONGEST or not self.text.isascii():
                raise SyntaxError
            whole = ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self._refused() from None
        trees = whole.elts if isinstance(whole, ast.Tuple) else [whole]
        if not 1 <= len(trees) <= _MOST_EXTENTS or not all(map(_is_sound, trees)):
            raise self._refused()
        yield from trees

    def _refused(self) -> UsageError:
        return UsageError(
            f"grid must be one to three positive integers, as 64 or 8,4, or made of the kernel's parameters, as "
            f"'cdiv(n, BLOCK)', not {brief(self.text)}."
        )


def _is_sound(tree: ast.expr) -> bool:
    if isinstance(tree, ast.Constant):
        return type(tree.value) is int and 0 < tree.value < 10**_MOST_DIGITS
    if isinstance(tree, ast.BinOp):
        return type(tree.op) in _OPERATORS and _is_sound(tree.left) and _is_sound(tree.right)
    if isinstance(tree, ast.Call):
        named = isinstance(tree.func, ast.Name) and tree.func.id in _CALLS and not tree.keywords
        return named and len(tree.args) == 2 and all(map(_is_sound, tree.args))
    return isinstance(tree, ast.Name) and tree.id not in _CALLS
