"""`kernbench probe --traffic` on the preset: a table for people, an object for programs, sentences for mistakes."""

from __future__ import annotations

import json

import pytest
from attrs import evolve

from kernbench_builtin.machines.mesh import Mesh
from kernbench_builtin.probe.traffic import LoadPoint, TrafficSetup
from kernbench_core.cli import main
from kernbench_core.plugins import Plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.topology.compilation import compile_topology
from tests.conftest import count_calls

SMALL = ("--set", "mesh.rows=4", "--set", "mesh.columns=4", "--warmup", "100", "--measure", "400")


def probe(plugins: Plugins, *args: str) -> int:
    return main(["probe", "--traffic", *args], plugins)


def test_the_preset_is_a_mesh_of_wormhole_like_routers(plugins: Plugins) -> None:
    """Nine cycles from router to router, 32 B a cycle: PARAMETERS' figures."""
    mesh = compile_topology(configure(plugins, "mesh"), plugins)
    assert isinstance(mesh, Mesh)
    link = mesh.edges["mesh.r0c0", "mesh.r0c1"]
    router = mesh.nodes["mesh.r0c0"]
    assert (mesh.spec.rows, mesh.spec.columns, mesh.cycle_ns, link.bandwidth) == (8, 8, 1.0, 32.0)
    assert link.latency + router.params["overhead"] == 9.0
    assert router.impl == mesh.nodes["mesh.r0c0.ni"].impl == "builtin.forwarding"


def test_the_table_has_a_row_for_each_load_and_fits_a_terminal(
    plugins: Plugins, capsys: pytest.CaptureFixture[str]
) -> None:
    assert probe(plugins, "bitcomp", "--load", "0.1,0.45,0.6", "--packet", "64 B", *SMALL) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert err == ""
    assert lines[:4] == [
        "mesh: mesh of 4 x 4 routers, links of 32 B at 1 GHz (32 GB/s), cycle 1 ns",
        "bitcomp traffic, packets of 2 flits (64 B), seed 0",
        "100 cycles of warm-up, 400 measured, up to 500 of drain",
        "ceiling 0.5 flits/node/cycle, set by r0c1->r0c2; 4 hops on average",
    ]
    assert [line[:6].strip() for line in lines[7:10]] == ["0.1", "~ 0.45", "* 0.6"]
    assert "~ above 60% of the ceiling: buffers and arbitration show" in lines
    assert any(line.startswith("* saturated: queues grow") for line in lines)
    assert any(line.startswith("busy share of the links at load 0.45, in %") for line in lines)
    assert "not modelled: Buffers are unbounded" in out
    assert max(map(len, lines)) <= 80


def test_json_has_every_wire_of_every_load(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    assert probe(plugins, "uniform", "--load", "0.2:0.4:0.1", "--seed", "5", "--json", *SMALL) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "kernbench.probe-traffic/1"
    assert (found["mesh"]["rows"], found["mesh"]["flit_bytes"], found["traffic"]["seed"]) == (4, 32, 5)
    assert found["window_cycles"] == {"warm_up": 100, "measured": 400, "drain": 500}
    assert [point["load"] for point in found["loads"]] == [0.2, 0.3, 0.4]
    assert all(len(point["wires"]) == 2 * (2 * 4 * 3 + 16) for point in found["loads"])
    assert found["ceiling"]["load"] == pytest.approx(1.0)
    assert found["traffic"]["mean_hops"] == pytest.approx(2 * 15 / 12)
    assert any("back-pressure" in item["sentence"] for item in found["not_modelled"])


def test_saturation_and_bursts_are_told(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """Over routers without buffers it is the ceiling; the JSON object has every load that was tried."""
    args = ("transpose", "--load", "0.1", "--burst", "3", "--saturation", *SMALL, "--measure", "1300")
    assert probe(plugins, *args) == 0
    out = capsys.readouterr().out
    assert "transpose traffic, packets of 1 flit (32 B), bursts of 3 packets, seed 0" in out
    (line,) = (line for line in out.splitlines() if line.startswith("saturates at"))
    assert "~ above 60% of the ceiling: buffers and arbitration show" in out.splitlines(), "of a row that was tried"
    assert probe(plugins, *args, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["traffic"]["burst_packets"] == 3.0
    saturation, ceiling = found["saturation"], found["ceiling"]["load"]
    assert line == (
        f"saturates at {saturation['load']:.4g} flits/node/cycle, {saturation['load'] / ceiling:.1%} of the ceiling: "
        f"queues grow at {saturation['beyond']:.4g}"
    )
    assert 0.8 * ceiling < saturation["load"] < saturation["beyond"] <= ceiling
    tried = [(point["load"], point["state"] == "saturated") for point in saturation["tried"]]
    assert len(tried) == 6
    rows = [row[2:8].strip() for row in out.splitlines()[7:14]]
    assert rows == ["0.1", *(f"{load:.4g}" for load, _ in tried)]
    assert all(grows == (load >= saturation["beyond"]) for load, grows in tried)


def test_windows_that_contradict_each_other_leave_a_range(
    plugins: Plugins, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short window says of 0.2 that queues grow and of 0.3 that they do not: neither is denied."""
    measure = TrafficSetup.measure

    def told(self: TrafficSetup, load: float) -> LoadPoint:
        return evolve(measure(self, load), state="saturated" if load == 0.2 else "stable")

    monkeypatch.setattr(TrafficSetup, "measure", told)
    assert probe(plugins, "uniform", "--load", "0.1,0.2,0.3", "--saturation", *SMALL) == 0
    out = capsys.readouterr().out
    assert (
        "saturates somewhere from 0.1 to 1 flits/node/cycle: queues grow at some loads\n"
        "  between and not at higher ones; a longer --measure tells\n"
    ) in out
    assert max(map(len, out.splitlines())) <= 80


def test_what_routers_with_credits_leave_out_is_told_of_them_alone(
    plugins: Plugins, capsys: pytest.CaptureFixture[str]
) -> None:
    credits = ("--set", "components.router.impl=builtin.router_vc")
    assert probe(plugins, "uniform", "--load", "0.2", *credits, *SMALL) == 0
    told = " ".join(capsys.readouterr().out.partition("not modelled:")[2].split())
    assert told == "Credits take no bandwidth. Speculation, look-ahead and adaptive routing are not modelled."


@pytest.mark.parametrize(
    ("router", "interface", "near"),
    [
        ("builtin.forwarding", "builtin.forwarding", True),
        ("builtin.forwarding", "builtin.router_vc", True),
        ("builtin.router_vc", "builtin.forwarding", False),
    ],
)
def test_rows_of_routers_with_buffers_need_no_caveat(
    plugins: Plugins, capsys: pytest.CaptureFixture[str], router: str, interface: str, near: bool
) -> None:
    """Seven tenths of the ceiling: what routers without buffers tell is too good there, whatever the interfaces do."""
    impl = ("--set", f"components.router.impl={router}", "--set", f"components.interface.impl={interface}")
    assert probe(plugins, "transpose", "--load", "0.233", *impl, *SMALL) == 0
    out = capsys.readouterr().out
    assert ("~ 0.233" in out, "~ above 60%" in out, "  0.233 " in out) == (near, near, not near)


def test_a_row_does_not_depend_on_the_other_loads(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    points = []
    for loads in ("0.3", "0.1,0.3"):
        probe(plugins, "uniform", "--load", loads, "--json", *SMALL)
        points.append(json.loads(capsys.readouterr().out)["loads"][-1])
    assert points[0] == points[1]


def test_a_wide_mesh_lists_its_busiest_links(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    sets = ("--set", "mesh.rows=2", "--set", "mesh.columns=16", "--warmup", "0", "--measure", "100")
    assert probe(plugins, "tornado", "--load", "0.05", *sets) == 0
    lines = capsys.readouterr().out.splitlines()
    begin = lines.index("busiest links at load 0.05")
    assert len([line for line in lines[begin + 1 :] if "->" in line]) == 10


def test_a_file_changes_what_it_names(plugins: Plugins, tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("base: mesh\nmesh: {rows: 2, columns: 3, wrap: true, clock: 2 GHz, link: {width: 64 B}}\n")
    assert probe(plugins, "neighbor", "--topology", str(file), "--load", "0.1", "--measure", "50") == 0
    out = capsys.readouterr().out
    assert "torus of 2 x 3 routers, links of 64 B at 2 GHz (128 GB/s), cycle 500 ps" in out


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["unifrm"], 2, "error: --traffic must be one of uniform, transpose, bitcomp, tornado, neighbor, hotspot, "
         "permutation, not 'unifrm'. Did you mean 'uniform'?"),
        (["uniform", "--topology", "tiny"], 2, "error: --traffic must have a topology with a section 'mesh', a mesh on "
         "its own, not 'tiny'; leave --topology out for the preset 'mesh', or write 'base: mesh' and your figures in a "
         "file."),
        (["uniform", "--burst", "2", "--load", "0.9"], 2, "error: --load must be at most 0.6666 with bursts of 2 "
         "packets of 1 flit, as a source pauses for a cycle at least, not 0.9."),
        (["uniform", "--set", "components.router.impl=builtin.router_vc", "--set",
          "components.router.params.overhead=1 ns"], 3, "mesh.r0c0: overhead must hold routing_delay and a "
         "cycle of 1 ns for the allocation of a channel, 2 ns together, not 1 ns; raise overhead or lower "
         "routing_delay."),
        (["uniform", "--set", "components.router.impl=builtin.router_vc", "--set",
          "components.router.params.buffer_flits=0"], 3, "--set components.router.params.buffer_flits=0: "
         "components.router.params.buffer_flits must be an integer from 1 to 65536, not 0."),
        (["uniform", "--seed", "x"], 2, "error: --seed must be an integer of at least 0, not 'x'."),
        (["uniform", "--measure", "0"], 2, "error: --measure must be a number of cycles of at least 1, not '0'."),
        (["uniform", "--drain", "-1"], 2, "error: --drain must be a number of cycles of at least 0, not '-1'."),
        (["hotspot", "--hotspot-share", "much"], 2, "error: --hotspot-share must be a number, not 'much'."),
        (["uniform", "--set", "mesh.clock=0 GHz"], 3, "--set mesh.clock=0 GHz: mesh.clock must be a positive "
         "frequency, not '0 GHz'."),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_a_sentence(
    plugins: Plugins, capsys: pytest.CaptureFixture[str], args: list[str], code: int, sentence: str
) -> None:
    assert probe(plugins, *args) == code
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"{sentence}\n")


def test_a_bench_refuses_a_mesh(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "gemm", "--topology", "mesh"], plugins) == 3
    assert capsys.readouterr().err.endswith(
        "mesh.yaml:5:1: mesh is a mesh on its own, which has no PEs to run a bench on; drive it with 'kernbench probe "
        "--traffic', or choose another --topology.\n"
    )


def test_a_thousand_cycles_of_the_preset_take_a_second_of_processor_time(
    plugins: Plugins, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cycle of all 64 nodes takes 1000 calls, building the machine 300 cycles' worth."""
    told = ("uniform", "--load", "0.3", "--warmup", "0", "--measure")
    probe(plugins, *told, "10")  # what is imported is not counted
    assert count_calls(lambda: probe(plugins, *told, "300")) < 700_000
