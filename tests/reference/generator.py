"""Make up race-free programs over all of `tl`, from seeds."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import numpy as np

from tests.reference import numerics as num
from tests.reference.further import Further, spoilt
from tests.reference.in_triton import InTriton
from tests.reference.kernels import Kernel
from tests.reference.named import Named
from tests.reference.posts import Runtime
from tests.reference.programs import NAMED, NUMBERS, Launch, Program, Tensor
from tests.reference.streamed import Streamed
from tests.reference.tiles import Pointer
from tests.reference.trials import DTYPES, MESHES
from tests.reference.triton_tl import TritonRuntime, readable

#: From this seed on programs have more kinds of statements, and some an error; those before it are as they always were.
FURTHER = 10_000
#: From this seed on they have products that nobody waits for, too.
STREAMED = 20_000
#: From this seed on they are files in Triton.
TRITON = 30_000


class Maker:
    """Make one program from a seed."""

    def __init__(self, seed: int, on_demand: bool = True, topology: str | None = None) -> None:
        self.rng, self.seed, self.on_demand = random.Random(seed), seed, on_demand
        self.topology = topology or ("default" if self.rng.random() < 0.04 else "tiny")
        self.pes = int(np.prod(MESHES[self.topology]))
        self.tensors: list[Tensor] = []
        self.writable: set[str] = set()
        self.computed: set[str] = set()
        self.written: set[str] = set()
        self.scratch: list[str] = []
        self._count = 0
        self.triton = seed >= TRITON
        self.runtime: Runtime = TritonRuntime(self.pes) if self.triton else Runtime(self.pes)
        self._helpers: dict[str, Any] = {"np": np}
        exec(NUMBERS, self._helpers)

    def count(self) -> int:
        """Give a number that is new."""
        self._count += 1
        return self._count

    def add(
        self, call: str, output: bool, shape: tuple[int, ...], kernel: Kernel | None, placement: str | None = None
    ) -> str:
        """Make a tensor; the kernel under way sees it."""
        name = f"{'y' if output else 'x'}{len(self.tensors)}"
        tensor = Tensor(name, call, placement or self.placement(shape, output), output)
        buffer = self._made(name, call)
        self.tensors.append(tensor)
        if kernel is not None:
            kernel.scope[name] = Pointer(buffer, np.asarray(0))
        return name

    def _made(self, name: str, call: str) -> Any:
        return eval(call[:-1] + f", name={name!r})", {**self._helpers, "rt": self.runtime})

    def input(self, kernel: Kernel | None, dtype: str, shape: tuple[int, ...], low: int = -20, high: int = 21) -> str:
        """Make a tensor that is read."""
        kind, more = num.dtype_of(dtype), ""
        if num.is_float(kind):
            more = self.rng.choice(("", ", 0.5", ", 0.25"))
            if not more and kernel is None and kind not in num.F8:
                low, high = -200, 1800  # a sum of these is beyond what f16 and bf16 hold exactly
            if self.rng.random() < 0.08 and kernel is None and (kind not in num.F8 or self.seed >= FURTHER):
                more = ", 0.5, wild=True"
        elif dtype == "bool":
            low, high = 0, 2
        elif kind.kind == "u":
            low = 0
        elif self.rng.random() < 0.15 and kernel is None:
            low, high = (-100, 100) if kind.itemsize == 1 else (-30000, 30000)
        call = f'rt.tensor(numbers({self.rng.randrange(10**6)}, {shape}, {low}, {high}{more}), "{dtype}")'
        return self.add(call, False, shape, kernel)

    def output(self, kernel: Kernel | None, shape: str, dtype: str) -> str:
        """Make a tensor in which every program has a block of its own."""
        name = self.add(f'rt.zeros({shape}, "{dtype}")', True, eval(shape), kernel)
        self.written.add(name)
        return name

    def placement(self, shape: tuple[int, ...], output: bool) -> str:
        """Choose a placement that divides; arrays of the host have none."""
        if self.triton:
            return "None"
        pes = MESHES[self.topology][2]
        choices = ["None", "None", "Interleave(64)", "Interleave(256)"]
        for dim, extent in enumerate(shape):
            if extent % self.pes == 0:
                choices += [f"Shard({dim})"] * 2
            if extent % pes == 0 and (not output or self.topology == "tiny"):
                choices += [f'{{"pe": Shard({dim})}}', f"(Replicate(), Replicate(), Shard({dim}))"]
        if not output:
            choices += ["Replicate()", '{"cube": Replicate(), "pe": Interleave(64)}']
        return self.rng.choice(choices)

    def program(self) -> Program:
        """Make the whole program."""
        with readable() if self.triton else contextlib.nullcontext():
            return self._program()

    def _program(self) -> Program:
        for dtype in self.rng.sample(DTYPES, self.rng.randrange(2, 4)):
            self.input(None, dtype, self.rng.choice(((64,), (16, 16), (8, 24), (4, 8, 4), (96,))))
        self.input(None, self.rng.choice(("int32", "int32", "int64", "int16")), (64,), 0, 64)
        launches = []
        for number in range(self.rng.choice((1, 1, 2))):
            grid = self.rng.choice((None, None, (6,), (3,), (2, 3), (2, 2, 2), (9,)))
            if self.triton:
                grid = grid or (4,)
            self.written = set()
            kernel = self._kernel(grid)
            launches.append(Launch(("first", "second")[number], tuple(kernel.nodes), grid, tuple(sorted(kernel.local))))
            self.computed |= self.written
            self.writable = set()
            self._replay(self._so_far(launches))
        if self.seed >= FURTHER and not self.triton and self.rng.random() < 0.15:
            launches[-1] = spoilt(launches[-1], kernel)
        return self._so_far(launches)

    def _so_far(self, launches: list[Launch]) -> Program:
        return Program(self.seed, self.topology, tuple(self.tensors), tuple(launches), self.triton)

    def _kernel(self, grid: tuple[int, ...] | None) -> Kernel:
        in_triton = Named if self.seed >= NAMED else InTriton
        later = in_triton if self.triton else Streamed if self.seed >= STREAMED else Further
        kinds = later if self.seed >= FURTHER else Kernel
        kernel = kinds(self, self.runtime, grid)
        if self.rng.random() < 0.6:
            dtype = self.rng.choice(("f32", "f32", "f16", "bf16", "int32", "int8", "uint8", "int64"))
            name = self.output(kernel, f"({kernel.programs}, {self.rng.choice((8, 16, 64))})", dtype)
            self.writable.add(name)
        older = [name for name in self.scratch if len(self.runtime.tensors[name].data) % kernel.programs == 0]
        if older and self.rng.random() < 0.4:
            self.writable.add(older[0])
            self.written.add(older[0])
        self.scratch = sorted(self.writable)
        for _ in range(self.rng.randrange(4, 14 if self.topology == "tiny" else 9)):
            kernel.step()
        kernel.finish()
        return kernel

    def _replay(self, program: Program) -> None:
        """Run the program so far, so that the next kernel is made with what it leaves in memory."""
        from tests.reference.harness import run_reference

        self.runtime = run_reference(program)
        for tensor in self.tensors:
            if tensor.name not in self.runtime.tensors:  # not used so far
                self._made(tensor.name, tensor.call)
