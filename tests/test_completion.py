"""What the shell completes of the benches, presets, models and collectives that come with kernbench."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kernbench_core.cli import main
from kernbench_core.cli.written_benches import parameters_of
from kernbench_core.host.bench import open_bench
from kernbench_core.plugins import Plugins
from tests.core.cli.command_line import HEAVY

REPO = Path(__file__).parents[1]
BREAKS = " \t\n\"'@><=;|&(:"
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
    monkeypatch.setenv("KERNBENCH_BREAKS", BREAKS)

    def answers(line: str) -> list[str]:
        monkeypatch.setenv("KERNBENCH_LINE", line)
        assert main((), plugins) == 0
        out, err = capfd.readouterr()
        assert err == ""
        return out.splitlines() if out.strip() else []

    return answers


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("kernbench re", ["rerun", "report"]),
        ("kernbench run gemm-s", ["gemm-stream", "gemm-sweep"]),
        ("kernbench list so", ["softmax"]),
        ("kernbench run gemm -p ", ["M=", "N=", "K=", "tile_m=", "tile_n=", "tile_k=", "dtype=", "a=", "b="]),
        ("kernbench run gemm -p M=4 -p N=3 -p tile_m=1 -p t", ["tile_n=", "tile_k="]),
        ("kernbench run -p M=4 gemm -p ", ["N=", "K=", "tile_m=", "tile_n=", "tile_k=", "dtype=", "a=", "b="]),
        ("kernbench run gemm -p dtype=", ["f16", "bf16", "f32", "int8"]),
        ("kernbench run gemm -p dtype=b", ["bf16"]),
        ("kernbench run mlp -p model=llama3-8", ["llama3-8b"]),
        ("kernbench run attention -p causal=", ["true", "false"]),
        ("kernbench run gemm -p M=1", []),
        ("kernbench run gemm -p none=", []),
        ("kernbench run nothing -p ", []),
        ("kernbench run gemm --topology ti", ["tiny"]),
        ("kernbench run gemm --topology=ti", ["tiny"]),
        ("kernbench run gemm --verify-", ["--verify-data", "--verify-ops"]),
        ("kernbench run gemm --race-by ", ["pe", "program"]),
        ("kernbench run gemm --device ", ["all", "sip:0"]),
        ("kernbench run gemm --device sip:", ["0"]),
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
        ("kernbench nothing ", []),
        ("kernbench 'run' gemm-sw", ["gemm-sweep"]),
    ],
)
def test_a_line_is_completed(ask: Ask, line: str, values: list[str]) -> None:
    """The part of the last word behind `=` or `:` is what bash is given, as it takes these for words of their own."""
    assert ask(line) == [f"plain,{value}" for value in values]


def test_files_are_left_to_the_shell(ask: Ask, tmp_path: Path) -> None:
    """Where no name matches; the .py files at hand stand beside the benches, and their parameters are read."""
    for line in (
        "run ../x", "run gemm -p a=", "run gemm --topology ./", "rerun ", "run gemm --trace ", "list ../", "report ",
        "report x -o ", "trace ", "probe --components ", "calibrate ", "ccl all_reduce --config ",
        "topology show tiny --svg ",
    ):  # fmt: skip
        assert [answer.partition(",")[0] for answer in ask(f"kernbench {line}")] == ["file"], line
    assert [answer.partition(",")[0] for answer in ask("kernbench run gemm --out ")] == ["dir"]
    gone = tmp_path / "gone"
    (tmp_path / "gem.py").write_text(
        f"open({str(gone)!r}, 'w')\nfrom typing import Literal\nKind = Literal['a', 'b']\n"
        "def bench(rt, one: int, two=False, *, kind: Kind = 'a'): pass\n"
    )
    assert ask("kernbench run gem") == [
        "plain,gemm", "plain,gemm-composite", "plain,gemm-stream", "plain,gemm-sweep", "plain,gem.py",
    ]  # fmt: skip
    assert ask("kernbench run gem.py -p ") == ["plain,one=", "plain,two=", "plain,kind="]
    assert ask("kernbench run gem.py -p kind=") == ["plain,a", "plain,b"]
    assert ask("kernbench run gem.py -p two=t") == ["plain,true"]
    (tmp_path / "gems.py").write_text("def bench(rt, one: int): pass\ndef other(rt, two: bool): pass\n")
    assert ask("kernbench run gems.py:other -p ") == ["plain,two="]
    (tmp_path / "gems.py").unlink()
    assert not gone.exists()
    for text in ("def bench(rt, one", "bench = 3", "", "import no\nfrom no import bench\n"):
        (tmp_path / "gem.py").write_text(text)
        assert ask("kernbench run gem.py -p ") == []


def test_what_is_read_is_what_the_bench_takes(plugins: Plugins) -> None:
    """Of every registered bench: the names in order, the choices, and what is a file, as the imported function says."""
    for name in plugins.benches:
        written = parameters_of(name, plugins)
        params = open_bench(name, plugins.benches).params
        assert list(written) == [param.name for param in params], name
        for param in params:
            found = written[param.name]
            choices = ("true", "false") if param.kind == "bool" else param.choices
            assert (found.choices, found.is_file) == (choices, param.kind == "npy"), (name, param.name)


def test_every_parameter_is_told_of(plugins: Plugins) -> None:
    """`kernbench list NAME` has a sentence for each parameter of a bench that comes with kernbench."""
    for name in plugins.benches:
        for param in open_bench(name, plugins.benches).params:
            assert param.sentence[:1].isupper(), (name, param.name)
            assert param.sentence.endswith("."), (name, param.name)


def test_nothing_heavy_is_imported_for_a_key() -> None:
    """In a process of its own: a shell asks each time that somebody presses it."""
    asked = subprocess.run(
        [sys.executable, "-c", COMMAND], capture_output=True, text=True, check=False, timeout=120,
        env={
            **os.environ, "PYTHONPATH": str(REPO), "_KERNBENCH_COMPLETE": "bash_complete",
            "KERNBENCH_LINE": "kernbench run gemm -p M",
        },
    )  # fmt: skip
    assert (asked.stdout, asked.stderr, asked.returncode) == ("plain,M=\n", "[]\n", 0)
