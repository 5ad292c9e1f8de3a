"""Index tensors, numbers and masks obey the rule of types, too, and what they cannot do is a sentence."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernbench_core.compute.functions import evaluate
from kernbench_core.compute.result_types import result_type
from kernbench_core.errors import ShapeError
from kernbench_core.kernel.index import IndexTensor
from tests.core.kernel_rig import Rig


def test_a_number_is_rounded_to_what_it_meets_in() -> None:
    """In a product with f16 a number is f16; in a quotient, which is f32, it is f32."""
    rig = Rig()
    given = np.array([1, 3, 7, 11], np.float16)
    outs = [rig.empty((4,), "f16"), rig.empty((4,), "f32")]

    def kernel(x: Any, y: Any, z: Any, tl: Any) -> None:
        tile = tl.load(x + tl.arange(0, 4))
        tl.store(y + tl.arange(0, 4), tile * 0.1)
        tl.store(z + tl.arange(0, 4), tile / 0.1)

    rig.run(kernel, rig.tensor(given), *outs)
    product, quotient = (rig.numpy(out) for out in outs)
    np.testing.assert_array_equal(product, (given.astype(np.float32) * np.float32(np.float16(0.1))).astype(np.float16))
    np.testing.assert_array_equal(quotient, given.astype(np.float32) / np.float32(0.1))


MASKS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "+": lambda p, q, tl: p + q,
    "-": lambda p, q, tl: p - q,
    "*": lambda p, q, tl: p * q,
    "&": lambda p, q, tl: p & q,
    "|": lambda p, q, tl: p | q,
    "^": lambda p, q, tl: p ^ q,
    "//": lambda p, q, tl: p // q,
    "~": lambda p, q, tl: ~p,
    "neg": lambda p, q, tl: -p,
    "abs": lambda p, q, tl: abs(p),
    "<": lambda p, q, tl: p < q,
    ">=": lambda p, q, tl: p >= q,
    "==": lambda p, q, tl: p == q,
    "+ True": lambda p, q, tl: p + True,
    "1 -": lambda p, q, tl: 1 - p,
    "+ 2": lambda p, q, tl: p + 2,
    "* 0.5": lambda p, q, tl: p * 0.5,
    "/": lambda p, q, tl: p / q,
    "where": lambda p, q, tl: tl.where(p, q, p),
    "maximum": lambda p, q, tl: tl.maximum(p, q),
    "cumsum": lambda p, q, tl: tl.cumsum(p, 0),
    "cumprod": lambda p, q, tl: tl.cumprod(p, 0),
    "cat": lambda p, q, tl: tl.cat(p, q),
}
P, Q = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)


@pytest.mark.parametrize("name", MASKS)
def test_index_masks_equal_loaded_ones(name: str) -> None:
    """A mask that the kernel computed itself and one that it loaded have one dtype and one result."""
    rig = Rig()
    found: list[Any] = []
    probe = {"f32": np.float32, "int32": np.int32, "bool": bool, "uint32": np.uint32}

    def kernel(p: Any, q: Any, y: Any, z: Any, tl: Any) -> None:
        i = tl.arange(0, 4)
        mine = MASKS[name]((i & 2) != 0, (i & 1) != 0, tl)
        theirs = MASKS[name](tl.load(p + i), tl.load(q + i), tl)
        found.extend((mine, theirs.dtype))
        places = tl.arange(0, theirs.shape[0])
        tl.store(y + places, mine.to(tl.float32))
        tl.store(z + places, theirs.to(tl.float32))

    outs = [rig.tensor(np.zeros(8, np.float32)) for _ in range(2)]
    rig.run(kernel, rig.tensor(P), rig.tensor(Q), *outs)
    assert isinstance(found[0], IndexTensor)
    assert found[0].dtype == found[1]
    assert found[0].numpy().dtype == (np.int64 if found[1] == "int32" else probe[found[1]])
    mine, theirs = (rig.numpy(out)[: found[0].shape[0]] for out in outs)
    np.testing.assert_array_equal(mine, theirs)


def test_one_bit_wraps() -> None:
    """1 + 1 and 0 - 1 are those of one bit; a sum counts, in uint32."""
    p, q = P.astype(int), Q.astype(int)
    for op, want in (("add", (p + q) & 1), ("sub", (p - q) & 1), ("mul", p & q)):
        got = evaluate(op, {}, [P, Q])
        assert got.dtype == bool
        np.testing.assert_array_equal(got, want)
    total = evaluate("sum", {"axis": None}, [np.ones(300, bool)])
    assert (total.dtype, int(total)) == (np.uint32, 300)
    assert result_type("neg", ["bool"]) == "bool"
    assert result_type("cumprod", ["int8"]) == "int8"


INDEX: dict[str, tuple[Callable[[Any, Any], Any], str, Callable[[Any], Any]]] = {
    "int": (lambda i, tl: i * 3 // 2, "int32", lambda i: i * 3 // 2),
    "wide": (lambda i, tl: i * 2**31, "int64", lambda i: i * 2**31),
    "told to be wide": (lambda i, tl: i.to(tl.int64) * 2, "int64", lambda i: i * 2),
    "wide with int": (lambda i, tl: i.to(tl.int64) + i, "int64", lambda i: i * 2),
    "wide // int": (lambda i, tl: i.to(tl.int64) // 2, "int64", lambda i: i // 2),
    "narrow wraps": (lambda i, tl: i.to(tl.int8) * 100, "int8", lambda i: (i * 100).astype(np.int8)),
    "narrow with int": (lambda i, tl: i.to(tl.int8) * i, "int32", lambda i: i * i),
    "unsigned": (lambda i, tl: i.to(tl.uint32) - (i + 1), "uint32", lambda i: np.full_like(i, 2**32 - 1)),
    "unsigned and byte": (lambda i, tl: i.to(tl.uint8) - i.to(tl.int8) - 1, "uint8", lambda i: np.full_like(i, 255)),
    "f32": (lambda i, tl: i / 3 * 3, "f32", lambda i: i.astype(np.float32) / np.float32(3) * np.float32(3)),
    "f16": (lambda i, tl: (i + 2048).to(tl.float16) + (i * 0 + 2049), "f16", lambda i: (i + 2048).astype(np.float16)
            + np.float16(2049)),
    "bf16 with int": (lambda i, tl: i.to(tl.bfloat16) + 257 * i, "f32", lambda i: (i * 258).astype(np.float32)),
    "f16 with number": (lambda i, tl: i.to(tl.float16) * 0.1, "f16", lambda i: i.astype(np.float16) * np.float16(0.1)),
}  # fmt: skip


@pytest.mark.parametrize("name", INDEX)
def test_index_tensors_obey_the_rule(name: str) -> None:
    """What a kernel computes itself has the dtypes of the rule; int32 is computed in 64 bits."""
    rig = Rig()
    found: list[Any] = []

    def kernel(tl: Any) -> None:
        found.append(INDEX[name][0](tl.arange(0, 5), tl))

    rig.run(kernel)
    _, dtype, want = INDEX[name]
    assert found[0].dtype == dtype
    np.testing.assert_array_equal(found[0].numpy(), want(np.arange(5)))


REFUSED: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "bool / int": (
        lambda i, tl: (i < 2) / 2,
        "index arithmetic at LINE: A division must be of numbers of one signedness: Cannot use a division of bool by "
        "int32 because they have different signedness; cast "
        "one of them first.",
    ),
    "f8 + int": (
        lambda i, tl: i.to(tl.float8e5) + i,
        "index arithmetic at LINE: An 8-bit float must not meet an integer, as f8e5m2 and int32 do; cast one of them "
        "first.",
    ),
    "tl.maximum": (
        lambda i, tl: tl.maximum(i.to(tl.float8e5), i),
        "tl.maximum at LINE: An 8-bit float must not meet an integer, as f8e5m2 and int32 do; cast one of them first.",
    ),
    "float // int": (
        lambda i, tl: (i / 2) // 2,
        "index arithmetic at LINE: floordiv must have integer or bool operands, not invalid operands of type f32; cast "
        "it first.",
    ),
    "too large": (
        lambda i, tl: i.to(tl.int8) + 300,
        "a number at LINE must be one that int8 holds, from -128 to 127, and 300 is out of range; cast the tensor "
        "first.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_index_tensors_cannot_do_is_a_sentence(name: str) -> None:
    """With the kernel's line."""
    rig = Rig()
    said: list[str] = []

    def kernel(tl: Any) -> None:
        with pytest.raises(ShapeError) as caught:
            REFUSED[name][0](tl.arange(0, 4), tl)
        said.append(str(caught.value))

    rig.run(kernel)
    assert [re.sub(r"at \S+:\d+", "at LINE", text) for text in said] == [REFUSED[name][1]]


def test_a_fraction_is_no_offset_of_a_pointer() -> None:
    """Index tensors of floats are refused as loaded ones are; bools count as 0 and 1."""
    rig = Rig()
    said: list[Any] = []

    def kernel(x: Any, tl: Any) -> None:
        said.append(tl.load(x + (tl.arange(0, 4) > 1)).numpy().tolist())
        with pytest.raises(ShapeError) as caught:
            x + tl.arange(0, 4) / 2
        said.append(re.sub(r"at \S+:\d+", "at LINE", str(caught.value)))

    rig.run(kernel, rig.tensor(np.arange(4, dtype=np.float32)))
    assert said == [[0, 0, 1, 1], "pointer arithmetic at LINE must use integers, not f32; cast first."]
