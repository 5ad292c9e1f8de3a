"""The figures of real runs, computed a second time out of the raw op log, in plain Python."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import pytest

import kernbench_core as kb
from kernbench_builtin.benches import gemm as gemm_bench
from kernbench_builtin.compare import RunFigures, compare, figures_of
from kernbench_builtin.compare.run_figures import figures_of_json
from kernbench_builtin.machines.figures.components import components
from kernbench_builtin.machines.figures.op_kinds import op_kinds
from kernbench_core.callsite import CallSite, line_number
from kernbench_core.graph import Node
from kernbench_core.host import session
from kernbench_core.oplog.log import OpLog
from kernbench_core.oplog.logger import OpLogger
from kernbench_core.plugins import Plugins
from kernbench_core.values.value import OpId

Noted: TypeAlias = tuple[kb.RunResult, dict[OpId, CallSite | None]]
SIZE = {"M": 64, "N": 64, "K": 64, "pin_a": True}


@pytest.fixture(scope="module")
def noted(plugins: Plugins) -> Noted:
    """Give a run of a composite with stages, queues and plain ops, and where each op was asked for."""
    made: list[OpLogger] = []

    class Noting(OpLogger):
        """Note the kernel lines of ops."""

        def __init__(self, log: OpLog) -> None:
            super().__init__(log, {})
            made.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "OpLogger", Noting)
        result = kb.run("gemm-composite", "tiny", SIZE, explain=True, plugins=plugins)
    sites = made[-1].sites
    assert sites
    return result, sites


def test_ops_and_lines_are_those_of_the_log(noted: Noted) -> None:
    """Counts, times and bytes by name of op, and by the kernel line that asked for them, stages left out."""
    result, sites = noted
    ops: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0])
    lines: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
    for record in result.op_log:
        took = record.t_end - record.t_start
        row = ops[f"{record.op_kind} {record.op_name}"]
        row[:] = [row[0] + 1, row[1] + took, row[2] + record.params.get("nbytes", 0)]
        site = None if record.op_id is None or record.stage_of is not None else sites[record.op_id]
        if site is not None:
            row = lines[f"{Path(site[0].co_filename).name}:{line_number(site)}"]
            row[:] = [row[0] + 1, row[1] + took]
    found = figures_of(result)
    assert {name: [*row] for name, row in found.tables["op"].rows.items()} == dict(ops)
    assert {name: [*row] for name, row in found.tables["line"].rows.items()} == dict(lines)
    assert sum(row[0] for row in ops.values()) == found.totals["ops"] == len(result.op_log)
    assert len(lines) == 2 and any(record.stage_of for record in result.op_log)
    texts = Path(gemm_bench.__file__).with_name("gemm_composite.py").read_text().splitlines()
    for name, said in found.tables["line"].about.items():
        assert said == " ".join(texts[int(name.rpartition(":")[2]) - 1].split())


def test_sums_agree_with_each_other(noted: Noted) -> None:
    """Phases and the critical path are the whole time; ops of components are those of the log; links their kinds."""
    result, _ = noted
    found = figures_of(result)
    sums = {
        sort: [sum(column) for column in zip(*table.rows.values(), strict=True)]
        for sort, table in found.tables.items()
    }
    assert sums["phase"] == sums["path"] == [found.total_ns] == [result.total_ns]
    assert sums["component kind"][2] == sums["op"][0]
    assert sums["link kind"] == [len(result.links), *sums["link"][2:]]
    assert sums["link"][2] == sum(result.links["bytes"].tolist())
    assert sums["place"] == [sum(launch.ns for launch in result.explain.launches)]
    assert found.tables["kernel"].rows["composite_kernel"][1] == result.phases["kernel"]


def test_components_are_those_of_the_machine(noted: Noted) -> None:
    """As busy as the busiest of each kind are said to be; messages as many as crossed each model, ops as logged."""
    result, _ = noted
    rows = {row["name"]: row for row in result.components}
    busiest = [use for use in result.busiest if use.name in rows]
    assert [rows[use.name]["busy_ns"] for use in busiest] == [use.busy_ns for use in busiest] != []
    crossed: dict[str, int] = defaultdict(int)
    for row in rows.values():
        crossed[row["impl"]] += row["served"]
    assert {each.component: each.count for each in result.not_modelled}.items() <= crossed.items()
    logged: dict[str, int] = defaultdict(int)
    for record in result.op_log:
        logged[record.component_id] += 1
    assert {name: row["ops"] for name, row in rows.items() if row["ops"]} == dict(logged)
    kinds: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0, 0.0, 0, 0.0])
    for row in rows.values():
        more = (1, *(row[name] for name in ("served", "ops", "busy_ns", "waits", "waited_ns")))
        kinds[row["kind"]] = [a + b for a, b in zip(kinds[row["kind"]], more, strict=True)]
    assert {name: [*row] for name, row in figures_of(result).tables["component kind"].rows.items()} == dict(kinds)


def test_a_long_log_is_summed_up_piece_by_piece(noted: Noted, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is in one piece; in files, too."""
    result, _ = noted
    names = result.components["name"].tolist()
    whole = op_kinds(result.op_log), _ops_logged(result.op_log, names)
    assert whole[0] == result.op_kinds and whole[1] == result.components["ops"].tolist()
    for module in ("op_kinds", "components"):
        monkeypatch.setattr(f"kernbench_builtin.machines.figures.{module}.ROWS_AT_ONCE", 3)
    assert (op_kinds(result.op_log), _ops_logged(result.op_log, names)) == whole
    result.op_log.columns.spill()
    assert (op_kinds(result.op_log), _ops_logged(result.op_log, names)) == whole


def _ops_logged(op_log: OpLog, names: list[str]) -> list[int]:
    """Return how many ops each component has logged, as the table of components counts them."""
    node = Node("x", "y")
    parts = {name: SimpleNamespace(id=name, node=node, servers=1, served=0, busy_by=float, waits=0, waited_ns=0.0)
             for name in names}  # fmt: skip
    hardware: Any = SimpleNamespace(env=SimpleNamespace(now=1.0), components=parts)
    counted: list[int] = components(hardware, op_log)["ops"].tolist()
    return counted


def test_sources_and_models(noted: Noted) -> None:
    """The function of the kernel as its file has it, with its digest; a digest of each model that the machine has."""
    found = figures_of(noted[0])
    (name,) = found.texts
    assert name == "gemm_composite.py:composite_kernel"
    assert found.texts[name] in Path(gemm_bench.__file__).with_name("gemm_composite.py").read_text()
    assert found.texts[name].startswith("def composite_kernel(") and found.texts[name].count("\ndef ") == 0
    assert found.causes["sources"] == {name: hashlib.sha256(found.texts[name].encode()).hexdigest()}
    assert found.causes["models"].keys() == set(noted[0].components["impl"])
    assert all(len(digest) == 64 for digest in found.causes["models"].values())
    assert len(set(found.causes["models"].values())) == len(found.causes["models"])


def test_a_saved_json_knows_what_it_lacks(noted: Noted) -> None:
    """All but links, which `--json` does not list; with them it is the same."""
    result, _ = noted
    said = json.loads(json.dumps(result.to_json()))
    bare, whole = figures_of_json(said), figures_of(result)
    assert whole.missing == {}
    why = "run it with --out, or with --links all"
    assert bare.missing == {"link kind": why, "link": why}
    assert bare.tables == {sort: table for sort, table in whole.tables.items() if sort not in bare.missing}
    assert figures_of_json({**said, "links": result.links.to_json()}) == whole
    assert compare(bare, whole).rows == ()
    assert compare(bare, whole).unknown == dict.fromkeys(("link kind", "link"), f"not known of A: {why}")


def test_nothing_of_the_machine_that_ran_it_is_in_figures(noted: Noted) -> None:
    """No absolute path and no wall time, so that figures are equal elsewhere."""
    text = json.dumps(figures_of(noted[0]).to_json())
    assert str(Path(gemm_bench.__file__).parent) not in text
    assert "wall" not in text
    assert RunFigures.from_json(json.loads(text)) == figures_of(noted[0])
