"""Statements of later kernels in Triton: numbers that have names, arguments of every kind, rows with NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.reference import numerics as num
from tests.reference.in_triton import InTriton
from tests.reference.programs import BOTH, Node, arguments
from tests.reference.tiles import UndeterminedError
from tests.reference.triton_tl import BUILTINS, named, typed, typing_names

LITERALS = (
    "0", "1", "2", "3", "-7", "0.0", "4.0", "0.1", "-0.5", "True", "False", "2000000000", "3000000000", "-2147483648",
    "-2147483649", "2**40", "-(2**33)", "2**63", "1e-40", "3.5e38", 'float("inf")', '-float("inf")', 'float("nan")',
    "7 // -2", "-7 % 3", "2000000000 + 2000000000", "1e-30 * 1e-12", "fixed", "fixed * 2", "fixed // 2", "7 / 2",
)  # fmt: skip
ARGUMENTS = (
    "flag + 1", "flag * small", "~flag", "flag & (pid > 1)", "flag == True", "flag + bit", "bit + pid", "bit < 1",
    "wide + 1", "wide * 3000000000", "wide // 2", "wide % 5", "-wide", "exact * 3", "exact + share", "exact / 7",
    "0.1 + exact", "exact > 0.1", "half * 3", "half + small", "half * half", "0.1 - half", "half / 3", "byte + 27",
    "byte * byte", "byte * 1000000", "byte + pid", "huge // 3", "huge + 1", "huge > 5", "huge % 1000", "huge * 2",
    "pair[0] * 2", "pair[1] + pair[0]", "pair[0] // 2", "both.low + both.high", "both.low * both.low", "both[0] - 1",
    "held[1] + held[2][1]", "tl.load(held[0] + held[1])", "held[2][0] * 3", "fixed * share", "fixed + pid",
    "fixed + fixed", "fixed * half", "small if flag else pid", "tl.where(flag, small, pid)", "exact.to(tl.float32)",
    "wide.to(tl.int8)", "flag.to(tl.float16)", "fixed < pid", "min(small, pid)", "max(pid, 2, small)",
)  # fmt: skip
WITH_A_TILE = (
    "{0} * (flag + 1)", "{0} + flag", "{0} * exact", "exact - {0}", "{0} + wide", "{0} * half", "half < {0}",
    "{0} + byte", "{0} * pair[1]", "{0} * pair[0]", "{0} + both.low", "{0} - both.high", "{0} + fixed", "fixed * {0}",
    "{0} * small", "{0} / fixed", "{0} > exact", "tl.where(flag, {0}, {0} + 1)", "{0} if flag else {0} + 1",
    "{0} + huge", "{0} // pair[0]", "{0} % small", "{0} == bit", "{0} / half", "{0} + held[1]", "held[2][1] * {0}",
    "tl.load(held[0] + held[1]) + {0}",
)  # fmt: skip
UNPACKED = (
    ("a, b = pair", "a + b"), ("a, b = pair", "a // 2 - b"), ("low, high = both", "low + high"),
    ("t = both", "t.low * 2"),
    ("t = pair", "t[0] % 4"), ("p, n, _ = held", "tl.load(p + n)"), ("p, n, (on, b) = held", "n * b + on"),
    ("a, b = 3, 0.5", "a + b"), ("a, (b, c) = 3, (0.5, True)", "a * b + c"), ("t = (-7, 2)", "t[0] // t[1]"),
    ("a, b = -7, 2", "a % b"), ("a, b = 2000000000, 300", "a * b"), ("a, b = 7, small", "b - a"),
)  # fmt: skip
DIVISIONS = (
    "{a} // {b}", "{a} % {b}", "{a} * {b} * {a}", "{a} // 2", "{a} % -3", "{a} / {b}", "{a} - {b} << 3",
    "{a} * 1000003", "({a} >> 1) // {b}", "~{a} % {b}", "-{a} // {b}", "17 // {b}", "-17 % {b}",
)  # fmt: skip


class Named(InTriton):
    """A kernel in Triton under way, whose assignments make scalars of numbers."""

    def __init__(self, maker: Any, runtime: Any, grid: tuple[int, ...] | None) -> None:
        super().__init__(maker, runtime, grid)
        self.scope |= BUILTINS
        exec(BOTH, self.scope)
        for name, argument in arguments(maker.seed).items():
            said = eval(argument.annotation, self.scope) if argument.annotation else ""
            self.scope[name] = typed(eval(argument.text, self.scope), said)

    def run(self, node: Node) -> Any:
        """Give what a statement makes in program 0, a number as the scalar that its name has."""
        for line in node.before:
            exec(typing_names(line.format(*node.args), whole=True), self.scope)
        value = eval(node.text.format(*node.args), self.scope)
        return value if node.target is None else named(value)

    def literal(self) -> str | None:
        """A number that has a name."""
        return self.tile(self.rng.choice(LITERALS))

    def argument(self) -> str | None:
        """What arguments give, perhaps with a tile."""
        x = self.pick()
        if x is None or self.rng.random() < 0.5:
            return self.tile(self.rng.choice(ARGUMENTS))
        return self.tile(self.rng.choice(WITH_A_TILE), x)

    def unpacked(self) -> str | None:
        """What a tuple gives."""
        line, text = self.rng.choice(UNPACKED)
        return self.tile(text, before=(line,))

    def divided(self) -> str | None:
        """Whole numbers that have names, divided or wrapped."""
        n = self.maker.count()
        a, b = f"a{n}", f"b{n}"
        high = self.rng.choice((9, 9, 2**31 - 1, 2**33))
        first, second = self.rng.randrange(-high, high), self.rng.choice((-5, -2, 2, 3, 7, 100))
        before = (f"{a} = {first}", f"{b} = {self.rng.choice((str(second), str(second), 'small + 20'))}")
        return self.tile(self.rng.choice(DIVISIONS).format(a=a, b=b), before=before)

    def changed(self) -> str | None:
        """A number that is counted up, in steps or in a loop, or that a branch changes."""
        n = f"n{self.maker.count()}"
        first = self.rng.choice(("0", "7", "-7", "0.5", "100", "2000000000", "fixed", "True"))
        more = self.rng.choice((
            (f"{n} *= 300", f"{n} -= pid"), (f"{n} += 0.5", f"{n} /= 3"), (f"{n} //= 2", f"{n} %= 2"),
            (f"if pid > 1: {n} = {first} + 3",), (f"while {n} < 3: {n} += 2",), (f"{n} = {n} * {n}", f"{n} *= {n}"),
            (f"for i in range(3): {n} += i",), (f"for i in tl.static_range(3): {n} += i * 2",),
            (f"for i in range(wide, wide + 2): {n} = i // 2 - 5",), (f"{n} *= half", f"{n} += flag"),
        ))  # fmt: skip
        x = self.pick()
        text = self.rng.choice((n, f"{n} * 2", f"{{0}} * {n}", f"{n} + {{0}}")) if x is not None else n
        before = (f"{n} = {first}", *more)
        if more[0].startswith(("if", "for", "while")) and not self._of_one_type(n, before):
            return None
        return self.tile(text, *((x,) if x is not None and "{0}" in text else ()), before=before)

    def summed(self) -> str | None:
        """A sum of what a loop loads, of the type that the first number has."""
        name, buffer = self.source()
        total = f"t{self.maker.count()}"
        rounds = self.rng.choice((2, 5, 20))
        step = self.rng.choice((1, 1, 2))
        if rounds * step > len(buffer.data) or buffer.dtype in num.F8:
            return None
        first = self.rng.choice(("0.0", "0.0", "1.0") if num.is_float(buffer.dtype) else ("0", "0", "0.0", "100"))
        loaded = f"tl.load({name} + {self.start(len(buffer.data) - rounds * step)} + i * {step})"
        if self.rng.random() < 0.2 and rounds < 20:
            loaded = f"tl.sum({loaded.removesuffix(')')} + tl.arange(0, {step})))"
        count = self.rng.choice(("range({})", "tl.range({})", "tl.static_range({})", "range(0, {})")).format(rounds)
        added = self.rng.choice((loaded, loaded, f"{loaded} * 0.5", f"{loaded} * i", f"share * {loaded}"))
        lines = f"{total} = {first}", f"for i in {count}: {total} += {added}"
        return self.tile(total, before=lines) if self._of_one_type(total, lines) else None

    def _of_one_type(self, name: str, lines: tuple[str, ...]) -> bool:
        """Say whether a name keeps its first type, which Triton asks of blocks of statements."""
        try:
            kinds = {self.run(Node(name, before=lines[:n])).dtype for n in (1, len(lines))}
        except (TypeError, UndeterminedError):
            return False
        return len(kinds) == 1

    def without_nan(self) -> str | None:
        """The extremes of rows of which some have NaN, or nothing else."""
        x = self.pick(lambda t: len(t.shape) >= 1 and num.is_float(t.dtype) and t.dtype not in num.F8)
        if x is None:
            return None
        shape = self.scope[x].shape
        of, axis = self.rng.randrange(len(shape)), self.rng.randrange(len(shape))
        index = ", ".join(":" if at == of else "None" for at in range(len(shape)))
        line = f"tl.arange(0, {shape[of]})" + (f"[{index}]" if len(shape) > 1 else "")
        on = self.rng.choice(
            (f"{line} % 2 == 1", f"{line} > {self.rng.randrange(shape[of])}", f"{line} == 0", f"{line} < 0")
        )
        row = f'tl.where({on}, {{0}}, float("nan"))'
        name = self.rng.choice(("max", "min", "argmax", "argmin", "max", "min"))
        if name in ("max", "min") and self.rng.random() < 0.6:
            return self.tile(f"tl.{name}({row}, {axis}, return_indices=True)[{self.rng.randrange(2)}]", x)
        return self.tile(f"tl.{name}({row}, {axis}{self.rng.choice(('', ', keep_dims=True'))})", x)

    def step(self) -> None:
        """Add a statement of some kind: of these, or of those before."""
        kinds: list[Callable[[], Any]] = [
            *[self.literal] * 2, *[self.argument] * 5, self.unpacked, *[self.divided] * 2, *[self.changed] * 2,
            *[self.summed] * 3, *[self.without_nan] * 2,
        ]  # fmt: skip
        if self.rng.random() < 0.6:
            self.rng.choice(kinds)()
        else:
            super().step()
