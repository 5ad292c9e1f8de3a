"""Statements of kernels in Triton: tiles of pointers, block pointers, scalars, functions that combine, branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.reference import numerics as num
from tests.reference.kernels import Kernel
from tests.reference.programs import COMBINING, Node, numbers
from tests.reference.tiles import Tile, UndeterminedError
from tests.reference.trials import name_of
from tests.reference.triton_tl import TritonTl, typed

SCALARS = (
    "pid * 3 + 1", "pid // 2", "pid % 3", "-pid", "(pid + 1).to(tl.int64)", "pid.to(tl.float32) * 0.5", "pid & 1",
    "tl.minimum(pid, 2)", "tl.cdiv(pid + 5, 2)", "(pid + 7) * 1000003 * 4001", "pid ^ 5", "~pid", "pid << 3",
    "(pid - 9) >> 1", "tl.where(pid > 1, pid, 7)", "world - 1 - pid", "(pid - 3) // 2", "(pid - 3) % 2",
    "(pid * 77).to(tl.int8)", "pid / 2", "5 - pid", "7 // (pid + 1)", "(pid + 1).to(tl.float16) / 3",
    "tl.maximum(pid.to(tl.uint8), 250) + 10", "small + 1", "large // 3", "large % 1000", "large - pid", "share * 2",
    "pid * share", "share / 3.0", "0.7 - share", "large >> 4", "(large * 5).to(tl.int32)", "share == 0.3",
    "~(small < pid)", "large + share", "(large < pid).to(tl.int8)", "small * share + pid", "-large", "share // 0.3",
    "small.to(tl.int8) * 100", "tl.where(small > 0, large, pid)", "tl.minimum(large, small)",
    "0.1 * pid", "~(0.5 < small)", "2.5 - large", "1.0 / (pid + 3)", "-0.3 * small + share",
)  # fmt: skip

MOVING = ("reshape", "view", "trans", "permute", "broadcast_to", "expand_dims", "None", "bitcast", "flip", "ravel")


class InTriton(Kernel):
    """A kernel in Triton under way."""

    def __init__(self, maker: Any, runtime: Any, grid: tuple[int, ...] | None) -> None:
        super().__init__(maker, runtime, grid)
        first = list(self.nodes)
        own = self.scope["tl"]
        self.nodes, self.scope["tl"] = [], TritonTl(own._program, own._grid, None)  # type: ignore[arg-type]
        self.scope.update({name: typed(number) for name, number in numbers(maker.seed).items()})
        for name, body in COMBINING.items():
            exec(f"def {name}(a, b):\n    {body}", self.scope)
        for node in first:
            self.keep(node)

    def pick(self, test: Callable[[Tile], bool] = lambda tile: True, ready: bool = False) -> str | None:
        """Choose a tile: all may be read."""
        return super().pick(test)

    def places(self, shape: tuple[int, ...], steps: tuple[int, ...]) -> str:
        """Give the offsets of a tile's elements."""
        terms = []
        for axis, (extent, step) in enumerate(zip(shape, steps, strict=True)):
            index = ", ".join(":" if at == axis else "None" for at in range(len(shape)))
            terms.append(f"tl.arange(0, {extent}){f'[{index}]' if len(shape) > 1 else ''} * {step}")
        return " + ".join(terms) or "0"

    def _rows(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))

    def load(self) -> str | None:
        """A tile of pointers, perhaps with steps between, and turned."""
        name, buffer = self.source()
        shape = self.shape()
        steps = [step * self.rng.choice((1, 1, 2, 3)) for step in self._rows(shape)]
        if self.rng.random() < 0.3:
            self.rng.shuffle(steps)
        reach = sum((n - 1) * step for n, step in zip(shape, steps, strict=True)) + 1
        if reach > len(buffer.data):
            return None
        start = self.start(len(buffer.data) - reach)
        return self.tile(f"tl.load({name} + {start} + {self.places(shape, tuple(steps))})")

    def scalar(self) -> str | None:
        """A number of the program."""
        if self.rng.random() < 0.3:
            name, buffer = self.source()
            return self.tile(f"tl.load({name} + {self.start(len(buffer.data) - 1)})")
        return self.tile(self.rng.choice(SCALARS))

    def filled(self) -> str | None:
        """A tile of one number, or a load with one where the mask is off."""
        number = self.rng.choice(("small", "share", "pid", "large", "share * 3", "pid > 1"))
        if self.rng.random() < 0.5:
            dtype = self.rng.choice(("int32", "f32", "f16", "bf16", "int8", "int64", "uint8"))
            return self.tile(f'tl.full({self.shape(16)}, {number}, "{dtype}")')
        name, buffer = self.source()
        n = self.rng.choice((2, 4, 8))
        if (
            n > len(buffer.data)
            or buffer.dtype in num.F8
            or (number.startswith("share") and not num.is_float(buffer.dtype))
        ):
            return None
        places = f"{self.start(len(buffer.data) - n)} + tl.arange(0, {n})"
        return self.tile(f"tl.load({name} + {places}, mask=tl.arange(0, {n}) != 1, other={number})")

    def view(self) -> str | None:
        """Another shape; scalars have none."""
        return super().view() if self.tiles and any(self.scope[x].shape for x in self.tiles) else None

    def tile(self, text: str, *args: str, **more: Any) -> str | None:
        """Take an assignment of a new tile; what turns tiles about takes no scalars."""
        if any(word in text for word in MOVING) and any(not self.scope[x].shape for x in args):
            return None
        return super().tile(text, *args, **more)

    # Block pointers

    def block_pointer(self, base: str, size: int, checked: bool) -> tuple[str, tuple[int, int]]:
        """Give a block pointer into `size` elements, and its block's extents."""
        columns = self.rng.choice([n for n in (1, 2, 3, 4, 5, 8) if n <= size])
        rows = size // columns
        block = self.rng.choice((1, 2, 4)), self.rng.choice((1, 2, 4, 8))
        strides = (columns, 1)
        shape = (rows, columns)
        if self.rng.random() < 0.3:
            strides, shape = strides[::-1], shape[::-1]
        at = tuple(self.rng.randrange(-2, n + 2) for n in shape)
        text = f"tl.make_block_ptr({base}, {shape}, {strides}, {at}, {block}, (1, 0))"
        if self.rng.random() < 0.4:
            text = f"tl.advance({text}, ({self.rng.randrange(-1, 3)}, {self.rng.choice(('pid', '1', '0'))}))"
        return text, block

    def loaded_block(self) -> str | None:
        """A block that reaches over the edges."""
        name, buffer = self.source()
        pointer, _ = self.block_pointer(name, len(buffer.data), True)
        padding = self.rng.choice(("zero", "nan")) if num.is_float(buffer.dtype) else "zero"
        return self.tile(f'tl.load({pointer}, boundary_check=(0, 1), padding_option="{padding}")')

    # Memory of its own

    def stored(self) -> None:
        """Store into the program's own block by pointers, masked or not, or by a block pointer."""
        found = self.own()
        if found is None:
            return
        name, block = found
        kind = self.scope[name].tensor.dtype
        x = self.pick(lambda t: t.data.size <= block and num.is_float(t.dtype) <= num.is_float(kind))
        if x is None:
            return
        shape = tuple(self.scope[x].shape)
        base = f"{name} + pid * {block}"
        if len(shape) == 2 and self.rng.random() < 0.4:
            rows = self.rng.randrange(1, block // shape[1] + 1)
            at = f"({rows}, {shape[1]}), ({shape[1]}, 1), ({self.rng.randrange(-1, 2)}, 0), {shape}, (1, 0)"
            self.do(f"tl.store(tl.make_block_ptr({base}, {at}), {{0}}, boundary_check=(0, 1))", x)
            return
        first = self.rng.randrange(block - int(np.prod(shape)) + 1)
        args, mask = (x,), ""
        if shape and self.rng.random() < 0.5:
            masked = self.pick(lambda t: t.dtype == num.BOOL and t.shape == shape)
            index = "tl.arange(0, {})[{}]".format(shape[-1], ", ".join(["None"] * (len(shape) - 1) + [":"]))
            index = index.removesuffix("[:]")
            mask = f", mask={index} < {self.rng.randrange(shape[-1] + 1)}"
            if masked is not None:
                args, mask = (x, masked), ", mask={1}"
        self.do(f"tl.store({base} + {first} + {self.places(shape, self._rows(shape))}, {{0}}{mask})", *args)

    def reloaded(self) -> str | None:
        """Load from the program's own block."""
        found = self.own()
        if found is None:
            return None
        name, block = found
        size = self.rng.choice([n for n in (1, 2, 4, 8, 16) if n <= block])
        at = self.rng.randrange(block - size + 1)
        return self.tile(f"tl.load({name} + pid * {block} + {at} + tl.arange(0, {size}))")

    # Functions that combine

    def combined(self) -> str | None:
        """A reduction or a scan of whole numbers by a function, or sorted ones."""

        def fits(tile: Tile) -> bool:
            return len(tile.shape) >= 1 and tile.dtype.kind in "iu" and all(n & (n - 1) == 0 for n in tile.shape)

        x = self.pick(fits)
        if x is None:
            return None
        how, axis = self.rng.random(), self.rng.randrange(len(self.scope[x].shape))
        if how < 0.25:
            return self.tile(f"tl.sort({{0}}{self.rng.choice(('', ', descending=True'))})", x)
        name = self.rng.choice(sorted(COMBINING))
        if how < 0.6:
            return self.tile(f"tl.reduce({{0}}, {axis}, {name})", x)
        return self.tile(f"tl.associative_scan({{0}}, {axis}, {name}{self.rng.choice(('', ', reverse=True'))})", x)

    # Control

    def condition(self) -> tuple[str, tuple[str, ...]] | None:
        """Choose what a branch depends on: what was loaded or computed, or the program."""
        limit = self.rng.randrange(4)  # an unsigned number is not compared with a negative one
        x = self.pick(lambda t: t.data.size > 0 and t.dtype not in num.F8)
        if x is not None and self.rng.random() < 0.6:
            whole = "{0}" if not self.scope[x].shape else f"tl.{self.rng.choice(('max', 'min'))}({{0}})"
            return self.rng.choice((f"{whole} > {limit}", f"{limit} < {whole} <= {limit + 5}")), (x,)
        if self.rng.random() < 0.4:
            return self.rng.choice(("pid % 2 == 0", "pid > 1", "1 <= pid < world", "not pid")), ()
        names = [t.name for t in self.maker.tensors if self.readable(t.name)]
        name = self.rng.choice(names)
        return f"tl.load({name} + {self.start(len(self.scope[name].tensor.data) - 1)}) > {limit}", ()

    def loop(self) -> None:
        """A loop of a few rounds, of numbers of any kind."""
        if self.deep > 1:
            return
        body = self.block(self.rng.randrange(1, 3))
        if not body:
            return
        n, rounds = self.maker.count(), self.rng.randrange(1, 4)
        if self.rng.random() < 0.7:
            count = self.rng.choice((f"range({rounds})", f"tl.range({rounds})", f"tl.static_range({rounds})",
                                     f"tl.range(pid, pid + {rounds})"))  # fmt: skip
            self.nodes.append(Node(f"for i{n} in {count}", body=body))
            return
        more = Node(f"n{n} + 1", target=f"n{n}")
        self.nodes.append(Node(f"while n{n} < {rounds}", before=(f"n{n} = pid * 0",), body=(*body, more)))

    def left(self) -> None:
        """Some programs end."""
        if self.deep == 0 and self.programs > 1 and self.rng.random() < 0.5:
            self.nodes.append(Node(self.rng.choice(("if pid == world - 1", "if pid >= 2")), body=(Node("return"),)))

    def step(self) -> None:
        """Add a statement of some kind."""
        kinds: list[Callable[[], Any]] = [
            *[self.load] * 2, *[self.load_pointers] * 3, self.gathered, *[self.view] * 3, self.joined,
            *[self.arithmetic] * 7, *[self.division] * 4, *[self.chosen] * 2, *[self.converted] * 3,
            *[self.function] * 3, *[self.reduction] * 4, self.product, self.counted, *[self.stored] * 3,
            *[self.reloaded] * 2, *[self.branch] * 2, self.loop, *[self.scalar] * 5,
            *[self.loaded_block] * 2, self.filled, *[self.combined] * 3, self.left,
        ]  # fmt: skip
        if not self.tiles:
            kinds = [self.load, self.load_pointers, self.scalar, self.loaded_block]
        self.rng.choice(kinds)()

    def branch(self) -> None:
        """A branch on data; one that depends on what is not exact says nothing."""
        try:
            super().branch()
        except UndeterminedError:
            return

    def finish(self) -> None:
        """Store some tiles, each into a tensor of its own."""
        names = sorted(self.tiles, key=lambda name: int(name[1:]))
        for x in dict.fromkeys(names[-3:] + self.rng.sample(names, min(3, len(names)))):
            shape, kind = tuple(self.scope[x].shape), name_of(self.dtype(x))
            n = int(np.prod(shape))
            if n:
                out = self.maker.output(self, f"({self.programs}, {n})", kind)
                self.do(f"tl.store({out} + pid * {n} + {self.places(shape, self._rows(shape))}, {{0}})", x)
