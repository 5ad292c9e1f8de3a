"""Run programs of ranks on small SIPs, with the naive algorithms."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import pytest

import kernbench_ccl.distributed as dist
import kernbench_core as kb
from kernbench_core.errors import KernelError, UsageError
from kernbench_core.plugins import Plugins
from kernbench_core.values.dtypes import numpy_dtype
from tests.ccl import naive

PLUGINS = naive.plugins()
Array = np.ndarray[Any, Any]


def run(
    program: Callable[..., Any], world: int = 3, *args: object, verify: bool = True, sips: int | None = None,
    plugins: Plugins = PLUGINS,
) -> tuple[kb.RunResult, list[Any]]:
    """Run `program(rank, rt, *args)` on so many small SIPs, check the data and that nothing races."""
    values: list[Any] = []

    def bench(rt: Any) -> None:
        values.extend(dist.spawn(program, world, args))

    result = kb.run(
        bench, "tiny", set=[f"system.sips={sips or world}"], verify_data=verify, plugins=plugins, max_sim_ns=1e6
    )
    if verify:
        assert result.verification is not None and result.verification.ok, result.verification
    assert not result.hazards
    return result, values


def refused(program: Callable[..., Any], world: int = 2) -> str:
    """Return the first line of what a run ends with that must not go well."""
    with pytest.raises((UsageError, KernelError)) as caught:
        run(program, world, verify=False)
    return str(caught.value).splitlines()[0]


def data(rank: int, count: int, dtype: str = "f32") -> Array:
    """Return small numbers that differ by rank and place, and whose sums are exact in every dtype."""
    generator = np.random.default_rng((rank, count))
    return generator.integers(0, 2, count).astype(numpy_dtype(dtype))


def started(program: Callable[..., Any]) -> Callable[..., Any]:
    """Join the group of all ranks, then run a program."""

    @wraps(program)
    def joined(rank: int, rt: Any, *args: Any) -> Any:
        dist.init_process_group()
        return program(rank, rt, *args)

    return joined
