"""Every spelling of a dtype that kernels use leads to one name."""

from __future__ import annotations

import numpy as np
import pytest

from kernbench_core.errors import UnsupportedError
from kernbench_core.kernel.tl.dtype_names import REFUSED_DTYPES, TRITON_DTYPES, dtype_of
from kernbench_core.values.dtypes import NAMES


def test_spellings() -> None:
    """Triton's names, kernbench's, numpy's types."""
    assert [dtype_of(name) for name in NAMES] == list(NAMES)
    assert set(TRITON_DTYPES.values()) == set(NAMES)
    assert dtype_of("float16") == dtype_of(np.float16) == dtype_of(np.dtype("f2")) == "f16"


@pytest.mark.parametrize("name", REFUSED_DTYPES)
def test_dtypes_without_a_unit_are_refused(name: str) -> None:
    """The sentence lists what there is."""
    with pytest.raises(UnsupportedError) as caught:
        dtype_of(name)
    assert str(caught.value) == (
        "a dtype must be one of bool, int8, int16, int32, int64, uint8, uint16, uint32, f8e4m3, f8e5m2, f16, bf16, "
        f"f32, not {name!r}; use one of these."
    )
