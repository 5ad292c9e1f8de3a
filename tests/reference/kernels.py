"""Statements that touch memory, other programs and control: loads, stores, messages, composites, branches, loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.reference import numerics as num
from tests.reference.arithmetic import Arithmetic
from tests.reference.programs import Node
from tests.reference.tiles import Buffer, Pointer, UndeterminedError
from tests.reference.trials import name_of


class Kernel(Arithmetic):
    """One kernel under way."""

    # Loads

    def source(self) -> tuple[str, Buffer]:
        """Choose a tensor to load from, all of which was written."""
        names = [t.name for t in self.maker.tensors if self.readable(t.name)]
        name = self.rng.choice(names)
        return name, self.scope[name].tensor

    def readable(self, name: str) -> bool:
        """Say whether a program may load from all of a tensor: none of this launch writes it."""
        return name not in self.maker.written

    def load(self) -> str | None:
        """A tile of consecutive rows, with steps between, or with strides."""
        name, buffer = self.source()
        size, shape = len(buffer.data), self.shape()
        strides = [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
        how = self.rng.random()
        if how < 0.5:
            strides = [s * self.rng.choice((1, 1, 2, 3)) for s in strides]
        if how < 0.2:
            self.rng.shuffle(strides)
        reach = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1
        if reach > size:
            return None
        start = self.start(size - reach)
        wait = self.rng.choice(("", "", ", wait=False"))
        given = "" if how >= 0.5 else f", strides={tuple(strides)}"
        return self.tile(f"tl.load({name} + {start}, shape={shape}{given}{wait})", ready=self.settled(name))

    def start(self, room: int) -> str:
        """Choose where in a tensor a tile begins, differently in each program."""
        if room <= 0:
            return "0"
        first = self.rng.randrange(room + 1)
        return self.rng.choice((str(first), f"(pid * {self.rng.randrange(1, 40)} + {first}) % {room + 1}"))

    def settled(self, name: str) -> bool:
        """Say whether what is loaded from a tensor is known at once."""
        return name not in self.maker.computed or self.maker.on_demand

    def load_pointers(self) -> str | None:
        """A tile of pointers, affine in one or two dimensions, masked or not."""
        name, buffer = self.source()
        size = len(buffer.data)
        rows, columns, step = (
            self.rng.choice((1, 2, 3, 4, 8)),
            self.rng.choice((2, 4, 5, 8, 16)),
            self.rng.choice((1, 1, 2)),
        )
        pitch = columns * step + self.rng.choice((0, 0, 1, 3))
        start = self.start(max(0, size - rows * pitch))
        if self.rng.random() < 0.4:
            places, index, limit = f"{start} + tl.arange(0, {columns}) * {step}", f"tl.arange(0, {columns})", columns
            inside = f"({places} < {size})"
        else:
            grid = f"tl.arange(0, {rows})[:, None] * {pitch} + tl.arange(0, {columns})[None, :] * {step}"
            places, limit = f"{start} + {grid}", rows
            index = self.rng.choice((f"tl.arange(0, {rows})[:, None]", f"tl.arange(0, {columns})[None, :]"))
            inside = f"({places} < {size})"
        mask = self.rng.choice(
            (inside, f"{inside} & ({index} < {self.rng.randrange(limit + 1)})", f"{inside} & ({index} != 1)")
        )
        if self.rng.random() < 0.2 and rows * pitch <= size:
            return self.tile(f"tl.load({name} + {places})", ready=self.settled(name))
        other = "" if self.rng.random() < 0.4 else f", other={self.number(buffer.dtype)}"
        return self.tile(f"tl.load({name} + {places}, mask={mask}{other})", ready=self.settled(name))

    def gathered(self) -> str | None:
        """Load what a loaded tile of integers points at."""
        index = self.pick(lambda t: t.dtype.kind in "iu" and t.dtype.itemsize <= 8, ready=True)
        name, buffer = self.source()
        if index is None:
            return None
        top = 1 << min(6, len(buffer.data).bit_length() - 1)
        mask = f", mask={{0}} >= 2, other={self.number(buffer.dtype)}" if self.rng.random() < 0.3 else ""
        return self.tile(f"tl.load({name} + ({{0}} & {top - 1}){mask})", index, ready=self.settled(name))

    # Memory of its own

    def own(self) -> tuple[str, int] | None:
        """Choose a tensor in which every program has a block, and give the elements of a block."""
        names = sorted(self.maker.writable)
        if not names:
            return None
        name = self.rng.choice(names)
        return name, len(self.scope[name].tensor.data) // self.programs

    def do(self, text: str, *args: str, **more: Any) -> bool:
        """Take a statement that makes nothing."""
        try:
            self.keep(Node(text, args, **more))
        except (TypeError, UndeterminedError):
            return False
        return True

    def stored(self) -> None:
        """Store into the program's own block, perhaps over what is there, masked or with steps."""
        found = self.own()
        if found is None:
            return
        name, block = found
        kind = self.scope[name].tensor.dtype
        x = self.pick(
            lambda t: t.data.size <= block and (num.is_float(t.dtype) <= num.is_float(kind)) and len(t.shape) <= 2
        )
        if x is None:
            return
        shape = self.scope[x].shape
        size = int(np.prod(shape))
        base = f"{name} + pid * {block} + {self.rng.randrange(block - size + 1)}"
        if len(shape) == 1 and self.rng.random() < 0.5:
            n = shape[0]
            masks = [f"tl.arange(0, {n}) < {self.rng.randrange(n + 1)}", f"tl.arange(0, {n}) % 2 == 0"]
            masked = self.pick(lambda t: t.dtype == num.BOOL and t.shape == shape)
            masks += ["{1}"] * 3 if masked else []
            mask = self.rng.choice(masks)
            args = (x, masked) if masked and mask == "{1}" else (x,)
            self.do(f"tl.store({base} + tl.arange(0, {n}), {{0}}, mask={mask})", *args)
        elif len(shape) == 2 and self.rng.random() < 0.5 and shape[0] * (shape[1] + 1) <= block:
            self.do(f"tl.store({name} + pid * {block}, {{0}}, strides=({shape[1] + 1}, 1))", x)
        else:
            self.do(f"tl.store({base}, {{0}})", x)

    def reloaded(self) -> str | None:
        """Load from the program's own block."""
        found = self.own()
        if found is None:
            return None
        name, block = found
        size = self.rng.choice([n for n in (1, 2, 4, 8, 16) if n <= block])
        at = self.rng.randrange(block - size + 1)
        wait = self.rng.choice(("", ", wait=False"))
        return self.tile(f"tl.load({name} + pid * {block} + {at}, shape=({size},){wait})")

    def overtaken(self) -> None:
        """Load without waiting, store over it, use what was loaded."""
        found = self.own()
        if found is None:
            return
        name, block = found
        size = self.rng.choice([n for n in (1, 2, 4, 8, 16) if n <= block])
        at = self.rng.randrange(block - size + 1)
        x = self.tile(f"tl.load({name} + pid * {block} + {at}, shape=({size},), wait=False)")
        value = self.number(self.scope[name].tensor.dtype)
        self.do(f"tl.store({name} + pid * {block} + {at} + tl.arange(0, {size}), {value})")
        if x is not None and self.dtype(x) not in num.F8:
            self.tile("{0} + {0}", x)

    def ring(self) -> str | None:
        """Send a tile to another program, and take that of another."""
        x = self.pick(lambda t: t.data.size > 0 and len(t.shape) >= 1)
        if x is None or self.grid is not None or self.deep:
            return None
        step = self.rng.randrange(1, self.programs)
        shape, dtype = tuple(self.scope[x].shape), name_of(self.dtype(x))
        wait = self.rng.choice(("", ", wait=False"))
        send = f"tl.send({{0}}, (pid + {step}) % world{wait})"
        text = f'tl.recv({shape}, "{dtype}", (pid - {step}) % world{self.rng.choice(("", ", wait=False"))})'
        return self.tile(text, x, ready=self.tiles[x], before=(send,), shown="{0}")

    def composite(self) -> str | None:
        """A tiled product or function with an epilogue, into the program's own block of a new tensor."""
        m, k, n = (self.rng.choice((2, 4, 8)), self.rng.choice((4, 8)), self.rng.choice((4, 8)))
        kind = self.rng.choice(("f16", "bf16", "f32", "int8"))
        name = self.maker.output(
            self, f"({self.programs}, {m}, {n})", "int32" if kind == "int8" else self.rng.choice(("f32", "f16"))
        )
        a = self.maker.input(self, kind, (m, k), low=-4, high=5)
        b = self.maker.input(self, kind, (k, n), low=-4, high=5)
        steps = self.steps(m, n) if kind != "int8" else "[]"
        text = f'"gemm", tl.ref({a} , ({m}, {k})), tl.ref({b} , ({k}, {n}))'
        if kind != "int8" and self.rng.random() < 0.3:
            name = self.maker.output(self, f"({self.programs}, {m}, {k})", "f32")
            text, n = f'"math", tl.ref({a} , ({m}, {k})), None', k
            text_more = f', math_op="{self.rng.choice(("relu", "exp", "tanh"))}"'
            steps = self.steps(m, n)
        else:
            text_more = self.rng.choice(("", f", tile_k={k // 2}, tile_m={m // 2}"))
        run = f"tl.wait(tl.composite({text}, {name} + pid * {m * n}{text_more}, epilogue={steps}))"
        return self.tile(f"tl.load({name} + pid * {m * n}, shape=({m}, {n}))", before=(run,))

    def steps(self, m: int, n: int) -> str:
        """Choose an epilogue."""
        bias = self.maker.input(self, "f32", (n,), low=-3, high=4)
        choices = [
            '("scale", 0.5)',
            '"relu"',
            '("maximum", 0.25)',
            f'("bias", tl.ref({bias} , ({n},)))',
            '"silu"',
            '"tanh"',
            '("add", 2.0)',
        ]
        return "[" + ", ".join(self.rng.sample(choices, self.rng.randrange(3))) + "]"

    # Control

    def condition(self) -> tuple[str, tuple[str, ...]] | None:
        """Choose what a branch depends on: an element of loaded data."""
        x = self.pick(lambda t: len(t.shape) >= 1, ready=True)
        if x is not None and self.rng.random() < 0.6:
            index = ", ".join(str(self.rng.randrange(n)) for n in self.scope[x].shape)
            return f"{{0}}[{index}] > {self.rng.randrange(-2, 3)}", (x,)
        names = [t.name for t in self.maker.tensors if self.readable(t.name) and self.settled(t.name)]
        earlier = [name for name in names if name in self.maker.computed]
        name = self.rng.choice(earlier if earlier and self.rng.random() < 0.7 else names)
        room = len(self.scope[name].tensor.data) - 1
        return f"tl.load({name} + {self.start(room)}).item() > {self.rng.randrange(-2, 3)}", ()

    def block(self, n: int) -> tuple[Node, ...]:
        """Make statements for a branch or a loop, which change tiles from outside."""
        outer, tiles, scope = self.nodes, dict(self.tiles), self.scope
        self.scope = dict(scope)
        self.nodes, self.deep = [], self.deep + 1
        changed = self.rng.sample(sorted(tiles), min(2, len(tiles)))
        if self.deep > 1:  # in the next round of the loop around it, a statement before it may need a ready one
            changed = [x for x in changed if not tiles[x]]
        self.tiles.update(dict.fromkeys(changed, False))  # in a loop also before the statement that changes them
        for _ in range(n):
            self.step()
        for x in changed:
            like = scope[x]
            y = self.pick(lambda t, like=like: t.shape == like.shape and t.dtype == like.dtype)  # type: ignore[misc]
            text = self.rng.choice(("{0} + {1}", "{1}")) if like.dtype not in num.F8 else "{1}"
            self.nodes.append(Node(text, (x, y or x), x))
            tiles[x] = False
        made, self.nodes, self.tiles = self.nodes, outer, tiles
        scope.update({name: value for name, value in self.scope.items() if isinstance(value, Pointer)})
        self.scope = scope
        self.deep -= 1
        return tuple(made)

    def branch(self) -> None:
        """A branch on data."""
        found = self.condition()
        if found is None or self.deep > 1:
            return
        try:
            eval(found[0].format(*found[1]), self.scope)
        except UndeterminedError:
            return
        body = self.block(self.rng.randrange(1, 4))
        orelse = self.block(self.rng.randrange(3)) if self.rng.random() < 0.5 else ()
        if body:
            self.nodes.append(Node(f"if {found[0]}", found[1], body=body, orelse=orelse))

    def loop(self) -> None:
        """A loop of a fixed number of rounds."""
        if self.deep > 1:
            return
        body = self.block(self.rng.randrange(1, 3))
        if body:
            self.nodes.append(Node(f"for _ in range({self.rng.randrange(1, 4)})", body=body))

    def step(self) -> None:
        """Add a statement of some kind."""
        kinds: list[Callable[[], Any]] = [
            *[self.load] * 2, *[self.load_pointers] * 3, self.gathered, *[self.view] * 4, self.joined,
            *[self.arithmetic] * 6, *[self.division] * 4, *[self.chosen] * 2, *[self.converted] * 3,
            *[self.function] * 3,
            *[self.reduction] * 4, self.product, self.counted, *[self.stored] * 3, *[self.reloaded] * 2,
            self.overtaken, self.ring, self.composite, *[self.branch] * 2, self.loop,
        ]  # fmt: skip
        if not self.tiles:
            kinds = [self.load, self.load_pointers]
        self.rng.choice(kinds)()

    def finish(self) -> None:
        """Store some tiles, each into a tensor of its own."""
        names = sorted(self.tiles, key=lambda name: int(name[1:]))
        last = names[-3:] + self.rng.sample(names, min(2, len(names)))
        for x in dict.fromkeys(last):
            shape, kind = self.scope[x].shape, name_of(self.dtype(x))
            n = int(np.prod(shape))
            out = self.maker.output(self, f"({self.programs}, {n})", kind)
            self.do(f"tl.store({out} + pid * {n}, {{0}})", x)
