"""Refs and the handles of composites and sends answer nothing that only a tensor can: they say so."""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernbench_builtin.composites.handle import CompositeHandle
from kernbench_core.callsite import call_site
from kernbench_core.errors import KernelError, ShapeError
from kernbench_core.kernel.tl.tensor import Handle, Tensor
from kernbench_core.values.value import ResultValue
from tests.core.kernel.queue_rig import QueueRig

BINARY = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.matmul, operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, divmod,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
)  # fmt: skip
ARITHMETIC: dict[str, Callable[[Any], Any]] = {
    **{f"x {op.__name__} 2.0": lambda x, op=op: op(x, 2.0) for op in BINARY},
    **{f"2 {op.__name__} x": lambda x, op=op: op(2, x) for op in BINARY},
    **{f"x {op.__name__} x": lambda x, op=op: op(x, x) for op in BINARY},
    **{f"numpy {op.__name__} x": lambda x, op=op: op(np.float32(2), x) for op in BINARY},
    "x == None": lambda x: x == None,  # noqa: E711
    **{op.__name__: op for op in (operator.neg, operator.pos, operator.invert, abs, round, math.floor, math.ceil)},
}


def composite(tl: Any, out: Any, site: Any) -> CompositeHandle:
    """Return the handle of a composite that writes a tensor."""
    return CompositeHandle(tl, ResultValue((0, 0), (1, 8), "f32"), site, None, tl.ref(out, (1, 8)))


MADE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "ref": lambda x, y, tl: tl.ref(x, (1, 8)),
    "composite": lambda x, y, tl: composite(tl, y, call_site()),
    "send": lambda x, y, tl: tl.send(tl.load(x, shape=(8,)), 1, wait=False),
}
TOLD = {
    "ref": "a ref to a tile of shape (1, 8) of tensor 'x', which is in HBM; tl.load it first",
    "composite": "the result of tl.composite made at {line}, which is in HBM; tl.load it first",
    "send": "the handle of tl.send made at {line}, which is for tl.wait alone; use the tile that was sent",
}
OWN = {
    "len()": len,
    "a loop": lambda x: [*x],
    "a membership test": lambda x: 1.0 in x,
    "an element": lambda x: x[0],
    "float()": float,
    "complex()": complex,
    "int()": int,
    "an index": lambda x: [1][x],
    "an array": np.asarray,
    "a condition": bool,
}
TL: list[Any] = []
POINTERS: list[Any] = []
PENDING = {"an element", "float()", "int()", "an index", "an array", "a condition"}
PUBLIC = sorted(name for name in set(dir(Tensor)) - set(dir(Handle)) if not name.startswith("_"))


def told_of(kind: str, use: Callable[[Any], Any]) -> tuple[type[KernelError], str]:
    """Use what a kernel made, and give the error without its line."""
    caught: list[KernelError] = []

    def kernel(x: Any, y: Any, tl: Any) -> None:
        if tl.program_id(0) == 1:
            if kind == "send":
                tl.recv((8,), "f32", 0)
            return
        made = MADE[kind](x, y, tl)
        TL[:], POINTERS[:] = [tl], [y]
        with pytest.raises(KernelError) as error:
            use(made)
        caught.append(error.value)

    rig = QueueRig()
    rig.run(kernel, rig.tensor(np.zeros((1, 8), "f4"), "x"), rig.empty((1, 8), name="y"))
    return type(caught[0]), str(caught[0])


def sentence(kind: str, use: str, where: str) -> str:
    made = f"{__file__}:{MADE[kind].__code__.co_firstlineno}"
    return f"{use} at {where} must be given tensors and numbers, not {TOLD[kind].format(line=made)}."


def where(function: Any) -> str:
    """Give the line of a lambda, or that of `told_of` which calls a function of another file."""
    code = getattr(function, "__code__", None)
    inside = told_of.__code__.co_firstlineno + 12
    return f"{__file__}:{inside if code is None or code.co_filename != __file__ else code.co_firstlineno}"


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("use", ARITHMETIC)
def test_arithmetic_is_refused_from_either_side(kind: str, use: str) -> None:
    """Comparisons too, which Python would answer by identity; whatever stands on the other side."""
    assert told_of(kind, ARITHMETIC[use]) == (ShapeError, sentence(kind, "arithmetic", where(ARITHMETIC[use])))


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("use", OWN)
def test_reading_is_refused(kind: str, use: str) -> None:
    """Of a composite, data is refused as pending; of all others in the words of arithmetic."""
    error, told = told_of(kind, OWN[use])
    if kind == "composite" and use in PENDING:
        assert told.startswith(f"{use} at {where(OWN[use])} must have data that is known while the kernel runs")
    else:
        assert (error, told) == (ShapeError, sentence(kind, use, where(OWN[use])))


@pytest.mark.parametrize("kind", ["ref", "send"])
@pytest.mark.parametrize("name", PUBLIC)
def test_what_a_tensor_has_is_refused(kind: str, name: str) -> None:
    """Each public attribute of a tensor that is no handle's."""
    use = lambda x: getattr(x, name)  # noqa: E731
    assert told_of(kind, use) == (ShapeError, sentence(kind, f".{name}", where(use)))


def test_an_attribute_of_a_composite_is_refused() -> None:
    use = lambda h: h.reshape(8)  # noqa: E731
    assert told_of("composite", use) == (ShapeError, sentence("composite", ".reshape", where(use)))


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize(
    ("call", "must"),
    [
        (lambda x: TL[0].send(x, 1), "tl.send at {} must be given a tile"),
        (lambda x: TL[0].store(POINTERS[0], x), "tl.store at {} must be given tensors and numbers"),
        (lambda x: TL[0].exp(x), "tl.exp at {} must be given tensors and numbers"),
    ],
)
def test_calls_say_what_they_were_given(kind: str, call: Any, must: str) -> None:
    """And what to do for its data; a store takes the handle of a composite."""
    if kind == "composite" and "store" in must:
        return
    made = f"{__file__}:{MADE[kind].__code__.co_firstlineno}"
    told = f"{must.format(where(call))}, not {TOLD[kind].format(line=made)}."
    assert told_of(kind, call)[1] == told


@pytest.mark.parametrize("kind", MADE)
def test_it_is_a_plain_object_otherwise(kind: str) -> None:
    """Found in a dict or list by identity, copied, and asked for what Python itself looks for."""

    def kernel(x: Any, y: Any, tl: Any) -> None:
        if tl.program_id(0) == 1:
            if kind == "send":
                tl.recv((8,), "f32", 0)
            return
        thing = MADE[kind](x, y, tl)
        assert {thing: 3}[thing] == 3
        assert thing in [thing]
        assert copy.copy(thing) is not thing
        assert not hasattr(thing, "__array_interface__")
        assert repr(thing)
        tl.wait()

    rig = QueueRig()
    rig.run(kernel, rig.tensor(np.zeros((1, 8), "f4"), "x"), rig.empty((1, 8), name="y"))
