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
sys.exit(3 if sys.argv[-1] == "3" else 0)
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
        for name in ("beside", "pack", "pack.part", "flat"):  # each call stands for a process of its own
            sys.modules.pop(name, None)
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
        "run --topology tiny vector-add -p n=64",
        "run --topology tiny gemm -p M=32 --explain --tcm-map -v",
        "run --topology tiny gemm -p M=32 --json --links all",
        "triton --topology tiny scale.py 0",
        "triton --topology tiny --json scale.py 0",
        "triton --topology tiny --autotune all -v scale.py 0",
        "probe --dram --requests 16 --outstanding 1,4",
        "probe --traffic uniform --load 0.1 --warmup 10 --measure 20",
        "probe --topology tiny",
        "calibrate --check u280_hbm",
        "ccl all_reduce --ranks 2 -b 1K -e 2K --json",
    ],
)  # fmt: skip
def test_a_command_prints_the_same(call: Call, args: str) -> None:
    """And a line on stderr says that it is from the cache; of a script with --json nothing that went there."""
    words = args.split()
    at = words.index("--topology") if "--topology" in words else len(words)
    cached = [*words[:at], "--cached", *words[at:]]
    made, first, again = call(*words), call(*cached), call(*cached)
    assert apart(made[1]) == apart(first[1]) == apart(again[1])
    assert made[0] == first[0] == again[0] == 0
    assert re.fullmatch(f"{HIT}\n" if words[0] in ("run", "triton") else f"(?s).*{HIT}\n", again[2])
    assert re.sub("note: kept in the cache as .*", "", first[2]).strip() == made[2].strip()
    if words[0] in ("probe", "ccl"):
        setting = "mesh.link.latency=3 ns" if "--traffic" in words else "sip.ucie.latency=99 ns"
        assert "from the cache" not in call(*cached, "--set", setting)[2]


def test_a_sweep_takes_points_from_the_cache_when_it_is_asked_to(call: Call) -> None:
    """And says how many; unasked it runs them all."""
    args = ("sweep", "vector-add", "--topology", "tiny", "-p", "n=64,128", "-j", "1")
    made, again = call(*args, "--cached"), call(*args, "--cached")
    assert made[:2] == again[:2] == call(*args)[:2] and made[0] == 0
    assert "cache" not in made[2] + call(*args)[2]
    for found in (again, call(*args, "--cached", "-q")):
        assert re.fullmatch(f"note: 2 of 2 points, the first {HIT[6:]}\n", found[2])


def test_a_script_is_run_anew_for_any_change(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text, a module beside it, an argument, an option, what it is said to depend on; one that fails always."""

    def cached(*args: str) -> list[bool]:
        told = [call("triton", "--topology", "tiny", "--cached", *args) for _ in range(2)]
        assert [code for code, *_ in told] == [0, 0]
        return ["from the cache" in err for *_, err in told]

    depends = ("--depends", "$SCALE", "--depends", "*.csv")
    for change in (
        lambda: None,
        lambda: (tmp_path / "beside.py").write_text("TIMES = 2 + 1\n"),  # not as long: Python would take old bytecode
        lambda: (tmp_path / "scale.py").write_text(SCRIPT.replace("* 2", "* 3")),
        lambda: (tmp_path / "0").write_text("a file that an argument names"),
        lambda: monkeypatch.setenv("SCALE", "2"),
        lambda: (tmp_path / "new.csv").write_text(""),
    ):
        change()
        assert cached(*depends, "scale.py", "0") == [False, True]
    assert [cached("scale.py", *args) for args in (("0",), ("1", "0"))] == [[False, True]] * 2
    for _ in range(2):
        code, out, err = call("triton", "--topology", "tiny", "--cached", "scale.py", "3")
        assert code == 3 and "found 27.0" in out and "from the cache" not in err
    for module, file in (("pack.part", "pack/part.py"), ("pack", "pack/__main__.py"), ("flat", "flat.py")):
        (tmp_path / "pack").mkdir(exist_ok=True)
        (tmp_path / "pack/__init__.py").write_text("import triton\n")  # which is not imported to find it
        for text in ("print(1)", "print(1 + 1)"):
            (tmp_path / file).write_text(text)
            assert cached("-m", module) == [False, True]


def test_the_entries_are_listed_shown_and_pruned(call: Call, tmp_path: Path) -> None:
    args = ("run", "vector-add", "--topology", "tiny", "--cached", "-p", "n=64")
    assert re.fullmatch(r"note: kept in the cache as [0-9a-f]{12}\.\n", call(*args, "-v")[2])
    assert re.fullmatch(f"{HIT}\n", call(*args, "-q")[2]) and json.loads(call(*args, "--json")[1])["from_cache"] is True
    assert json.loads(call(*args[:-1], "n=65", "--json")[1])["from_cache"] is False
    listed = json.loads(call("cache", "list", "--json")[1])
    assert (listed["schema"], listed["most_bytes"]) == ("kernbench.cache-entries/2", 2 << 30)
    assert listed["bytes"] == sum(each["bytes"] for each in listed["entries"])
    run = listed["entries"][1]
    _, out, _ = call("cache", "list")
    assert re.search(rf"^{run['key'][:12]}  run +vector-add on tiny n=64 .* 20[-0-9]+ [0-9:]+$", out, re.MULTILINE)
    assert re.search(rf"\n\nentries: {len(listed['entries'])}, ", out)
    assert json.loads(call("cache", "show", run["key"][:6])[1]) == {"schema": "kernbench.cache-entry/2", **run}
    assert {"machine", "given", "code of kernbench_core"} < run["about"]["parts"].keys()
    assert call("cache", "prune", "--older", "1")[1].startswith("entries removed: 0 of 0 B; left: 2 of ")
    assert call("cache", "prune", "--all")[1].endswith("; left: 0 of 0 B\n")
    assert call("cache", "list")[1] == f"entries: 0, 0 B of at most 2 GiB, in {tmp_path / 'cache'}\n"


def test_wrong_options_and_folders_are_told(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for args, told in {
        "show abcd": "KEY must begin one stored key, not 0, as 'abcd' does; 'kernbench cache list' shows them.",
        "prune --keep apples": "option --keep must be a size, not 'apples'.",
        "prune --all --keep 1MB": "--all removes everything; leave out --keep and --older, or --all.",
    }.items():
        code, out, err = call("cache", *args.split())
        assert (code, out) == (2, "") and err.startswith(f"error: {told}")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    sentence = "error: the current folder must exist; change to another one.\n"
    assert call("probe", "--topology", "tiny", "--cached") == (2, "", sentence)


def test_what_a_run_depends_on_must_be_kept_somewhere(call: Call) -> None:
    """In the cache, or in a manifest; else nobody would look at it."""
    told = "--depends must be given with --cached, or --out or --json, whose manifest has it; add one, or leave out "
    run = ("run", "vector-add", "--topology", "tiny", "-p", "n=64", "-q", "--depends", "$SCALE")
    assert call(*run) == (2, "", f"error: {told}--depends.\n")
    for kept in ("--cached", "--json"):
        assert call(*run, kept)[0] == 0


def test_warnings_of_a_command_come_again(call: Call, capfd: pytest.CaptureFixture[str], plugins: Plugins) -> None:
    """Those of Python and those that the command writes, each once; what ends otherwise than with 0 is not kept."""
    shell, config, codes = Shell(plugins), configure(plugins, "tiny"), iter([1, 0, 99])

    def make() -> int:
        print("printed")
        shell.warn("by hand.")
        warnings.warn("by warnings.", KernbenchWarning, stacklevel=1)
        return next(codes)

    for code, by_warnings, told in (
        (1, ["by warnings."], "warning: by hand.\n"), (0, ["by warnings."], "warning: by hand.\n"),
        (0, ["by hand.", "by warnings."], f"{HIT}\n"),
    ):  # fmt: skip
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            assert shell.replay("made up", {"a": 1}, config, make) == code
        assert sorted(str(each.message) for each in heard) == by_warnings
        out, err = capfd.readouterr()
        assert out == "printed\n" and re.fullmatch(told, err)
