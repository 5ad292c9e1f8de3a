"""A run goes from names to a result, and writes its files whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from kernbench_core.errors import ConfigError, PluginError, UsageError
from kernbench_core.plugins import load_plugins
from kernbench_core.runs.bench_run import RunInterrupted, configure, run
from kernbench_core.runs.manifest import configuration_changes
from kernbench_core.runs.options import RunCall


def test_a_run_by_name(toy: ModuleType) -> None:
    """Names become a bench, a configuration and an engine; the result holds what they gave."""
    result = run("toy", "one", {"n": "5"}, set=["system.sips=2"], seed=7, max_events=10, plugins=toy.plugins)
    engine = toy.engines[-1]
    assert engine.params == {"n": 5, "fail": "", "a": None}
    assert engine.graph.data == {"system": {"sips": 2}}
    assert (engine.options["seed"], engine.options["device"], engine.options["data"]) == (7, "all", True)
    assert engine.options["limits"].max_events == 10
    assert result.op_log.records == [5]
    assert result.verified is None
    assert result.total_ns == toy.timing.total_ns
    assert result.op_log_sha256 == engine.op_log.sha256()


def test_the_manifest_says_how_to_run_again(toy: ModuleType) -> None:
    """It holds the resolved configuration, the plug-ins and the parameters."""
    manifest = run("toy", "one", {"n": 5}, plugins=toy.plugins).manifest
    assert manifest["schema"] == "kernbench.manifest/1"
    assert manifest["bench"] == {"name": "toy"}
    assert manifest["params"] == {"n": 5, "fail": "", "a": None}
    assert manifest["configuration"] == {"system": {"sips": 1}}
    assert manifest["plugins"] == [{"plugin": "toy", "distribution": "toy_plugin (source tree)", "version": ""}]
    json.dumps(manifest)


def test_out_and_parts_are_written_after_the_run(toy: ModuleType, tmp_path: Path) -> None:
    """The folder holds manifest, result, inputs and op log; nothing in it is an absolute path."""
    array = np.arange(4.0)
    np.save(tmp_path / "in.npy", array)
    out = tmp_path / "out"
    given = {"a": str(tmp_path / "in.npy")}
    result = run("toy", "one", given, out=out, note=tmp_path / "t.txt", plugins=toy.plugins)
    files = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    kept = ["manifest.json", "note.txt", "oplog/log", "params/a.npy", "result.json"]
    assert files == kept
    assert json.loads((out / "result.json").read_text()) == json.loads(json.dumps(result.to_json()))
    assert str(tmp_path) not in (out / "manifest.json").read_text()
    np.testing.assert_array_equal(np.load(out / "params/a.npy"), array)
    assert (tmp_path / "t.txt").read_text() == "well: 1"


@pytest.mark.parametrize("fail", ["KernelError", "LimitError", "interrupt"])
def test_nothing_is_written_when_the_run_fails(toy: ModuleType, tmp_path: Path, fail: str) -> None:
    """Neither the folder nor the file of a part appears."""
    with pytest.raises(BaseException, match=r"it failed|interrupted"):
        run("toy", "one", {"fail": fail}, out=tmp_path / "out", note=tmp_path / "t.txt", plugins=toy.plugins)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "t.txt").exists()


def test_an_interrupt_carries_the_partial_result(toy: ModuleType) -> None:
    """RunInterrupted is a KeyboardInterrupt with what had happened until then."""
    with pytest.raises(KeyboardInterrupt) as caught:
        run("toy", "one", {"fail": "interrupt"}, verify_data=True, plugins=toy.plugins)
    assert isinstance(caught.value, RunInterrupted)
    result = caught.value.result
    assert (result.interrupted, result.verified, result.op_log_sha256) == (True, None, None)
    assert result.timing == toy.timing


def test_verification_is_phase_twos(toy: ModuleType, samples: ModuleType) -> None:
    """The verdict of the executor is the result's."""
    assert run("toy", "one", verify_data=True, plugins=toy.plugins).verified is True
    toy.verdict = samples.WRONG
    assert run("toy", "one", verify_data=True, plugins=toy.plugins).verified is False


def test_a_bench_file_and_a_function_can_be_run(toy: ModuleType, tmp_path: Path) -> None:
    """A path ending in .py, and a function, are benches; the file is copied beside the manifest."""
    path = tmp_path / "mine.py"
    path.write_text("def bench(rt, n: int = 1):\n    rt.logged.append(-n)\n")
    result = run(path, "one", {"n": 4}, out=tmp_path / "out", plugins=toy.plugins)
    assert result.op_log.records == [-4]
    assert result.manifest["bench"]["file"] == "bench/mine.py"
    assert (tmp_path / "out" / "bench" / "mine.py").read_bytes() == path.read_bytes()

    def mine(rt: Any) -> None:
        rt.logged.append("mine")

    assert run(mine, "one", plugins=toy.plugins).op_log.records == ["mine"]


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"bench": "tay"}, UsageError,
         "bench must be a registered name or the path of a .py file, not 'tay'. Did you mean 'toy'?"),
        ({"topology": "two"}, UsageError, "topology must be a preset or a file, not 'two'. Known: one."),
        ({"params": {"m": 1}}, UsageError,
         "bench 'toy' has no parameter 'm'; its parameters are: n, fail, a."),
        ({"verify_data": True, "data": False}, UsageError,
         "verifying data needs data; leave out either --verify-data or --no-data."),
        ({"note": "t.csv"}, UsageError, "note 't.csv' must end in .txt; give such a name."),
        ({"out": f"{__file__}/x"}, UsageError,
         f"--out must be in a folder, and {__file__!r} is none; give another one."),
        ({"out": "/dev/null/a/x"}, UsageError, "--out must be in a folder, and '/dev/null' is none; give another one."),
        ({"out": __file__}, UsageError, f"--out must name a folder, not the file {__file__!r}."),
        ({"set": ["x"]}, ConfigError, "--set x: setting must be KEY=VALUE with a dotted key, not 'x'."),
    ],
)  # fmt: skip
def test_bad_input_costs_no_run(
    toy: ModuleType, arguments: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    """Everything that can be checked is checked before the engine is made."""
    toy.engines.clear()
    with pytest.raises(error) as caught:
        run(**{"bench": "toy", "topology": "one", **arguments}, plugins=toy.plugins)
    assert str(caught.value) == sentence
    assert toy.engines == []


def test_a_preset_without_its_file_names_the_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the topology and as an overlay; where it is not named it matters to nobody."""
    (tmp_path / "pods_plugin.py").write_text(
        "from kernbench_core.plugins import TopologyEntry\n"
        "kernbench_api = 1\ndef kernbench_topologies():\n    return [TopologyEntry('pod', 'json:gone.yaml', 'Pods.')]\n"
    )
    (tmp_path / "own.yaml").write_text("a: 1")
    monkeypatch.syspath_prepend(tmp_path)
    plugins = load_plugins(["pods = pods_plugin"], installed=False)
    assert configure(plugins, tmp_path / "own.yaml").data == {"a": 1}
    for topology, overlay in (("pod", None), (tmp_path / "own.yaml", "pod")):
        with pytest.raises(PluginError) as caught:
            configure(plugins, topology, overlay)
        assert str(caught.value) == (
            "topology preset 'pod' of pods_plugin (source tree) must have its file, and "
            f"{str(Path(json.__file__).parent / 'gone.yaml')!r} is not there; repair or reinstall pods_plugin (source "
            "tree)."
        )


def test_the_manifest_says_what_was_laid_over_the_topology(toy: ModuleType, tmp_path: Path) -> None:
    """Settings as a command has them, of a file that is elsewhere its name; of a mapping it cannot be said."""

    def changes(topology: object = "one", **options: object) -> object:
        return configuration_changes(RunCall(bench="toy", topology=topology, **options))  # type: ignore[arg-type]

    assert changes() == {"components": None, "set": []}
    assert changes(components=tmp_path / "c.yaml", set=("a.b=3",)) == {"components": "c.yaml", "set": ["a.b=3"]}
    assert changes(set={"a.b": 3, "c": "x", "d": [True]}) == {"components": None, "set": ["a.b=3", "c=x", "d=[true]"]}
    assert changes({"base": "one"}) is None
    assert run("toy", "one", {"n": 5}, plugins=toy.plugins).manifest["changes"] == {"components": None, "set": []}
