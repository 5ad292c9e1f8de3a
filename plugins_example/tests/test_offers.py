"""What the plug-in offers beside its models: each is used as its users would."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import kernbench
import kernbench_core as kb
from kernbench_builtin.checks import Conformance
from kernbench_core.calibration import LogOptions, MachineChoice
from kernbench_core.cli.shell import Shell
from kernbench_core.host import read_sources
from kernbench_core.plugins import Plugins
from kernbench_example.batching_sfu import BatchingSfu
from kernbench_example.hypercube import SHAPE
from kernbench_example.ping_log import PingLog
from kernbench_example.units import units

HERE = Path(__file__).parents[1] / "kernbench_example"


@pytest.mark.parametrize(
    "sort",
    [
        "exporters", "networks", "ops", "programs", "run_parts",
        "algorithms", "collectives", "components",
    ],
)  # fmt: skip
def test_it_keeps_its_word(sort: str, plugins: Plugins) -> None:
    """As kernbench's own checks have it, and the kit of this plug-in: `kernbench plugins check example`."""
    conformance = Conformance.of("example", plugins)
    names = {name for of, name, _ in conformance if of == sort}
    assert names
    assert [str(each) for each in conformance.results(names) if not each.outcome.right] == []


def test_a_table_loaded_ahead_costs_less_than_its_time(plugins: Plugins) -> None:
    """The unit, its command, the function that sends it, the op and the preset, all in one run; numbers are right."""
    ahead, behind = (
        kb.run(
            "example-tables", topology="example-pair", params={"ahead": ahead, "block": 64}, verify_data=True,
            plugins=plugins,
        )
        for ahead in (True, False)
    )  # fmt: skip
    assert ahead.verified and behind.verified
    saved = behind.phases["kernel"] - ahead.phases["kernel"]
    assert 0 < saved < 100, "the table comes while the operands do, and takes 100 ns"
    loads = [each.value for each in ahead.timing.statistics if each.component == "example.batching_sfu"]
    assert loads == [8], "of 2 packages of 4 PEs, one each"


def test_the_format_has_a_line_for_each_op(plugins: Plugins, tmp_path: Path) -> None:
    """With the times and components of the log."""
    result = kb.run(
        "example-softplus", topology="example-pair", params={"block": 16}, trace=tmp_path / "ops.csv", plugins=plugins
    )
    with (tmp_path / "ops.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(float(row["start_ns"]), float(row["end_ns"]), row["component"], row["op"]) for row in rows] == [
        (record.t_start, record.t_end, record.component_id, record.op_name) for record in result.op_log
    ]
    stores = [int(row["bytes_written"]) for row in rows if row["op"] == "softplus"]
    assert stores == [32] * 8, "16 elements of f16 on each of 8 PEs"


def test_the_command_counts_the_nodes_of_a_machine(plugins: Plugins) -> None:
    """Twice as many in two packages as in one, and the unit that the preset adds."""
    shell = Shell(plugins)
    done = CliRunner().invoke(units, ["--topology", "example-pair", "--json"], obj=shell)
    assert done.exit_code == 0, done.output
    found = {each["model"]: each["nodes"] for each in json.loads(done.output)["units"]}
    assert (found["example.batching_sfu"], found["builtin.pe_gemm"], found["builtin.host"]) == (8, 8, 1)
    plain = CliRunner().invoke(units, ["--topology", "example-pair"], obj=shell)
    assert f"{8:6}  pe_sfu          example.batching_sfu" in plain.output.splitlines()


BLEND = """
from kernbench_example.elementwise import elementwise

@elementwise
def blend(x, y, share: float = 0.5):
    return x * share + y * (1 - share)
"""


def test_a_function_of_elements_is_run_over_arrays(
    plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a file, on more elements than a program takes, and from Python; without an array it says so."""
    monkeypatch.chdir(tmp_path)
    Path("blend.py").write_text(BLEND)
    x, y = (np.random.default_rng(seed).random((3, 500), np.float32) for seed in (1, 2))
    asked = {"topology": "tiny", "verify_data": True, "outputs": True, "plugins": plugins}
    found = kb.run("blend.py:blend", params={"x": x, "y": y, "share": 0.25}, **asked)
    assert found.verified and len(found.launches) == 1
    np.testing.assert_allclose(found.outputs["out"], x * 0.25 + y * 0.75, rtol=1e-6)
    blend = vars(read_sources(Path("blend.py")).execute())["blend"]
    launched = kernbench.launch(blend, x, y, topology="tiny", plugins=plugins)
    np.testing.assert_allclose(launched.outputs["out"], (x + y) / 2, rtol=1e-6)
    with pytest.raises(kb.UsageError, match="'blend' must be given an array to be run over; give one by -p"):
        kb.run("blend.py:blend", params={"x": 1, "y": 2}, **asked)


def test_the_way_through_a_hypercube_flips_differing_bits() -> None:
    """As many steps as bits differ, from every corner of eight to every other."""
    for here in range(8):
        for there in range(8):
            at, steps = here, 0
            while at != there:
                at, steps = SHAPE.step(None, at, there), steps + 1  # type: ignore[arg-type]  # of the numbers alone
            assert steps == (here ^ there).bit_count()


def test_pings_are_the_latency_of_their_hops(plugins: Plugins) -> None:
    """Read with their lines, simulated on a machine that is long enough."""
    log = PingLog(plugins, LogOptions())
    rows = log.read("pings.csv", "hops,time\n1,510 ns\n3,1.5 us\n")
    assert [(row.place, row.ns) for row in rows] == [("pings.csv:2", 510.0), ("pings.csv:3", 1500.0)]
    sets = (*log.settings(rows), "system.network.latency=400 ns")
    assert [row.ns for row in log.simulate(rows, MachineChoice("tiny", sets))] == [400.0, 1200.0]


def test_silu_is_what_numpy_says() -> None:
    """The function that phase 2 calls, against x times the logistic function, in f64."""
    from kernbench_example.sfu import silu

    x = np.linspace(-8, 8, 101, dtype=np.float32)
    expected = x.astype(np.float64) * 0.5 * (1 + np.tanh(x.astype(np.float64)))  # scale 2: logistic(2x) by tanh
    np.testing.assert_allclose(silu({}, [x], scale=2.0), expected, rtol=1e-6, atol=1e-7)


def test_kernels_call_l2norm(plugins: Plugins) -> None:
    """It is the length that numpy computes."""
    x = np.random.default_rng(0).standard_normal(64).astype(np.float32)

    def length(x_ptr: object, out_ptr: object, tl: Any) -> None:
        tl.store(out_ptr, tl.l2norm(tl.load(x_ptr, shape=(64,))))

    found = kernbench.launch(length, x, np.empty(1, np.float32), topology="tiny", plugins=plugins)
    np.testing.assert_allclose(found.outputs["out_ptr"], [np.linalg.norm(x)], rtol=1e-5)


def test_units_that_hold_commands_say_so_where_a_run_stands_still(plugins: Plugins) -> None:
    """Of a batch that never ends, what waits behind it; of other units nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BatchingSfu, "done", lambda self, first: None)
        with pytest.raises(kb.KernbenchError, match=r"\.pe_sfu has \d+ commands that wait for its next batch"):
            kb.run("example-tables", "example-pair", plugins=plugins)
