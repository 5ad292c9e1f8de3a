"""Where the tensors of a timed call lie in place: the same buffer, or one a rank's own part of the other."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.collectives import COLLECTIVES
from kernbench_ccl.measure import Setup, machine_of
from kernbench_ccl.measure.machine import TimedMachine
from kernbench_ccl.measure.measurement import measure
from kernbench_ccl.measure.sweep import size_of
from kernbench_ccl.measure.timed_run import TimedCase
from kernbench_ccl.plan import load_ccl
from kernbench_core.host import Runtime
from kernbench_core.plugins import load_plugins

PLUGINS = load_plugins()
CCL = load_ccl(catalogue=Catalogue.of(PLUGINS))
RANKS, COUNT, ROOT = 3, 5, 1
ALL = COUNT * RANKS
#: By collective the elements of each rank's buffer, and of each rank that shares no memory, as it has no output.
PLACED = {
    "all_reduce": {"buffer of rank 0": COUNT, "buffer of rank 1": COUNT, "buffer of rank 2": COUNT},
    "all_gather": {"buffer of rank 0": ALL, "buffer of rank 1": ALL, "buffer of rank 2": ALL},
    "reduce_scatter": {"buffer of rank 0": ALL, "buffer of rank 1": ALL, "buffer of rank 2": ALL},
    "gather": {"in of rank 0": COUNT, "buffer of rank 1": ALL, "in of rank 2": COUNT},
    "scatter": {"buffer of rank 1": ALL},
}


@pytest.fixture(scope="module")
def machine() -> TimedMachine:
    return machine_of(Setup("tiny", None, (f"system.sips={RANKS}", "cube.pes=2"), idealised=True), PLUGINS)


@pytest.mark.parametrize("collective", PLACED)
def test_in_place_memory_is_shared_as_in_nccl_tests(
    collective: str, machine: TimedMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The larger of what a rank brings and gets is all there is, its own part of it the smaller; results are right."""
    placed: dict[str, int] = {}
    real = Runtime.tensor

    def tensor(rt: Runtime, array: Any, *args: Any, name: str, **more: Any) -> Any:
        placed[name] = len(array)
        return real(rt, array, *args, name=name, **more)

    monkeypatch.setattr(Runtime, "tensor", tensor)
    kind, name = COLLECTIVES[collective], f"ccl.direct_{collective}"
    redop, root = "sum" if kind.reduces else None, ROOT if kind.rooted else 0
    settings = evolve(CCL.settings(name), pes=1)
    size = size_of(COUNT, kind, "int32", RANKS)
    case = TimedCase(collective, name, "int32", COUNT, size, redop, root, True, settings)
    found = measure(case, machine, PLUGINS)
    assert (found.wrong, found.hazards) == (0, ())
    assert placed == PLACED[collective]
    assert measure(case, machine, PLUGINS, checked=False).time_ns == found.time_ns  # no less is there without data
