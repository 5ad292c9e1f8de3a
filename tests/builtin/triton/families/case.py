"""A kernel that is tried: its file, what it is given, numpy's formula for it, and the faults that are planted in it."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np

import kernbench as kb

KERNELS = Path(__file__).parent / "kernels"
DTYPES = {
    "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f8": ml_dtypes.float8_e4m3fn, "i8": np.int8,
    "i32": np.int32, "i64": np.int64,
}  # fmt: skip
#: How far results may be off, relative to the expected and absolutely.
CLOSE = {"float64": 1e-9, "float32": 3e-5, "float16": 3e-3, "bfloat16": 2e-2, "float8_e4m3fn": 7e-2}


@dataclass(frozen=True)
class Fault:
    """A mistake: `old` stands once in the file, and becomes `new`; `found` is a part of the sentence that tells.

    "numbers": the results are others than the formula's. "hazard": the run lists one.
    """

    old: str
    new: str
    found: str = "numbers"


@dataclass(frozen=True)
class Case:
    """A function `call` of `kernels/FILE.py` that launches kernels on arrays of the host and gives what they wrote.

    `inputs(rng, dtype, *shape)` are its arguments, of which `expected(*arguments)` makes the results in float64.
    """

    file: str
    call: str
    inputs: Callable[..., tuple[Any, ...]]
    expected: Callable[..., Any]
    shapes: Sequence[tuple[int, ...]]
    faults: Sequence[Fault]
    dtypes: Sequence[str] = ("f32",)
    loose: float = 1.0
    """By how much more than usual results may be off, of sums of many rounded terms."""

    @property
    def name(self) -> str:
        """What the tests call it."""
        return f"{self.file}-{self.call}"

    def trials(self) -> Iterator[tuple[tuple[int, ...], str]]:
        """Give each shape in the first dtype, and the first shape in each dtype."""
        yield from ((shape, self.dtypes[0]) for shape in self.shapes)
        yield from ((self.shapes[0], dtype) for dtype in self.dtypes[1:])


@dataclass
class Outcome:
    """What became of a case: differences from the formula, a sentence for each, and the run; or the error."""

    wrong: list[str] = field(default_factory=list)
    error: kb.KernbenchError | None = None
    sim: Any = None

    @property
    def hazards(self) -> tuple[Any, ...]:
        """The hazards that the run lists."""
        return () if self.sim is None or self.sim.result is None else self.sim.result.hazards


def load(case: Case, data_ptr: Callable[[Any], int], fault: Fault | None = None) -> ModuleType:
    """Run the file of a case as a module, with a fault in it; called where `triton` is kernbench's.

    `data_ptr`, which a file finds among its names, gives the address of an array.
    """
    path = KERNELS / f"{case.file}.py"
    source = path.read_text(encoding="utf-8")
    if fault is not None:
        assert source.count(fault.old) == 1, f"{fault.old!r} stands {source.count(fault.old)} times in {path}"
        source, path = source.replace(fault.old, fault.new), path.with_name(f"{case.file}-with-a-fault.py")
        linecache.cache[str(path)] = len(source), None, source.splitlines(True), str(path)  # functions know their source
    module = ModuleType(case.file)
    module.__file__ = str(path)
    vars(module)["data_ptr"] = data_ptr
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module


def outcome(
    case: Case, topology: str, fault: Fault | None = None, trials: Sequence[tuple[tuple[int, ...], str]] = ()
) -> Outcome:
    """Run a case on a machine: all its trials, or those given."""
    found = Outcome()
    try:
        with kb.triton(topology, max_events=20_000_000) as sim:
            function = getattr(load(case, sim.data_ptr, fault), case.call)
            for number, (shape, dtype) in enumerate(trials or case.trials()):
                rng = np.random.default_rng(number)
                given = case.inputs(rng, DTYPES[dtype], *shape)
                expected = case.expected(*[np.copy(each) if isinstance(each, np.ndarray) else each for each in given])
                with np.errstate(all="ignore"):
                    found.wrong += differences(function(*given), expected, case.loose, f"{shape} of {dtype}")
        found.sim = sim
    except kb.KernbenchError as error:
        found.error = error
    return found


def differences(got: Any, expected: Any, loose: float, what: str) -> list[str]:
    """Say where results are others than expected: integers exactly, floats as their dtype allows."""
    several = (got, expected) if isinstance(got, tuple) else ((got,), (expected,))
    told = []
    for number, (one, wanted) in enumerate(zip(*several, strict=True)):
        wanted = np.asarray(wanted)
        assert one.shape == wanted.shape, f"{what}: result {number} is {one.shape}, expected {wanted.shape}"
        exact = one.dtype.name not in CLOSE
        own = one if exact else one.astype(np.float64)
        close = 0.0 if exact else CLOSE[one.dtype.name] * loose
        far = ~np.isclose(own, wanted, rtol=close, atol=close, equal_nan=True)
        if far.any():
            at = tuple(int(i) for i in np.argwhere(far)[0])
            told.append(f"{what}: result {number} at {at} is {own[at]}, expected {wanted[at]}; {far.sum()} of {far.size}")
    return told
