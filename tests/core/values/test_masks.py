"""What has a mask: tests of the places where arrays enter say where it is refused."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from kernbench_core.values.masks import has_mask


def test_masks_are_found_wherever_they_are_in_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """An array, a number of it, and what containers hold; nothing else, and nothing before numpy.ma is imported."""
    masked = np.ma.array([1, 2])
    assert all(map(has_mask, (masked, np.ma.masked, [1, masked], ((masked,), 2), {"a": [masked]})))
    assert not any(map(has_mask, (masked.filled(0), 1, "text", [1, [2]], {"a": np.zeros(2)}, None)))
    monkeypatch.delitem(sys.modules, "numpy.ma")
    assert not has_mask(masked)
