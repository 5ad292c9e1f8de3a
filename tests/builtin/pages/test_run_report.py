"""What a run leaves to be looked at, on a machine of toys: the machine with what everything did, and its page."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

import kernbench_core as kb
from kernbench_builtin.machines.drawing import MachineDrawing
from kernbench_builtin.machines.figures.links import links
from kernbench_builtin.pages.plugin import REPORT_SECTIONS
from kernbench_builtin.pages.report import RunPage, Section
from kernbench_builtin.pages.run_report import drawing_json, page_of, use_json, write_report
from kernbench_core.errors import PluginError
from kernbench_core.host.session import GraphEngine
from kernbench_core.topology.compilation import compile_topology
from tests.builtin.report.pages import Elements, registry, result, shipped
from tests.builtin.working_machine import UNIT_NS, YAML, on_machine, plugins
from tests.core.topology.text_config import parse_config


def double(x, y, tl):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * 4 + tl.arange(0, 4)
    tl.store(y + at, tl.load(x + at) * 2)


def bench(rt: Any) -> None:
    """Double sixteen numbers, four on each PE."""
    x, y = rt.tensor(np.arange(16, dtype=np.float32)), rt.empty((16,), "f32")
    rt.launch(double, x, y)
    rt.check(y, np.arange(16) * 2.0)


@pytest.fixture(scope="module")
def ended() -> GraphEngine:
    """Give the session of the bench, over."""
    config = parse_config(YAML, "m.yaml")
    engine = GraphEngine(compile_topology(config, plugins()), plugins().components)
    engine.run(bench)
    return engine


def test_the_machine_has_what_was_busy_beside_its_drawing(ended: GraphEngine) -> None:
    """Every link that carried anything, as the table of links has it; each unit for as long as its ops took."""
    use = use_json(ended)
    columns = [use[name] for name in ("busy_ns", "utilisation", "nbytes")]
    told = dict(zip(use["places"], zip(*columns, strict=True), strict=True))
    total = use["total_ns"]
    assert total == ended.get_timing_result().total_ns
    rows = [row for row in links(ended.hardware) if row["busy_ns"]]
    table = {row["name"]: (row["busy_ns"], row["utilisation"], row["bytes"]) for row in rows}
    units = {
        f"sip0.cube0.pe{pe}.{unit}": (ops * UNIT_NS, ops * UNIT_NS / total, 0)
        for pe in range(4)
        for unit, ops in (("pe_dma", 2), ("pe_math", 1))
    }
    assert told == {**table, **units}
    owners = {place.partition("#")[0] for place in told}
    uncounted = set(use["not_counted"])
    assert uncounted and not uncounted & owners
    assert all(ended.hardware.components[each].busy_ns == 0 or each.endswith("_cpu") for each in uncounted)


def test_the_drawing_tells_where_parameters_were_given(ended: GraphEngine) -> None:
    """And is read back from what was written, with the title that it was given."""
    config = parse_config(YAML, "m.yaml", sets=["components.hbm_ctrl.params.channels=4"])
    drawing = MachineDrawing.from_json(json.loads(json.dumps(drawing_json(ended, config, "mine"))))
    assert drawing.title == "mine"
    assert {"sip0", "sip0.cube0", "sip0.cube0.pe1"} <= drawing.parts.keys()
    models = {model["kind"]: model for model in drawing.models}
    assert models["hbm_ctrl"]["impl"] == "test.hbm_ctrl"
    assert models["hbm_ctrl"]["params"][:3] == [
        ["overhead", "3 ns", "default of test.hbm_ctrl"],
        ["channels", 4, "--set components.hbm_ctrl.params.channels=4"],
        ["bandwidth", "8 GB/s", "default of test.hbm_ctrl"],
    ]


def test_the_page_has_the_texts_of_the_files_that_kernels_are_in(tmp_path: Path) -> None:
    """As they are now; a file that is gone, or no text, is left out, and nothing else with it."""
    here, gone, bytes_ = (tmp_path / name for name in ("kernel.py", "gone.py", "bytes.py"))
    programs = []
    for times, path in enumerate((here, gone, bytes_), 2):
        path.write_text(inspect.getsource(double).replace("* 2", f"* {times}"))
        names: dict[str, Any] = {}
        exec(compile(path.read_text(), str(path), "exec"), names)
        programs.append(names["double"])
    gone.unlink()
    bytes_.write_bytes(b"\xff\xfe\xff")

    def all_three(rt: Any) -> None:
        x, y = rt.tensor(np.arange(16, dtype=np.float32)), rt.empty((16,), "f32")
        for program in programs:
            rt.launch(program, x, y)

    made = kb.run(all_three, **on_machine(timeline=True))
    page = page_of(made, {"schema": "none"})
    assert page.sources == {str(here): here.read_text()}
    assert made.timeline is not None
    assert {line.rpartition(":")[0] for line in made.timeline.lines} == {str(here), str(gone), str(bytes_)}
    assert (page.name, page.total_ns, page.machine) == ("all_three on a mapping", made.total_ns, {"schema": "none"})
    assert page.timeline is made.timeline and not page.goes_on


def test_a_run_without_a_timeline_has_a_page_without_sources() -> None:
    page = page_of(kb.run(bench, **on_machine()), {})
    assert (page.sources, page.timeline) == ({}, None)


def test_a_report_holds_the_machine_with_its_use(tmp_path: Path) -> None:
    """The option of a run, in one file, by the sections that come with core."""
    path = tmp_path / "r.html"
    made = kb.run(bench, **on_machine(plugins=plugins().having(REPORT_SECTIONS, shipped()), report=path))
    texts = [
        (attributes["data-of"], json.loads(text))
        for tag, attributes, text in Elements(path.read_text()).texts
        if attributes.get("type") == "application/json"
    ]
    assert [name for name, _ in texts] == ["timeline", "machine"]
    assert "bench on a mapping" in path.read_text()
    assert texts[1][1]["use"]["total_ns"] == made.total_ns


def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """Several runs side by side; where a section raises, the file is what it was."""
    path = tmp_path / "r.html"

    def broken(run: RunPage) -> str:
        raise ZeroDivisionError(run.name)

    pages = [RunPage("one", result()), RunPage("two", result())]
    works = plugins().having(REPORT_SECTIONS, registry(s=Section("S", 1, lambda run: f"<p>{run.name}!</p>")))
    write_report(path, pages, works)
    before = path.read_text()
    assert "<p>one!</p>" in before and "<p>two!</p>" in before
    with pytest.raises(PluginError):
        wrong = registry(s=Section("S", 1, broken))
        write_report(path, pages, attrs.evolve(plugins().having(REPORT_SECTIONS, wrong), strict=True))
    assert path.read_text() == before
    assert [*tmp_path.iterdir()] == [path]
