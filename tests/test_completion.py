"""What the shell completes of the benches, presets, models and collectives that come with kernbench."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kernbench_core.cli import main
from kernbench_core.host.bench import open_bench
from kernbench_core.plugins import Plugins
from tests.core.cli.command_line import HEAVY

REPO = Path(__file__).parents[1]
COMMAND = (
    "import sys; from kernbench_core.cli import main; from kernbench_core.plugins import load_plugins, own_plugins; "
    "code = main([], load_plugins(own_plugins(), "
    f"installed=False)); print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr); sys.exit(code)"
)
Ask = Callable[[str], list[str]]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], plugins: Plugins, tmp_path: Path) -> Ask:
    """Give a function that completes a line as bash asks for it; its answers as "kind,value"."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("_KERNBENCH_COMPLETE", "bash_complete")

    def answers(line: str) -> list[str]:
        words = line.split(" ")
        monkeypatch.setenv("COMP_WORDS", "\n".join(words))
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        assert main((), plugins) == 0
        out, err = capfd.readouterr()
        assert err == ""
        return out.splitlines() if out.strip() else []

    return answers


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("kernbench re", ["report", "rerun"]),
        ("kernbench run gemm-s", ["gemm-stream", "gemm-sweep"]),
        ("kernbench list so", ["softmax"]),
        ("kernbench run gemm --topology ti", ["tiny"]),
        ("kernbench run gemm --verify-", ["--verify-data", "--verify-ops"]),
        ("kernbench run gemm --race-by ", ["pe", "program"]),
        ("kernbench run gemm --device ", ["all", "sip:0"]),
        ("kernbench topology l", ["list"]),
        ("kernbench topology list u", ["u280_hbm"]),
        ("kernbench topology show --view p", ["pe"]),
        ("kernbench components builtin.pe_f", ["builtin.pe_fetch_store"]),
        ("kernbench components pe_f", ["pe_fetch_store"]),
        ("kernbench components mmu", ["pe_mmu"]),
        ("kernbench components none", []),
        ("kernbench ccl all_r", ["all_reduce"]),
        ("kernbench ccl all_reduce --algo r", ["ring", "ring_bidirectional"]),
        ("kernbench ccl all_reduce --algo a", ["auto", "all"]),
        ("kernbench ccl all_reduce --algo ccl.ring_a", ["ccl.ring_all_reduce"]),
        ("kernbench ccl all_reduce -o m", ["min", "max"]),
        ("kernbench ccl all_reduce --network t", ["torus_2d"]),
        ("kernbench ccl all_reduce --dtype f3", ["f32"]),
        ("kernbench ccl all_reduce --topology ti", ["tiny"]),
        ("kernbench ccl list reduce_", ["reduce_scatter"]),
        ("kernbench ccl check dou", ["double_binary_tree"]),
        ("kernbench ccl check --topology r", ["ring"]),
        ("kernbench run gemm --topology tiny --set sy", ["system."]),
        ("kernbench run gemm --topology tiny --set cube.p", ["cube.pes="]),
        ("kernbench topology show mesh --set si", []),
        ("kernbench topology show tiny --set si", ["sip."]),
        ("kernbench diff gemm --b-topology mesh --b-set si", []),
        ("kernbench sweep gemm --topology tiny,default --set cube.mesh.h", ["cube.mesh.hbm_zone."]),
        ("kernbench ccl all_reduce --set=system.network.to", ["system.network.topology="]),
        ("kernbench run gemm --topology nowhere --set sy", []),
        ("kernbench run gemm --set nothing.", []),
        ("kernbench nothing ", []),
        ("kernbench 'run' gemm-sw", ["gemm-sweep"]),
    ],
)
def test_a_line_is_completed(ask: Ask, line: str, values: list[str]) -> None:
    assert ask(line) == [f"plain,{value}" for value in values]


def test_files_are_left_to_the_shell(ask: Ask, tmp_path: Path) -> None:
    """Where no name matches; the .py files at hand stand beside the benches."""
    for line in (
        "run ../x", "run gemm --topology ./", "rerun ", "run gemm --trace ", "list ../", "report ",
        "report x -o ", "trace ", "probe --components ", "calibrate ", "ccl all_reduce --config ",
        "topology show tiny --svg ",
    ):  # fmt: skip
        assert [answer.partition(",")[0] for answer in ask(f"kernbench {line}")] == ["file"], line
    assert [answer.partition(",")[0] for answer in ask("kernbench run gemm --out ")] == ["dir"]
    (tmp_path / "gem.py").write_text("raise SystemExit")
    assert ask("kernbench run gem") == [
        "plain,gemm", "plain,gemm-composite", "plain,gemm-naive", "plain,gemm-stream", "plain,gemm-sweep", "plain,gemv",
        "plain,gem.py",
    ]  # fmt: skip


def test_every_parameter_is_told_of(plugins: Plugins) -> None:
    """`kernbench list NAME` has a sentence for each parameter of a bench that comes with kernbench."""
    for name in plugins.benches:
        for param in open_bench(name, plugins.benches).params:
            assert param.sentence[:1].isupper(), (name, param.name)
            assert param.sentence.endswith("."), (name, param.name)


@pytest.mark.parametrize(
    ("line", "found", "heavy"), [("run softm", "softmax", []), ("run gemm --set cube.p", "cube.pes=", ["yaml"])]
)
def test_nothing_heavy_is_imported_for_a_key(line: str, found: str, heavy: list[str]) -> None:
    """In a process of its own: a shell asks each time that somebody presses it."""
    asked = subprocess.run(
        [sys.executable, "-c", COMMAND], capture_output=True, text=True, check=False, timeout=120,
        env={
            **os.environ, "PYTHONPATH": str(REPO), "_KERNBENCH_COMPLETE": "bash_complete",
            "COMP_WORDS": f"kernbench {line}", "COMP_CWORD": str(len(line.split())),
        },
    )  # fmt: skip
    assert (asked.stdout, asked.stderr, asked.returncode) == (f"plain,{found}\n", f"{heavy}\n", 0)
