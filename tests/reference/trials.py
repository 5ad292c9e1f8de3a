"""Statements under way: each is tried on the reference interpreter, as program 0, before it is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.reference import numerics as num
from tests.reference.interpreter import Tl
from tests.reference.posts import Post
from tests.reference.programs import Node
from tests.reference.tiles import Pointer, Tile, UndeterminedError

if TYPE_CHECKING:
    from tests.reference.generator import Maker
    from tests.reference.posts import Runtime

INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
FLOATS = ("f16", "bf16", "f32", "f8e4m3", "f8e5m2")
DTYPES = (*INTS, *FLOATS, "f16", "bf16", "f32", "f32", "int32", "int32", "bool")
SHORT = {
    num.BOOL: "bool", num.F16: "f16", num.BF16: "bf16", num.F32: "f32", num.E4M3: "f8e4m3", num.E5M2: "f8e5m2"
}  # fmt: skip
MESHES = {"tiny": (1, 1, 4), "default": (2, 4, 8)}
MOST = 256  # elements of a tile


def name_of(dtype: np.dtype[Any]) -> str:
    """Give a dtype's name in the language."""
    return SHORT.get(dtype) or dtype.name


class Trials:
    """The statements of a kernel so far, and the tiles that they make in program 0."""

    def __init__(self, maker: Maker, runtime: Runtime, grid: tuple[int, ...] | None) -> None:
        self.maker, self.rng, self.runtime, self.grid = maker, maker.rng, runtime, grid
        full = (*(grid or (maker.pes,)), 1, 1)[:3]
        self.programs = int(np.prod(full))
        self.scope: dict[str, Any] = {"tl": Tl((0, 0, 0), full, Post()), "range": range, "int": int}
        self.nodes: list[Node] = []
        self.tiles: dict[str, bool] = {}  # names of tiles, and whether they are ready
        self.deep = 0
        self.local: set[str] = set()  # tensors of which this kernel is given the part of its own PE
        for tensor in maker.tensors:
            self.scope[tensor.name] = Pointer(runtime.tensors[tensor.name], np.asarray(0))
        pid = "tl.program_id(0)"
        for axis in range(1, len(grid or ())):
            pid += f" + tl.program_id({axis}) * {int(np.prod(full[:axis]))}"
        self.keep(Node(pid, target="pid"))
        self.keep(Node("tl.num_programs(0)", target="world"))

    # Statements

    def keep(self, node: Node) -> None:
        """Run a statement and take it; what it raises means that it is none."""
        value = self.run(node)
        if node.target is not None:
            self.scope[node.target] = value
        self.nodes.append(node)

    def run(self, node: Node) -> Any:
        """Give what a statement makes in program 0."""
        for line in node.before if node.shown is None else ():
            exec(line.format(*node.args), self.scope)
        return eval((node.shown or node.text).format(*node.args), self.scope)

    def tile(self, text: str, *args: str, ready: bool = False, **more: Any) -> str | None:
        """Take an assignment of a new tile; give its name, or None where the types do not allow it."""
        name = f"v{self.maker.count()}"
        node = Node(text, args, name, **more)
        try:
            value = self.run(node)
        except (TypeError, UndeterminedError):
            return None
        if not isinstance(value, Tile) or value.data.size > MOST:
            return None
        shape, dtype = tuple(value.shape), name_of(value.dtype)
        self.scope[name] = value
        self.nodes.append(Node(text, args, name, plain=f'tl.full({shape}, 1, "{dtype}")', **more))
        self.tiles[name] = ready
        return name

    def pick(self, test: Callable[[Tile], bool] = lambda tile: True, ready: bool = False) -> str | None:
        """Choose a tile at random, late ones rather."""
        names = [n for n, is_ready in self.tiles.items() if (is_ready or not ready) and test(self.scope[n])]
        if not names:
            return None
        return names[max(self.rng.randrange(len(names)), self.rng.randrange(len(names)))]

    def dtype(self, name: str) -> np.dtype[Any]:
        """Give the dtype of a tile."""
        return self.scope[name].dtype  # type: ignore[no-any-return]

    def is_ready(self, *names: str) -> bool:
        """Say whether arithmetic on these is ready: they are, and are integers."""
        return all(self.tiles.get(n, True) and not num.is_float(self.dtype(n)) for n in names)

    def shape(self, most: int = 64) -> tuple[int, ...]:
        """Choose the shape of a tile."""
        while True:
            shape = tuple(
                self.rng.choice((1, 2, 3, 4, 5, 8, 16, 32)) for _ in range(self.rng.choice((1, 1, 2, 2, 2, 3)))
            )
            if 1 < np.prod(shape) <= most:
                return shape

    def number(self, dtype: np.dtype[Any]) -> str:
        """Choose a number that a dtype holds."""
        if dtype == num.BOOL:
            return self.rng.choice(("True", "False"))
        if num.is_float(dtype):
            return self.rng.choice(("0.0", "1.0", "-1.0", "2.0", "0.5", "-0.25", "3.0", "-6.0"))
        return str(self.rng.randrange(0 if dtype.kind == "u" else -9, 12))
