"""Commands without one of kernbench's own plug-ins, or both: what is not there is a sentence, and never a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernbench_core.cli import main
from kernbench_core.plugins import own_plugins

_LEFT_OUT = (
    " It may belong to a plug-in that was left out: '{}' (kernbench 0.1.0); --no-plugin or KERNBENCH_NO_PLUGIN names "
    "it.\n"
)
_BUILTIN, _BENCHES, _CCL = map(_LEFT_OUT.format, ("builtin", "builtin.benches", "ccl"))


@pytest.mark.parametrize(
    ("without", "command", "begins", "ends"),
    [
        ("builtin", "run gemm", "error: topology must be a preset or a file, not 'default'.", _BUILTIN),
        ("builtin", "run gemm --topology mine.yaml", "mine.yaml:1:1: base must be a preset or a file, not 'tiny'.",
         _BUILTIN),
        ("builtin", "topology show tiny", "error: topology must be a preset or a file, not 'tiny'.", _BUILTIN),
        ("builtin", "topology list tiny", "error: topology preset must be a registered name or a part of one, not "
         "'tiny'. No plug-in registers any.", _BUILTIN),
        ("benches", "list gemm", "error: bench must be a registered name, a part of one, or the path of a .py file, "
         "not 'gemm'. ", _BENCHES),
        ("builtin", "components pe_gemm", "error: component must be a registered name or a part of one, not 'pe_gemm'. "
         "No plug-in registers any.", _BUILTIN),
        ("probe", "probe", "error: kernbench must be followed by a command, not 'probe'. Known: ",
         _LEFT_OUT.format("builtin.probe")),
        ("builtin.checks", "plugins check acme", "error: kernbench plugins must be followed by a command, not 'check'. "
         "Known: list. ", _LEFT_OUT.format("builtin.checks")),
        ("torch", "run gemm --topology tiny --backend torch", "error: a backend must be numpy, not 'torch'; leave it "
         "out.", _LEFT_OUT.format("builtin.torch")),
        ("torch", "ccl all_reduce --topology tiny --backend torch:cpu", "error: a backend must be numpy, not "
         "'torch:cpu'; leave it out.", _LEFT_OUT.format("builtin.torch")),
        ("saved", "run gemm --topology tiny --out run", "error: --out must have a plug-in that writes runs to folders, "
         "and none is there; leave it out.", _LEFT_OUT.format("builtin.saved")),
        ("explain", "run gemm --topology tiny --explain", "error: No such option '--explain'.",
         f"{_LEFT_OUT.format('builtin.explain').rstrip()} See 'kernbench run --help'.\n"),
        ("ccl", "ccl list", "error: kernbench must be followed by a command, not 'ccl'. Known: ", _CCL),
        ("ccl", "run tp-mlp", "error: bench must be a registered name or the path of a .py file, not 'tp-mlp'. Known: ",
         _CCL),
    ],
)  # fmt: skip
def test_what_was_left_out_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    without: str, command: str, begins: str, ends: str,
) -> None:  # fmt: skip
    """Behind what there is, as the name may be of a plug-in that was left out."""
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text("base: tiny\n")
    code = main(["--no-plugin", without, *command.split()])
    told = capsys.readouterr().err
    assert told.startswith(begins) and told.endswith(ends), told
    assert code == (3 if "mine.yaml" in command else 2)


@pytest.mark.parametrize(
    ("command", "noun", "listed"),
    [
        ("topology list", "topology preset", "topologies"),
        ("components", "component", "components"),
        ("list", "bench", "benches"),
    ],
)
def test_a_list_of_nothing_says_so(capsys: pytest.CaptureFixture[str], command: str, noun: str, listed: str) -> None:
    """It is no error: as JSON it is empty."""
    for form in ([], ["--json"]):
        assert main(["--no-plugin", "builtin,benches,ccl", *command.split(), *form]) == 0
        out, told = capsys.readouterr()
        assert told == (
            f"warning: no plug-in registers any {noun}; 'kernbench plugins list' says which plug-ins there are.\n"
        )
    assert json.loads(out)[listed] == []


BENCH = """
import numpy as np

def kernel(x, tl):
    tl.store(x, tl.load(x, shape=(8,)) + 1)

def bench(rt):
    rt.launch(kernel, rt.tensor(np.ones(8, np.float32)), grid=(1,))
"""


@pytest.mark.parametrize("name", [text.partition(" ")[0] for text in own_plugins()])
def test_each_of_ours_can_be_left_out(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By an option with its last part or the variable with its name: the rest works, a bench of a file among it."""
    (tmp_path / "mine.py").write_text(BENCH)
    for words in ("--help", "list"):
        code = main(["--no-plugin", name.rpartition(".")[2], words])
        assert code == (2 if (name, words) == ("builtin.machines", "list") else 0)
    told = capsys.readouterr().err
    assert told.endswith(_LEFT_OUT.format(name)) if name == "builtin.machines" else "error" not in told
    monkeypatch.setenv("KERNBENCH_NO_PLUGIN", name)
    assert main(["plugins", "list", "--json"]) == 0
    states = {each["name"]: each["state"] for each in json.loads(capsys.readouterr().out)["plugins"]}
    assert [each for each in states if states[each] == "not wanted"] == [name]
    code = main(["run", str(tmp_path / "mine.py"), "--topology", "tiny", "-q"])
    told = capsys.readouterr().err
    needed = {"builtin": 2, "builtin.machines": 3}.get(name, 0)
    assert (code, told.endswith(_LEFT_OUT.format(name)) if needed else told == "") == (needed, True)


def test_a_last_part_that_two_have_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[kernbench]\nacme.sweeps = acme\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["--no-plugin", "sweeps", "list"]) == 2
    assert capsys.readouterr().err == (
        "error: plug-in 'sweeps' must name one, not 2; give the distribution: 'acme' or 'kernbench'.\n"
    )
