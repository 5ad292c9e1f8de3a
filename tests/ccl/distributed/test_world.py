"""What the ranks of a spawn share: configuration, queues of groups, scratch memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench_ccl.distributed as dist
from kernbench_core.errors import ConfigError, UsageError
from kernbench_core.plugins import load_plugins
from tests.ccl.ranks import run, started

SHIPPED = load_plugins()


def test_ccl_yaml_chooses_algorithm_and_queues(tmp_path: Path) -> None:
    """An entry with slots of its own has queues of its own; settings for all change those of all."""
    file = tmp_path / "ccl.yaml"
    file.write_text(
        "defaults: {tier: sram}\n"
        "algorithms: {small: {algorithm: ring_all_reduce, slots: 2, slot_bytes: 1 KiB, tier: hbm}}\n"
        "collectives: {all_reduce: small}\n"
    )
    kernels: list[str] = []

    def program(rank: int, rt: Any) -> None:
        dist.init_process_group(config=file, set=["collectives.broadcast=direct"])
        x = rt.tensor(np.full(3000, rank, np.float32))
        dist.all_reduce(x)
        rt.check(x, np.full(3000, 3))
        dist.broadcast(x, 0)
        if rank == 0:
            kernels.extend(handle.launch.kernel.__name__ for handle in rt.shared.launches if handle.program is rt)

    result, _ = run(program, plugins=SHIPPED)
    assert kernels == ["ring_all_reduce", "direct_broadcast"]
    used = {(op.params["channel"], op.reads[0].space) for op in result.op_log if op.op_name == "ipcq_recv"}
    assert used == {("world, small", "hbm"), ("world", "sram")}


def test_a_wrong_ccl_yaml_is_a_configuration_error() -> None:
    """With the place of the fault, and the rank that met it."""
    with pytest.raises(ConfigError) as caught:
        run(lambda rank, rt: dist.init_process_group(set=["defaults.tier=tmc"]), verify=False)
    assert "defaults.tier must be one of 'auto', 'tcm', 'sram', 'hbm', not 'tmc'" in str(caught.value)
    assert caught.value.exit_code == 3


def test_an_algorithm_that_refuses_is_an_error_of_the_call() -> None:
    """Not a deadlock: no rank can do it."""

    def program(rank: int, rt: Any) -> None:
        dist.init_process_group(set=["collectives.all_reduce=torus"])
        dist.all_reduce(rt.zeros((8,)))

    with pytest.raises(UsageError) as caught:
        run(program, 3, plugins=SHIPPED, verify=False)
    assert str(caught.value).splitlines()[0].startswith("ccl.torus_all_reduce must run on one of the networks ")


def test_scratch_memory_is_used_again() -> None:
    """A second call of the same size allocates nothing: no page-table update, no time for one."""

    @started
    def program(rank: int, rt: Any) -> tuple[int, int]:
        x, parts = rt.zeros((100,)), [rt.zeros((100,)) for _ in range(3)]
        dist.all_gather(parts, x)
        before = len(rt.requests)
        dist.all_gather(parts, x)
        first = len(rt.requests) - before
        dist.all_gather([rt.zeros((99,)) for _ in range(3)], rt.zeros((99,)))
        return first, sum(type(request).__name__ == "MmuMapMsg" for request in rt.requests)

    for launches, maps in run(program)[1]:
        assert (launches, maps) == (2, 1 + 3 + 1 + 4)
