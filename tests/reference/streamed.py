"""Statements of the latest seeds: products that are on their way while the kernel goes on, and what uses them then."""

from __future__ import annotations

import numpy as np

from tests.reference import numerics as num
from tests.reference.further import Further
from tests.reference.tiles import Tile


class Streamed(Further):
    """A kernel with products that it does not wait for."""

    def step(self) -> None:
        """Add a statement of some kind."""
        if self.tiles and self.rng.random() < 0.3:
            self.rng.choice((self.chain, self.chain, self.overtaken_product))()
        else:
            super().step()

    def factor(self) -> str | None:
        """Choose a matrix to multiply by its transpose, whose sums no dtype finds too great."""

        def fits(tile: Tile) -> bool:
            known = len(tile.shape) == 2 and (num.is_float(tile.dtype) or tile.dtype == num.I8)
            return known and not np.any(np.abs(tile.data.astype(np.float64)) > 1e4)

        return self.pick(fits)

    def chain(self) -> str | None:
        """Some products, each added to the one before or not, with a use of one in their midst or at the end."""
        x = self.factor()
        if x is None:
            return None
        n, links = self.maker.count(), self.rng.randrange(1, 4)
        before = [f"t{n} = tl.trans({{0}})"]
        shown = "tl.dot({0}, tl.trans({0}))"
        total = shown
        for link in range(links):
            acc = "" if not link else f", d{n}_{link - 1}"
            total = shown if not link else f"tl.dot({{0}}, tl.trans({{0}}), {total})"
            before.append(f"d{n}_{link} = tl.dot({{0}}, t{n}{acc}{self.rng.choice((', wait=False',) * 3 + ('',))})")
            if self.rng.random() < 0.3:
                before.append(f"e{n}_{link} = tl.dot({{0}}, t{n}, wait=False)")
            if self.rng.random() < 0.2:
                before.append(self.rng.choice((f"tl.wait(d{n}_{link})", "tl.wait()", f"d{n}_{link} * 1")))
        last = f"d{n}_{links - 1}"
        if links > 1 and self.rng.random() < 0.3:
            before.append(f"d{n}_0 = None")
        text, shown = self.rng.choice(
            (
                (last, total),
                (f"{last} + {last}", f"{total} + {total}"),
                (f"tl.trans({last})", f"tl.trans({total})"),
                (f"{last}[None, :, :]", f"({total})[None, :, :]"),
                (f"tl.dot({{0}}, t{n}, {last}, wait=False)", f"tl.dot({{0}}, tl.trans({{0}}), {total})"),
            )
        )
        return self.tile(text, x, before=tuple(before), shown=shown)

    def overtaken_product(self) -> str | None:
        """A product whose operand's name and space are gone before it can be over."""
        x = self.factor()
        if x is None:
            return None
        n = self.maker.count()
        before = [f"o{n} = tl.trans({{0}})", f"d{n} = tl.dot({{0}}, o{n}, wait=False)"]
        before += [f"tl.free(o{n})"] if self.rng.random() < 0.5 else [f"o{n} = None"]
        before.append(f"o{n} = tl.trans({{0}}) * 0")
        return self.tile(f"d{n}", x, before=tuple(before), shown="tl.dot({0}, tl.trans({0}))")
