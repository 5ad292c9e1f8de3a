"""A finished run made by hand, for the tests of what shows and stores results."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import attrs

from kernbench_builtin.machines.figures.columns import ColumnTable
from kernbench_builtin.machines.figures.tables import RunTables
from kernbench_core.compute.verification import Verification
from kernbench_core.host.timing import LateStart, NotModelled, ResourceUse, TimingResult
from kernbench_core.runs.answers import Correctness
from kernbench_core.runs.result import RunResult

TIMING = TimingResult(
    total_ns=412_300.0,
    phases={"kernel": 380_000.0, "launch": 1_100.0, "device_to_host": 13_000.0, "host_to_device": 18_200.0},
    events=1_234_567,
    hops=1_000_000,
    ops=4_096,
    wall_s=2.0,
    late_starts=(LateStart("sip0.cube0.pe1", 2.0), LateStart("sip0.cube3.pe7", 12.5)),
    busiest=(
        ResourceUse("sip0.cube0.pe0.pe_gemm", "pe_gemm", 0.8125, 335_000.0, 0, 4, 0.5),
        ResourceUse("sip0.io0.pcie_ep->host", "pcie wire", 0.25, 100_000.0, 6_291_456, 1, 0.25),
    ),
    not_modelled=(
        NotModelled("Refresh is left out.", "builtin.hbm_ctrl", 512),
        NotModelled("Buffers are unbounded.", "builtin.forwarding", 9_000),
        NotModelled("Refresh is left out.", "builtin.sram", 3),
    ),
)
NO_ROWS = ColumnTable(0, {})
NO_FIGURES: dict[str, Any] = {
    "launches": (), "kernels": None, "links": NO_ROWS, "components": NO_ROWS, "lines": NO_ROWS, "functions": NO_ROWS,
    "op_kinds": NO_ROWS, "models": {}, "ops": NO_ROWS,
}  # fmt: skip
RIGHT = Verification(ok=True, checked=1, max_abs_error=0.00012, failures=())
NOTHING = Verification(ok=True, checked=0, max_abs_error=0.0, failures=())
WRONG = Verification(
    ok=False, checked=2, max_abs_error=3.0, failures=("tensor 'c' differs at (0, 1): 4.0 must be 1.0.",)
)


def make_result(verification: Verification | None = RIGHT, **changed: Any) -> RunResult:
    """Return a result of the bench "gemm"; `changed` replaces its fields."""
    fields: dict[str, Any] = {
        "bench": "gemm",
        "params": {"M": 64, "a": None, "b": {"file": "params/b.npy", "sha256": "00"}},
        "topology": "tiny",
        "device": "all",
        "timing": TIMING,
        "wall_s": 3.25,
        "op_log_sha256": "ab" * 32,
        "manifest": {"schema": "kernbench.manifest/1"},
        "op_log": SimpleNamespace(),
        "store": SimpleNamespace(),
    }
    changed = {"verification": verification, **changed}
    own = {name: changed.pop(name) for name in attrs.fields_dict(Correctness) if name in changed}
    tables = {**NO_FIGURES, **{name: changed.pop(name) for name in NO_FIGURES if name in changed}}
    parts = {"figures": RunTables(**tables), **changed.pop("parts", {})}
    return RunResult(**{**fields, "correctness": Correctness(**own), "parts": parts, **changed})
