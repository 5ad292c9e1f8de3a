"""A run made again from its manifest gives the same log, or says what differs."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import ml_dtypes
import numpy as np
import pytest

from kernbench_builtin.compare.reruns import rerun
from kernbench_builtin.verify.part import OpChecks
from kernbench_core.errors import ConfigError, UsageError
from kernbench_core.plugins import load_plugins
from kernbench_core.runs.bench_run import run
from kernbench_core.runs.result import json_text
from tests.commands import environment


def test_a_rerun_gives_the_same_hash(toy: ModuleType, tmp_path: Path) -> None:
    """A manifest is enough to run again, file, array and configuration included."""
    path = tmp_path / "mine.py"
    path.write_text("import numpy as np\ndef bench(rt, a: np.ndarray):\n    rt.logged.append(float(a.sum()))\n")
    first = run(path, "one", {"a": np.ones(3)}, set=["system.sips=2"], out=tmp_path / "out", plugins=toy.plugins)
    path.unlink()
    again = rerun(tmp_path / "out" / "manifest.json", plugins=toy.plugins)
    assert again.same
    assert again.differences == ()
    assert again.result.op_log.records == [3.0]
    assert again.result.op_log_sha256 == first.op_log_sha256
    assert toy.engines[-1].graph.data == {"system": {"sips": 2}}


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "float16"])
def test_an_array_keeps_its_dtype(toy: ModuleType, tmp_path: Path, name: str) -> None:
    """Also one that numpy has only since ml_dtypes told it of that; the file is one that numpy alone can load."""
    made, path = np.arange(4).astype(np.dtype(getattr(ml_dtypes, name, name))), tmp_path / "mine.py"
    path.write_text("import numpy as np\ndef bench(rt, a: np.ndarray):\n    rt.logged.append(a.dtype.name)\n")
    run(path, "one", {"a": made}, out=tmp_path / "out", plugins=toy.plugins)
    again = rerun(tmp_path / "out" / "manifest.json", plugins=toy.plugins)
    assert again.same and again.result.op_log.records == [name]
    assert np.load(tmp_path / "out" / "params" / "a.npy").view(made.dtype).tobytes() == made.tobytes()


@pytest.mark.parametrize(
    ("topology", "called"),
    [
        ({"base": "one", "system": {"sips": 2}}, "one (changed)"),
        ({"base": "one", "system": {"sips": 2}, "title": "mine"}, "mine"),
        ({"system": {"sips": 2}, "title": " "}, "a mapping"),
    ],
)
def test_a_run_of_mappings_is_made_again(toy: ModuleType, tmp_path: Path, topology: Any, called: str) -> None:
    """The manifest holds what they came to, and a result calls the machine by what there is."""
    first = run("toy", topology, out=tmp_path / "out", set={"system.nodes": 3}, plugins=toy.plugins)
    again = rerun(tmp_path / "out" / "manifest.json", plugins=toy.plugins)
    assert (again.same, again.result.topology, first.topology) == (True, called, called)
    assert toy.engines[-1].graph.data["system"] == {"sips": 2, "nodes": 3}


def test_a_rerun_says_what_differs(toy: ModuleType, tmp_path: Path) -> None:
    """Another op log is not the same; the reasons are sentences."""
    run("toy", "one", out=tmp_path / "out", plugins=toy.plugins)
    path = tmp_path / "out" / "manifest.json"
    manifest = json.loads(path.read_text())
    was = manifest["op_log_sha256"]
    manifest["params"]["n"] = 4
    manifest["versions"]["numpy"] = "1.0"
    path.write_text(json.dumps(manifest))
    again = rerun(path, plugins=toy.plugins)
    assert not again.same
    assert again.differences[0].startswith("numpy was 1.0 and is ")
    assert again.differences[1:] == (
        f"op_log_sha256 was {was} and is {again.result.op_log_sha256}.",
        "the first op that differs is number 0: params was {'value': '3'} and is {'value': '4'}, "
        "in log (op 1 of PE 0, sip0.cube0.pe0.pe_math, 0.000 ns).",
    )


def test_a_rerun_says_how_far_two_logs_are_alike(toy: ModuleType, tmp_path: Path) -> None:
    """A log that is longer than the saved one differs in its length."""
    path = tmp_path / "mine.py"
    path.write_text("def bench(rt, n: int = 1):\n    rt.logged.extend([0] * n)\n")
    run(path, "one", {"n": 2}, out=tmp_path / "out", plugins=toy.plugins)
    manifest = tmp_path / "out" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"n": 2', '"n": 3'))
    assert rerun(manifest, plugins=toy.plugins).differences[-1] == "the log had 2 ops and has 3, the first 2 alike."


MARK = "from pathlib import Path\nPath({!r}).write_text('ran')\ndef bench(rt, n: int = 3):\n    rt.logged.append(n)\n"


def own_bench(rt: Any) -> None:
    """Log something."""
    rt.logged.append(3)


def strange(toy: ModuleType, folder: Path, **changes: Any) -> Path:
    """Write the manifest of a stranger: one of a run, with changes."""
    run("toy", "one", out=folder / "out", plugins=toy.plugins)
    path = folder / "out" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "params": {"n": 3}, **changes}))
    return path


def test_one_of_several_benches_of_a_file_runs_again(
    toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same one, of the folder of the run."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("def bench(rt): rt.logged.append(1)\ndef other(rt, n: int = 3): rt.logged.append(n)\n")
    made = run("mine.py:other", "one", {"n": "5"}, plugins=toy.plugins, out="out")
    assert made.bench == "mine:other"
    Path("mine.py").unlink()
    again = rerun("out/manifest.json", plugins=toy.plugins)
    assert again.same and again.result.bench == "mine:other" and again.result.params == {"n": 5}


@pytest.mark.parametrize("how", ["absolute", "above", "link"])
def test_a_file_elsewhere_runs_only_when_trusted(toy: ModuleType, tmp_path: Path, how: str) -> None:
    """A manifest must not have any file of the machine executed."""
    evil, ran = tmp_path / "evil.py", tmp_path / "ran"
    evil.write_text(MARK.format(str(ran)))
    name = {"absolute": str(evil), "above": "../evil.py", "link": "link.py"}[how]
    bench = {"file": name, "sha256": hashlib.sha256(evil.read_bytes()).hexdigest()}
    manifest = strange(toy, tmp_path, bench=bench)
    (manifest.parent / "link.py").symlink_to(evil)
    with pytest.raises(UsageError) as caught:
        rerun(manifest, plugins=toy.plugins)
    assert str(caught.value) == (
        f"the bench file must be in the folder of the manifest, not at {str(manifest.parent / name)!r}; look at that "
        "file, and give --trust to use it."
    )
    assert not ran.exists()
    assert rerun(manifest, trust=True, plugins=toy.plugins).same
    assert ran.exists()


def test_a_name_is_never_a_file(toy: ModuleType, tmp_path: Path) -> None:
    """The name of a registered bench that is a path names nothing."""
    evil, ran = tmp_path / "evil.py", tmp_path / "ran"
    evil.write_text(MARK.format(str(ran)))
    manifest = strange(toy, tmp_path, bench={"name": str(evil)})
    with pytest.raises(UsageError, match=r"bench must be a registered name"):
        rerun(manifest, trust=True, plugins=toy.plugins)
    assert not ran.exists()


def test_a_function_runs_only_when_trusted(
    toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any function of any module can be named."""
    monkeypatch.setitem(sys.modules, "benches_of_mine", sys.modules[__name__])
    manifest = strange(toy, tmp_path, bench={"function": "benches_of_mine:own_bench"}, params={})
    with pytest.raises(UsageError) as caught:
        rerun(manifest, plugins=toy.plugins)
    assert str(caught.value) == (
        f"manifest {str(manifest)!r} names the function 'benches_of_mine:own_bench', which may do anything; look at "
        "it, and give --trust to run it."
    )
    assert rerun(manifest, trust=True, plugins=toy.plugins).same


@pytest.mark.parametrize("name", ["no_such_module:bench", "json:no_such_bench", "json:__doc__"])
def test_a_function_that_is_not_there_is_a_sentence(toy: ModuleType, tmp_path: Path, name: str) -> None:
    """Neither its module, nor it in the module, or it is none."""
    manifest = strange(toy, tmp_path, bench={"function": name}, params={})
    with pytest.raises(UsageError) as caught:
        rerun(manifest, trust=True, plugins=toy.plugins)
    assert str(caught.value) == (
        f"manifest {str(manifest)!r} names the bench function {name!r}, which must be importable; install its module, "
        "or run where it lies."
    )


def test_a_module_of_the_bench_must_be_unchanged(toy: ModuleType, tmp_path: Path) -> None:
    """Another text of it is another run."""
    (tmp_path / "mine.py").write_text("import helper\ndef bench(rt):\n    rt.logged.append(helper.x)\n")
    (tmp_path / "helper.py").write_text("x = 1\n")
    out = tmp_path / "out"
    run(tmp_path / "mine.py", "one", out=out, plugins=toy.plugins)
    assert rerun(out / "manifest.json", plugins=toy.plugins).same
    kept = out / "bench" / "helper.py"
    kept.write_text("x = 2\n")
    was, now = (hashlib.sha256(text).hexdigest()[:12] for text in (b"x = 1\n", b"x = 2\n"))
    with pytest.raises(UsageError) as caught:
        rerun(out / "manifest.json", plugins=toy.plugins)
    assert str(caught.value) == (
        f"the module 'helper.py' of the bench at {str(kept)!r} must have SHA-256 {was}…, not {now}…; restore the file "
        "that the manifest was made with."
    )
    kept.unlink()
    with pytest.raises(UsageError, match=r"^the module 'helper.py' of the bench must be at .*; put the file there"):
        rerun(out / "manifest.json", plugins=toy.plugins)


@pytest.mark.parametrize("error", [UsageError, ConfigError])
def test_what_cannot_be_run_again_says_which_plugins_are_missing(
    toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """A bench or a component of a plug-in that is not here."""
    manifest = strange(toy, tmp_path)
    if error is ConfigError:
        monkeypatch.setattr(
            "kernbench_builtin.compare.reruns._recorded_bench", lambda *_: (_ for _ in ()).throw(ConfigError("wrong."))
        )
    with pytest.raises(error) as caught:
        rerun(manifest, plugins=load_plugins([], installed=False))
    told = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert told.splitlines()[-1] == "  since then, plug-in 'toy' was toy_plugin (source tree) and is absent."


@pytest.mark.parametrize("kept", ["out", "json"])
@pytest.mark.parametrize(
    ("declared", "used"),
    [
        ("f: float = 3", 3.0),
        ("n: int = None", None),
        ("x: float = None", None),
        ("clip: float = float('inf')", float("inf")),
        ("low: float | None = float('-inf')", float("-inf")),
        ("bare = float('nan')", float("nan")),
    ],
)
def test_a_default_is_the_same_in_a_rerun(
    toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str, declared: str, used: Any
) -> None:
    """Also one that is of another type than its annotation says, and one that JSON has no number for."""
    name = declared.partition(":")[0].partition(" ")[0]
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(f"def bench(rt, {declared}):\n    rt.logged.append({name})\n")
    files = {"out": {"out": "o"}, "json": {}}
    first = run("mine.py", "one", plugins=toy.plugins, **files[kept])  # type: ignore[arg-type]
    assert [(type(x), str(x)) for x in first.op_log.records] == [(type(used), str(used))]
    Path("run.json").write_text(json_text(first.to_json()))
    again = rerun({"out": "o/manifest.json", "json": "run.json"}[kept], plugins=toy.plugins)
    assert (again.same, again.differences) == (True, ())
    assert str(again.result.op_log.records) == str(first.op_log.records)


#: What a manifest keeps, each unlike its default.
KEPT: dict[str, Any] = {
    "device": "sip:1", "seed": 9, "data": False, "verify_data": True, "verify_ops": True, "race_by": "program",
    "materialize": "on_demand", "oob": "poison", "pipeline_loops": True, "max_events": 5, "max_sim_ns": 2000.0,
    "timeout_s": 1.5,
}  # fmt: skip


@pytest.mark.parametrize("without", [("data",), ("verify_data", "verify_ops")])
def test_a_rerun_takes_what_the_manifest_keeps(
    toy: ModuleType, tmp_path: Path, without: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each option that may change the result is as in the first run; the engine is given the same."""
    of_a_fake = classmethod(lambda cls, executor, where: executor.verify({}))
    monkeypatch.setattr(OpChecks, "verify_ops", of_a_fake)
    given = {name: value for name, value in KEPT.items() if name not in without}
    first = run("toy", "one", plugins=toy.plugins, out=tmp_path / "out", **given)
    assert {**first.manifest, **first.manifest["limits"]}.items() >= given.items()
    again = rerun(tmp_path / "out" / "manifest.json", plugins=toy.plugins)
    assert again.differences == ()
    assert (again.result.verified, again.result.ops_verified) == (first.verified, first.ops_verified)
    options = toy.engines[-1].options
    assert {name: options[name] for name in ("device", "seed", "data", "race_by")} == {
        "device": "sip:1", "seed": 9, "data": "data" in without, "race_by": "program",
    }  # fmt: skip
    assert attrs.asdict(options["limits"]) == {"max_events": 5, "max_sim_ns": 2000.0, "timeout_s": 1.5}


#: A model of a plug-in's file, which passes messages on and adds some time to each.
MODEL = """
from kernbench_core import ComponentBase, ComponentEntry, Param

kernbench_api = 1

class Slow(ComponentBase):
    ON_HEAD = True
    PARAMS = (Param("overhead", "time", "4 ns", "Time."),)

    def overhead(self, msg):
        return NS

def kernbench_components():
    return [ComponentEntry(name="pl.slow", target="pl:Slow", kind="router", sentence="A hop.")]
"""


CALL = """
import sys
from kernbench_core.cli import main
from kernbench_core.plugins import load_plugins, own_plugins
sys.exit(main(sys.argv[1:], load_plugins([*own_plugins(), "pl.py"], installed=False)))
"""


def test_a_rerun_names_the_models_whose_code_is_another(tmp_path: Path) -> None:
    """As the result has them that is beside the manifest, or around it; where none is kept nothing is said of them."""

    def call(ns: float, *words: str) -> str:
        (tmp_path / "pl.py").write_text(MODEL.replace("NS", str(ns)))
        command = [sys.executable, "-c", CALL, *words]
        made = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False, cwd=tmp_path)
        assert made.stderr == ""
        return made.stdout

    words = ("run", "vector-add", "--topology", "tiny", "-p", "n=64", "--set", "components.router.impl=pl.slow")
    call(1.0, *words, "--out", "out", "-q")
    (tmp_path / "out.json").write_text(call(1.0, *words, "--json"))
    assert call(1.0, "rerun", "out", "-q").startswith("same op log: ")
    told = "the code of pl.slow is not what it was."
    assert call(2.0, "rerun", "out").startswith(f"the op log differs:\n  {told}\n  op_log_sha256 was ")
    assert call(2.0, "rerun", "out.json", "-q") == f"the op log differs: {told}\n"
    (tmp_path / "out/result.json").unlink()
    assert call(2.0, "rerun", "out").startswith("the op log differs:\n  op_log_sha256 was ")
