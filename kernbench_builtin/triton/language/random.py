"""Random numbers by counters: bit for bit those of Triton, whatever program draws them.

The bits are one timed command for each word (`compute.ops.random_bits`); what is made of them are timed commands too.
"""

from __future__ import annotations

from typing import Any

from kernbench_builtin.triton.language.numbers import NumberLanguage, is_number
from kernbench_core.compute.ops.random_bits import ROUNDS
from kernbench_core.kernel.index import broadcast_shapes
from kernbench_core.kernel.tl.shapes import kind_of, shape_of
from kernbench_core.values.dtypes import itemsize

_SCALES = {32: 4.6566127342e-10, 64: 1.0842020432385337e-19}
"""By bits the greatest float of which the greatest signed integer times is below 1."""


class RandomLanguage(NumberLanguage):
    """`philox`, and numbers of several distributions."""

    def philox(self, seed: Any, c0: Any, c1: Any, c2: Any, c3: Any, n_rounds: int = ROUNDS) -> tuple[Any, ...]:
        """Give the four words that the key `seed` (64 bits) makes of a counter of four words."""
        return tuple(self._words(seed, (c0, c1, c2, c3), n_rounds, 4))

    def randint4x(self, seed: Any, offset: Any, n_rounds: int = ROUNDS) -> tuple[Any, ...]:
        """Give four words of 32 random bits for each offset."""
        return tuple(self._words(seed, self._counter(offset), n_rounds, 4))

    def randint(self, seed: Any, offset: Any, n_rounds: int = ROUNDS) -> Any:
        """Give a word of 32 random bits for each offset."""
        return self._words(seed, self._counter(offset), n_rounds, 1)[0]

    def rand(self, seed: Any, offset: Any, n_rounds: int = ROUNDS) -> Any:
        """Give a float of [0, 1) for each offset."""
        return self.uint_to_uniform_float(self.randint(seed, offset, n_rounds))

    def rand4x(self, seed: Any, offset: Any, n_rounds: int = ROUNDS) -> tuple[Any, ...]:
        """Give four floats of [0, 1) for each offset."""
        return tuple(map(self.uint_to_uniform_float, self.randint4x(seed, offset, n_rounds)))

    def randn(self, seed: Any, offset: Any, n_rounds: int = ROUNDS) -> Any:
        """Give a float of the standard normal distribution for each offset."""
        first, second = self._words(seed, self._counter(offset), n_rounds, 2)
        radius, angle = self._polar(*map(self.uint_to_uniform_float, (first, second)))
        return radius * self.unary("cos", angle)

    def randn4x(self, seed: Any, offset: Any, n_rounds: int = ROUNDS) -> tuple[Any, ...]:
        """Give four floats of the standard normal distribution for each offset."""
        u1, u2, u3, u4 = self.rand4x(seed, offset, n_rounds)
        return (*self.pair_uniform_to_normal(u1, u2), *self.pair_uniform_to_normal(u3, u4))

    def uint_to_uniform_float(self, x: Any) -> Any:
        """Make a float of [0, 1) of 32 or 64 random bits: the sign folded, and scaled."""
        bits = 8 * itemsize(kind_of(x))
        signed = self.cast(x, f"int{bits}", bitcast=True)
        return self.where(signed < 0, -signed - 1, signed) * _SCALES[bits]

    def pair_uniform_to_normal(self, u1: Any, u2: Any) -> tuple[Any, Any]:
        """Make two normal floats of two uniform ones, by Box and Muller."""
        radius, angle = self._polar(u1, u2)
        return radius * self.unary("cos", angle), radius * self.unary("sin", angle)

    def _polar(self, u1: Any, u2: Any) -> tuple[Any, Any]:
        radius = self.unary("sqrt", self.unary("log", self.maximum(1.0e-7, u1)) * -2.0)
        return radius, u2 * 6.283185307179586

    def _counter(self, offset: Any) -> tuple[Any, ...]:
        """Give the counter of an offset: its lower word, and its upper one where it has one."""
        self.check_operand(offset, "rand")
        if is_number(offset):
            return int(offset) & 0xFFFFFFFF, (int(offset) >> 32) & 0xFFFFFFFF, 0, 0
        return offset, (offset >> 32 if itemsize(offset.dtype) == 8 else 0), 0, 0

    def _words(self, seed: Any, counter: tuple[Any, ...], rounds: int, count: int) -> list[Any]:
        key = (seed, seed >> 32) if not is_number(seed) else (int(seed) & 0xFFFFFFFF, (int(seed) >> 32) & 0xFFFFFFFF)
        things = [int(thing) if is_number(thing) else thing for thing in (*key, *counter)]
        shape: tuple[int, ...] = ()
        for thing in things:
            self.check_operand(thing, "philox")
            shape = broadcast_shapes(shape, shape_of(thing), "tl.philox")
        extra = {} if int(rounds) == ROUNDS else {"rounds": int(rounds)}
        return [
            self.math("philox", things, shape, "uint32", operand_dtype="int64", extra={"part": part, **extra})
            for part in range(count)
        ]
