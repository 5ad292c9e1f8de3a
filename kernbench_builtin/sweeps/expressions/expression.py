"""Expressions over parameters and figures, as `--where` and `--objective` have them: arithmetic, and nothing else.

A text becomes Python's own syntax tree, of which a closed list of nodes is computed; nothing is ever executed.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from attrs import field, frozen

from kernbench_builtin.sweeps.expressions.quantities import (
    Known,
    UnitNumber,
    as_known,
    bare_quantities,
    combined,
    mistaken_unit,
)
from kernbench_core.errors import UsageError
from kernbench_core.params import closest, did_you_mean
from kernbench_core.wording import brief

#: How long a text may be, how many parts it may have, and how large an integer may grow.
_LONGEST, _MOST_PARTS, _MOST_BITS = 2000, 300, 1024

_Numbers: TypeAlias = Callable[..., Any]
_ARITHMETIC: Final[Mapping[type[ast.operator], tuple[str, _Numbers]]] = MappingProxyType(
    {
        ast.Add: ("+", operator.add), ast.Sub: ("-", operator.sub), ast.Mult: ("*", operator.mul),
        ast.Div: ("/", operator.truediv), ast.FloorDiv: ("//", operator.floordiv), ast.Mod: ("%", operator.mod),
        ast.Pow: ("**", operator.pow),
    }
)  # fmt: skip
_COMPARISONS: Final[Mapping[type[ast.cmpop], tuple[str, _Numbers]]] = MappingProxyType(
    {
        ast.Eq: ("==", operator.eq), ast.NotEq: ("!=", operator.ne), ast.Lt: ("<", operator.lt),
        ast.LtE: ("<=", operator.le), ast.Gt: (">", operator.gt), ast.GtE: (">=", operator.ge),
    }
)  # fmt: skip
#: The functions, each with how few and how many arguments it takes.
FUNCTIONS: Final[Mapping[str, tuple[_Numbers, int, int]]] = MappingProxyType(
    {
        "min": (min, 2, 20), "max": (max, 2, 20), "abs": (abs, 1, 1), "sqrt": (math.sqrt, 1, 1),
        "log2": (math.log2, 1, 1), "ceil": (math.ceil, 1, 1), "floor": (math.floor, 1, 1),
    }
)  # fmt: skip
_ONE_KIND = {"+", "-", "min", "max", "%"}
"""What is of one kind only: two times, or two numbers, but no time and a size."""
_HINTS: Mapping[type[ast.AST], str] = MappingProxyType(
    {
        ast.BitAnd: "write 'and' between conditions.",
        ast.BitOr: "write 'or' between conditions.",
        ast.BitXor: "a power is written '**'.",
        ast.Is: "write '=='.",
        ast.NamedExpr: "equality is written '=='.",
    }
)


def _stripped(text: str) -> str:
    return text.strip()


@frozen
class Expression:
    """A checked expression. `option` is what it was given by, and stands first in what it says of faults.

    Numbers, names (dotted ones too), `+ - * / // % **`, comparisons (chained, too), `and or not`, `a if b else c`, and
    `min max abs sqrt log2 ceil floor`. A quantity has its unit, `400 GB/s`; a text is quoted, `dtype == 'f16'`.

    >>> where = Expression("16 <= rows < 64 and link < 400 GB/s", "--where")
    >>> where.names, where.truth({"rows": 32, "link": "100 GB/s"})
    (('rows', 'link'), True)
    """

    text: str = field(converter=_stripped)
    option: str = "expression"
    _tree: ast.expr = field(init=False, eq=False, repr=False)
    _quantities: Mapping[int, UnitNumber] = field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        bare, quantities = bare_quantities(self.text)
        object.__setattr__(self, "_quantities", quantities)
        object.__setattr__(self, "_tree", self._parsed(bare))
        parts = list(ast.walk(self._tree))
        if len(parts) > _MOST_PARTS:
            raise self._fault(None, f"must have at most {_MOST_PARTS} parts, not {len(parts)}; shorten it.")
        self._check(self._tree)

    @property
    def names(self) -> tuple[str, ...]:
        """What it reads, each once, in the order of the text."""
        return tuple(dict.fromkeys(name for name, _ in self._named(self._tree)))

    def require(self, known: Collection[str], what: str, likely: Collection[str] = ()) -> None:
        """Raise UsageError for a name that is none of `known`, which are `what` in the sentence, as "a parameter".

        One of the `likely` ones is suggested before all others.
        """
        for name, node in self._named(self._tree):
            if name not in known:
                longer = [each for each in known if each.endswith(f".{name}")]
                near = closest(name, likely) or (longer[0] if len(longer) == 1 else "")
                hint = f" Did you mean {near!r}?" if near else did_you_mean(name, known)
                raise self._fault(node, f"{name!r} must be {what}, and there is none of this name.{hint}")

    def value(self, values: Mapping[str, object]) -> Known:
        """Return what it is for these values; UsageError that names the part that has none, as a division by 0.

        A value is a number, a truth value, or text: of a quantity the text has its unit, "400 GB/s".
        """
        try:
            found = self._of(self._tree, values)
        except RecursionError:  # what is called deep down in a program has little of the stack left
            raise self._fault(None, "is nested too deeply; shorten it.") from None
        return found.value if isinstance(found, UnitNumber) else found

    def number(self, values: Mapping[str, object]) -> float:
        """Return it as a number, of quantities in kernbench's own unit (ns, B, GB/s); UsageError for what is none."""
        found = self.value(values)
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise self._fault(None, f"must be a number, not {brief(found)}.")
        try:
            return float(found)
        except OverflowError:
            raise self._fault(None, "must be a number that a float holds, below 1.8e308.") from None

    def truth(self, values: Mapping[str, object]) -> bool:
        """Return whether it holds; UsageError where it is neither true nor false."""
        found = self.value(values)
        if not isinstance(found, bool):
            raise self._fault(None, f"must be true or false, as 'rows < 64', not {brief(found)}; compare it.")
        return found

    def _parsed(self, bare: str) -> ast.expr:
        if len(self.text) > _LONGEST or "\n" in self.text:
            raise self._fault(None, f"must be one line of at most {_LONGEST:,} characters; shorten it.")
        try:
            return ast.parse(bare, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            if slip := mistaken_unit(self.text):
                raise UsageError(f"{self.option} {brief(self.text)}: {slip}") from None
            column = getattr(error, "offset", None)
            place = f", column {min(column, len(self.text) + 1)}" if column else ""
            why = getattr(error, "msg", None) or "it is nested too deeply"
            hint = " Equality is written '=='." if re.search(r"(?<![=<>!])=(?!=)", self.text) else ""
            raise UsageError(
                f"{self.option} {brief(self.text)}{place}: must be an expression, as 'rows * columns < 4096', but "
                f"{why}.{hint}"
            ) from None

    def _fault(self, node: ast.AST | None, sentence: str) -> UsageError:
        column = "" if node is None else f", column {self._column(node) + 1}"
        return UsageError(f"{self.option} {brief(self.text)}{column}: {sentence}")

    def _column(self, node: ast.AST) -> int:
        """Return where a part begins in the text, counted from 0; the parser counts bytes."""
        at: int = getattr(node, "col_offset", 0)
        return len(self.text.encode()[:at].decode(errors="ignore"))

    def _named(self, tree: ast.AST) -> Iterator[tuple[str, ast.AST]]:
        """Yield the names, dotted ones whole, from left to right; neither functions nor quantities."""
        if isinstance(tree, ast.Name | ast.Attribute):
            if not self._is_quantity(tree):
                yield _dotted(tree), tree
            return
        for child in sorted(ast.iter_child_nodes(tree), key=lambda each: getattr(each, "col_offset", 0)):
            if not (isinstance(tree, ast.Call) and child is tree.func):
                yield from self._named(child)

    def _is_quantity(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id == "_" and node.col_offset in self._quantities

    def _check(self, node: ast.AST) -> None:
        """Raise UsageError for a part that no expression has."""
        match node:
            case ast.Constant(value=value):
                if not isinstance(value, bool | int | float | str) or value in (math.inf, -math.inf):
                    raise self._fault(node, f"{brief(value)} must be a finite number, true, false or a quoted text.")
                return
            case ast.Name() | ast.Attribute():
                if not _dotted(node):
                    raise self._fault(node, "a name must be words with dots between them; correct it.")
                return
            case ast.Call():
                self._check_call(node)
            case ast.BinOp(op=op) | ast.UnaryOp(op=op):
                if type(op) not in {*_ARITHMETIC, ast.USub, ast.UAdd, ast.Not}:
                    raise self._refused(node, op)
            case ast.Compare(ops=ops):
                for each in ops:
                    if type(each) not in _COMPARISONS:
                        raise self._refused(node, each)
            case ast.BoolOp() | ast.IfExp():
                pass
            case _:
                raise self._refused(node, node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr) and not (isinstance(node, ast.Call) and child is node.func):
                self._check(child)

    def _check_call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in FUNCTIONS:
            hint = did_you_mean(name, FUNCTIONS)
            raise self._fault(node, f"{self._source(node.func)} must be a function that expressions have.{hint}")
        _, fewest, most = FUNCTIONS[name]
        if node.keywords or not fewest <= len(node.args) <= most or any(isinstance(a, ast.Starred) for a in node.args):
            wanted = "one argument" if most == 1 else f"{fewest} to {most} arguments"
            raise self._fault(node, f"{name} must be given {wanted}, without names; correct it.")

    def _refused(self, node: ast.AST, part: ast.AST) -> UsageError:
        hint = _HINTS.get(type(part), "write arithmetic, comparisons, and, or, not.")
        return self._fault(node, f"{self._source(node)} must not be in an expression; {hint}")

    def _source(self, node: ast.AST) -> str:
        """Return a part as it stands in the text, cut where it is long."""
        first, last = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", None)
        return brief(self.text.encode()[first:last].decode(errors="replace"), 40)

    def _of(self, node: ast.expr, values: Mapping[str, object]) -> Known | UnitNumber:
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as value):
                return as_known(value)
            case ast.Name() | ast.Attribute():
                return self._named_value(node, values)
            case ast.BoolOp(op=op, values=parts):
                held = (self._truth(each, values) for each in parts)
                return all(held) if isinstance(op, ast.And) else any(held)
            case ast.UnaryOp(op=op, operand=operand):
                if isinstance(op, ast.Not):
                    return not self._truth(operand, values)
                sign = -1 if isinstance(op, ast.USub) else 1
                return self._computed(node, "*", operator.mul, [sign, self._of(operand, values)])
            case ast.BinOp(left=left, op=op, right=right):
                name, compute = _ARITHMETIC[type(op)]
                return self._computed(node, name, compute, [self._of(left, values), self._of(right, values)])
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._of(body if self._truth(test, values) else orelse, values)
            case ast.Call(func=ast.Name(id=name), args=args):
                return self._computed(node, name, FUNCTIONS[name][0], [self._of(each, values) for each in args])
            case ast.Compare():
                return self._compared(node, values)
        raise AssertionError(node)  # `_check` let it pass

    def _named_value(self, node: ast.expr, values: Mapping[str, object]) -> Known | UnitNumber:
        if self._is_quantity(node):
            return self._quantities[node.col_offset]
        name = _dotted(node)
        if name not in values:
            raise self._fault(node, f"{name!r} is not known here.{did_you_mean(name, values)}")
        found = values[name]
        if found is None:
            raise self._fault(node, f"{name!r} has no value here.")
        if not isinstance(found, bool | int | float | str | UnitNumber):
            raise self._fault(node, f"{name!r} must be a number, a text, true or false, not {brief(found)}.")
        return as_known(found)

    def _truth(self, node: ast.expr, values: Mapping[str, object]) -> bool:
        found = self._of(node, values)
        if not isinstance(found, bool):
            raise self._fault(node, f"must be true or false, as 'rows < 64', not {_shown(found)}; compare it.")
        return found

    def _compared(self, node: ast.Compare, values: Mapping[str, object]) -> bool:
        left = self._of(node.left, values)
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self._of(part, values)
            name, compare = _COMPARISONS[type(op)]
            pair = left, right
            if any(isinstance(each, str | bool) for each in pair):
                if name not in ("==", "!=") or type(left) is not type(right):
                    raise self._fault(
                        node, f"{_shown(left)} and {_shown(right)} cannot be compared by {name!r}; correct it."
                    )
            else:
                self._same_kind(node, name, pair)
            if not compare(*(each.value if isinstance(each, UnitNumber) else each for each in pair)):
                return False
            left = right
        return True

    def _computed(
        self, node: ast.expr, name: str, compute: _Numbers, given: Sequence[Known | UnitNumber]
    ) -> Known | UnitNumber:
        for each in given:
            if isinstance(each, bool | str):
                raise self._fault(node, f"{name!r} must be given numbers, not {_shown(each)}.")
        if name in _ONE_KIND:
            self._same_kind(node, name, tuple(given))
        numbers = [each.value if isinstance(each, UnitNumber) else each for each in given]
        try:
            found = _bounded(compute, name, numbers)
        except (ArithmeticError, ValueError):
            found = math.nan
        if isinstance(found, complex) or not math.isfinite(found):
            parts = [f"({told})" if told[0] == "-" and name not in FUNCTIONS else told for told in map(_shown, given)]
            told = f"{name}({', '.join(parts)})" if name in FUNCTIONS else f" {name} ".join(parts)
            raise self._fault(node, f"{told} is not a finite number.")
        return combined(name, given, found)

    def _same_kind(self, node: ast.expr, name: str, given: Sequence[Known | UnitNumber]) -> None:
        """Raise UsageError for a time beside a size, and for a plain number beside what must carry a unit."""
        kinds = [each for each in given if isinstance(each, UnitNumber) and each.dimension]
        strict = [each for each in kinds if not each.lenient]
        if not strict:
            return  # figures say their unit by name, and what is derived from several kinds may be anything
        if len({each.dimension for each in kinds}) > 1:
            told = " and ".join(map(_shown, kinds))
            raise self._fault(node, f"{told} are of different kinds, which {name!r} cannot have; correct the units.")
        for each in given:
            if not isinstance(each, UnitNumber) and each != 0:
                raise self._fault(
                    node, f"{_shown(each)} has no unit beside {strict[0]}; write it with one, as '{strict[0]}'."
                )


def _shown(value: Known | UnitNumber) -> str:
    """Return a value as a sentence shows it."""
    if isinstance(value, UnitNumber):
        return str(value)
    return f"{value:.10g}" if isinstance(value, float) else brief(value, 60)


def _dotted(node: ast.AST) -> str:
    """Return a name with its dots, "" for what is none, as `f().x`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := _dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""


def _bounded(compute: _Numbers, name: str, numbers: list[Any]) -> Any:
    """Compute, or raise OverflowError before an integer would grow beyond what a float can hold."""
    if name == "**" and all(isinstance(each, int) for each in numbers):
        base, power = numbers
        if abs(base) > 1 and abs(power) * abs(base).bit_length() > _MOST_BITS + abs(power):
            raise OverflowError
    found = compute(*numbers)
    if isinstance(found, int) and found.bit_length() > _MOST_BITS:
        raise OverflowError
    return found
