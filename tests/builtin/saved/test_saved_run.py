"""A saved run gives the same bytes in a process that never heard of the simulation."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_builtin.saved.saved_run import load_run, save_run
from kernbench_core.compute.executor import DataExecutor
from kernbench_core.errors import UsageError
from kernbench_core.oplog.description import Access, OpDescription
from kernbench_core.oplog.log import OpLog
from kernbench_core.values.dtypes import numpy_dtype
from kernbench_core.values.memory_store import MemoryStore
from kernbench_core.values.region import Region
from kernbench_core.values.value import AssemblyValue, LoadedValue, Part, ResultValue
from kernbench_core.values.views import FillValue, ground
from tests.core.arrays import adopt

ROOT = Path(__file__).resolve().parents[3]
REPLAY = """
import hashlib, sys
from kernbench_builtin.saved.saved_run import load_run
saved = load_run(sys.argv[1])
executor = saved.executor()
executor.run()
found = executor.store.read("hbm", 1 << 20, (8, 6), "bf16")
print(saved.op_log.sha256(), hashlib.sha256(found.tobytes()).hexdigest())
for module in ("simpy", "greenlet", "kernbench_builtin.components", "kernbench_ccl", "yaml", "pluggy",
               "kernbench_core.host.session", "kernbench_core.component"):
    assert module not in sys.modules, module
"""


def small_run() -> tuple[OpLog, MemoryStore]:
    """Return a log with a strided load, a masked one, a GEMM, math with an immediate, and a result read in pieces."""
    rng = np.random.default_rng(0)
    store, log = MemoryStore(), OpLog()
    store.write("hbm", 0, rng.standard_normal((8, 64)).astype(np.float16))
    store.write("hbm", 8192, rng.standard_normal((16, 6)).astype(np.float32))
    tile = LoadedValue((8, 16), "f16")
    region = Region(32, 32, 8, 128)
    tile.bind(store.value("hbm", region, (8, 16), "f16"))
    log.append(
        0.0,
        5.25,
        "sip0.cube0.pe0.pe_dma",
        OpDescription(
            "memory",
            "dma_read",
            {"src_addr": 32, "nbytes": 256, "handle_id": "pe0.0", "list": [1, 2], "deep": {"x": (1.5, None)}},
            (Access("hbm", (region,), tile),),
            Access("tcm", (Region(1 << 40, 256),), tile),
            (0, 0),
        ),
    )
    b = store.value("hbm", 8192, (16, 6), "f32")
    product = ResultValue((0, 1), (8, 6), "f32")
    shapes = {"shape_a": (8, 16), "shape_b": (16, 6), "dtype_in": "f16", "dtype_out": "f32", "m": 8, "k": 16, "n": 6}
    reads = (Access("tcm", (Region(1 << 40, 256),), tile), Access("hbm", (Region(8192, 384),), b))
    out = Access("tcm", (Region(1 << 41, 192),), product)
    log.append(6.0, 9.0, "sip0.cube0.pe0.pe_gemm", OpDescription("gemm", "gemm_f16", shapes, reads, out, (0, 1)))
    under = ground(FillValue(np.full((), 2, np.float32)), 192)
    half = AssemblyValue((8, 6), "f32", (under, Part(Region(0, 96), product, Region(96, 96))))
    scaled = ResultValue((0, 2), (8, 6), "bf16")
    params = {"op": "mul", "dtype": "bf16", "shape_out": (8, 6), "factor": 0.1}
    reads = (Access("tcm", (), half), Access("immediate", (), adopt(np.array(0.1, np.float32))))
    out = Access("hbm", (Region(1 << 20, 96),), scaled)
    log.append(9.0, 10.0, "sip0.cube0.pe0.pe_math", OpDescription("math", "mul", params, reads, out, (0, 2)))
    store.write("hbm", 1 << 20, scaled, writer=(0, 2))
    store.write("hbm", Region((1 << 20) + 2, 2, 2, 12), np.ones(2, numpy_dtype("bf16")))
    return log, store


def test_fresh_process_gives_the_same_bytes(tmp_path) -> None:
    """Saving, then executing elsewhere, gives the same log hash and the same output, with no engine imported."""
    log, store = small_run()
    save_run(tmp_path / "run", log, store)
    executor = DataExecutor(log, store)
    executor.run()
    here = executor.store.read("hbm", 1 << 20, (8, 6), "bf16")
    done = subprocess.run(
        [sys.executable, "-c", REPLAY, str(tmp_path / "run")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [log.sha256(), hashlib.sha256(here.tobytes()).hexdigest()]


def test_loaded_records_equal_the_saved_ones(tmp_path) -> None:
    """Every field of every record, hidden memory entries and writers come back."""
    log, store = small_run()
    save_run(tmp_path / "run", log, store)
    saved = load_run(tmp_path / "run")
    for old, new in zip(log, saved.op_log, strict=True):
        for name in ("t_start", "t_end", "component_id", "op_kind", "op_name", "params", "dependency_ids", "op_id"):
            assert getattr(old, name) == getattr(new, name)
        assert [(a.space, a.regions) for a in old.reads] == [(a.space, a.regions) for a in new.reads]
    assert [w.writer for w in saved.store.writes("hbm", 1 << 20, 96)] == [None, (0, 2)]
    functions = "kernbench_core.compute.functions"
    assert saved.functions == {"gemm_f16": f"{functions}:gemm", "mul": f"{functions}:math_op"}
    np.testing.assert_array_equal(saved.store.read("hbm", 0, (8, 64), "f16"), store.read("hbm", 0, (8, 64), "f16"))


def test_computed_results_are_saved_as_pending(tmp_path) -> None:
    """A run that was executed already is computed anew from the saved inputs."""
    log, store = small_run()
    executor = DataExecutor(log, store)
    executor.run()
    save_run(tmp_path / "run", log, store)
    again = load_run(tmp_path / "run").executor()
    again.run()
    found = again.store.read("hbm", 1 << 20, (8, 6), "bf16")
    assert found.tobytes() == executor.store.read("hbm", 1 << 20, (8, 6), "bf16").tobytes()
    assert again.computed == 2


def test_other_folder_is_refused(tmp_path) -> None:
    """A folder without a run, and one of another schema, are named."""
    with pytest.raises(UsageError, match="must be the folder of a saved run"):
        load_run(tmp_path)
    log, store = small_run()
    save_run(tmp_path, log, store)
    text = (tmp_path / "run.json").read_text().replace("kernbench.oplog/3", "kernbench.oplog/9")
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(UsageError) as caught:
        load_run(tmp_path)
    assert str(caught.value) == (
        f"{str(tmp_path)!r} must hold a run of schema 'kernbench.oplog/3', not 'kernbench.oplog/9'; a later kernbench "
        "wrote it; use a newer kernbench."
    )
    (tmp_path / "run.json").write_text(text.replace("kernbench.oplog/9", "kernbench.oplog/1"))
    with pytest.raises(UsageError) as caught:
        load_run(tmp_path)
    assert str(caught.value) == (
        f"{str(tmp_path)!r} must hold a run of schema 'kernbench.oplog/3', not 'kernbench.oplog/1'; run it again."
    )


class Colour(Enum):
    """What a model may give an op as a parameter."""

    RED = 1


@frozen
class Corner:
    """The same, with fields."""

    x: int
    y: float


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=4), st.binary(max_size=4)
)
ODD = st.one_of(
    st.sampled_from([Colour.RED, int, float, Region, Corner, object, {3}, np.float64(2.5), np.arange(3.0)]),
    st.builds(Corner, st.integers(), st.floats(allow_nan=False)),
    st.builds(Region, *(st.integers(1, 64),) * 2),
    st.builds(ResultValue, st.just((0, 5)), st.just((2, 3)), st.just("f16")),
    st.sampled_from(["f16", "int32"]).map(lambda dtype: np.ones(3, numpy_dtype(dtype))),
)
THINGS = st.recursive(
    SCALARS | ODD,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3),
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["a", "b_addrs", "snapshot", "immediate0"]), THINGS))
@settings(max_examples=60)
def test_a_loaded_log_has_the_hash_of_the_saved_one(params: dict[str, Any]) -> None:
    """Whatever the models gave as parameters; what cannot be given back counts as what it was."""
    log, again = OpLog(), OpLog()
    log.append(0.0, 1.0, "unit", OpDescription("other", "odd", params, op_id=(0, 0)))
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        save_run(one, log, MemoryStore())
        saved = load_run(one)
        assert saved.op_log.sha256() == log.sha256()
        (record,) = saved.op_log
        again.append(0.0, 1.0, "unit", OpDescription("other", "odd", record.params, op_id=(0, 0)))
        save_run(other, again, MemoryStore())
        assert load_run(other).op_log.sha256() == log.sha256()


def test_a_run_saved_when_only_the_name_of_a_type_was_kept_still_loads(tmp_path: Path) -> None:
    """The parameter is that name, as it was then."""
    log = OpLog()
    log.append(0.0, 1.0, "unit", OpDescription("other", "odd", {"colour": Colour.RED}, op_id=(0, 0)))
    save_run(tmp_path, log, MemoryStore())
    head = json.loads((tmp_path / "run.json").read_text())
    head["objects"] = [{"o": "Colour"}]
    (tmp_path / "run.json").write_text(json.dumps(head))
    (record,) = load_run(tmp_path).op_log
    assert record.params == {"colour": "Colour"}
