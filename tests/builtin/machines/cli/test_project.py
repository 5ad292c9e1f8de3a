"""`[tool.kernbench]` of a pyproject.toml and the environment: what counts, what is told of it, and what is wrong."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from kernbench_builtin.machines.cli.project import VARIABLES, MachineLayer, ProjectMachine, Setting, machine_of
from kernbench_core.cli import main
from kernbench_core.plugins import Plugins

SMALL = ("-p", "M=16", "-p", "N=16", "-p", "K=16", "--no-data")
PROJECT = """
[tool.kernbench]
topology = "tiny"
components = "parts.yaml"
[tool.kernbench.set]
cube.pes = 2
"cube.noc.bandwidth" = "100 GB/s"
"""
Call = Callable[..., tuple[int, str, list[str]]]


@pytest.fixture
def call(
    plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Call:
    """Give a function that runs a command line two folders below a project; its exit code, stdout, lines of stderr."""
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "parts.yaml").write_text("components: {pe_gemm: {params: {overhead: 7 ns}}}\n")
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    for variable in VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)

    def called(*args: str) -> tuple[int, str, list[str]]:
        code = main(args, plugins)
        out, err = capsys.readouterr()
        return code, out, err.splitlines()

    return called


def of_run(call: Call, *more: str) -> dict[str, object]:
    """Return what counts of a run: machine, changes, and the hash of its op log."""
    code, out, _ = call("run", "gemm", *SMALL, "--json", *more)
    assert code == 0
    manifest = json.loads(out)["manifest"]
    return {name: manifest[name] for name in ("topology", "changes", "configuration_sha256", "op_log_sha256")}


def told(machine: ProjectMachine) -> list[str]:
    """Return who won, as -v prints it."""
    return [f"{text} ({origin}{over})" for text, origin, over in machine.winners]


def test_a_run_in_a_project_is_the_run_with_these_options(call: Call) -> None:
    """Bit for bit, with a manifest that says them; what the command line says of a key counts above them."""
    told = ("--topology", "tiny", "--components", "../../parts.yaml")
    sets = ("--set", "cube.pes=2", "--set", "cube.noc.bandwidth=100 GB/s")
    here = of_run(call)
    assert here["topology"] == "tiny"
    assert here["changes"] == {"components": "../../parts.yaml", "set": ["cube.pes=2", "cube.noc.bandwidth=100 GB/s"]}
    above = of_run(call, "--set", "cube.pes=1")
    Path("../../pyproject.toml").unlink()
    assert of_run(call, *told, *sets) == here
    alone = of_run(call, *told, *sets, "--set", "cube.pes=1")
    assert above == alone and above["op_log_sha256"] != here["op_log_sha256"]


def test_a_saved_run_runs_again_without_the_project(call: Call, tmp_path: Path) -> None:
    """And the cache tells runs of two projects apart."""
    assert call("run", "gemm", *SMALL, "--out", "kept")[0] == 0
    assert [of_run(call, "--cached")["op_log_sha256"] for _ in range(2)] == [of_run(call)["op_log_sha256"]] * 2
    (tmp_path / "pyproject.toml").write_text('[tool.kernbench]\ntopology = "tiny"\n')
    assert of_run(call, "--cached") == of_run(call)
    code, out, err = call("rerun", "kept/manifest.json")
    assert (code, out[:12], err) == (0, "same op log:", [])


def test_who_won_is_told(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """In short, with -v in full, with -q not at all; a topology that is named above leaves out what is for another."""
    file = "../../pyproject.toml"
    assert call("run", "gemm", *SMALL)[2] == [
        f"note: topology tiny, components ../../parts.yaml, set cube.pes=2 and 1 more ({file})"
    ]
    assert call("run", "gemm", *SMALL, "-q")[2] == []
    monkeypatch.setenv("KERNBENCH_SET", "cube.pes=3; system.chunk_bytes=2 KiB;")
    assert call("run", "gemm", *SMALL, "-v", "--set", "cube.pes=1")[2] == [
        f"note: topology tiny ({file})",
        f"note: components ../../parts.yaml ({file})",
        f"note: set cube.pes=1 (command line, over environment, over {file})",
        f"note: set cube.noc.bandwidth=100 GB/s ({file})",
        "note: set system.chunk_bytes=2 KiB (environment)",
    ]
    monkeypatch.delenv("KERNBENCH_SET")
    left_out = f"note: components and set of {file} are left out: they are for topology tiny"
    assert call("run", "gemm", *SMALL, "--topology", "default")[2] == [left_out]
    monkeypatch.setenv("KERNBENCH_TOPOLOGY", "default")
    assert call("run", "gemm", *SMALL)[2] == [left_out, "note: topology default (environment)"]
    Path(file).write_text("[tool.kernbench.set]\ncube.pes = 4\n")
    monkeypatch.delenv("KERNBENCH_TOPOLOGY")
    told = ["note: topology default (default)", f"note: set cube.pes=4 ({file})"]
    assert call("run", "gemm", *SMALL, "-v")[2] == told
    Path(file).unlink()
    assert call("run", "gemm", *SMALL, "-v", "--topology", "tiny")[2] == []


def test_every_command_with_a_topology_has_that_of_the_project(call: Call, tmp_path: Path) -> None:
    """A plan that is written down, and a machine that is named to be looked at, do not."""
    (tmp_path / "parts.yaml").write_text("system: {sips: 2}\n")
    code, out, _ = call("ccl", "all_reduce", "-b", "1K", "-e", "1K", "--json")
    assert code == 0 and json.loads(out)["topology"] == "tiny"
    code, out, _ = call("sweep", "gemm", *SMALL, "-j", "1", "--set", "cube.pes=1,4", "--json")
    plan = json.loads(out)["plan"]
    assert code == 0 and (plan["topology"], plan["components"]) == ("tiny", "../../parts.yaml")
    assert plan["set"] == {"cube.noc.bandwidth": "100 GB/s"}
    Path("plan.yaml").write_text("bench: gemm\ntopology: tiny\nparams: {M: 16, N: 16, K: 16}\n")
    code, out, err = call("sweep", "plan.yaml", "-j", "1", "--json")
    plan = json.loads(out)["plan"]
    assert (code, err, plan["components"], plan["set"]) == (0, [], None, {})
    code, out, err = call("topology", "validate", "tiny")
    assert (code, out.rpartition(", ")[2], err) == (0, "4 PEs.\n", [])


def test_the_nearest_table_counts(call: Call, tmp_path: Path) -> None:
    """A file without it, or of others who wrote no TOML, is none of our business."""
    Path("pyproject.toml").write_text("[project]\nname = 'other'\n")
    Path("../pyproject.toml").write_text("nonsense")
    assert of_run(call)["topology"] == "tiny"
    Path("pyproject.toml").write_text("[tool.kernbench]\n")
    assert of_run(call)["topology"] == "default"


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("tool.kernbench = 3", ["tool.kernbench must be a table, not 3."]),
        ("# kernbench\nx = [", ["must be TOML: Invalid value (at end of document)."]),
        (
            '[tool.kernbench]\ntopolgy = "tiny"\ntopology = "tinny"\ncomponents = 5\nset = ["cube.pes=4"]\n',
            [
                "tool.kernbench.topolgy must be a known key. Did you mean 'topology'?",
                "tool.kernbench.topology must be a preset or a file, not 'tinny'. Did you mean 'tiny'?",
                "tool.kernbench.components must be a preset or a file, not 5.",
                "tool.kernbench.set must be a table of keys and values, not ['cube.pes=4'].",
            ],
        ),
        (
            "[tool.kernbench.set]\ncube.when = 2020-01-01\n",
            [
                "tool.kernbench.set.cube.when must be text, a number, true, false or a list, not "
                "datetime.date(2020, 1, 1)."
            ],
        ),
        (
            '[tool.kernbench]\ntopology = "tiny"\nset = {"cube.pess" = 4, cube.pes = 1.5}\n',
            [
                "tool.kernbench.set: cube.pes must be a positive integer, not 1.5.",
                "tool.kernbench.set: cube.pess must be a known key. Did you mean 'pes'?",
            ],
        ),
    ],
)
def test_all_that_is_wrong_is_told_at_once(call: Call, text: str, problems: list[str]) -> None:
    """With the file, the key, and what it must be; a key that the machine does not have, too."""
    Path("pyproject.toml").write_text(text)
    code, out, err = call("run", "gemm", *SMALL, "--json")
    assert code == 3
    assert json.loads(out)["problems"] == [f"pyproject.toml: {each}" for each in problems]
    assert [line for line in err if not line.startswith("note: ")] == [f"pyproject.toml: {each}" for each in problems]


def test_a_file_that_cannot_be_read_is_told(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refused)
    sentence = "pyproject.toml: must be a file that can be read, but that failed with 'Permission denied'."
    assert call("run", "gemm", *SMALL)[2][0] == sentence


def test_layers_are_laid_over_one_another(tmp_path: Path) -> None:
    """Settings add up; one file under two names is one topology; without layers all is as by default."""
    assert told(machine_of([])) == ["topology default (default)"]
    file = tmp_path / "m.yaml"
    file.write_text("")
    other = str(tmp_path / "x" / ".." / "m.yaml")
    (tmp_path / "x").mkdir()
    below, above = MachineLayer("low", str(file), "c.yaml", ("a=1", "b=2")), MachineLayer("high", other, None, ("a=3",))
    found = machine_of([below, above])
    assert (found.topology, found.components, found.set) == (other, "c.yaml", ("a=1", "b=2", "a=3"))
    assert told(found) == [
        f"topology {other} (high, over low)", "components c.yaml (low)", "set a=3 (high, over low)", "set b=2 (low)",
    ]  # fmt: skip
    everywhere = machine_of([MachineLayer("low", None, "c.yaml", ("a=1",)), MachineLayer("high", "tiny")])
    assert (everywhere.topology, everywhere.components, everywhere.set) == ("tiny", "c.yaml", ("a=1",))
    assert everywhere.left_out == ()


def test_settings_reach_other_processes() -> None:
    """As of kernbench ccl: with what a message about one begins with."""
    there = pickle.loads(pickle.dumps(Setting("cube.pes=2", "pyproject.toml: cube.pes")))
    assert (there, there.place) == ("cube.pes=2", "pyproject.toml: cube.pes")
