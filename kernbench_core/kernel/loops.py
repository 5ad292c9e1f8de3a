"""How far a kernel is that is suspended: which part of its outermost loop it has behind it.

Read off its source and its variables, without running any of it: loops over `range(…)` count, and `while at < last`
where `at += step` is all that changes `at`, of numbers, names, sums and products, `min`, `max`, `cdiv` and
`program_id`. Of what else a kernel may be, nobody knows how long it goes on.
"""

from __future__ import annotations

import ast
import inspect
import operator
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from numbers import Integral
from types import CodeType, FrameType
from typing import Any, Final, TypeGuard

from attrs import frozen

_BINARY: Final[Mapping[type, Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}  # fmt: skip
_CALLS: Final[Mapping[str, Callable[..., int]]] = {"min": min, "max": max, "cdiv": lambda a, b: -(-a // b)}


class _Unknown(Exception):
    """An expression is none of those that are read."""


@frozen
class Loop:
    """One loop: its lines, the name that counts, its bounds, its loops.

    The bounds are the arguments of `range`, or start, end and present step of `while`; none of loops that do not count.
    """

    first: int
    last: int
    counter: str
    bounds: tuple[ast.expr, ...]
    inner: tuple[Loop, ...]
    is_while: bool


def part_done(frame: FrameType | None, kernel: Callable[..., object], program: tuple[int, ...]) -> float | None:
    """Return which part of its outermost loop, from 0 to 1, a kernel has behind it; None where that cannot be known.

    `frame` is the innermost one of the suspended kernel, `program` its program id (x, y, z).
    """
    code = getattr(inspect.unwrap(kernel), "__code__", None)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    if frame is None or code is None:
        return None
    loops = loops_of(code)
    if len(loops) != 1:
        return None  # of several, one after the other, nobody knows which takes how long
    (loop,) = loops
    if frame.f_lineno < loop.first:
        return 0.0
    if frame.f_lineno > loop.last:
        return 1.0
    counts = _numbers(frame)
    try:
        return _behind(loop, frame.f_lineno, counts, program)
    except (_Unknown, ArithmeticError, TypeError, ValueError):
        return None


@lru_cache(maxsize=64)
def loops_of(code: CodeType) -> tuple[Loop, ...]:
    """Return the outermost loops of a function; none where its source is not to be had, or has another loop there."""
    try:
        lines, start = inspect.getsourcelines(code)
        (function,) = ast.parse(textwrap.dedent("".join(lines))).body
    except (OSError, SyntaxError, TypeError, ValueError):
        return ()
    ast.increment_lineno(function, start - 1)
    return tuple(_read(loop, function) for loop in _loops(function))


def _loops(node: ast.AST) -> Iterator[Any]:
    """Yield the loops below a node that are in no other loop, and in no function of their own."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.For | ast.While | ast.AsyncFor):
            yield child
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield from _loops(child)


def _read(loop: Any, function: ast.stmt) -> Loop:
    """Return what counts of a `for` or `while` loop of a function."""
    counter, bounds = _stepped(loop, function) if isinstance(loop, ast.While) else _ranged(loop)
    inner = tuple(_read(below, function) for part in loop.body for below in _below(part))
    return Loop(loop.lineno, loop.body[-1].end_lineno, counter, bounds, inner, isinstance(loop, ast.While))


def _ranged(loop: Any) -> tuple[str, tuple[ast.expr, ...]]:
    """Return the counter of a `for` loop and the arguments of its `range`; nothing where it is over something else."""
    over: Any = loop.iter
    name = getattr(over, "func", None)
    called = name.id if isinstance(name, ast.Name) else name.attr if isinstance(name, ast.Attribute) else ""
    counter: Any = loop.target
    plain = called in ("range", "static_range") and isinstance(counter, ast.Name) and not over.keywords
    return (counter.id, tuple(over.args)) if plain else ("", ())


def _stepped(loop: ast.While, function: ast.stmt) -> tuple[str, tuple[ast.expr, ...]]:
    """Return the counter of `while at < last`, what it was set to before, the end, and what is added to it."""
    match loop.test:
        case ast.Compare(ast.Name(name), [ast.Lt()], [end]):
            stores = [node for node in ast.walk(function) if _is(node, name) and isinstance(node.ctx, ast.Store)]
            sets = (node for node in ast.walk(function) if isinstance(node, ast.Assign) and _is(node.targets[0], name))
            adds = (node for node in ast.walk(loop) if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add))
            starts = [node.value for node in sets if node.lineno < loop.lineno]
            steps = [node.value for node in adds if _is(node.target, name)]
            if len(stores) == 2:
                return name, (*starts, end, *steps)
    return "", ()


def _is(node: ast.AST, name: str) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and node.id == name


def _below(node: ast.stmt) -> Iterator[Any]:
    if isinstance(node, ast.For | ast.While | ast.AsyncFor):
        yield node
    else:
        yield from _loops(node)


def _behind(loop: Loop, line: int, numbers: Mapping[str, int], program: tuple[int, ...]) -> float:
    """Return the part of a loop that is over, of the loop that is at `line` in it as well, as far as that is known."""
    if not 1 <= len(loop.bounds) <= 3 or loop.counter not in numbers:
        raise _Unknown
    at, bounds = numbers[loop.counter], [_value(bound, numbers, program) for bound in loop.bounds]
    if loop.is_while:
        start, end, step = bounds
        turn, turns = (at - start) / step, (end - start) / step
    else:
        turn, turns = range(*bounds).index(at), len(range(*bounds))
    within = [inner for inner in loop.inner if inner.first <= line <= inner.last]
    part = 0.0
    if within and len(loop.inner) == 1:
        try:
            part = _behind(within[0], line, numbers, program)
        except (_Unknown, ArithmeticError, TypeError, ValueError):
            part = 0.0
    elif len(loop.inner) == 1 and line > loop.inner[0].last:
        part = 1.0
    return min(1.0, (turn + part) / turns)


def _value(node: ast.expr, numbers: Mapping[str, int], program: tuple[int, ...]) -> int:
    """Return the integer that an expression is; raise _Unknown for one that is not read."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name) and node.id in numbers:
        return numbers[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, numbers, program)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        found: int = _BINARY[type(node.op)](*(_value(side, numbers, program) for side in (node.left, node.right)))
        return found
    if isinstance(node, ast.Call) and not node.keywords:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        given = [_value(each, numbers, program) for each in node.args]
        if name == "program_id" and len(given) == 1:
            return program[given[0]]
        if name in _CALLS:
            return _CALLS[name](*given)
    raise _Unknown


def _numbers(frame: FrameType) -> dict[str, int]:
    """Return the variables of a frame, and the constants of its module, that are integers."""
    found = {name: value for name, value in frame.f_globals.items() if type(value) is int}
    values = frame.f_locals
    for name, value in values.items():
        if isinstance(value, Integral):
            found[name] = int(value)
        else:
            found.pop(name, None)
    if type(values) is dict:
        values.clear()  # before Python 3.13 this copy outlives the look, and would keep what the kernel gives up
    return found
