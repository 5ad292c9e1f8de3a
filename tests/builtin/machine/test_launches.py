"""The figures of launches on a real machine, beside sums over the op log and over what wires were given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_core.plugins import Plugins
from kernbench_core.wire import Wire

SIZE = {"M": 128, "N": 96, "K": 160}


def test_a_product_has_2mnk_operations_and_the_bytes_of_its_dma(plugins: Plugins) -> None:
    """FLOP of the matrix units, bytes of every load and store of the op log, and the rates of both."""
    result = kb.run("gemm", "tiny", SIZE, plugins=plugins)
    (launch,) = result.launches
    assert launch.roofline is not None
    by_kind = {each.kind: each for each in launch.roofline.resources}
    assert by_kind["pe_gemm"].achieved * launch.time_ns == pytest.approx(2 * 128 * 96 * 160, rel=1e-12)
    moved = sum(op.params["nbytes"] for op in result.op_log if op.op_name in ("dma_read", "dma_write"))
    assert launch.hbm_bytes == moved
    assert by_kind["hbm_ctrl"].achieved == moved / launch.time_ns
    assert launch.time_ns == result.phases["kernel"]
    assert launch.kernel == "gemm_kernel" and "gemm.py:" in launch.line


def test_the_explanation_has_the_same_points(plugins: Plugins) -> None:
    """There is one count of what was done."""
    result = kb.run("mlp", "tiny", {"model": "gpt2", "tokens": 16}, data=False, explain=True, plugins=plugins)
    assert result.explain is not None and len(result.launches) > 1
    assert [each.roofline for each in result.launches] == [each.roofline for each in result.explain.launches]


def test_what_was_busy_is_what_wires_were_given_meanwhile(plugins: Plugins, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second count: every booking of every wire is noted, and summed up from the start to the end of each launch."""
    booked: list[tuple[str, float, float]] = []

    def noting(method: Any) -> Any:
        def noted(wire: Wire, first: Any, *rest: Any) -> Any:
            before = wire.busy_ns
            answer = method(wire, first, *rest)
            booked.append((wire.name, rest[0], wire.busy_ns - before))
            return answer

        return noted

    monkeypatch.setattr(Wire, "send", noting(Wire.send))
    monkeypatch.setattr(Wire, "book", noting(Wire.book))

    def kernel(x_ptr: Any, n: int, tl: Any) -> None:
        at = x_ptr + tl.program_id(0) * n + tl.arange(0, n)
        tl.store(at, tl.load(at) * 2.0)

    def bench(rt: Any) -> None:
        x = rt.tensor(np.ones(rt.n_pes * 512, np.float32))
        for n in (512, 64):
            rt.launch(kernel, x, n)

    result = kb.run(bench, "tiny", plugins=plugins)
    assert len(result.launches) == 2
    for launch in result.launches:
        sums: dict[str, float] = {}
        for name, at, took in booked:
            if launch.started_ns <= at < launch.ended_ns:
                sums[name] = sums.get(name, 0.0) + took
        for use in launch.busiest:
            if use.kind.endswith("wire"):
                assert use.busy_ns == sums[use.name]
                assert use.utilisation == use.busy_ns / launch.time_ns
        wires = {use.name: use.busy_ns for use in launch.busiest if "->" in use.name}
        assert max(wires.values()) == max(total for name, total in sums.items() if "->" in name)


def test_launches_are_in_json(plugins: Plugins) -> None:
    """With plain types, in the order in which they were submitted."""
    found = kb.run("mlp", "tiny", {"model": "gpt2", "tokens": 16}, data=False, plugins=plugins)
    listed: Any = found.to_json()["launches"]
    assert [each["kernel"] for each in listed] == [each.kernel for each in found.launches]
    assert all(each["time_ns"] == each["ended_ns"] - each["started_ns"] for each in listed)
    assert [each["injected_ns"] for each in listed] == sorted(each["injected_ns"] for each in listed)
