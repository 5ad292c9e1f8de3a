"""Second ways at the ends of what floats hold: zeros with a sign, infinities, NaN."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from kernbench_core.compute.functions import evaluate
from kernbench_core.compute.math_recomputation import math_anew
from kernbench_core.compute.ops import OPS
from kernbench_core.compute.ops.second_way import Anew

ENDS = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan)


@pytest.mark.parametrize("name", ["rsqrt", "atan2", "frac"])
def test_a_second_way_agrees_at_the_ends(name: str) -> None:
    """As IEEE 754 and C have them: 1/sqrt(-0) is -inf, atan2(-0, -1) is -pi, inf has no fraction."""
    pairs = np.array(list(itertools.product(ENDS, repeat=OPS[name].arity)), np.float32).T
    operands = [np.ascontiguousarray(row) for row in pairs]
    with np.errstate(all="ignore"):
        again = math_anew(name, {"dtype": "f32"}, [Anew(x) for x in operands]).value
    np.testing.assert_allclose(evaluate(name, {}, operands), again, rtol=1e-6)
