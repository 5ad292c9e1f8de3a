"""Made-up programs as trees that can be cut down and printed: statements, kernels, tensors, launches."""

from __future__ import annotations

import random
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Node:
    """A statement. `text` has `{0}`, `{1}`, … where the names in `args` go.

    With a `target` it is an assignment; `before` are lines that belong to it and come first. With a `body` it is a
    branch or a loop, whose line is `text`. `shown` is what a single program alone would see instead of `text`; `plain`
    is a simple expression of the same shape and dtype.
    """

    text: str
    args: tuple[str, ...] = ()
    target: str | None = None
    before: tuple[str, ...] = ()
    body: tuple[Node, ...] = ()
    orelse: tuple[Node, ...] = ()
    shown: str | None = None
    plain: str | None = None

    def lines(self) -> Iterator[str]:
        """Yield source lines."""
        for line in self.before:
            yield line.format(*self.args)
        text = self.text.format(*self.args)
        if not self.body:
            yield text if self.target is None else f"{self.target} = {text}"
            return
        yield f"{text}:"
        for node in self.body:
            yield from (f"    {line}" for line in node.lines())
        if self.orelse:
            yield "else:"
            for node in self.orelse:
                yield from (f"    {line}" for line in node.lines())


@dataclass(frozen=True)
class Tensor:
    """A tensor of a bench: the call that makes it, without its placement."""

    name: str
    call: str
    placement: str = "None"
    output: bool = False

    def line(self) -> str:
        """Give its source line."""
        placement = "" if self.placement == "None" else f", placement={self.placement}"
        return f'{self.name} = {self.call[:-1]}, name="{self.name}"{placement})'


@dataclass(frozen=True)
class Launch:
    """A kernel and the grid it is launched on; None is one program for each PE.

    Of `local` tensors each program gets the part that its PE holds.
    """

    kernel: str
    nodes: tuple[Node, ...]
    grid: tuple[int, ...] | None = None
    local: tuple[str, ...] = ()


@dataclass(frozen=True)
class Program:
    """A bench on a machine, or a file in Triton, whose host is a script with numpy's arrays."""

    seed: int
    topology: str
    tensors: tuple[Tensor, ...] = ()
    launches: tuple[Launch, ...] = field(default=())
    triton: bool = False

    def uses(self, launch: Launch) -> list[str]:
        """Give the names of the tensors that a kernel mentions."""
        text = " ".join(line for node in launch.nodes for line in node.lines())
        mentioned = set(re.findall(r"\b[xy]\d+\b", text))
        if re.search(r"\bheld\b", text):  # an argument that has a tensor in it
            mentioned.add("x0")
        return [tensor.name for tensor in self.tensors if tensor.name in mentioned]

    def given(self, launch: Launch) -> dict[str, Argument]:
        """Give the arguments of a kernel beside its tensors: of later programs those that it mentions."""
        text = "\n".join(line for node in launch.nodes for line in node.lines())
        return {
            name: argument
            for name, argument in arguments(self.seed).items()
            if self.seed < NAMED or re.search(rf"\b{name}\b", text)
        }

    def source(self) -> str:
        """Give the program as a file that `kernbench run` takes, or `kernbench triton`."""
        needed = {name for launch in self.launches for name in self.uses(launch)}
        if self.triton:
            return self._script(needed)
        parts = [
            f'"""Made up from seed {self.seed}, for the machine {self.topology!r}."""',
            "import numpy as np",
            "from kernbench_core import Interleave, Replicate, Shard",
            *([NUMBERS] if any("numbers(" in t.call for t in self.tensors if t.name in needed) else []),
        ]
        for launch in self.launches:
            names = ", ".join([*self.uses(launch), "tl"])
            body = [line for node in launch.nodes for line in node.lines()] or ["pass"]
            parts.append(f"def {launch.kernel}({names}):\n" + textwrap.indent("\n".join(body), "    "))
        host = [tensor.line() for tensor in self.tensors if tensor.name in needed]
        for launch in self.launches:
            grid = "" if launch.grid is None else f", grid={launch.grid}"
            given = [f"{name}.to_local()" if name in launch.local else name for name in self.uses(launch)]
            host.append(f"rt.launch({', '.join([launch.kernel, *given])}{grid})")
        host += [
            f'rt.check({tensor.name}, lambda: WANTED["{tensor.name}"])'
            for tensor in self.tensors
            if tensor.output and tensor.name in needed
        ]
        parts.append('def bench(rt):\n    """Compare."""\n' + textwrap.indent("\n".join(host), "    "))
        parts.append("WANTED = {}")
        return "\n\n".join(parts) + "\n"

    def _script(self, needed: set[str]) -> str:
        parts = [f'"""Made up from seed {self.seed}, for the machine {self.topology!r}."""', IMPORTS, NUMBERS, ARRAY]
        parts += [BOTH] if any("both" in self.given(launch) for launch in self.launches) else []
        parts += [f"@triton.jit\ndef {name}(a, b):\n    {body}" for name, body in COMBINING.items()]
        for launch in self.launches:
            body = [line for node in launch.nodes for line in node.lines()] or ["pass"]
            text = re.sub(r'"(\w+)"', lambda found: TYPES.get(found[1], found[0]), "\n".join(body))
            typed = [
                f"{name}{argument.annotation and ': '}{argument.annotation}"
                for name, argument in self.given(launch).items()
            ]
            names = ", ".join([*self.uses(launch), *typed])
            parts.append(f"@triton.jit\ndef {launch.kernel}({names}):\n" + textwrap.indent(text, "    "))
        host = []
        for tensor in self.tensors:
            if tensor.name in needed:
                call = tensor.call.replace("rt.tensor(", "array(").replace("rt.zeros((", "array(np.zeros((")
                call = call.replace("), ", ")), ", 1) if "np.zeros" in call else call
                host.append(f"{tensor.name} = {call}")
        for launch in self.launches:
            given = [*self.uses(launch), *(argument.text for argument in self.given(launch).values())]
            host.append(f"{launch.kernel}[{launch.grid or (4,)}]({', '.join(given)})")
        return "\n\n".join([*parts, "\n".join(host)]) + "\n"

    def with_nodes(self, index: int, nodes: Sequence[Node]) -> Program:
        """Give the program with other statements in one kernel."""
        launches = list(self.launches)
        launches[index] = replace(launches[index], nodes=tuple(nodes))
        return replace(self, launches=tuple(launches))


def numbers(seed: int) -> dict[str, float]:
    """Give the numbers that kernels in Triton are launched with, and which 32 bits may not hold."""
    large = (2**31 + 99 * seed, 2**40 - seed, -(2**33) - seed)[seed % 3]
    return {"small": seed % 23 - 7, "large": large, "share": seed % 11 / 10}


#: From this seed on kernels in Triton have named numbers, and arguments of every kind.
NAMED = 40_000


@dataclass(frozen=True)
class Argument:
    """An argument of a kernel in Triton: what the host passes, in its words, and what its parameter says."""

    text: str
    annotation: str = ""


def arguments(seed: int) -> dict[str, Argument]:
    """Give the arguments that kernels in Triton may have beside tensors; none is 1, which Triton makes a constant."""
    found = {name: Argument(repr(number)) for name, number in numbers(seed).items()}
    if seed < NAMED:
        return found
    rng = random.Random(seed)
    half, low = rng.choice((0.3, -1.7, 2049.0)), rng.choice((-7, 5, 2**31 - 1))
    return {
        **found,
        "small": Argument(str(rng.choice((-7, -2, 0, 3, 5, 11)))),
        "flag": Argument(str(seed % 2 == 0)),
        "bit": Argument(str(rng.randrange(2)), rng.choice(("tl.int1", '"u1"'))),
        "wide": Argument(str(rng.choice((3, -5, 2**31 - 1))), rng.choice(("tl.int64", '"i64"'))),
        "exact": Argument(str(rng.choice((0.1, -2.7, 1e300))), rng.choice(("tl.float64", '"fp64"'))),
        "half": Argument(str(half), rng.choice(("tl.float16", '"fp16"', "tl.bfloat16", '"bf16"'))),
        "byte": Argument(str(rng.choice((3, 100, 127))), rng.choice(("tl.uint8", '"u8"', "tl.int8", '"i8"'))),
        "huge": Argument(str(2**63 + seed)),
        "fixed": Argument(rng.choice(("-7", "2", "3", "0.5", "True")), "tl.constexpr"),
        "pair": Argument(f"({rng.choice((-7, 2, 300))}, {rng.choice((0.1, 4.0))})"),
        "held": Argument(f"(x0, {rng.randrange(2, 9)}, ({seed % 3 == 0}, -2.5))"),
        "both": Argument(f"Both(low={low}, high={rng.choice((2, 0.5, True))})"),
    }


#: A tuple with names, as an argument.
BOTH = """\
from typing import Any, NamedTuple


class Both(NamedTuple):
    low: Any
    high: Any"""

#: Functions that kernels in Triton reduce and scan by.
COMBINING = {
    "adding": "return a + b",
    "greatest": "return tl.where(a > b, a, b)",
    "latter": "return b",
    "least": "return tl.minimum(a, b)",
}
TYPES = {
    "f8e4m3": "tl.float8e4nv", "f8e5m2": "tl.float8e5", "f16": "tl.float16", "bf16": "tl.bfloat16",
    "f32": "tl.float32", "float64": "tl.float64", "bool": "tl.int1",
    **{f"{sign}int{bits}": f"tl.{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip
IMPORTS = "import ml_dtypes\nimport numpy as np\nimport triton\nimport triton.language as tl"
ARRAY = '''\
NARROW = {"f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "bf16": "bfloat16"}


def array(values, dtype):
    """Give numbers as an array of a dtype; those beyond an 8-bit float are its greatest."""
    if dtype in NARROW:
        kind = getattr(ml_dtypes, NARROW[dtype])
        top = float(ml_dtypes.finfo(kind).max) if dtype[1] == "8" else np.inf
        return np.clip(values.astype(np.float32), -top, top).astype(kind)
    return values.astype({"f16": "f2", "f32": "f4"}.get(dtype, dtype))'''

NUMBERS = '''\
def numbers(seed, shape, low, high, scale=1.0, wild=False):
    """Give numbers of few bits; wild ones have NaN, infinities and -0.0 among them."""
    rng = np.random.default_rng(seed)
    array = rng.integers(low, high, shape) * scale
    if wild:
        array = np.where(rng.random(shape) < 0.1, rng.choice([np.nan, np.inf, -np.inf, -0.0], shape), array)
    return array.astype(np.float32 if scale != 1.0 or wild else np.int64)
'''
