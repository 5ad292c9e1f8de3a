"""What earlier launches wrote may be read by later ones: computed when it is asked for, and only then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from kernbench_builtin.saved.saved_run import load_run, save_run
from kernbench_core.compute.executor import DataExecutor
from kernbench_core.errors import NoDataError, PendingDataError, SanityError
from kernbench_core.oplog.log import OpLog
from tests.core.kernel_rig import Rig


def double(x: Any, y: Any, tl: Any) -> None:
    """Write what only phase 2 knows: floats, and integers cast from them."""
    at = 4 * tl.program_id(0) + tl.arange(0, 4)
    tl.store(y + at, tl.load(x + at) * 2.0)


READS: dict[str, Any] = {
    "element": lambda t, y, tl: t[1],
    "float": lambda t, y, tl: float(tl.load(y + 1)),
    "int": lambda t, y, tl: int(tl.load(y + 1)),
    "bool": lambda t, y, tl: bool(tl.load(y + 1)),
    "item": lambda t, y, tl: tl.load(y + 1).item(),
    "numpy": lambda t, y, tl: t[None, :].numpy().reshape(-1)[1],
    "data": lambda t, y, tl: t.data[1],
    "mask": lambda t, y, tl: tl.load(y + tl.arange(0, 4), mask=t).numpy()[1],
}


@pytest.mark.parametrize("how", READS)
def test_a_later_launch_reads_what_an_earlier_one_computed(how: str) -> None:
    """Every way of reading gives the number in the next launch, and is refused where it was made."""
    x = np.array([1, 3, 0, 5], np.float32)
    seen: list[Any] = []

    def reader(y: Any, tl: Any) -> None:
        seen.append(READS[how](tl.load(y + tl.arange(0, 4)), y, tl))

    rig = Rig()
    given, y = rig.tensor(x), rig.empty((4,))
    rig.run(double, given, y)
    rig.run(reader, y)
    assert seen == [True if how == "bool" else 6]

    def both(x: Any, y: Any, tl: Any) -> None:
        double(x, y, tl)
        reader(y, tl)

    again = Rig()
    with pytest.raises(PendingDataError) as caught:
        again.run(both, again.tensor(x), again.empty((4,)))
    assert "exists only after it" in str(caught.value)


def test_nothing_is_computed_that_nobody_reads() -> None:
    """Of what two ops made, one is asked for; asking takes no simulated time and does not change the log."""

    def maker(x: Any, y: Any, z: Any, tl: Any) -> None:
        a = tl.load(x + tl.arange(0, 4))
        tl.store(y + tl.arange(0, 4), a * 2.0)
        tl.store(z + tl.arange(0, 4), a * 3.0)

    def reader(y: Any, z: Any, ask: bool, tl: Any) -> None:
        a, b = tl.load(y + tl.arange(0, 4)), tl.load(z + tl.arange(0, 4))
        if ask:
            assert a[0] == 2
        tl.store(y + tl.arange(0, 4), a + b)

    logs, times = [], []
    for ask in (True, False):
        rig = Rig()
        x, y, z = rig.tensor(np.ones(4, np.float32)), rig.empty((4,)), rig.empty((4,))
        rig.run(maker, x, y, z)
        times.append(rig.run(reader, y, z, ask))
        logs.append(rig.log.sha256())
        made = [record.writes.value for record in rig.log if record.op_name == "mul"]
        assert [value.computed for value in made] == [ask, False]
        np.testing.assert_array_equal(rig.numpy(y), [5] * 4)
    assert logs[0] == logs[1] and times[0] == times[1]


@pytest.mark.parametrize("read_before", [False, True])
def test_arithmetic_on_integers_of_an_earlier_launch_is_ready(read_before: bool) -> None:
    """They index, mask and branch, computed by somebody before or not; the log is the same."""

    def maker(x: Any, y: Any, tl: Any) -> None:
        tl.store(y + tl.arange(0, 4), tl.load(x + tl.arange(0, 4)).to("int32"))

    seen: list[Any] = []

    def reader(y: Any, z: Any, w: Any, tl: Any) -> None:
        at = tl.load(y + tl.arange(0, 4))
        turned = (at + 1) % 4
        assert not seen
        seen.append(turned.numpy().tolist())
        if int((turned * 2)[0]) == 2:
            tl.store(z + turned, tl.load(w + tl.arange(0, 4), mask=turned > 1, other=-1.0), mask=at < 3)

    rig = Rig()
    x, y = rig.tensor(np.array([0, 2, 1, 3], np.float32)), rig.empty((4,), "int32")
    z, w = rig.tensor(np.zeros(4, np.float32)), rig.tensor(np.arange(10, 14, dtype=np.float32))
    rig.run(maker, x, y)
    if read_before:
        DataExecutor(rig.log, rig.store).run()
    rig.run(reader, y, z, w)
    assert seen == [[1, 3, 2, 0]]
    np.testing.assert_array_equal(rig.numpy(z), [0, -1, 12, 11])
    assert rig.log.sha256() == _log_of_reading(maker, reader, seen)


def _log_of_reading(maker: Any, reader: Any, seen: list[Any]) -> str:
    """The hash of the same launches where the host wrote the integers."""
    seen.clear()
    rig = Rig()
    x, y = rig.tensor(np.array([0, 2, 1, 3], np.float32)), rig.empty((4,), "int32")
    z, w = rig.tensor(np.zeros(4, np.float32)), rig.tensor(np.arange(10, 14, dtype=np.float32))
    rig.run(maker, x, y)
    rig.numpy(y)
    rig.run(reader, y, z, w)
    return rig.log.sha256()


def test_integers_of_floats_of_this_launch_stay_pending() -> None:
    """What is computed on demand follows from earlier launches alone; a cast of this one is refused, whoever asked."""

    def reader(y: Any, tl: Any) -> None:
        assert float(tl.load(y)) == 2  # known, and computed now
        whole = tl.load(y).to("int32")  # an op of this launch on floats
        with pytest.raises(PendingDataError):
            int(whole + 1)

    rig = Rig()
    x, y = rig.tensor(np.ones(4, np.float32)), rig.empty((4,))
    rig.run(double, x, y)
    rig.run(reader, y)


def test_a_known_mask_of_a_store_is_a_mask() -> None:
    """No read, merge and write: what is off is not moved."""

    def maker(x: Any, y: Any, tl: Any) -> None:
        tl.store(y + tl.arange(0, 4), tl.load(x + tl.arange(0, 4)) > 1.5)

    def writer(y: Any, z: Any, tl: Any) -> None:
        tl.store(z + tl.arange(0, 4), 7.0, mask=tl.load(y + tl.arange(0, 4)))

    rig = Rig()
    x, y = rig.tensor(np.array([1, 2, 1, 2], np.float32)), rig.empty((4,), "bool")
    z = rig.tensor(np.zeros(4, np.float32))
    rig.run(maker, x, y)
    rig.run(writer, y, z)
    assert "masked_store" not in rig.ops()
    np.testing.assert_array_equal(rig.numpy(z), [0, 7, 0, 7])


def test_what_pes_send_on_is_known_as_well() -> None:
    """A launch of several PEs reads what all of them did before, each at its neighbour's."""
    seen: dict[int, float] = {}

    def reader(y: Any, tl: Any) -> None:
        other = 1 - tl.program_id(0)
        seen[other] = tl.load(y + 4 * other).item()

    rig = Rig(pes=2)
    x, y = rig.tensor(np.arange(8, dtype=np.float32)), rig.empty((8,))
    rig.run(double, x, y)
    rig.run(reader, y)
    assert seen == {0: 0, 1: 8}


@pytest.mark.parametrize("spill_rows", [2, 1 << 20])
def test_a_saved_run_confirms_what_was_read(spill_rows: int, tmp_path: Path) -> None:
    """Executed anew from the saved log, in files or not, the data is what the kernels branched on."""
    seen: list[float] = []

    def reader(y: Any, z: Any, tl: Any) -> None:
        at = 4 * tl.program_id(0) + tl.arange(0, 4)
        turned = tl.load(y + (at + 4) % 8)
        seen.append(turned[3])
        tl.store(z + at, turned + (1.0 if turned[3] > 10 else 0.0))

    rig = Rig(pes=2, log=OpLog(spill_rows))
    x, y, z = rig.tensor(np.arange(8, dtype=np.float32)), rig.empty((8,)), rig.empty((8,))
    rig.run(double, x, y)
    rig.run(reader, y, z)
    rig.run(reader, z, y)
    save_run(tmp_path / "run", rig.log, rig.store)
    saved = load_run(tmp_path / "run").executor()
    saved.run()
    found = [saved.store.read("hbm", t.regions, (8,), "f32") for t in (z, y)]
    np.testing.assert_array_equal(found[0], [9, 11, 13, 15, 0, 2, 4, 6])
    np.testing.assert_array_equal(found[1], [0, 2, 4, 6, 10, 12, 14, 16])
    assert sorted(seen) == [6, 6, 14, 15]


def test_reads_of_many_elements_are_confirmed_each() -> None:
    """By a fresh executor, which computes the same; what was read and has changed since is named with its line."""

    def reader(y: Any, tl: Any) -> None:
        assert tl.load(y + tl.arange(0, 8)).numpy().sum() == 56

    rig = Rig(pes=2)
    x, y = rig.tensor(np.arange(8, dtype=np.float32)), rig.empty((8,))
    rig.run(double, x, y)
    rig.run(reader, y)
    on_demand = rig.kernels.on_demand
    assert on_demand is not None
    on_demand.confirm(DataExecutor(rig.log, rig.store), lambda failure: "")
    value, read = next(iter(on_demand._reads.items()))
    on_demand._reads[value] = attrs.evolve(read, array=read.array + np.float32([0, 0, 0, 1, 0, 0, 0, 0]))
    with pytest.raises(SanityError) as caught:
        on_demand.confirm(DataExecutor(rig.log, rig.store), lambda failure: " Told.")
    told = str(caught.value)
    line = reader.__code__.co_firstlineno + 1
    assert told.startswith("do not use this result: what ") and f"{__file__}:{line} read while the run went on" in told
    assert "1 of 8 elements differ; the worst is [3]: got 6.0, expected 7.0" in told and told.endswith(" Told.")


def test_without_data_reading_says_so() -> None:
    """A run that keeps shapes has nothing to compute from, in any launch."""

    def reader(y: Any, tl: Any) -> None:
        float(tl.load(y))

    rig = Rig(data=False)
    x, y = rig.tensor(np.ones(4, np.float32)), rig.empty((4,))
    rig.run(double, x, y)
    with pytest.raises(NoDataError):
        rig.run(reader, y)
