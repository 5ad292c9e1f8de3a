"""`and`, `or`, `not` and chained comparisons in kernels: of tiles, Triton takes them element by element.

Python asks an operand for its truth instead, and leaves the other one out. So a function that has such expressions is
compiled anew, with a call in the place of each; of anything but tiles the calls do what Python does.
"""

from __future__ import annotations

import ast
import inspect
import operator
import textwrap
from collections.abc import Callable
from functools import partial
from types import CellType, CodeType, FunctionType
from typing import Any, Final

from kernbench_core.kernel.index import IndexTensor
from kernbench_core.kernel.tl.tensor import Tensor

Later = Callable[[], Any]

_COMPARISONS: Final[dict[type[ast.cmpop], str]] = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip


def _is_tile(value: Any) -> bool:
    return isinstance(value, Tensor | IndexTensor) and any(extent != 1 for extent in value.shape)


def _truths(value: Any) -> Any:
    if isinstance(value, Tensor | IndexTensor):
        return value if value.dtype == "bool" else value != 0
    return bool(value)


def both(left: Any, right: Later) -> Any:
    """`left and right`: where `left` is a tile, that of their elements."""
    return _truths(left) & _truths(right()) if _is_tile(left) else left and right()


def either(left: Any, right: Later) -> Any:
    """`left or right`: where `left` is a tile, that of their elements."""
    return _truths(left) | _truths(right()) if _is_tile(left) else left or right()


def negated(value: Any) -> Any:
    """`not value`: of a tile, that of its elements."""
    return ~_truths(value) if _is_tile(value) else not value


def compared(left: Any, *steps: Any) -> Any:
    """A chained comparison: `steps` are the name of an operator and the next operand, in turn."""
    found: Any = True
    for name, later in zip(steps[::2], steps[1::2], strict=True):
        right = later()
        found = both(found, partial(getattr(operator, name), left, right))
        if not _is_tile(found) and not found:
            return found
        left = right
    return found


_CALLS: Final[dict[str, Callable[..., Any]]] = {
    "_kernbench_and": both, "_kernbench_or": either, "_kernbench_not": negated, "_kernbench_compare": compared,
}  # fmt: skip


class _Calls(ast.NodeTransformer):
    """Put calls in the place of such expressions; `found` tells whether there was one."""

    found = False

    def _call(self, name: str, *operands: ast.expr) -> ast.expr:
        self.found = True
        return ast.Call(ast.Name(f"_kernbench_{name}", ast.Load()), list(operands), [])

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        name = "and" if isinstance(node.op, ast.And) else "or"
        made = node.values[0]
        for value in node.values[1:]:
            made = ast.copy_location(self._call(name, made, _later(value)), node)
        return made

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return ast.copy_location(self._call("not", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if len(node.ops) == 1 or not all(type(op) in _COMPARISONS for op in node.ops):
            return node
        steps: list[ast.expr] = []
        for op, right in zip(node.ops, node.comparators, strict=True):
            steps += [ast.Constant(_COMPARISONS[type(op)]), _later(right)]
        return ast.copy_location(self._call("compare", node.left, *steps), node)


def _later(value: ast.expr) -> ast.expr:
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.copy_location(ast.Lambda(nothing, value), value)


def of_tiles(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function like `fn` whose conditions may be of tiles; `fn` itself where it has none, or no source."""
    if not isinstance(fn, FunctionType):
        return fn
    definition = _definition(fn)
    if definition is None or any(isinstance(each, ast.NamedExpr | ast.Yield) for each in ast.walk(definition)):
        return fn
    calls = _Calls()
    definition.body = [calls.visit(statement) for statement in definition.body]
    if not calls.found:
        return fn
    definition.decorator_list = []
    _bare(definition.args)
    definition.returns = None
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    cells.update({name: CellType(call) for name, call in _CALLS.items()})
    code = _compiled(definition, list(cells), fn.__code__)
    closure = tuple(cells[each] for each in code.co_freevars)
    made = FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, closure)
    made.__kwdefaults__, made.__annotations__, made.__doc__ = fn.__kwdefaults__, fn.__annotations__, fn.__doc__
    made.__qualname__, made.__module__ = fn.__qualname__, fn.__module__
    return made


def _definition(fn: FunctionType) -> ast.FunctionDef | None:
    """Read a function's definition, with the lines of its file; None where it is not to be had."""
    try:
        lines, first = inspect.getsourcelines(fn)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    ast.increment_lineno(tree, first - 1)
    found = tree.body[0]
    return found if isinstance(found, ast.FunctionDef) and found.name == fn.__name__ else None


def _bare(arguments: ast.arguments) -> None:
    """Leave names of parameters alone: what they are by default is the function's already."""
    for each in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]:
        if each is not None:
            each.annotation = None
    arguments.defaults, arguments.kw_defaults = [], [None for _ in arguments.kwonlyargs]


def _compiled(definition: ast.FunctionDef, free: list[str], given: CodeType) -> CodeType:
    """Compile a definition to which `free` are variables of a function around it."""
    tree = ast.parse(f"def around({', '.join(free)}): pass")
    around = tree.body[0]
    assert isinstance(around, ast.FunctionDef)
    around.body = [definition]
    whole = compile(ast.fix_missing_locations(tree), given.co_filename, "exec", dont_inherit=True)
    outer = next(each for each in whole.co_consts if isinstance(each, CodeType))
    return next(each for each in outer.co_consts if isinstance(each, CodeType) and each.co_name == given.co_name)
