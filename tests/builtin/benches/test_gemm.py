"""gemm and gemm-naive: right for any size, dtype and file; this one faster because double-buffered."""

from __future__ import annotations

import numpy as np
import pytest

from kernbench_builtin.benches._blocks import Blocks
from kernbench_builtin.benches.gemm_naive import gemm_kernel as naive_kernel
from kernbench_core.errors import UsageError

DTYPES = ("f16", "bf16", "f32", "int8")
MACHINES = [
    ("packages", "f16"),
    *(("tiny", dtype) for dtype in DTYPES),
    ("default", "f16"),
]


@pytest.mark.parametrize("bench", ["gemm", "gemm-naive"])
@pytest.mark.parametrize(("topology", "dtype"), MACHINES)
def test_products_are_right_where_nothing_divides_anything(run, topology, dtype, bench) -> None:
    """50 x 36 are 4 x 4 blocks of 13 x 9 on two packages, 8 x 8 of 7 x 5 on the default ones; tiles divide none."""
    assert run(bench, topology, M=50, N=36, K=30, tile_m=9, tile_n=8, tile_k=13, dtype=dtype).verified


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (3, 1, 5), (5, 129, 2), (4, 2, 300)])
def test_fewer_rows_than_pes_and_thin_matrices(run, m, n, k) -> None:
    assert run("gemm", M=m, N=n, K=k).verified


def test_long_sums_in_f32_are_not_called_wrong(run) -> None:
    assert run("gemm", M=16, N=16, K=4096, dtype="f32").verified


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_default_size_on_the_default_machine(run, dtype) -> None:
    assert run("gemm", "default", dtype=dtype).verified


def test_one_package_of_two(run, small) -> None:
    result = run("gemm", "packages", **small, options={"device": "sip:1"})
    assert result.verified
    assert {op.component_id.partition(".")[0] for op in result.op_log} == {"sip1"}


# Files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_matrices_from_files(run, tmp_path, dtype) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-100, 100, shape).astype(dtype) for shape in ((33, 20), (20, 17)))
    for name, array in (("A", a), ("B", b)):
        np.save(tmp_path / f"{name}.npy", array)
    result = run("gemm", a=str(tmp_path / "A.npy"), b=str(tmp_path / "B.npy"), tile_k=8)
    assert result.params["dtype"] == {"float16": "f16", "float32": "f32"}.get(dtype, dtype)
    assert result.verified
    assert result.max_abs_error == 0, "sums of integers this small are exact"


def test_large_values_that_cancel_are_not_called_wrong(run) -> None:
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal(shape, np.float32) * 1e4 for shape in ((16, 512), (512, 16)))
    assert run("gemm", a=a, b=b, tile_k=50).verified


def test_a_wrong_element_is_called_wrong(run) -> None:
    """The tolerance of a product stays far under one of its terms."""

    def off_by_one_term(rt) -> None:
        from kernbench_builtin.benches._shared import check_product

        a = rt.tensor((8, 64), "f32", name="a")
        b = rt.tensor((64, 8), "f32", name="b")
        c = a.numpy() @ b.numpy()
        c[3, 5] -= a.numpy()[3, 9] * b.numpy()[9, 5]
        check_product(rt, rt.tensor(c, name="c"), a, b)

    result = run(off_by_one_term)
    assert not result.verified
    assert "1 of 64" in result.verification.failures[0]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (
            np.ones((32, 16), np.float32),
            "parameter 'M' of bench 'gemm' must be 32, as in array 'a' in 'A.npy' of shape (M, K) = (32, 16), not 64; "
            "leave it out, or give another array.",
        ),
        (
            np.ones(3, np.float32),
            "parameter 'a' of bench 'gemm' must be an array of 2 dimensions, (M, K), not that in 'A.npy' of shape "
            "(3,); give another array.",
        ),
        (
            np.ones((64, 32)),
            "parameter 'a' of bench 'gemm' must be an array of dtype f16 or bf16 or f32 or int8, not that in 'A.npy' "
            "of f64; cast it.",
        ),
    ],
)
def test_a_file_that_does_not_fit(run, tmp_path, monkeypatch, array, message) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("A.npy", array)
    with pytest.raises(UsageError) as caught:
        run("gemm", M=64, N=16, K=32, dtype="f32", a="A.npy")
    assert str(caught.value) == message


@pytest.mark.parametrize("name", ["M", "N", "K", "tile_m", "tile_n", "tile_k"])
def test_sizes_must_be_positive(run, name) -> None:
    with pytest.raises(UsageError) as caught:
        run("gemm", **{name: 0})
    assert str(caught.value) == f"parameter {name!r} must be a positive integer, not 0; give 1 or more."


# Time -------------------------------------------------------------------------------------------------


def single_buffered_kernel(a_ptr, b_ptr, c_ptr, N, K, blocks, BM, BN, BK, tl):  # noqa: N803
    """Do what the kernel of gemm-naive does, but load each pair of tiles only after the one before was multiplied."""
    row, col, rows, cols = blocks.of(tl.program_id(0))
    for m in range(row, row + rows, BM):
        bm = min(BM, row + rows - m)
        for n in range(col, col + cols, BN):
            bn = min(BN, col + cols - n)
            acc = None
            for k in range(0, K, BK):
                bk = min(BK, K - k)
                a = tl.load(a_ptr + m * K + k, shape=(bm, bk), strides=(K, 1))
                b = tl.load(b_ptr + k * N + n, shape=(bk, bn), strides=(N, 1))
                acc = tl.dot(a, b, acc)
            tl.store(c_ptr + m * N + n, acc, strides=(N, 1))


def test_double_buffering_hides_the_shorter_of_load_and_dot(run) -> None:
    size = 256

    def bench_of(kernel):
        def bench(rt) -> None:
            a, b = (rt.tensor((size, size), "f16", name=name) for name in "ab")
            c = rt.empty((size, size), "f16", name="c")
            rt.launch(kernel, a, b, c, size, size, Blocks.over(rt, size, size), 64, 128, 64)
            rt.check(c, lambda: a.numpy().astype("f4") @ b.numpy().astype("f4"))

        return bench

    single, double = run(bench_of(single_buffered_kernel)), run(bench_of(naive_kernel))
    assert single.verified and double.verified
    assert double.phases["kernel"] < 0.8 * single.phases["kernel"]

    def bytes_read(result) -> int:
        return sum(op.params["nbytes"] for op in result.op_log if op.op_name == "dma_read")

    assert bytes_read(single) == bytes_read(double)


def test_time_approaches_macs_over_the_rate_of_the_matrix_unit(run) -> None:
    """With 16 MACs per cycle at 1 GHz nothing else matters: M N K / PEs / 16 ns, and loads hide behind it."""
    slow = [f"components.pe_gemm.params.{given}" for given in ("rows=4", "columns=4", "overhead=0 ns")]
    result = run("gemm-naive", M=256, N=128, K=512, tile_m=64, options={"set": slow, "verify_data": False})
    least = 256 * 128 * 512 / 4 / 16
    assert least <= result.phases["kernel"] <= 1.015 * least


def test_two_packages_beat_one_and_exchange_nothing(run) -> None:
    """Each package has a copy of B and its own rows of A and C: all its PEs need."""
    timed = {"verify_data": False, "data": False}
    size = {"M": 256, "N": 256, "K": 256}
    both, one = (run("gemm-naive", "packages", **size, options={**timed, "device": on}) for on in ("all", "sip:0"))
    assert both.phases["kernel"] < 0.7 * one.phases["kernel"]
    assert not any("scale_up" in use.kind for use in both.busiest)


def test_each_pe_reads_the_rows_and_columns_of_its_block(run) -> None:
    """2 x 4 blocks of 64 x 64 in each package of 8 PEs, in tiles of 64 x 64 x 64: 2 tiles of A and of B each."""
    size = {"M": 256, "N": 256, "K": 128, "tile_k": 64}
    result = run("gemm-naive", "packages", **size, options={"verify_data": False})
    reads = [op.params["nbytes"] for op in result.op_log if op.op_name == "dma_read"]
    assert len(reads) == 16 * 2 * 2
    assert sum(reads) == 16 * (64 + 64) * 128 * 2
