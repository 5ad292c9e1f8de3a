"""What Triton reads otherwise than Python in jit functions: conditions of blocks, and numbers that have a name.

`and`, `or`, `not` and chained comparisons of blocks are computed for each element, where Python asks a block for its
truth, which it does not have. A number that a name is given is a typed scalar, as `0.0` of `total = 0.0` and the
numbers of `for i in range(n)`, and so is `0.5 * i`; `min` and `max` are Triton's; `assert` of a block asks of each
element. So a jit function that has any of these is compiled anew, from its source, with calls in their places; its
lines, names and closure stay. Single values keep Python's rule: what is behind is not evaluated where the first
decides.
"""

from __future__ import annotations

import ast
import dis
import inspect
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from types import CellType, CodeType, FunctionType
from typing import Any

from kernbench_builtin.triton.dtype_names import text_of_dtype
from kernbench_builtin.triton.scalars import BoolScalar, Constant, TypedNumber, constant, mapped, typed
from kernbench_core.kernel.bridge import current_language
from kernbench_core.kernel.index import IndexTensor
from kernbench_core.kernel.tl.tensor import Tensor
from kernbench_core.values.element_types import ElementType

#: The flags of `from __future__` imports among those of a code object.
_FUTURES = 0xFFF0000
#: Instructions of calls, which are others where a file's own imports are known: beginnings of their names.
_CALLING = ("LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD", "CALL", "PUSH_NULL", "PRECALL", "KW_NAMES", "EXTENDED_ARG")


def _is_block(x: Any) -> bool:
    return isinstance(x, Tensor | IndexTensor) and x.shape != ()


def _truths(x: Any) -> Any:
    """Give the truth of each element."""
    if not _is_block(x):
        return bool(x)
    return x if x.dtype == "bool" else x != 0


def _goes_on(x: Any, by: bool) -> bool:
    """Tell whether what is behind `and` (`by` True) or `or` is evaluated.

    An element that decides is the answer: it is read where that is asked for its truth.
    """
    if not isinstance(x, Tensor) or _is_block(x):
        return _is_block(x) or bool(x) is by
    return bool(x._read("a condition")) is by and bool(x) is by


def _and(x: Any, y: Any) -> Any:
    """Give what `x and y` is, where `x` did not decide."""
    return _truths(x) & _truths(y) if _is_block(x) or (_is_block(y) and isinstance(x, bool | BoolScalar)) else y


def _or(x: Any, y: Any) -> Any:
    """Give what `x or y` is, where `x` did not decide."""
    return _truths(x) | _truths(y) if _is_block(x) or (_is_block(y) and isinstance(x, bool | BoolScalar)) else y


def _not(x: Any) -> Any:
    """Give what `not x` is."""
    return _truths(x) == 0 if _is_block(x) else not x


def _asserted(x: Any, message: Callable[[], Any] = str) -> Any:
    """Give what `assert x` asks of one value; of a block each element is checked, as by `tl.device_assert`."""
    if not _is_block(x):
        return x
    language: Any = current_language()
    language.device_assert(_truths(x), str(message()))
    return True


def _counted(*bounds: Any) -> Any:
    """Give the numbers of a loop: scalars of int32, or of int64 where a bound is; outside of kernels Python's."""
    language: Any = current_language()
    return range(*bounds) if language is None else language.range(*bounds)


def _least(*values: Any) -> Any:
    """Give what `min` of several values is: of scalars and tiles that of each element."""
    return _folded("minimum", values) if _has_typed(values) else min(*values)


def _greatest(*values: Any) -> Any:
    """Give what `max` of several values is: of scalars and tiles that of each element."""
    return _folded("maximum", values) if _has_typed(values) else max(*values)


def _has_typed(values: Sequence[Any]) -> bool:
    return any(isinstance(each, Tensor | IndexTensor | TypedNumber) for each in values)


def _folded(name: str, values: Sequence[Any]) -> Any:
    return reduce(getattr(current_language(), name), values)


def _named(value: Any) -> Any:
    """Give what a name is given: a scalar where that is a number, in a tuple too."""
    kind = type(value)
    if kind is int or kind is float or kind is bool:
        return typed(value)
    if isinstance(value, tuple):
        return mapped(_named, value)
    return typed(value) if isinstance(value, Constant) else value


def _listed(value: Any) -> Any:
    """Give what equals a list in Triton, as `x.shape == [4]` does: of a tuple its list."""
    return list(value) if isinstance(value, tuple) else value


def _type(value: Any) -> Any:
    """Give what `type(value)` is in Python, of a scalar too."""
    if isinstance(value, Constant):
        return type(value.value)
    return type(value.item()) if isinstance(value, TypedNumber) else type(value)


def _shown(value: Any) -> Any:
    """Give what a text shows of a value: of a dtype Triton's."""
    return text_of_dtype(value) if isinstance(value, ElementType) else value


def _str(value: Any) -> str:
    """Give what `str(value)` is: of a dtype Triton's text."""
    return str(_shown(value))


def _is(value: Any, truth: bool) -> bool:
    """Give what `value is True` is in Python, of a scalar of one bit too."""
    return value is truth or (isinstance(value, BoolScalar) and bool(value) is truth)


_CALLS: Mapping[str, Callable[..., Any]] = {
    "__goes_on__": _goes_on, "__and__": _and, "__or__": _or, "__not__": _not,
    "__asserted__": _asserted, "__range__": _counted, "__constant__": constant, "__min__": _least, "__max__": _greatest,
    "__named__": _named, "__listed__": _listed, "__type__": _type, "__str__": _str, "__shown__": _shown, "__is__": _is,
}  # fmt: skip


class _Rewriting(ast.NodeTransformer):
    """Puts calls in the places of such expressions; counts them. `own` are names that the function's file has."""

    def __init__(self, own: Collection[str]) -> None:
        self.own = own
        self.count = 0

    def visit_For(self, node: ast.For) -> ast.AST:
        """Rewrite `range` behind `in`."""
        self.generic_visit(node)
        match node.iter:
            case ast.Call(func=ast.Name(id="range"), args=bounds) if "range" not in self.own:
                self.count += 1
                node.iter = ast.copy_location(_call("__range__", *bounds), node.iter)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Rewrite what is behind `assert`."""
        self.generic_visit(node)
        self.count += 1
        none = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        told = [] if node.msg is None else [ast.Lambda(none, node.msg)]
        node.test = ast.copy_location(_call("__asserted__", node.test, *told), node.test)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Rewrite what a name is given."""
        self.generic_visit(node)
        if any(isinstance(target, ast.Name | ast.Tuple) for target in node.targets):
            node.value = self._named(node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Rewrite what a name with an annotation is given: a constant where that says so."""
        self.generic_visit(node)
        if node.value is None or not isinstance(node.target, ast.Name):
            return node
        if ast.unparse(node.annotation).strip("'\"").rpartition(".")[2] != "constexpr":
            node.value = self._named(node.value)
            return node
        self.count += 1
        node.value = ast.copy_location(_call("__constant__", node.value), node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Rewrite `name += a` as `name = name + a`."""
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        before = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        found = ast.copy_location(ast.BinOp(before, node.op, node.value), node)
        return ast.copy_location(ast.Assign([node.target], self._named(found)), node)

    def _named(self, value: ast.expr) -> ast.expr:
        self.count += 1
        return ast.copy_location(_call("__named__", value), value)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Rewrite `min(a, b)`, `max(a, b)`, `type(a)`, `str(a)` and `print(a)`."""
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name(id="type" | "str" as name), args=[_], keywords=[]) if name not in self.own:
                self.count += 1
                return ast.copy_location(_call(f"__{name}__", *node.args), node)
            case ast.Call(func=ast.Name(id="print" as name)) if name not in self.own:
                self.count += 1
                node.args = [
                    each if isinstance(each, ast.Starred) else ast.copy_location(_call("__shown__", each), each)
                    for each in node.args
                ]
            case ast.Call(func=ast.Name(id="min" | "max" as name), args=[_, _, *_], keywords=[]):
                if name in self.own:
                    return node
                self.count += 1
                return ast.copy_location(_call(f"__{name}__", *node.args), node)
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        """Rewrite `a` of `f"{a}"`."""
        self.generic_visit(node)
        self.count += 1
        node.value = ast.copy_location(_call("__shown__", node.value), node.value)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Rewrite `0.5 * a`."""
        self.generic_visit(node)
        node.left = self._before(node.left)
        return node

    def _before(self, left: ast.expr) -> ast.expr:
        """Make a float a constant of compile time, which leaves it to a scalar behind it how they meet."""
        number = left.operand if isinstance(left, ast.UnaryOp) else left
        if not isinstance(number, ast.Constant) or not isinstance(number.value, float):
            return left
        self.count += 1
        return ast.copy_location(_call("__constant__", left), left)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Rewrite `a and b and c` from the left."""
        found, *rest = [self.visit(value) for value in node.values]
        for value in rest:
            found = self._both(found, value, isinstance(node.op, ast.And), node)
        return found  # type: ignore[no-any-return]

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """Rewrite `not a`."""
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        self.count += 1
        return ast.copy_location(_call("__not__", node.operand), node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Rewrite `a < b < c` as `a < b and b < c`, with `b` evaluated once."""
        self.generic_visit(node)
        node.left = self._before(node.left)
        match node.ops, node.comparators:
            case [ast.Is() | ast.IsNot() as how], [ast.Constant(value=True | False) as truth]:
                self.count += 1
                same = ast.copy_location(_call("__is__", node.left, truth), node)
                return same if isinstance(how, ast.Is) else ast.copy_location(ast.UnaryOp(ast.Not(), same), node)
        if len(node.ops) == 1:
            right = node.comparators[0]
            if isinstance(node.ops[0], ast.Eq | ast.NotEq) and isinstance(right, ast.List):
                self.count += 1
                node.left = ast.copy_location(_call("__listed__", node.left), node.left)
            elif isinstance(node.ops[0], ast.Eq | ast.NotEq) and isinstance(node.left, ast.List):
                self.count += 1
                node.comparators[0] = ast.copy_location(_call("__listed__", right), right)
            return node
        found: Any = None
        left = node.left
        for at, (op, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            last = at == len(node.ops) - 1
            kept = None if last else self._name()
            value = right if kept is None else ast.NamedExpr(ast.Name(kept, ast.Store()), right)
            one = ast.copy_location(ast.Compare(left, [op], [value]), node)
            found = one if found is None else self._both(found, one, True, node)
            left = right if kept is None else ast.Name(kept, ast.Load())
        return found  # type: ignore[no-any-return]

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        """Leave what a comprehension goes through, where no name may be bound."""
        node.ifs = [self.visit(each) for each in node.ifs]
        return node

    def _name(self) -> str:
        self.count += 1
        return f"__held_{self.count}"

    def _both(self, left: Any, right: Any, by: bool, node: ast.AST) -> ast.expr:
        """Return `join(held, right) if goes_on(held := left, by) else held`."""
        name = self._name()
        held = ast.NamedExpr(ast.Name(name, ast.Store()), left)
        test = _call("__goes_on__", held, ast.Constant(by))
        made = ast.IfExp(
            test, _call("__and__" if by else "__or__", ast.Name(name, ast.Load()), right), ast.Name(name, ast.Load())
        )
        return ast.copy_location(made, node)


def _call(name: str, *args: Any) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def read_as_triton_does(fn: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return a function that does what Triton reads in `fn`; `fn` itself where that is what Python reads.

    None where the source is not to be had, or is not what `fn` was compiled from.
    """
    if not isinstance(fn, FunctionType):
        return fn
    tree = _source_tree(fn)
    if tree is None:
        return None
    code = fn.__code__
    rewriting = _Rewriting({*fn.__globals__, *code.co_varnames, *code.co_freevars})
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.body = [rewriting.visit(each) for each in definition.body]
    changed = _compiled(tree, fn) if rewriting.count else None
    if changed is None:
        return fn
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    cells |= {name: CellType(call) for name, call in _CALLS.items()}
    closure = tuple(cells[name] for name in changed.co_freevars)
    made = FunctionType(changed, fn.__globals__, fn.__name__, fn.__defaults__, closure)
    made.__kwdefaults__, made.__annotations__ = fn.__kwdefaults__, fn.__annotations__
    made.__doc__, made.__module__, made.__qualname__ = fn.__doc__, fn.__module__, fn.__qualname__
    vars(made).update(vars(fn))
    return made


def _source_tree(fn: FunctionType) -> ast.Module | None:
    """Return the parsed source of a function, None where that is not to be had, or is not what it was compiled from."""
    try:
        lines, first = inspect.getsourcelines(fn)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    ast.increment_lineno(tree, max(first, 1) - 1)
    plain = _compiled(tree, fn)
    return None if plain is None or _looks(plain) != _looks(fn.__code__) else tree


def _looks(code: CodeType) -> object:
    """Return what two code objects of one source have in common, wherever that stands."""
    plain = [repr(each) for each in code.co_consts if not isinstance(each, CodeType)]
    lines = sorted({line for _, _, line in code.co_lines() if line is not None})
    steps = [each for each in dis.get_instructions(code) if not each.opname.startswith(_CALLING)]
    done = [(each.opname, each.argval if isinstance(each.argval, str) else None) for each in steps]
    return code.co_varnames, code.co_freevars, code.co_names, plain, lines, done


def _compiled(tree: ast.Module, fn: FunctionType) -> CodeType | None:
    """Return the code of the one function of a tree, in a function that has its closure's names and those of calls."""
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef):
        return None
    names = [*fn.__code__.co_freevars, *_CALLS]
    around = ast.parse(f"def around({', '.join(names)}): pass").body[0]
    assert isinstance(around, ast.FunctionDef)
    around.body = [tree.body[0]]
    module = ast.fix_missing_locations(ast.Module([around], []))
    flags = fn.__code__.co_flags & _FUTURES
    made = compile(module, fn.__code__.co_filename, "exec", flags=flags, dont_inherit=True)
    outer = next(each for each in made.co_consts if isinstance(each, CodeType))
    found = (each for each in outer.co_consts if isinstance(each, CodeType) and each.co_name == fn.__name__)
    return next((each.replace(co_qualname=fn.__code__.co_qualname) for each in found), None)
