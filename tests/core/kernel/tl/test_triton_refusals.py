"""What names of Triton's refuse, at the line that calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernbench_core.errors import ShapeError, UnsupportedError
from tests.core.kernel.tl.bodies import G, I, run

REFUSED: dict[str, tuple[Callable[..., Any], tuple[Any, ...], type[Exception], str]] = {
    "number": (
        lambda tl, y: y < 300, (np.int8(1),), ShapeError,
        "a number at LINE must be one that int8 holds, from -128 to 127, and 300 is out of range; cast the "
        "tensor first.",
    ),
    "signs divided": (
        lambda tl, i, u: i // u, (np.int32(1), np.uint32(1)), ShapeError,
        "tl.floordiv at LINE: A division must be of numbers of one signedness: Cannot use a division of int32 by "
        "uint32 because they have different signedness; cast "
        "one of them first.",
    ),
    "split": (
        lambda tl, g: tl.split(g), (G,), ShapeError,
        "tl.split at LINE must be given a last dimension of extent 2, not shape (5, 7); reshape it.",
    ),
    "squeeze": (
        lambda tl, g: tl.squeeze(g, 1), (G,), ShapeError,
        "tl.squeeze at LINE must leave out a dimension of extent 1, not 1 of (5, 7); correct it.",
    ),
    "gather": (
        lambda tl, g: tl.gather(g, tl.arange(0, 5), 0), (G,), ShapeError,
        "tl.gather at LINE must be given integers whose shape differs from (5, 7) along dimension 0 only, not int32 of "
        "shape (5,); reshape or cast them.",
    ),
    "gather outside": (
        lambda tl, i: tl.gather(i, i, 0), (np.array([0, 3], np.int32),), ShapeError,
        "An index of gather must be from 0 to 1, not 3; correct it, or mask it out.",
    ),
    "histogram outside": (
        lambda tl, i: tl.histogram(i, 3), (np.array([0, -1], np.int32),), ShapeError,
        "A value of histogram must be from 0 to 2, not -1; correct it, or mask it out.",
    ),
    "histogram of floats": (
        lambda tl, g: tl.histogram(g, 3), (G,), ShapeError,
        "tl.histogram at LINE must be given integers, not f32; cast first.",
    ),
    "fdiv": (
        lambda tl, i: tl.fdiv(i, i), (I,), ShapeError,
        "tl.fdiv at LINE must be given a float operand, not int32; use / or //.",
    ),
    "xor_sum": (
        lambda tl, g: tl.xor_sum(g), (G,), ShapeError,
        "tl.xor_sum at LINE: xor_sum must have integer or bool operands, not invalid operands of type f32; cast it "
        "first.",
    ),
    "bitcast": (
        lambda tl, g: tl.cast(g, "f16", bitcast=True), (G,), ShapeError,
        "tl.cast at LINE must keep the element size with bitcast=True, not go from f32 to f16.",
    ),
    "scalar": (
        lambda tl, s: tl.cumsum(s), (np.float32(1),), ShapeError,
        "tl.cumsum at LINE must be given a tensor of at least one dimension, not a scalar; reshape it.",
    ),
    "new dimension": (
        lambda tl, g: tl.expand_dims(g, 5), (G,), ShapeError,
        "tl.expand_dims at LINE must have an axis of shape (1, 1, 1), not the invalid axis 5; use one from "
        "-3 to 2.",
    ),
    "two unknown extents": (
        lambda tl, g: tl.reshape(g, -1, -1), (G,), ShapeError,
        "tl.reshape at LINE must keep the 35 elements of shape (5, 7), and (-1, -1) holds 1; choose a shape of the "
        "same size.",
    ),
    "NaN": (
        lambda tl, g: tl.maximum(g, g, "some"), (G,), ShapeError,
        "propagate_nan at LINE must be tl.PropagateNan.NONE or tl.PropagateNan.ALL, not 'some'; use one of these.",
    ),
    "rounding": (
        lambda tl, g: g.to("f16", fp_downcast_rounding="rtz"), (G,), UnsupportedError,
        "tl.cast at LINE must have fp_downcast_rounding 'rtne', not 'rtz'; the units round to nearest.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused(case: str) -> None:
    """One sentence, with the kernel line where it is known."""
    body, arrays, kind, text = REFUSED[case]
    with pytest.raises(kind) as caught:
        run(body, *arrays)
    said = str(caught.value).partition("\n")[0]
    assert said.replace(f"{__file__}:{body.__code__.co_firstlineno}", "LINE") == text
