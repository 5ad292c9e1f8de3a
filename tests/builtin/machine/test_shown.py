"""What a notebook shows: short reprs, tables that are escaped, and errors with the user's own lines."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_builtin.explain.critical_path import SORTS
from kernbench_builtin.machines.drawing import draw_machine
from kernbench_core.errors import KernbenchError
from kernbench_core.plugins import Plugins
from kernbench_core.process.notebook import Pictured
from kernbench_core.runs.bench_run import configure
from kernbench_core.runs.listing import Listing
from kernbench_core.topology.compilation import compile_topology
from kernbench_core.units import format_time


def racing(x_ptr: Any, tl: Any) -> None:
    tl.store(x_ptr + tl.arange(0, 4), tl.load(x_ptr + tl.arange(0, 4)) + 1.0)


def test_what_a_notebook_user_meets_is_short(plugins: Plugins) -> None:
    """Every repr is below 2 kB, on a machine of 64 PEs, with many launches and hazards."""
    met: dict[str, Any] = {}

    def bench(rt: Any) -> None:
        tensors = [rt.tensor(np.ones((64, 64), np.float32), name=f"<x{at}>") for at in range(20)]
        for x in tensors:
            met["handle"] = rt.launch(racing, x)
        met.update(tensor=tensors[0], graph=rt.graph, design=rt.design, allocation=tensors[0].allocation)
        met.update(plugins=rt.plugins, op_log=rt.op_log, local=tensors[0].to_local(), part=tensors[0][0:2])

    result = kb.run(bench, "default", explain=True, tcm_map=True, timeline=True, plugins=plugins)
    assert len(result.hazards) and len(result.launches) == 20
    names = "explain timing op_log store manifest hazards launches kernels links ops rows outputs timeline tcm_map"
    met.update({name: getattr(result, name) for name in (*names.split(), "busiest", "phases")})
    assert result.explain is not None
    met.update(result=result, explained=result.explain.launches[0], record=result.op_log[0], launch=result.launches[0])
    met.update(config=configure(plugins, "full"), not_modelled=result.not_modelled, hazard=result.hazards[0])
    met["full"] = compile_topology(met["config"], plugins)
    lengths = {name: len(repr(thing)) for name, thing in met.items()}
    assert {name: length for name, length in lengths.items() if length >= 2000} == {}
    assert repr(met["full"]).startswith("<Machine of 512 PEs: ")
    for name in ("links", "ops"):
        assert met[name]._repr_html_().startswith("<table>")
    for name in ["result", "tensor", "hazards", "hazard", "launches", "launch", "handle", "outputs"]:
        html = met[name]._repr_html_()
        assert "<x" not in html and "<Run" not in html and len(html) < 100_000
    assert "&lt;x0&gt;" in met["tensor"]._repr_html_()


def test_records_are_short(plugins: Plugins) -> None:
    """Those of products too, whose tiles are dealt over many regions."""
    op_log = kb.run("gemm", "tiny", {"M": 128, "N": 128, "K": 128}, plugins=plugins).op_log
    assert max(len(access.regions) for record in op_log for access in record.reads) > 50
    assert max(map(len, map(repr, op_log))) < 2000


def test_a_listing_is_a_tuple_that_shows_a_few() -> None:
    found = Listing(range(1000))
    assert found == tuple(range(1000)) and found[2:4] == (2, 3) and hash(found) == hash(tuple(range(1000)))
    assert repr(found) == "(0, 1, 2, 3, 4, … 995 more)"
    assert repr(Listing([1])) == "(1,)" and repr(Listing()) == "()"
    assert len(repr(Listing(["x" * 10_000] * 9))) < 2000
    assert Listing(["<b>"] * 30)._repr_html_().count("&lt;b&gt;") == 20
    assert Listing(["<b>"] * 30)._repr_html_().endswith("<p>10 more</p>")


def test_an_error_shows_its_sentence_and_the_lines_of_the_user(plugins: Plugins) -> None:
    """In a notebook: the call, the bench, the launch; none of the frames between them."""

    def bench(rt: Any) -> None:
        rt.launch(racing, "no tensor", 5)

    with pytest.raises(KernbenchError) as caught:
        kb.run(bench, "tiny", plugins=plugins)
    shown = caught.value._render_traceback_()
    assert "kernbench_core" not in "\n".join(shown) and __file__ in "\n".join(shown)
    assert shown[0] == "Traceback (most recent call last):"
    assert shown[-1] == f"{type(caught.value).__name__}: {caught.value}".splitlines()[-1]
    assert any('kb.run(bench, "tiny", plugins=plugins)' in line for line in shown)
    assert len(shown) < len("".join(traceback.format_exception(caught.value)).splitlines()) / 2


def test_what_a_kernel_did_is_shown_without_the_models_that_ran_it(plugins: Plugins) -> None:
    """The call that ran it, and the sentence with the kernel's line: no line of a hardware model."""

    def kernel(x_ptr: Any, tl: Any) -> None:
        tl.store(x_ptr + 1000, 1.0)

    with pytest.raises(kb.KernelError) as caught:
        kb.run(lambda rt: rt.launch(kernel, rt.zeros((4,), "f32")), "tiny", plugins=plugins)
    shown = "\n".join(caught.value._render_traceback_())
    assert "kernbench_builtin" not in shown and "kernbench_core" not in shown
    assert f"{__file__}:{kernel.__code__.co_firstlineno + 1} must stay inside" in shown


def test_a_wrong_configuration_comes_of_no_group_of_exceptions(plugins: Plugins) -> None:
    """IPython shows whatever follows one with all lines, and asks no error how it is to be shown."""
    with pytest.raises(kb.ConfigError) as caught:
        kb.run("gemm", {"base": "tiny", "cube": {"pes": "many"}}, plugins=plugins)
    error: BaseException | None = caught.value
    while error is not None:
        assert not isinstance(error, BaseExceptionGroup)
        error = error.__context__


def test_a_hazard_is_shown_with_both_sides(plugins: Plugins) -> None:
    hazard = kb.run(lambda rt: rt.launch(racing, rt.zeros((4,), "f32", name="x")), "tiny", plugins=plugins).hazards[0]
    assert repr(hazard) == f"<Hazard {hazard}: {hazard.first}; {hazard.second}>"


def test_notes_of_an_error_are_shown() -> None:
    error = kb.UsageError("this must be that.")
    error.add_note("It is of acme 1.0.")
    assert error._render_traceback_() == ["UsageError: this must be that.", "It is of acme 1.0."]


def test_a_graph_is_its_picture(plugins: Plugins, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `draw_machine` draws it; the text stays short, and without who draws it is all there is."""
    graph = kb.compile_topology(configure(plugins, "tiny"), plugins)
    assert graph._repr_html_() == draw_machine(graph).svg()
    assert "<title>sip0</title>" in (graph._repr_html_() or "") and len(repr(graph)) < 200
    monkeypatch.setattr(Pictured, "draw", None)
    assert graph._repr_html_() is None


def test_a_result_and_its_explanation_are_drawn_over_time(plugins: Plugins) -> None:
    """Without a timeline the launch alone; with one the host's copies before it; of an explanation the same times."""
    size = {"M": 64, "N": 64, "K": 64}
    plain = kb.run("gemm", "tiny", size, plugins=plugins)
    looked = kb.run("gemm", "tiny", size, plugins=plugins, explain=True, timeline=True)
    assert looked.explain is not None
    things = {"plain": plain, "looked": looked, "why": looked.explain}
    html = {name: str(thing._repr_html_()) for name, thing in things.items()}
    longest = max(looked.explain.went, key=lambda row: row.ns)
    assert "Where the time went" not in html["plain"] and ">host<" not in html["plain"]
    assert ">host<" in html["looked"] and "copy to device" in html["looked"] and "gemm_kernel" in html["plain"]
    for name in ("looked", "why"):
        told = f"</svg>{longest.phase.replace('_', ' ')} · {SORTS[longest.sort]} · {longest.kind} "
        assert f"{told}<b>{format_time(longest.ns)}</b> {longest.ns / looked.total_ns:.1%}" in html[name]
    assert " → " in html["looked"] and "-&gt;" not in html["looked"].partition("busiest of its kind")[2]
    assert all(f"<td>{kind}</td>" in html["why"] for kind in ("pe_gemm", "pe_dma", "pcie wire"))
