"""Programs that are written for torch name its backends: each is taken for kernbench's, and the result says so."""

from __future__ import annotations

from typing import Any

import pytest

import kernbench_ccl.distributed as dist
from kernbench_core.errors import UnsupportedError
from tests.ccl.ranks import run


def told(backend: str) -> str:
    return (
        f"dist.init_process_group: backend {backend!r} was taken for 'kernbench', the only one: collectives run on the "
        "simulated PEs."
    )


def test_a_backend_of_torch_is_taken_and_noted_once() -> None:
    """Whatever it is, and how often ranks and groups name it; who asks is told which one there is."""

    def program(rank: int, rt: Any, backend: str) -> str:
        dist.init_process_group(backend)
        dist.new_group([0, 1], backend="kernbench")
        dist.barrier()
        return dist.get_backend()

    for backend in ("nccl", "cpu:GLOO,cuda:mpi"):
        result, values = run(program, 2, backend)
        assert values == ["kernbench"] * 2
        assert [line for line in result.warnings if "backend" in line] == [told(backend)]
        assert told(backend) in result.to_json()["warnings"]  # type: ignore[operator]


def test_nothing_is_noted_where_nobody_names_one() -> None:
    """Nor where kernbench's own is named."""

    def program(rank: int, rt: Any) -> None:
        dist.init_process_group(None if rank else "kernbench")
        dist.barrier()

    assert not [line for line in run(program, 2)[0].warnings if "backend" in line]


def test_another_is_refused_in_a_group_too() -> None:
    """With what may be named."""

    def program(rank: int, rt: Any) -> str:
        dist.init_process_group()
        with pytest.raises(UnsupportedError) as caught:
            dist.new_group([0, 1], backend="cpu:gloo,cuda:smoke")
        dist.barrier()
        return str(caught.value)

    assert set(run(program, 2, verify=False)[1]) == {
        "dist.new_group: backend must be left out, 'kernbench', or one of torch's (nccl, gloo, mpi, ucc, xccl), "
        "which are taken for it, not 'cpu:gloo,cuda:smoke'; leave it out."
    }
