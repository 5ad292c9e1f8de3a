"""Statements that compute: views, operators, casts, reductions, products."""

from __future__ import annotations

import numpy as np

from tests.reference import numerics as num
from tests.reference.tiles import Tile
from tests.reference.trials import DTYPES, MOST, Trials


class Arithmetic(Trials):
    """Add statements that make a tile of tiles; each gives its name, or None where none fits."""

    def view(self) -> str | None:
        """Another shape of a tile."""
        x = self.pick()
        if x is None:
            return None
        shape = self.scope[x].shape
        size, ndim = int(np.prod(shape)), len(shape)
        choices = ["tl.ravel({0})", "tl.flip({0})"] if ndim else []
        if ndim == 1:
            choices += ["{0}[None, :]", "{0}[:, None]", "tl.expand_dims({0}, 0)", "tl.expand_dims({0}, 1)"]
        if ndim == 2:
            choices += [
                "tl.trans({0})",
                "tl.permute({0}, (1, 0))",
                "{0}[:, None, :]",
                "tl.flip({0}, 0)",
                "{0}[None, :, :]",
            ]
        if ndim == 3:
            choices += ["tl.trans({0}, 2, 0, 1)", "tl.permute({0}, (0, 2, 1))"]
        factors = [(a, size // a) for a in range(1, size + 1) if size % a == 0]
        choices += [
            f"tl.{self.rng.choice(('reshape', 'view'))}({{0}}, {self.rng.choice(factors)})",
            f"tl.reshape({{0}}, ({size},))",
        ]
        if ndim and 1 in shape:
            wider = tuple(self.rng.choice((2, 3, 4)) if n == 1 else n for n in shape)
            choices += [f"tl.broadcast_to({{0}}, {wider})"] * 3
        if ndim and shape[-1] == 2:
            choices += ["tl.split({0})[0]", "tl.split({0})[1]"]
        text = self.rng.choice(choices)
        free = not text.startswith(("tl.trans", "tl.perm", "tl.flip", "tl.broad", "tl.split"))
        return self.tile(text, x, ready=free and self.tiles[x])

    def joined(self) -> str | None:
        """Two tiles of one shape and dtype as one."""
        x = self.pick(lambda t: len(t.shape) >= 1)
        if x is None:
            return None
        like = self.scope[x]
        y = self.pick(lambda t: t.shape == like.shape and t.dtype == like.dtype)
        text = self.rng.choice(("tl.cat({0}, {1})", "tl.join({0}, {1})", "tl.interleave({0}, {1})"))
        return self.tile(text, x, y or x)

    def fitting(self, *others: str) -> str | None:
        """Choose a tile that broadcasts with others."""
        shape = np.broadcast_shapes(*(self.scope[x].shape for x in others))

        def fits(tile: Tile) -> bool:
            try:
                return np.prod(np.broadcast_shapes(shape, tile.shape)) <= MOST
            except ValueError:
                return False

        return self.pick(fits)

    def arithmetic(self) -> str | None:
        """An operator on two tiles, or on one and a number."""
        x = self.pick()
        if x is None:
            return None
        y = None if self.rng.random() < 0.3 else self.fitting(x)
        kinds = {self.dtype(n) for n in (x, y) if n is not None}
        whole = not any(num.is_float(kind) for kind in kinds)
        operators = ["+", "-", "*", "+", "*", "<", "<=", ">", ">=", "==", "!="]
        operators += ["&", "|", "^"] if whole else ["/"]
        text, operator = "{1}", self.rng.choice(operators)
        if y is None:
            text = self.number(self.dtype(x))
            if self.dtype(x) in num.F8 or self.dtype(x) == num.BOOL:
                return None
        left, right = ("{0}", text) if self.rng.random() < 0.7 else (text, "{0}")
        expression = f"{left} {operator} {right}"
        if self.rng.random() < 0.12:
            expression = f"tl.{self.rng.choice(('maximum', 'minimum'))}({left}, {right})"
        args = (x,) if y is None else (x, y)
        return self.tile(expression, *args, ready=self.is_ready(*args))

    def division(self) -> str | None:
        """Divide or shift integers."""
        x = self.pick(lambda t: t.dtype.kind in "iu")
        if x is None:
            return None
        text = self.rng.choice(
            (
                "{0} // 3",
                "{0} // -3",
                "{0} % 3",
                "{0} // 4",
                "{0} % 5",
                "{0} << 1",
                "{0} >> 2",
                "~{0}",
                "{0} / 4",
                "-{0}",
            )
        )
        y = self.fitting(x)
        if y is not None and self.dtype(y) == self.dtype(x) and self.rng.random() < 0.4:
            operator = self.rng.choice(("//", "%", "/"))
            text = f"{{0}} {operator} tl.where({{1}} == 0, 1, {{1}})"
            return self.tile(text, x, y, ready=operator != "/" and self.is_ready(x, y))
        if text.endswith(("-{0}", "-3")) and self.dtype(x).kind == "u":
            return None
        return self.tile(text, x, ready="/ 4" not in text.replace("//", "") and self.is_ready(x))

    def chosen(self) -> str | None:
        """`where`, `clamp`, `fma`."""
        c = self.pick(lambda t: t.dtype == num.BOOL)
        x = self.pick()
        if x is None:
            return None
        if c is None or self.rng.random() < 0.2:
            if not num.is_float(self.dtype(x)) or self.dtype(x) in num.F8:
                return None
            return self.tile(self.rng.choice(("tl.clamp({0}, -2.0, 3.0)", "tl.fma({0}, {0}, {0})")), x)
        x = self.fitting(c)
        if x is None:
            return None
        y = self.fitting(c, x)
        if self.rng.random() < 0.3 or y is None:
            if self.dtype(x) in num.F8 or self.dtype(x) == num.BOOL:
                return None
            return self.tile(f"tl.where({{0}}, {{1}}, {self.number(self.dtype(x))})", c, x, ready=self.is_ready(c, x))
        return self.tile("tl.where({0}, {1}, {2})", c, x, y, ready=self.is_ready(c, x, y))

    def converted(self) -> str | None:
        """Cast a tile."""
        x, to = self.pick(), self.rng.choice(DTYPES)
        if x is None:
            return None
        if num.is_float(self.dtype(x)) and not num.is_float(num.dtype_of(to)):
            if self.dtype(x) in num.F8:
                return None
            return self.tile(f'tl.clamp({{0}}, -96.0, 96.0).to("{to}")', x)
        if self.rng.random() < 0.1 and num.dtype_of(to).itemsize == self.dtype(x).itemsize:
            if num.BOOL in (self.dtype(x), num.dtype_of(to)) or num.is_float(num.dtype_of(to)):
                return None
            return self.tile(f'{{0}}.to("{to}", bitcast=True)', x)
        return self.tile(f'{{0}}.to("{to}")', x)

    def function(self) -> str | None:
        """A function of floats."""
        x = self.pick(lambda t: num.is_float(t.dtype))
        if x is None:
            return None
        name = self.rng.choice(
            ("exp", "exp2", "sin", "cos", "tanh", "sigmoid", "erf", "floor", "ceil", "abs", "sqrt", "rsqrt", "log")
        )
        inner = "{0}"
        if name in ("sqrt", "rsqrt", "log", "log2", "exp", "exp2", "sin", "cos"):
            inner = "tl.clamp({0}, 0.25, 8.0)"
        return self.tile(f"tl.{name}({inner})", x)

    def reduction(self) -> str | None:
        """Reduce or scan."""
        x = self.pick(lambda t: len(t.shape) >= 1)
        if x is None:
            return None
        axis = self.rng.randrange(len(self.scope[x].shape))
        scan = self.rng.random() < 0.3
        if scan:
            name = self.rng.choice(("cumsum", "cumsum", "cumprod"))
            return self.tile(
                f"tl.{name}({{0}}, {axis}{self.rng.choice(('', ', reverse=True'))})", x, ready=self.is_ready(x)
            )
        names = ["sum", "sum", "max", "min", "argmax", "argmin"]
        if not num.is_float(self.dtype(x)):
            names += ["xor_sum", "reduce_or"]
        kept = self.rng.choice(("", "", ", keep_dims=True"))
        name = self.rng.choice(names)
        whole = "" if self.rng.random() < 0.15 and name in ("sum", "max", "min") and not kept else f", {axis}"
        return self.tile(f"tl.{name}({{0}}{whole}{kept})", x, ready=self.is_ready(x))

    def product(self) -> str | None:
        """`dot`."""

        def fits(tile: Tile) -> bool:
            return len(tile.shape) == 2 and (num.is_float(tile.dtype) or tile.dtype == num.I8)

        x = self.pick(fits)
        if x is None:
            return None
        k, kind = self.scope[x].shape[1], self.dtype(x)
        y = self.pick(lambda t: fits(t) and t.shape[0] == k and t.dtype == kind)
        if y is None:
            return self.tile("tl.dot({0}, tl.trans({0}))", x)
        return self.tile("tl.dot({0}, {1})", x, y)

    def counted(self) -> str | None:
        """`histogram` and `gather`."""
        x = self.pick(lambda t: t.dtype.kind in "iu" and len(t.shape) == 1 and t.dtype.itemsize > 1)
        if x is None:
            return None
        if self.rng.random() < 0.5:
            return self.tile("tl.histogram({0} & 7, 8)", x, ready=self.is_ready(x))
        y = self.pick(lambda t: len(t.shape) == 1 and t.shape[0] >= 4)
        return None if y is None else self.tile("tl.gather({1}, {0} & 3, 0)", x, y)
