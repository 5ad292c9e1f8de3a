"""The same inputs give the same op log, bit for bit, in every process and with everything optional on or off."""

from __future__ import annotations

import functools
import gc
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from kernbench_core.plugins import load_plugins, own_plugins
from kernbench_core.runs.bench_run import run as run_bench
from kernbench_core.runs.result import RunResult

ROOT = Path(__file__).parents[3]
ENTRY_POINTS = own_plugins()

BENCHES = {
    "vector-add": {"n": 1400, "block": 256},
    "gemm": {"M": 15, "N": 20, "K": 25, "tile_k": 8},
    "gemm-composite": {"M": 15, "N": 20, "K": 25, "tile_k": 8},
    "gemm-stream": {"products": "1,7", "m": 15, "n": 20, "k": 25},
    "gemm-sweep": {"shapes": "15x20x25", "tiles": "8,16", "pin": "none,b"},
    "attention": {"heads": 2, "kv_heads": 1, "head_dim": 8, "tokens": 18, "tile_q": 8, "tile_k": 16},
    "mlp": {"hidden": 24, "ffn": 40, "tokens": 6},
    "softmax": {"rows": 10, "cols": 30},
    "sparse-gemm": {"M": 32, "N": 40, "K": 64, "tile_k": 8},
}

IN_A_PROCESS = """
import json, sys
from kernbench_core.plugins import load_plugins
from kernbench_core.runs.bench_run import run
plugins = load_plugins({entry_points!r}, installed=False)
print(json.dumps([run(name, "tiny", params, plugins=plugins).op_log_sha256 for name, params in {benches!r}.items()]))
"""


@pytest.fixture(scope="module")
def first_runs(plugins) -> Callable[[str], RunResult]:
    """Give a function that runs a bench of BENCHES on the first call, its data verified."""

    @functools.cache
    def run(bench: str) -> RunResult:
        return run_bench(bench, "tiny", BENCHES[bench], verify_data=True, plugins=plugins)

    return run


@pytest.mark.parametrize("bench", BENCHES)
def test_runs_of_one_process(first_runs, bench, tmp_path) -> None:
    first = first_runs(bench)
    variants = {
        "again": {},
        "data not verified": {"verify_data": False},
        "traced": {"trace": tmp_path / "trace.json.gz"},
        "saved": {"out": tmp_path / "out"},
        "plug-ins in another order": {"plugins": load_plugins(ENTRY_POINTS[::-1], installed=False)},
    }
    for what, options in variants.items():
        result = run_bench(
            bench, "tiny", BENCHES[bench], **{"plugins": load_plugins(ENTRY_POINTS, installed=False), **options}
        )
        assert result.op_log_sha256 == first.op_log_sha256, what
        assert (result.total_ns, result.phases, result.events) == (first.total_ns, first.phases, first.events), what


def test_other_inputs_give_another_log(run) -> None:
    hashes = {run("gemm", M=m, N=40, K=50).op_log_sha256 for m in (30, 31)}
    hashes.add(run("gemm", M=30, N=40, K=50, options={"set": ["components.router.params.overhead=5 ns"]}).op_log_sha256)
    assert len(hashes) == 3


@pytest.mark.parametrize("seed", ["1", "4242"])
def test_a_process_with_another_hash_seed(first_runs, seed) -> None:
    code = IN_A_PROCESS.format(entry_points=ENTRY_POINTS, benches=BENCHES)
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True, text=True)
    assert json.loads(done.stdout) == [first_runs(name).op_log_sha256 for name in BENCHES]


@pytest.mark.parametrize("bench", [name for name in BENCHES if name != "sparse-gemm"])
def test_a_run_without_data_takes_the_same_time(run, first_runs, bench) -> None:
    with_data = first_runs(bench)
    without = run(bench, **BENCHES[bench], options={"verify_data": False, "data": False})
    assert without.op_log_sha256 == with_data.op_log_sha256
    assert (without.phases, without.events) == (with_data.phases, with_data.events)


def test_a_kernel_that_branches_on_data_needs_data(run) -> None:
    from kernbench_core.errors import NoDataError

    with pytest.raises(NoDataError):
        run("sparse-gemm", **BENCHES["sparse-gemm"], options={"verify_data": False, "data": False})


def test_matrices_larger_than_what_a_run_may_take_without_data() -> None:
    """Three matrices of 8 MiB, in tiles as large as they are, take a few megabytes."""
    size = dict.fromkeys(("M", "N", "K", "tile_m", "tile_n", "tile_k"), 2048)
    coarse = ("system.chunk_bytes=16 MiB", "components.hbm_ctrl.params.interleave_bytes=2 MiB")
    machine = ("pe.tcm.capacity=8 GiB", *coarse)
    plugins = load_plugins(ENTRY_POINTS, installed=False)
    tracemalloc.start()
    try:
        result = run_bench("gemm-naive", "tiny", size, data=False, set=machine, plugins=plugins)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6 << 20
    assert result.phases["kernel"] >= 2048**3 / 4 / 2048, "the matrix units do one product after another"
    assert sum(op.params["nbytes"] for op in result.op_log if op.op_name == "dma_read") == (2 + 2) * 2 * 2048**2


def test_the_log_does_not_depend_on_when_garbage_is_collected(plugins) -> None:
    """A kernel whose helper is a reference cycle takes the same addresses, whatever else the process has allocated."""

    def step(o, tl) -> None:
        x = tl.load(o, shape=(256,))

        def tree(depth: int):
            return x if depth == 0 else tree(depth - 1)

        tl.store(o, tree(2) * 2.0, shape=(256,))

    def kernel(o, tl) -> None:
        for _ in range(20):
            step(o, tl)

    def bench(rt) -> None:
        rt.launch(kernel, rt.zeros((256,)), grid=(4,))

    found = set()
    for junk in (0, 100, 500):
        kept = [[] for _ in range(junk)]
        found.add(run_bench(bench, "tiny", plugins=plugins).op_log_sha256)
        assert len(kept) == junk
    assert len(found) == 1
    assert gc.isenabled()


def test_a_full_scratchpad_first_gives_back_what_only_cycles_hold(plugins) -> None:
    """More tiles than fit pass through, when each is garbage as soon as it has been stored."""

    def step(o, tl) -> None:
        x = tl.load(o, shape=(32, 256))
        cycle = [x]
        cycle.append(cycle)

    def kernel(o, tl) -> None:
        for _ in range(20):
            step(o, tl)

    def bench(rt) -> None:
        rt.launch(kernel, rt.zeros((32, 256)), grid=(1,))

    assert run_bench(bench, "tiny", set=("pe.tcm.capacity=128 KiB",), plugins=plugins).timing.ops == 20
