"""`--cached` on the command line: the same output, from the cache, of runs, scripts, probes and collectives."""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from kernbench_core.cli import main
from kernbench_core.cli.shell import Shell
from kernbench_core.errors import KernbenchWarning
from kernbench_core.plugins import Plugins
from kernbench_core.runs import configure
from tests.conftest import forget_executed

Call = Callable[..., tuple[int, str, str]]
HIT = r"note: from the cache \([0-9a-f]{12}\), made [-0-9: ]+: it depends on machine, .*"

SCRIPT = """
import sys
import numpy as np
import triton
import triton.language as tl
import beside

@triton.autotune(configs=[triton.Config({"BLOCK": block}) for block in (64, 256)], key=["n"])
@triton.jit
def scale_kernel(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)

x = np.ones(100, np.float32)
for _ in range(beside.TIMES):
    scale_kernel[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, 100)
print("found", x[0], sys.argv[1:])
if sys.argv[-1] == "3":
    sys.exit(3)
"""


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], plugins: Plugins) -> Call:
    """Give a function that does what `kernbench` does with a cache of its own; it gives code, stdout and stderr."""
    monkeypatch.setenv("KERNBENCH_CACHE", str(tmp_path / "cache"))
    forget_executed()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "beside.py").write_text("TIMES = 2\n")
    (tmp_path / "scale.py").write_text(SCRIPT)

    def run(*args: str) -> tuple[int, str, str]:
        sys.modules.pop("beside", None)  # each call stands for a process of its own
        code = main(list(args), plugins)
        told = capfd.readouterr()
        return code, told.out, told.err

    return run


def apart(text: str) -> str:
    """Leave out what differs from run to run: real times, and where a result is from."""
    text = re.sub(r"in [\d.]+ s \([\d.]+ ?[kM]? events/s\), [\d.]+ s in all", "in S", text)
    return re.sub(r'"(wall_s|from_cache)": [\w.+-]+', r'"\1": 0', text)


@pytest.mark.parametrize(
    "args",
    [
        ("run", "vector-add", "--topology", "tiny", "-p", "n=64"),
        ("run", "gemm", "--topology", "tiny", "-p", "M=32", "--explain", "--tcm-map", "-v"),
        ("run", "gemm", "--topology", "tiny", "-p", "M=32", "--json", "--links", "all"),
        ("triton", "--topology", "tiny", "scale.py", "0"),
        ("triton", "--topology", "tiny", "--json", "scale.py", "0"),
        ("triton", "--topology", "tiny", "--autotune", "all", "-v", "scale.py", "0"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_run_and_a_script_print_the_same(call: Call, args: tuple[str, ...]) -> None:
    """And a line on stderr says that it is from the cache; of a script with --json nothing that went there."""
    made = call(*args)
    first, again = (call(args[0], "--cached", *args[1:]) for _ in range(2))
    assert apart(made[1]) == apart(first[1]) == apart(again[1])
    assert made[0] == first[0] == again[0] == 0
    assert re.fullmatch(f"{HIT}\n", again[2])
    assert re.sub("note: kept in the cache as .*", "", first[2]).strip() == made[2].strip()


@pytest.mark.parametrize(
    "args",
    [
        ("probe", "--dram", "--requests", "16", "--outstanding", "1,4"),
        ("probe", "--traffic", "uniform", "--load", "0.1", "--warmup", "10", "--measure", "20"),
        ("probe", "--topology", "tiny"),
        ("calibrate", "--check", "u280_hbm"),
        ("ccl", "all_reduce", "--ranks", "2", "-b", "1K", "-e", "2K", "--json"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_other_commands_print_the_same(call: Call, args: tuple[str, ...]) -> None:
    """Another setting is another machine."""
    made, first, again = call(*args), call(*args, "--cached"), call(*args, "--cached")
    assert apart(made[1]) == apart(first[1]) == apart(again[1])
    assert again[1] == first[1] and again[0] == 0
    assert re.fullmatch(f"(?s).*{HIT}\n", again[2])
    if args[0] == "calibrate":
        return
    other = call(
        *args, "--cached", "--set", "mesh.link.latency=3 ns" if "--traffic" in args else "sip.ucie.latency=99 ns"
    )
    assert "from the cache" not in other[2]


def test_a_sweep_takes_points_from_the_cache_when_it_is_asked_to(call: Call) -> None:
    """And says how many; unasked it runs them all."""
    args = ("sweep", "vector-add", "--topology", "tiny", "-p", "n=64,128", "-j", "1")
    made, again = call(*args, "--cached"), call(*args, "--cached")
    assert made[:2] == again[:2] == call(*args)[:2] and made[0] == 0
    assert "cache" not in made[2] + call(*args)[2]
    assert re.fullmatch(f"note: 2 of 2 points, the first {HIT[6:]}\n", again[2])


def test_a_script_is_run_anew_for_whatever_is_otherwise(call: Call, tmp_path: Path) -> None:
    """Its text, a module beside it, an argument, an option; one that fails is never kept."""

    def cached(*args: str, script: str = "scale.py") -> bool:
        code, _, err = call("triton", "--topology", "tiny", "--cached", script, *args)
        assert code == 0
        return "from the cache" in err

    assert [cached("0"), cached("0"), cached("1"), cached("1", "0"), cached("1", "0")] == [0, 1, 0, 0, 1]
    (tmp_path / "beside.py").write_text("TIMES = 2 + 1\n")  # not as long: Python would take the old bytecode
    assert [cached("0"), cached("0")] == [False, True]
    (tmp_path / "scale.py").write_text(SCRIPT.replace("* 2", "* 3"))
    assert [cached("0"), cached("0")] == [False, True]
    (tmp_path / "0").write_text("a file that an argument names")
    assert [cached("0"), cached("0")] == [False, True]
    for _ in range(2):
        code, out, err = call("triton", "--topology", "tiny", "--cached", "scale.py", "3")
        assert code == 3 and "found 27.0" in out and "from the cache" not in err


@pytest.mark.parametrize("module", ["pack.part", "pack", "flat"])
def test_a_module_counts_and_what_a_script_is_said_to_depend_on(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    """Without its package being imported to find it; places are patterns and variables, too."""
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack/__init__.py").write_text("import triton\n")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    file = {"pack.part": "pack/part.py", "pack": "pack/__main__.py", "flat": "flat.py"}[module]

    def cached() -> bool:
        for name in ("pack", "pack.part", "flat"):
            sys.modules.pop(name, None)
        options = ("--topology", "tiny", "--depends", "$SCALE", "--depends", "*.csv")
        code, _, err = call("triton", "--cached", *options, "-m", module)
        assert code == 0
        return "from the cache" in err

    for change in (
        lambda: (tmp_path / file).write_text("print(1)"), lambda: (tmp_path / file).write_text("print(2)"),
        lambda: monkeypatch.setenv("SCALE", "2"), lambda: (tmp_path / "new.csv").write_text(""),
    ):  # fmt: skip
        change()
        assert [cached(), cached()] == [False, True]


def test_a_folder_that_is_gone_is_a_sentence(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    code, out, err = call("probe", "--topology", "tiny", "--cached")
    assert (code, out, err) == (2, "", "error: the current folder must exist; change to another one.\n")


def test_what_is_kept_is_told_with_v_and_nothing_with_q(call: Call) -> None:
    args = ("run", "vector-add", "--topology", "tiny", "-p", "n=64", "--cached")
    assert re.fullmatch(r"note: kept in the cache as [0-9a-f]{12}\.\n", call(*args, "-v")[2])
    assert call(*args, "-q")[2] == ""


def test_the_entries_are_listed_shown_and_pruned(call: Call, tmp_path: Path) -> None:
    args = ("run", "vector-add", "--topology", "tiny", "--cached", "--json", "-p", "n=64")
    result = json.loads(call(*args)[1])
    assert result["from_cache"] is False and json.loads(call(*args)[1])["from_cache"] is True
    listed = json.loads(call("cache", "list", "--json")[1])
    assert (listed["schema"], listed["folder"], listed["most_bytes"]) == (
        "kernbench.cache-entries/2", str(tmp_path / "cache"), 2 << 30,
    )  # fmt: skip
    assert listed["bytes"] == sum(each["bytes"] for each in listed["entries"])
    (run,) = (each for each in listed["entries"] if each["about"]["kind"] == "run")
    _, out, _ = call("cache", "list")
    assert re.search(rf"^{run['key'][:12]}  run +vector-add on tiny n=64 .* 20[-0-9]+ [0-9:]+$", out, re.MULTILINE)
    assert re.search(rf"\n\nentries: {len(listed['entries'])}, ", out)
    assert json.loads(call("cache", "show", run["key"][:6])[1]) == {"schema": "kernbench.cache-entry/2", **run}
    assert {"machine", "given", "code of kernbench_core"} < run["about"]["parts"].keys()
    assert call("cache", "prune", "--older", "1")[1].startswith("entries removed: 0 of 0 B; left: 1 of ")
    assert call("cache", "prune", "--all")[1].endswith("; left: 0 of 0 B\n")
    assert call("cache", "list")[1] == f"entries: 0, 0 B of at most 2 GiB, in {tmp_path / 'cache'}\n"


@pytest.mark.parametrize(
    "args, told",
    [
        (("show", "abcd"),
         "the key must begin one key, not 0, as 'abcd'; 'kernbench cache list' has them."),
        (("prune", "--keep", "3 apples"), "option --keep must be a size, not '3 apples'."),
        (("prune", "--all", "--keep", "1 MB"), "--all removes everything; leave out --keep and --older, or --all."),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)  # fmt: skip
def test_wrong_options_are_told(call: Call, args: tuple[str, ...], told: str) -> None:
    code, out, err = call("cache", *args)
    assert (code, out) == (2, "") and err.startswith(f"error: {told}")


def test_warnings_of_a_command_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], plugins: Plugins
) -> None:
    """Those of Python and those that the command writes, each once; what ends otherwise than with 0 is not kept."""
    monkeypatch.setenv("KERNBENCH_CACHE", str(tmp_path / "cache"))
    forget_executed()
    shell, config, codes = Shell(plugins), configure(plugins, "tiny"), iter([1, 0, 99])

    def make() -> int:
        print("printed")
        shell.warn("by hand.")
        warnings.warn("by warnings.", KernbenchWarning, stacklevel=1)
        return next(codes)

    seen = []
    for _ in range(3):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            code = shell.replay("made up", {"a": 1}, config, make)
        out, err = capsys.readouterr()
        assert out == "printed\n"
        seen.append((code, sorted(str(each.message) for each in told), "from the cache" in err, "by hand" in err))
    assert seen == [
        (1, ["by warnings."], False, True),
        (0, ["by warnings."], False, True),
        (0, ["by hand.", "by warnings."], True, False),
    ]
