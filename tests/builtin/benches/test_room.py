"""Sizes that are `auto` fit the machine at hand, however small its scratchpads; where none does, it is said."""

from __future__ import annotations

import re

import pytest

from kernbench_core.errors import UsageError


@pytest.mark.parametrize(
    ("bench", "params", "kib"),
    [
        ("gemm", {"M": 256, "N": 256, "K": 160}, (64, 96, 256)),
        ("gemm", {}, (512,)),
        ("gemm", {"M": 500, "N": 300, "K": 70}, (128,)),
        ("vector-add", {"n": 65536}, (64, 128, 256)),
        ("vector-add", {"n": 524288, "ahead": 6}, (384,)),
        ("copy", {"n": 131072}, (64, 128)),
        ("mlp", {"tokens": 32, "hidden": 128, "ffn": 512}, (64,)),
        ("mlp", {"model": "gpt2", "tokens": 128, "hidden": 8, "ffn": 2048}, (64,)),
        ("attention", {"heads": 2, "kv_heads": 1, "head_dim": 512, "tokens": 32}, (128,)),
        ("attention-decode", {"model": "gpt2", "context": 512}, (64, 128)),
        ("attention-decode", {"heads": 8, "kv_heads": 2, "context": 2000}, (96, 256)),
    ],
)
def test_auto_fits_small_scratchpads(run, bench, params, kib) -> None:
    for capacity in kib:
        sets = (f"pe.tcm.capacity={capacity}KiB",)
        run(bench, options={"set": sets, "data": False, "verify_data": False}, **params)


def test_a_product_without_room_for_queues_is_right(run) -> None:
    assert run("gemm", options={"set": ("pe.tcm.capacity=64KiB",)}, M=200, N=256, K=130).verified


def test_a_gather_in_many_blocks_is_right(run) -> None:
    """A PE reads 32 KiB of the middle columns, which do not fit beside the queues of three other cubes."""
    sets = ("pe.tcm.capacity=80KiB", "components.pe_ipcq.params.slots=1")
    sizes = {"model": "gpt2", "tokens": 128, "hidden": 16, "ffn": 1024}
    assert run("mlp", "packages", options={"set": sets}, **sizes).verified


@pytest.mark.parametrize(
    ("bench", "params", "instead"),
    [
        ("gemm", {"tile_m": 256, "tile_n": 64, "M": 1024, "K": 8}, "a smaller -p tile_m or -p tile_n"),
        ("softmax", {"rows": 64, "cols": 16384}, "a smaller -p cols"),
        ("rmsnorm", {"tokens": 32}, "a smaller -p cols"),
        ("attention-decode", {"heads": 8, "kv_heads": 2, "context": 2000}, "a smaller -p context"),
        ("vector-add", {"n": 65536, "ahead": 1 << 16}, "a smaller -p ahead"),
    ],
)
def test_where_nothing_fits_it_says_what_is_enough(run, bench, params, instead) -> None:
    """And so much is enough."""
    shapes = {"data": False, "verify_data": False}
    with pytest.raises(UsageError) as caught:
        run(bench, options={"set": ("pe.tcm.capacity=64KiB",), **shapes}, **params)
    enough = re.search(r"capacity=(\d+)KiB", str(caught.value)).group(1)
    assert str(caught.value) == (
        f"pe.tcm.capacity must be {enough} KiB or more for the smallest sizes that auto can choose here, not 64 KiB; "
        f"give --set pe.tcm.capacity={enough}KiB, or {instead}."
    )
    run(bench, options={"set": (f"pe.tcm.capacity={enough}KiB",), **shapes}, **params)
