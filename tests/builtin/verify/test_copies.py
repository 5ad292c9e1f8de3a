"""Copies are checked byte by byte, and what they copied is put together from its parts alone."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kernbench_builtin.verify.comparison import snapshot
from kernbench_builtin.verify.op_check import verify_ops
from kernbench_core.oplog.description import Access, OpDescription
from kernbench_core.values import value as values
from kernbench_core.values.region import Region
from kernbench_core.values.value import AssemblyValue, Part
from kernbench_core.values.views import FillValue, ground
from tests.core.arrays import adopt
from tests.core.compute.recorder import Recorder, host


def copied(record: Recorder, read: Any, written: Any) -> None:
    """Log a copy."""
    accesses = [Access("hbm", (Region(0, max(1, value.nbytes)),), value) for value in (read, written)]
    record.log.append(99.0, 99.5, "dma", OpDescription("memory", "dma_read", {}, (accesses[0],), accesses[1], (0, 99)))


def strided_parts() -> AssemblyValue:
    """Put every other row of a result-like array together."""
    source = adopt(np.arange(32, dtype=np.int16).reshape(8, 4))
    return AssemblyValue((4, 4), "int16", (Part(Region(0, 32), source, Region(0, 8, 4, 16)),))


def test_copies_are_checked_byte_by_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a copy leaves is what it read: with another shape, of parts, and not where painting goes wrong."""
    record = Recorder()
    whole = strided_parts()
    copied(record, whole, AssemblyValue((16,), "int16", (Part(Region(0, 32), whole, Region(0, 32)),)))
    assert verify_ops(record.executor()).failures == ()
    paint = values.paint
    monkeypatch.setattr(values, "paint", lambda out, *more: (paint(out, *more), out.__setitem__(5, 77)))
    (failure,) = verify_ops(record.executor()).failures
    assert failure == (
        "dma_read (op 99 of PE 0, dma, 99.000 ns), which gives int16, must give what it gives by itself, but 1 of 16 "
        "elements differ; the worst is [2]: got 19714, expected 2."
    )


def test_a_copy_that_changes_bits_is_found() -> None:
    """Source and destination are two values: the second must have the bytes of the first."""
    record = Recorder()
    copied(record, host(np.arange(4, dtype=np.float32)), host(np.array([0, 1, 2.5, 3], np.float32)))
    (failure,) = verify_ops(record.executor()).failures
    assert failure.endswith("1 of 4 elements differ; the worst is [2]: got 2.5, expected 2.0.")


def test_infinities_of_an_8_bit_float_are_copied_as_they_are() -> None:
    """Loads and moves keep them; only what is computed or cast stops at the greatest number."""
    record = Recorder()
    x = np.array([[np.inf, 1.0], [-np.inf, 2.0]], ml_dtypes.float8_e5m2)
    copied(record, host(x), host(x.copy()))
    turned = record.op("trans", [host(x)], (2, 2), "f8e5m2")
    executor = record.executor()
    assert verify_ops(executor).failures == ()
    np.testing.assert_array_equal(executor.materialize(turned).astype(float), [[np.inf, -np.inf], [1, 2]])


def test_a_snapshot_is_put_together_from_parts_alone() -> None:
    """It equals numpy's own slice, and shares nothing with what the value keeps."""
    value = strided_parts()
    np.testing.assert_array_equal(snapshot(value), np.arange(32).reshape(8, 4)[::2])
    assert value._array is None


def test_a_snapshot_has_the_ground_where_no_part_is() -> None:
    """What a masked load leaves out is its `other`, repeated."""
    fill = FillValue(np.array([7], np.int16))
    value = AssemblyValue(
        (4,), "int16", (ground(fill, 8), Part(Region(2, 2), host(np.array([1], np.int16)), Region(0, 2)))
    )
    np.testing.assert_array_equal(snapshot(value), [7, 1, 7, 7])
