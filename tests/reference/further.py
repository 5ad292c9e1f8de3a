"""Statements of later seeds: any of several senders, directions, own shards, bits, fillers, narrow products, errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tests.reference import numerics as num
from tests.reference.kernels import Kernel
from tests.reference.programs import Launch, Node
from tests.reference.tiles import Pointer
from tests.reference.trials import INTS, name_of

#: Where a PE lies in its package, and how many columns and rows there are, by machine.
COLUMNS = {"tiny": ("pid % 2", 2), "default": ("pid // 8 % 2 * 4 + pid % 4", 8)}
ROWS = {"tiny": ("pid // 2", 2), "default": ("pid // 16 % 2 * 2 + pid // 4 % 2", 4)}


class Further(Kernel):
    """A kernel of more kinds of statements."""

    def readable(self, name: str) -> bool:
        """Say whether a program may load from all of a tensor: it is given whole, and none of this launch writes it."""
        return name not in self.local and super().readable(name)

    def step(self) -> None:
        """Add a statement of some kind."""
        kinds: list[Callable[[], Any]] = [
            *[self.filled] * 3, *[self.bits] * 2, *[self.any_of_two, self.from_all] * 2, *[self.shifted] * 3,
            *[self.shard] * 2, *[self.own_output], *[self.dequantised] * 2, *[self.mixed] * 2,
        ]  # fmt: skip
        if self.tiles and self.rng.random() < 0.35:
            self.rng.choice(kinds)()
        else:
            super().step()

    # Loads

    def filled(self) -> str | None:
        """A masked load, of which a tile is where the mask is off."""
        x = self.pick(lambda t: 1 <= len(t.shape) <= 2)
        name, buffer = self.source()
        if x is None:
            return None
        shape, kind = self.scope[x].shape, self.dtype(x)
        size = int(np.prod(shape))
        if size > len(buffer.data) or (num.is_float(kind) and not num.is_float(buffer.dtype)):
            return None
        other = "{0}" if kind == buffer.dtype else f'{{0}}.to("{name_of(buffer.dtype)}")'
        start, last = self.start(len(buffer.data) - size), f"tl.arange(0, {shape[-1]})"
        if len(shape) == 1:
            places, index = f"{start} + {last}", last
        else:
            rows = f"tl.arange(0, {shape[0]})[:, None]"
            places = f"{start} + {rows} * {shape[1]} + {last}[None, :]"
            index = self.rng.choice((rows, f"{last}[None, :]"))
        mask = self.rng.choice((f"{index} < {self.rng.randrange(6)}", f"{index} % 2 == 0", f"({index} + pid) % 3 > 0"))
        if len(shape) == 2 and self.rng.random() < 0.3 and kind == buffer.dtype:
            other = self.rng.choice(("tl.max({0}, 0, keep_dims=True)", "tl.min({0}, 1, keep_dims=True)"))
        return self.tile(f"tl.load({name} + {places}, mask={mask}, other={other})", x)

    def bits(self) -> str | None:
        """Load the bits of a tensor as integers."""
        name, buffer = self.source()
        to = num.dtype_of(self.rng.choice(INTS))
        room = len(buffer.data) * buffer.dtype.itemsize // to.itemsize
        size = self.rng.choice([n for n in (1, 2, 4, 8, 16) if n <= room] or [0])
        if not size:
            return None
        first = self.rng.randrange(room - size + 1) * to.itemsize
        placed = next(tensor.placement for tensor in self.maker.tensors if tensor.name == name)
        whole = to.itemsize <= buffer.dtype.itemsize or placed.startswith(("Replicate", "Interleave"))
        if first % buffer.dtype.itemsize or not whole:
            return None  # other placements, and none, may cut a wider element apart
        at = f"{name} + {first // buffer.dtype.itemsize}"
        return self.tile(f'tl.load({at}, shape=({size},), dtype="{to.name}")', ready=self.settled(name))

    # Messages

    def sent(self) -> str | None:
        """Choose a tile to send, where all programs do the same."""
        x = self.pick(lambda t: 1 <= t.data.size <= 128 and len(t.shape) >= 1)
        return None if self.grid is not None or self.deep else x

    def any_of_two(self) -> str | None:
        """Send a tile to two programs, and take those of two, whichever is there first."""
        x = self.sent()
        if x is None:
            return None
        near, far = self.rng.sample(range(1, self.programs), 2)
        n, what = self.maker.count(), f'{tuple(self.scope[x].shape)}, "{name_of(self.dtype(x))}"'
        before = (
            f"s{n} = [(pid - {near}) % world, (pid - {far}) % world]",
            f"tl.send({{0}}, (pid + {near}) % world, wait=False)",
            f"tl.send({{0}}, (pid + {far}) % world)",
            f"a{n}, p{n} = tl.recv_any({what}, s{n})",
            f"b{n}, q{n} = tl.recv_any({what}, [s for s in s{n} if s != p{n}])",
        )
        text = f"tl.join(a{n}, b{n}) if p{n} == s{n}[0] and q{n} == s{n}[1] else tl.join(b{n}, a{n})"
        return self.tile(text, x, before=before, shown="tl.join({0}, {0})")

    def from_all(self) -> str | None:
        """Send a tile to all others, and take the first that comes, then the rest."""
        x = self.sent()
        if x is None or self.maker.topology != "tiny":
            return None
        n, what = self.maker.count(), f'{tuple(self.scope[x].shape)}, "{name_of(self.dtype(x))}"'
        before = (
            "for s in range(1, world): tl.send({0}, (pid + s) % world, wait=False)",
            f"a{n}, p{n} = tl.recv_any({what})",
            f"r{n} = {{{{s: a{n} if s == p{n} else tl.recv({what}, s) for s in range(world) if s != pid}}}}",
        )
        first, second = self.rng.sample(range(1, self.programs), 2)
        text = f"tl.join(r{n}[(pid + {first}) % world], r{n}[(pid + {second}) % world])"
        return self.tile(text, x, before=before, shown="tl.join({0}, {0})")

    def shifted(self) -> str | None:
        """Send a tile one PE on in a direction, and take that of the one before; at an edge keep it."""
        x = self.sent()
        if x is None:
            return None
        direction = self.rng.choice("nesw")
        place, extent = (COLUMNS if direction in "ew" else ROWS)[self.maker.topology]
        last, first = (extent - 1, 0) if direction in "es" else (0, extent - 1)
        back = {"n": "s", "s": "n", "e": "w", "w": "e"}[direction]
        shape, dtype = tuple(self.scope[x].shape), name_of(self.dtype(x))
        wait = self.rng.choice(("", ", wait=False"))
        send = f'if {place} != {last}: tl.send({{0}}, "{direction}"{wait})'
        text = f'tl.recv({shape}, "{dtype}", "{back}"{wait}) if {place} != {first} else {{0}}'
        return self.tile(text, x, ready=self.tiles[x], before=(send,), shown="{0}")

    # Shards of its own

    def whole(self) -> bool:
        """Say whether every PE runs this statement once."""
        return self.grid is None and not self.deep

    def shard(self) -> str | None:
        """Load from the part of a tensor that the PE itself holds."""
        mine = sorted(name for name in self.local if name.startswith("x"))
        if not self.whole():
            return None
        if not mine or self.rng.random() < 0.5:
            n, rows = self.rng.choice((8, 16)), self.rng.choice((1, 2))
            dtype = self.rng.choice(("f32", "f16", "bf16", "int32", "int8", "f8e5m2"))
            low = self.rng.randrange(10**6)
            call = f'rt.tensor(numbers({low}, ({self.programs * rows}, {n}), -20, 21), "{dtype}")'
            mine = [self.given(self.maker.add(call, False, (), self, "Shard(0)"))]
        name = self.rng.choice(mine)
        size = len(self.scope[name].tensor.data)
        count = self.rng.choice([m for m in (1, 2, 4, 8) if m <= size])
        at = self.rng.randrange(size - count + 1)
        return self.tile(f"tl.load({name} + {at}, shape=({count},))", ready=True)

    def own_output(self) -> None:
        """Store into the part of a tensor that the PE itself holds."""
        x = self.pick(lambda t: len(t.shape) >= 1)
        if x is None or not self.whole():
            return
        shape, dtype = self.scope[x].shape, name_of(self.dtype(x))
        call = f'rt.zeros(({self.programs}, {int(np.prod(shape))}), "{dtype}")'
        name = self.given(self.maker.add(call, True, (), self, "Shard(0)"))
        self.maker.written.add(name)
        self.do(f"tl.store({name}, {{0}})", x)

    def given(self, name: str) -> str:
        """Have a tensor be given as the part that each PE holds."""
        self.local.add(name)
        self.scope[name] = Pointer(self.scope[name].tensor.part(0, self.programs), np.asarray(0))
        return name

    # Narrow numbers

    def dequantised(self) -> str | None:
        """A product of narrow numbers, the tiles of which are scaled before they are added up."""
        m, k, n = (self.rng.choice((2, 4)), self.rng.choice((4, 8)), self.rng.choice((4, 8)))
        kind = self.rng.choice(("int8", "int8", "f8e4m3", "f8e5m2", "f16"))
        a = self.maker.input(self, kind, (m, k), low=-4, high=5)
        b = self.maker.input(self, kind, (k, n), low=-4, high=5)
        scales = self.maker.input(self, "f32", (2, n), low=-3, high=4)
        step = self.rng.choice(
            (
                f'tl.epilogue("dequant", tl.ref({scales} , (2, {n})), "k_tile", per_tile=True)',
                f'tl.epilogue("dequant", tl.ref({scales} , ({n},)), "k_tile")',
                f'("dequant", tl.ref({scales} , ({n},)))',
                '("dequant", 0.25)',
            )
        )
        more = self.rng.choice(("", ', "relu"', ', ("add", 1.0)', ', ("maximum", -2.0), ("minimum", 5.0)'))
        out = self.maker.output(self, f"({self.programs}, {m}, {n})", self.rng.choice(("f32", "f16", "bf16")))
        what = f'"gemm", tl.ref({a} , ({m}, {k})), tl.ref({b} , ({k}, {n})), {out} + pid * {m * n}'
        run = f"tl.wait(tl.composite({what}, tile_k={k // 2}, epilogue=[{step}{more}]))"
        return self.tile(f"tl.load({out} + pid * {m * n}, shape=({m}, {n}))", before=(run,))

    def mixed(self) -> str | None:
        """A product of two 8-bit floats, of the same kind or not, with an accumulator or without."""
        x = self.pick(lambda t: len(t.shape) == 2 and num.is_float(t.dtype))
        if x is None:
            return None
        left, right = (self.rng.choice(("f8e4m3", "f8e5m2")) for _ in "ab")
        rows = self.scope[x].shape[0]
        acc = self.rng.choice(("", f', tl.full(({rows}, {rows}), 1.5, "f32")'))
        return self.tile(f'tl.dot({{0}}.to("{left}"), tl.trans({{0}}).to("{right}"){acc})', x)


def spoilt(launch: Launch, kernel: Kernel) -> Launch:
    """Give the launch with an error at the end of its kernel, in all programs or in one."""
    rng = kernel.rng
    nodes = [node for make in (_outside, _crooked, _nothing, _too_early) for node in make(kernel)]
    if not nodes:
        return launch
    wrong = rng.choice(nodes)
    if rng.random() < 0.5:
        wrong = Node(f"if pid == {rng.randrange(kernel.programs)}", body=(wrong,))
    return replace(launch, nodes=(*launch.nodes, wrong))


def _inputs(kernel: Kernel) -> list[tuple[str, int, np.dtype[Any]]]:
    """Give the tensors that may be loaded from: name, elements, dtype."""
    names = [tensor.name for tensor in kernel.maker.tensors if kernel.readable(tensor.name)]
    return [(name, len(kernel.scope[name].tensor.data), kernel.scope[name].tensor.dtype) for name in names]


def _outside(kernel: Kernel) -> list[Node]:
    """Give accesses that reach outside a tensor."""
    name, size, _ = kernel.rng.choice(_inputs(kernel))
    texts = (
        f"tl.load({name} + {size - 1}, shape=(2,))",
        f"tl.load({name} - 1)",
        f"tl.load({name} + tl.arange(0, 4) * {size})",
        f"tl.load({name} + {size - 4} + tl.arange(0, 8), mask=tl.arange(0, 8) < 5)",
        f"tl.load({name} + 1, shape=(2, 2), strides=(1, -2))",
    )
    return [Node(kernel.rng.choice(texts))]


def _crooked(kernel: Kernel) -> list[Node]:
    """Give a load of wider numbers that does not start at a multiple of their size."""
    narrow = [name for name, size, dtype in _inputs(kernel) if dtype.itemsize < 4 and size * dtype.itemsize >= 16]
    return [Node(f'tl.load({kernel.rng.choice(narrow)} + 1, shape=(1,), dtype="int32")')] if narrow else []


def _nothing(kernel: Kernel) -> list[Node]:
    """Give a load of what nobody has written."""
    name = kernel.maker.add('rt.empty((64,), "f32")', False, (), kernel, "None")
    return [Node(kernel.rng.choice((f"tl.load({name}, shape=(4,))", f"tl.load({name} + pid)")))]


def _too_early(kernel: Kernel) -> list[Node]:
    """Give reads of what is known after phase 2 only."""
    x = kernel.pick(lambda t: num.is_float(t.dtype) and len(t.shape) >= 1)
    if x is None:
        return []
    name, _, _ = kernel.rng.choice(_inputs(kernel))
    first = ", ".join("0" * len(kernel.scope[x].shape))
    texts = (
        f"({{0}} * 2.0)[{first}]",
        f"bool(({{0}} > 0.5)[{first}])",
        "tl.sum({0}).item()",
        f'tl.load({name} + ({{0}}.to("int32") & 1))',
        f"tl.load({name} + tl.arange(0, 1), mask=tl.max({{0}}) > 0)",
    )
    return [Node(kernel.rng.choice(texts), (x,))]
