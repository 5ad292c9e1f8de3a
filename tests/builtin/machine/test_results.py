"""What a run gives back: outputs, links and ops by column, and results that go to other processes."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

import kernbench as kb
from kernbench_builtin.saved.run_folder import file_of
from kernbench_core.errors import NoDataError, UninitializedReadError, UsageError
from kernbench_core.plugins import Plugins

SIZE = {"M": 64, "N": 48, "K": 80}


def copy(x_ptr: Any, y_ptr: Any, n: int, tl: Any) -> None:
    at = tl.program_id(0) * n + tl.arange(0, n)
    tl.store(y_ptr + at, tl.load(x_ptr + at))


def double(x_ptr: Any, y_ptr: Any, n: int, tl: Any) -> None:
    at = tl.program_id(0) * n + tl.arange(0, n)
    tl.store(y_ptr + at, tl.load(x_ptr + at) * 2.0)


# Outputs ----------------------------------------------------------------------------------------------


def test_outputs_are_what_numpy_computes(plugins: Plugins) -> None:
    """The product of the very operands, to the rounding of its dtype; what nobody wrote is no output."""
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((64, 80), np.float32), rng.standard_normal((80, 48), np.float32)
    result = kb.run("gemm", "tiny", {"a": a, "b": b}, plugins=plugins)
    assert list(result.outputs) == ["c"]
    assert repr(result.outputs) == "<Outputs {'c': not computed yet}>"
    np.testing.assert_allclose(result.outputs["c"], a @ b, rtol=1e-4, atol=1e-4)
    assert repr(result.outputs) == "<Outputs {'c': float32[64, 48]}>"
    assert result.outputs["c"] is result.outputs["c"] and not result.outputs["c"].flags.writeable


def test_looking_at_names_computes_nothing(plugins: Plugins) -> None:
    result = kb.run("gemm", "tiny", SIZE, plugins=plugins)
    assert "c" in result.outputs and len(result.outputs) == 1 and [*result.outputs.keys()] == ["c"]
    assert result.outputs.computed == {}
    assert result.to_json()["outputs"] == {"c": {"shape": [64, 48], "dtype": "f16"}}


def test_names_are_those_that_the_user_knows(plugins: Plugins) -> None:
    """The name given, else the parameter of the first launch; the second of a name is told apart."""

    def nested(pair: Any, n: int, tl: Any) -> None:
        double(pair[0], pair[1], n, tl)

    def bench(rt: Any) -> None:
        n = 16
        x = rt.tensor(np.arange(4 * n, dtype=np.float32), name="x")
        outs = [rt.empty((4 * n,), "f32", name=name) for name in ("y", None, "y", None, "gone", "untouched")]
        for out in outs[:3]:
            rt.launch(double, x, out, n)
        rt.launch(copy, x, outs[1], n)
        rt.launch(nested, (x, outs[3]), n)
        rt.launch(copy, x, outs[4], n)
        rt.free(outs[4])

    result = kb.run(bench, "tiny", plugins=plugins)
    x = np.arange(64, dtype=np.float32)
    found = {name: array.tolist() for name, array in result.outputs.items()}
    twice = (2 * x).tolist()
    assert found == {"y": twice, "y_ptr": x.tolist(), "y.2": twice, "pair[1]": twice}
    with pytest.raises(KeyError) as caught:
        _ = result.outputs["x"]
    assert caught.value.args == (
        "outputs are the live tensors that a kernel wrote, which are 'y', 'y_ptr', 'y.2', 'pair[1]'; 'x' is not one",
    )


def test_outputs_are_those_at_the_end(plugins: Plugins) -> None:
    """A later launch and a copy of the host count, also where the host wrote last."""

    def bench(rt: Any) -> None:
        x = rt.tensor(np.ones(64, np.float32), name="x")
        for _ in range(3):
            rt.launch(double, x, x, 16)

    assert kb.run(bench, "tiny", plugins=plugins).outputs["x"].tolist() == [8.0] * 64


def test_without_data_there_is_a_sentence(plugins: Plugins) -> None:
    result = kb.run("gemm", "tiny", SIZE, data=False, plugins=plugins)
    for look in (lambda: result.outputs["c"], lambda: len(result.outputs), lambda: list(result.outputs)):
        with pytest.raises(NoDataError) as caught:
            look()
        assert str(caught.value) == "the outputs have no data in a run that keeps shapes only; leave out data=False."
    assert result.to_json()["outputs"] == {}
    assert repr(result.outputs) == "<Outputs: none, as the run keeps shapes only>"
    with pytest.raises(UsageError) as refused:
        kb.run("gemm", "tiny", SIZE, data=False, outputs=True, plugins=plugins)
    assert str(refused.value) == "outputs need data; leave out either --outputs or --no-data."


@pytest.mark.parametrize(("asked", "written"), [({}, False), ({"outputs": True}, True), ({"verify_data": True}, True)])
def test_out_keeps_outputs_that_were_computed(
    plugins: Plugins, tmp_path: Path, asked: dict[str, bool], written: bool
) -> None:
    result = kb.run("gemm", "tiny", SIZE, out=tmp_path / "out", plugins=plugins, **asked)
    file = tmp_path / "out" / "outputs" / "c.npy"
    assert file.is_file() == written
    if written:
        assert (np.load(file) == result.outputs["c"]).all()
        kb.run("gemm", "tiny", SIZE, out=tmp_path / "out", plugins=plugins)  # the earlier run's go
        assert not file.exists()


@pytest.mark.filterwarnings("ignore:the run in .* cannot be run again")
def test_a_name_never_leads_out_of_the_folder(plugins: Plugins, tmp_path: Path) -> None:
    def bench(rt: Any) -> None:
        x = rt.tensor(np.ones(64, np.float32), name="../../x y")
        rt.launch(double, x, x, 16)

    kb.run(bench, "tiny", out=tmp_path / "out", outputs=True, plugins=plugins)
    assert [file.name for file in (tmp_path / "out" / "outputs").iterdir()] == ["..%2F..%2Fx%20y.npy"]
    assert len(file_of("ü" * 500)) < 255


@pytest.mark.filterwarnings("ignore:the run in .* cannot be run again")
def test_a_part_that_nobody_wrote_keeps_an_output_from_being_written(plugins: Plugins, tmp_path: Path) -> None:
    """The rest is there; looking at the one says what is missing."""

    def bench(rt: Any) -> None:
        x = rt.tensor(np.ones(64, np.float32), name="x")
        half, whole = rt.empty((128,), "f32", name="half"), rt.empty((64,), "f32", name="whole")
        rt.launch(copy, x, half, 16)
        rt.launch(copy, x, whole, 16)

    result = kb.run(bench, "tiny", out=tmp_path / "out", outputs=True, plugins=plugins)
    assert [file.name for file in (tmp_path / "out" / "outputs").iterdir()] == ["whole.npy"]
    with pytest.raises(UninitializedReadError, match="tensor 'half' must be written before"):
        _ = result.outputs["half"]


# Links and ops ----------------------------------------------------------------------------------------


def test_links_are_all_wires_and_channels(plugins: Plugins) -> None:
    """Beside the resources of the text page, and the bytes of the op log over the wires next to memories."""
    result = kb.run("gemm", "tiny", SIZE, data=False, plugins=plugins)
    links = {row["name"]: row for row in result.links}
    for use in result.busiest:
        if use.name in links:
            row = links[use.name]
            assert (row["kind"], row["busy_ns"], row["utilisation"], row["bytes"]) == (
                use.kind, use.busy_ns, use.utilisation, use.nbytes,
            )  # fmt: skip
    assert result.kernels is not None
    moved = {use.name: use.run_nbytes for use in result.kernels.busiest if use.name in links}
    assert moved == {name: links[name]["bytes"] for name in moved} and any(moved.values())
    reads = sum(op.params["nbytes"] for op in result.op_log if op.op_name == "dma_read")
    writes = sum(op.params["nbytes"] for op in result.op_log if op.op_name == "dma_write")
    out = [row for row in links.values() if row["destination"].endswith("pe_dma") and "r" in row["source"][-4:]]
    assert sum(row["bytes"] for row in out if row["kind"] == "attach wire") == reads
    into = [row for row in links.values() if row["source"].endswith("pe_dma") and row["kind"] == "attach wire"]
    assert sum(row["bytes"] for row in into) >= writes
    assert sum(row["deliveries"] for row in links.values()) == result.timing.hops
    unused = [row for row in links.values() if not row["deliveries"] and not row["bytes"]]
    assert unused and all(row["busy_ns"] == 0.0 for row in unused)


def test_bytes_of_a_launch_are_those_of_its_ops(plugins: Plugins) -> None:
    """Launch by launch, as the op log has them; all together with what the host moved they are those of the run."""

    def bench(rt: Any) -> None:
        x = rt.tensor(np.ones(256, np.float32), name="x")
        for n in (16, 64, 32):
            rt.launch(double, x, x, n)

    result = kb.run(bench, "tiny", plugins=plugins)
    run = {row["name"]: row["bytes"] for row in result.links}
    together: dict[str, int] = {}
    for launch in result.launches:
        ops = [op for op in result.op_log if launch.started_ns <= op.t_start < launch.ended_ns]
        reads, writes = (
            sum(op.params["nbytes"] for op in ops if op.op_name == name) for name in ("dma_read", "dma_write")
        )
        links = launch.links[launch.links["kind"] == "attach wire"]
        assert reads == sum(row["bytes"] for row in links if row["name"].endswith("pe_dma")) > 0
        assert writes == sum(row["bytes"] for row in links if ".pe_dma->" in row["name"]) == reads
        for row in launch.links:
            together[row["name"]] = together.get(row["name"], 0) + row["bytes"]
        channel = next(use for use in launch.busiest if use.kind == "hbm_ctrl channel")
        assert channel.nbytes == next(row["bytes"] for row in launch.links if row["name"] == channel.name) > 0
        assert channel.utilisation == next(r["utilisation"] for r in launch.links if r["name"] == channel.name)
    assert all(together[name] <= run[name] for name in together)
    assert all(together.get(name, 0) == run[name] for name in run if ".pe_dma" in name)
    assert result.kernels is not None
    for use in result.kernels.busiest:
        assert use.nbytes == together.get(use.name, 0)
    again = pickle.loads(pickle.dumps(result))
    assert [each.links for each in again.launches] == [each.links for each in result.launches]


def test_units_that_serve_several_at_once_count_once(plugins: Plugins) -> None:
    """A DMA has 16 slots: their busy times add up, shares are of all of them, and explanations count the same units."""
    result = kb.run("gemm", "tiny", {"M": 256, "N": 256, "K": 256}, data=False, explain=True, plugins=plugins)
    assert result.explain is not None and result.kernels is not None
    used = {use.kind: use.resources for use in result.explain.usage}
    (launch,) = result.launches
    for time_ns, uses in ((launch.time_ns, launch.busiest), (result.kernels.time_ns, result.kernels.busiest)):
        found = {use.kind: use for use in uses}
        assert found["pe_dma"].servers == 16 and found["pe_dma"].busy_ns > time_ns
        assert found["pe_gemm"].servers == found["hbm wire"].servers == 1
        for use in uses:
            assert use.utilisation == pytest.approx(use.busy_ns / (time_ns * use.servers))
        assert {kind: found[kind].alike for kind in ("pe_dma", "pe_gemm")} == {"pe_dma": 4, "pe_gemm": 4}
    assert used["pe_dma"] == used["pe_gemm"] == 4


def test_queueing_of_links_is_that_of_the_explanation(plugins: Plugins) -> None:
    result = kb.run("gemm", "tiny", SIZE, data=False, explain=True, plugins=plugins)
    assert result.explain is not None
    places = {place.place: place for place in result.explain.queueing}
    waited = {row["name"]: row for row in result.links if row["waits"]}
    assert waited
    for name, row in waited.items():
        place = places[name]
        assert (row["waits"], row["waited_ns"], row["longest_wait_ns"]) == (
            place.waits, place.total_ns, place.longest_ns,
        )  # fmt: skip


def test_links_all_puts_them_in_json(plugins: Plugins) -> None:
    found: Any = kb.run("gemm", "tiny", SIZE, data=False, links="all", plugins=plugins)
    assert found.to_json()["links"] == found.links.to_json()
    assert "links" not in kb.run("gemm", "tiny", SIZE, data=False, plugins=plugins).to_json()
    with pytest.raises(UsageError) as caught:
        kb.run("gemm", "tiny", links="some", plugins=plugins)
    assert str(caught.value) == "links must be 'busiest' or 'all', not 'some'."


@pytest.mark.parametrize("bench", ["gemm", "gemm-composite", "softmax", "sparse-gemm"])
def test_ops_are_the_records_of_the_log(plugins: Plugins, bench: str) -> None:
    """Row by row what the log rebuilds."""
    result = kb.run(bench, "tiny", plugins=plugins)
    assert len(result.ops) == len(result.op_log) == result.timing.ops
    for row, op in zip(result.ops, result.op_log, strict=True):
        pe, issue = op.op_id or (-1, -1)
        assert row == {
            "t_start": op.t_start,
            "t_end": op.t_end,
            "component": op.component_id,
            "kind": op.op_kind,
            "name": op.op_name,
            "pe": pe,
            "issue": issue,
            "stage_of": -1 if op.stage_of is None else op.stage_of[1],
            "read_bytes": sum(access.nbytes for access in op.reads),
            "written_bytes": 0 if op.writes is None else op.writes.nbytes,
        }


# Results as values ------------------------------------------------------------------------------------

LOOK = """
import pickle, sys
result = pickle.loads(sys.stdin.buffer.read())
print(result.total_ns, result.launches[0].busiest[0].name, len(result.links), len(result.ops), sorted(result.outputs))
print(result.outputs["c"].sum(dtype=float))
for look in (lambda: result.op_log, lambda: result.store, lambda: result.outputs["d"]):
    try:
        look()
    except Exception as error:
        print(type(error).__name__, error)
print(len(result.to_json()), result)
"""


def test_a_result_goes_to_a_process_of_its_own(plugins: Plugins) -> None:
    """With figures, links, ops and the outputs that were looked at; what stays behind says so."""

    def bench(rt: Any) -> None:
        x = rt.tensor(np.ones(64, np.float32), name="x")
        for name in ("c", "d"):
            rt.launch(double, x, rt.empty((64,), "f32", name=name), 16)

    result = kb.run(bench, "tiny", explain=True, tcm_map=True, timeline=True, plugins=plugins)
    total = result.outputs["c"].sum(dtype=float)
    told = subprocess.run([sys.executable, "-c", LOOK], input=pickle.dumps(result), capture_output=True, check=False)
    assert told.stderr.decode() == ""
    head, own, log, store, output, tail = told.stdout.decode().splitlines()
    name = result.launches[0].busiest[0].name
    assert head == f"{result.total_ns} {name} {len(result.links)} {len(result.ops)} ['c', 'd']"
    assert float(own) == total
    assert log == (
        "UsageError the op log must be read where the run was made, as pickled and cached results do not include it; "
        "r.ops has its columns, and a folder written with out= holds the whole run."
    )
    assert store.startswith("UsageError the memory store must be read where the run was made")
    assert output == (
        "NoDataError output 'd' must be computed before its result is pickled or kept in the cache, and was not; look "
        "at r.outputs['d'] before that, or run with outputs=True."
    )
    assert tail == f"{len(result.to_json())} {result!r}"


def test_a_pickled_result_prints_what_the_result_prints(plugins: Plugins) -> None:
    """The outputs among it: also those that were never looked at, and after a second journey."""
    for data in (True, False):
        result = kb.run("gemm", "tiny", SIZE, data=data, plugins=plugins)
        once = pickle.loads(pickle.dumps(result))
        assert once.to_json() == pickle.loads(pickle.dumps(once)).to_json() == result.to_json()
        assert list(once.to_json()["outputs"]) == (["c"] if data else [])


def test_results_are_equal_by_value_but_for_wall_time(plugins: Plugins) -> None:
    options: dict[str, Any] = {"verify_data": True, "explain": True, "plugins": plugins}
    first, second = (kb.run("gemm", "tiny", SIZE, **options) for _ in range(2))
    assert first == second and hash(first) == hash(second)
    assert first == attrs.evolve(second, wall_s=99.0, timing=attrs.evolve(second.timing, wall_s=99.0))
    assert first == pickle.loads(pickle.dumps(first)) and {first, second} == {first}
    assert first != attrs.evolve(second, device="sip:0")
    assert first != kb.run("gemm", "tiny", {**SIZE, "K": 96}, **options)
    assert first != kb.run("gemm", "tiny", SIZE, seed=1, **options)
    assert first != "gemm"


def masked(x_ptr: Any, n: Any, tl: Any) -> None:
    offsets = tl.program_id(0) * 16 + tl.arange(0, 16)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n, other=0.0) + 1.0, mask=offsets < n)


@pytest.mark.parametrize("n", [64, 30, 1])
def test_the_share_that_masks_leave_out_is_told(plugins: Plugins, n: int) -> None:
    """Of 4 blocks of 16, loaded and stored; a pickled result tells it too, one that moves nothing has none."""
    r = kb.launch(masked, np.ones(64, np.float32), n, topology="tiny", grid=(4,), plugins=plugins)
    assert r.masked_share == 1 - n / 64 == pickle.loads(pickle.dumps(r)).masked_share
    assert r.launches[0].flops == 64 and r.launches[0].hbm_bytes == 2 * 4 * n
    if n == 64:
        nothing = kb.run(lambda rt: rt.zeros((4,), "f32"), "tiny", plugins=plugins)
        assert nothing.masked_share == 0.0
