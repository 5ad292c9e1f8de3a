"""Pairs of real runs: what moved is what their own tables say, computed a second time, and causes come first."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernbench_core as kb
from kernbench_builtin.compare import compare, figures_of
from kernbench_builtin.components import pe_tcm
from kernbench_builtin.components.pe_tcm import PeTcm
from kernbench_core.plugins import Plugins

SIZE = {"M": 32, "N": 32, "K": 32}
MACHINES: Mapping[str, Mapping[str, Any]] = {
    "as it is": {},
    "later": {"host.pcie.latency": "301 ns"},
    "fewer": {"cube.pes": 2},
    "wider": {"components.pe_gemm.params.columns": 32, "cube.noc.bandwidth": "200 GB/s"},
}


MACHINE = st.fixed_dictionaries(
    {"M": st.sampled_from([16, 32, 48]), "N": st.sampled_from([16, 32])},
    optional={
        "host.pcie.latency": st.sampled_from(["300 ns", "301 ns", "1 us"]),
        "cube.noc.bandwidth": st.sampled_from(["100 GB/s", "256 GB/s"]),
        "cube.pes": st.sampled_from([1, 2, 4]),
        "components.pe_dma.params.servers": st.integers(1, 4),
        "components.hbm_ctrl.params.channels": st.sampled_from([2, 4]),
    },
)


@pytest.fixture(scope="module")
def made(plugins: Plugins) -> dict[str, kb.RunResult]:
    """Give a run on each machine, and one of another bench."""
    found = {name: kb.run("gemm", "tiny", SIZE, set=dict(more), plugins=plugins) for name, more in MACHINES.items()}
    return {**found, "another": kb.run("gemm-stream", "tiny", {"products": "1"}, explain=True, plugins=plugins)}


def tables(result: kb.RunResult) -> dict[str, dict[str, dict[str, float]]]:
    """Compute some figures of a run out of its links and its op log, in plain Python."""
    columns = ("gb_per_s", "latency_ns", "bytes", "deliveries", "busy_ns", "waited_ns")
    links = {row["name"]: {name: row[name] for name in columns} for row in result.links}
    kinds: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for row in result.links:
        kinds[row["kind"]]["links"] += 1
        for name in columns[2:]:
            kinds[row["kind"]][name] += row[name]
    ops: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for record in result.op_log:
        row = ops[f"{record.op_kind} {record.op_name}"]
        row["ops"] += 1
        row["ns"] += record.t_end - record.t_start
        row["bytes"] += record.params.get("nbytes", 0)
    phases = {name.replace("_", " "): {"ns": ns} for name, ns in result.phases.items()}
    return {"link": links, "link kind": dict(kinds), "op": dict(ops), "phase": phases}


def moved(before: kb.RunResult, after: kb.RunResult) -> dict[str, dict[str, dict[str, tuple[Any, Any]]]]:
    """Return what moved between two runs, by sort, name and figure."""
    old, new = tables(before), tables(after)
    found: dict[str, dict[str, dict[str, tuple[Any, Any]]]] = {}
    for sort in old:
        for name in {*old[sort], *new[sort]}:
            rows = [each[sort].get(name) for each in (old, new)]
            for figure in rows[0] or rows[1] or ():
                values = tuple(None if row is None else row[figure] for row in rows)
                if values[0] != values[1]:
                    found.setdefault(sort, {}).setdefault(name, {})[figure] = values  # type: ignore[assignment]
    return found


def test_what_moved_is_what_the_tables_say(made: Mapping[str, kb.RunResult]) -> None:
    """Of every pair of runs, both ways: no row is missing, and none is there that did not move."""
    check_pairs(made)
    assert len({result.op_log_sha256 for result in made.values()}) == len(made)


def check_pairs(made: Mapping[str, kb.RunResult]) -> None:
    """Compare each run with each, and what is found with what their tables say."""
    figures = {name: figures_of(result, name) for name, result in made.items()}
    for first, second in itertools.product(made, repeat=2):
        expected = moved(made[first], made[second])
        found: dict[str, dict[str, dict[str, tuple[Any, Any]]]] = {}
        comparison = compare(figures[first], figures[second])
        for row in comparison.rows:
            if row.sort in ("link", "link kind", "op", "phase"):
                found.setdefault(row.sort, {})[row.name] = {m.figure: (m.before, m.after) for m in row.moved}
        assert found == expected
        alike = figures[first].causes == figures[second].causes
        assert comparison.same == (alike and made[first].op_log_sha256 == made[second].op_log_sha256)
        assert comparison.change_ns == made[second].total_ns - made[first].total_ns
        phases = sum(row.change for row in comparison.of_sort("phase"))
        assert phases == comparison.change_ns


@settings(max_examples=24)
@given(st.lists(MACHINE, min_size=2, max_size=2))
def test_any_two_machines(plugins: Plugins, pair: list[dict[str, Any]]) -> None:
    """Of runs under configurations and sizes drawn at random."""
    made = []
    for drawn in pair:
        params = {name: drawn.pop(name) for name in ("M", "N")}
        made.append(kb.run("gemm", "tiny", {**SIZE, **params}, set=drawn, plugins=plugins))
    check_pairs({str(at): result for at, result in enumerate(made)})


def test_what_was_run_otherwise_is_named(made: Mapping[str, kb.RunResult], plugins: Plugins) -> None:
    """The keys that were set, and of another bench its parameters and its kernel."""
    figures = {name: figures_of(result, name) for name, result in made.items()}
    for name, keys in MACHINES.items():
        causes = compare(figures["as it is"], figures[name]).causes
        assert [(cause.sort, cause.name, cause.after) for cause in causes] == [
            ("configuration", key, value) for key, value in sorted(keys.items())
        ]
    other = compare(figures["later"], figures["another"])
    assert other.notes == (
        "A and B ran different benches, gemm and gemm-stream.",
        "_layers.py and gemm_stream.py differ in most lines: lines of kernels are not compared.",
    )
    assert {(c.name, c.absent) for c in other.causes if c.sort == "sources" and "<locals>" not in c.name} == {
        ("_layers.py:columns_kernel", "after"), ("_layers.py:load_tiles", "after"),
        ("gemm_stream.py:stream_kernel", "before"),
    }  # fmt: skip
    assert other.sources == ()  # which of two is the new form of one, nobody knows
    naive = figures_of(kb.run("gemm-naive", "tiny", SIZE, plugins=plugins))
    alone = compare(naive, figures["another"])
    assert {(c.name, c.absent) for c in alone.causes if c.sort == "sources"} == {
        ("gemm_naive.py:gemm_kernel", "after"), ("gemm_stream.py:stream_kernel", "before"),
    }  # fmt: skip
    (source,) = alone.sources
    assert source.name == "gemm_naive.py:gemm_kernel → gemm_stream.py:stream_kernel"
    assert [line for line in source.lines if line.startswith("+def")] == [
        "+def stream_kernel(a_ptr, b_ptr, c_ptr, m, n, k, products, ahead, tl):"
    ]
    assert other.unknown == dict.fromkeys(("path", "place"), "not known of A: run it with --explain")


def test_what_a_bench_declares_is_named_where_it_changed(
    plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable, and a folder; equal files elsewhere are no other ones."""
    text = (
        "import os, pathlib, kernbench\n@kernbench.depends('sizes', '$MORE')\ndef bench(rt):\n"
        "    n = int((pathlib.Path(__file__).parent / 'sizes/n').read_text()) + int(os.environ['MORE'])\n"
        "    rt.zeros((n,), 'f32')\n"
    )

    def made(folder: str, n: int, more: int) -> kb.RunResult:
        (tmp_path / folder / "sizes").mkdir(parents=True)
        (tmp_path / folder / "b.py").write_text(text)
        (tmp_path / folder / "sizes/n").write_text(f"{n}")
        monkeypatch.setenv("MORE", f"{more}")
        return kb.run(str(tmp_path / folder / "b.py"), "tiny", plugins=plugins)

    first = made("a", 64, 1)
    others = ("b", 64, 1, []), ("c", 4096, 1, ["declared sizes"]), ("d", 64, 99, ["declared $MORE"])
    for folder, n, more, names in others:
        found = compare(first, made(folder, n, more))
        assert [cause.name for cause in found.causes] == names and not found.notes
        assert found.same is not bool(names)


def test_one_wire_that_a_configuration_makes_longer_is_named_first(plugins: Plugins) -> None:
    """A cable by 1 ns, both ways, before all that waited for what came over it."""
    pair: dict[str, Any] = {"base": "tiny", "cube": {"pes": 1}}
    figures = []
    for latency in ("500 ns", "501 ns"):
        cable = {"match": "sip0-sip1", "latency": latency}
        machine = {**pair, "system": {"sips": 2, "network": {"links": [cable]}}}
        size = {"tokens": 8, "hidden": 16, "ffn": 32, "layers": 1}
        figures.append(figures_of(kb.run("tp-mlp", machine, size, plugins=plugins)))
    found = compare(figures[0], figures[1])
    assert found.change_ns > 0
    assert [(row.figure, row.change) for row in found.of_sort("link")[:2]] == [("latency_ns", 1.0)] * 2
    assert len([row for row in found.of_sort("link") if row.figure == "latency_ns"]) == 2


def test_one_wire_that_a_model_makes_longer_is_named_first(
    made: Mapping[str, kb.RunResult], plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A channel inside a component, by the code of its model alone; nothing else is other than it was."""

    class Longer(PeTcm):
        def internal_wire(self, name: str, bandwidth: float, latency: float) -> Any:
            here = (self.id, name) == ("sip0.cube0.pe1.pe_tcm", "read")
            return super().internal_wire(name, bandwidth, latency + here)

    monkeypatch.setattr(pe_tcm, "PeTcm", Longer)
    patched = figures_of(kb.run("gemm", "tiny", SIZE, plugins=plugins))
    found = compare(figures_of(made["as it is"]), patched)
    assert [(cause.sort, cause.name) for cause in found.causes] == [("models", "builtin.pe_tcm")]
    first, *others = found.of_sort("link")
    assert (first.name, first.figure, first.change) == ("sip0.cube0.pe1.pe_tcm#read", "latency_ns", 1.0)
    assert not [row for row in others if row.figure == "latency_ns"]


def test_results_and_folders_are_compared_as_their_figures(plugins: Plugins, tmp_path: Path) -> None:
    """The same rows and causes, whichever of them is given; a path without a run is a sentence."""
    old = kb.run("gemm-naive", "tiny", SIZE, plugins=plugins, out=tmp_path / "old")
    new = kb.run("gemm-naive", "tiny", {**SIZE, "K": 64}, plugins=plugins)
    expected = compare(figures_of(old), figures_of(new))
    for before in (old, tmp_path / "old", str(tmp_path / "old")):
        found = compare(before, new)
        assert found.of_sort("total") == expected.of_sort("total") != ()
        assert found.causes == expected.causes
    with pytest.raises(kb.UsageError, match="must be a folder that --out wrote, or a file"):
        compare(old, tmp_path / "nothing")
