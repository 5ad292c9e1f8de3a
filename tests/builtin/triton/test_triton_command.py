"""`kernbench triton`: scripts and modules as they are, held against the same launches in Python."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import kernbench as kb
from kernbench_core.cli import main
from kernbench_core.plugins import Plugins
from kernbench_core.runs.progress import ProgressDisplay
from tests.builtin.triton.kernels import scaling

SCRIPT = """
import sys
import numpy as np
import triton
import triton.language as tl
import beside

@triton.autotune(configs=[triton.Config({"BLOCK": block}) for block in (64, 256)], key=["n"])
@triton.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, x * 2 * 1, mask=at < n)

if __name__ == "__main__":
    x = np.ones(100, np.float32)
    for _ in range(beside.TIMES):
        scale_kernel[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, x, 100)
    print("found", x[0], sys.argv[1:])
    eval(sys.argv[-1])
"""

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], plugins: Plugins) -> Call:
    """Give a function that does what `kernbench triton` does, beside a script; it gives code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "beside", raising=False)  # of another test's folder
    (tmp_path / "beside.py").write_text("TIMES = 3\n")
    (tmp_path / "scale.py").write_text(SCRIPT)

    def run(*args: str) -> tuple[int, str, str]:
        before = sys.argv, list(sys.path), sys.modules["__main__"]
        code = main(("triton", *args), plugins)
        sys.modules.pop("beside", None)
        assert (sys.argv, sys.path, sys.modules["__main__"]) == before
        return code, *capfd.readouterr()

    return run


def test_a_script_is_run_with_its_arguments(call: Call) -> None:
    """Its launches take what they take in Python; its output goes where it does, with --json to stderr."""
    code, out, errors = call("scale.py", "--topology", "tiny", "--lr", "0.1", "--json", "None")
    assert code == 0
    assert errors == "found 8.0 ['--lr', '0.1', 'None']\n"
    found = json.loads(out)
    block = int(found["tunings"][0]["best"].split(",")[0].removeprefix("BLOCK: "))
    x = np.ones(100, np.float32)
    with kb.triton("tiny") as sim:
        for _ in range(3):
            scaling()[(-(-100 // block),)](x, x, 100, BLOCK=block)
    assert found["schema"] == "kernbench.triton/1"
    assert [each["config"].split(",")[0] for each in found["tunings"][0]["trials"]] == ["BLOCK: 64", "BLOCK: 256"]
    assert found["tunings"][0]["key"] == {"n": 100}
    assert [each["time_ns"] for each in found["result"]["launches"]] == [each.time_ns for each in sim.launches]


def test_the_page_has_a_line_for_each_launch(call: Call) -> None:
    """And their total, what autotune chose, and every configuration when that is asked for."""
    code, out, _ = call("--topology", "tiny", "scale.py", "--autotune", "all", "None")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "found 8.0 ['None']"
    assert lines[1] == "scale.py on tiny   arguments=None"
    launches = [line.split() for line in lines if line.startswith("scale_kernel ")]
    assert len(launches) == 3
    assert all(line[-1] == "GB/s" for line in launches)
    assert any(line.startswith("3 launches: ") and line.endswith(" in kernels") for line in lines)
    assert "autotune scale_kernel(n=100)" in lines
    assert lines[-1].startswith("more: ")
    assert sum(line.startswith("* BLOCK") for line in lines) == 1


@pytest.mark.parametrize(
    ("last", "code", "told"),
    [
        ("sys.exit(7)", 7, ""),
        ("sys.exit('no more')", 1, "no more\n"),
        ("sys.exit()", 0, ""),
    ],
)
def test_the_exit_code_of_a_script_is_kept(call: Call, last: str, code: int, told: str) -> None:
    """What it wrote on ending is told, and its launches are summed up."""
    found, out, errors = call("scale.py", "--topology", "tiny", "-q", last)
    assert (found, errors) == (code, told)
    assert "scale.py on tiny: " in out


def test_what_a_script_raises_is_told_from_its_own_lines_on(call: Call) -> None:
    """As Python tells it; a kernel's fault is kernbench's sentence, with the kernel's line."""
    code, out, errors = call("scale.py", "--topology", "tiny", "-q", "1 / 0")
    assert code == 1
    assert errors.splitlines()[:2] == ["Traceback (most recent call last):", '  File "scale.py", line 20, in <module>']
    assert errors.splitlines()[-1] == "ZeroDivisionError: division by zero"
    assert "scale.py on tiny: " in out
    code, out, errors = call("scale.py", "--topology", "tiny", "-q", "scale_kernel[(4,)](x, x, 200)")
    assert code == 6
    assert errors.startswith("error: tl.load at scale.py:12 must stay inside tensor 'x_ptr' of shape (100,), and ")
    code, out, errors = call("scale.py", "--topology", "tiny", "scale_kernel.fn.fn()")
    assert code == 1
    assert "TypeError: " in errors
    code, out, errors = call("scale.py", "--topology", "tiny", "__import__('triton.experimental')")
    assert code == 1
    assert errors.splitlines()[-2:] == [
        "ModuleNotFoundError: No module named 'triton.experimental'",
        "kernbench has those modules and names of Triton's that kernels need, and not this one.",
    ]


def test_options_of_the_script_are_its_own(call: Call) -> None:
    """Those that kernbench has nothing like, and behind -- all."""
    code, out, _ = call("scale.py", "--topology", "tiny", "-q", "--size=3", "--", "--topolgy", "--verify-data", "0")
    assert code == 0 and "['--size=3', '--topolgy', '--verify-data', '0']" in out


def test_a_script_is_asked_what_if(call: Call) -> None:
    """Its launches are looked at by the result alone; where a script looks at a time, too, that is told."""
    code, out, _ = call("scale.py", "--topology", "tiny", "--what-if", "0")
    assert code == 0 and "if this were faster " in out
    launch = "scale_kernel[lambda meta: (1,)](x, x, 64)"
    for looks in (f"print({launch}.time_ns)", f"triton.testing.do_bench(lambda: {launch})"):
        code, out, _ = call("scale.py", "--topology", "tiny", "--what-if", looks)
        assert (looks, code) == (looks, 0) and "if this were faster " in out
        told = out.replace("\n", " ")
        assert "the program asked for the figures of a launch at " in told and "stays as it was" in told


def test_bad_command_lines(call: Call) -> None:
    """A sentence each."""
    for args, sentence in (
        ((), "kernbench triton must be followed by a script or by -m MODULE; name one."),
        (("n.py",), "the script must be a .py file that is there, not 'n.py'; name a file, or a module by -m MODULE."),
        (("-m", "none"), "-m must be followed by a module that can be imported, not 'none'; install it."),
        (("-m",), "option -m must be followed by a module. See 'kernbench triton --help'."),
        (("--links", "all", "scale.py"),
         "--links must be given with --json or --out; add one, or leave out --links all."),
        (("scale.py", "--topolgy", "tiny"), "No such option '--topolgy'. Did you mean '--topology'? Write -- before "
         "the options of the script. See 'kernbench triton --help'."),
        (("--verify-data=1", "scale.py"), "No such option '--verify-data'. It is one of kernbench run. Write -- before "
         "the options of the script. See 'kernbench triton --help'."),
        (("-q", "-v", "scale.py"), "options -q and -v exclude each other; give one of them."),
    ):
        code, out, errors = call(*args)
        assert (code, out, errors) == (2, "", f"error: {sentence}\n"), args
    (Path("empty.py")).write_text("print(__name__)")
    assert call("empty.py") == (0, "__main__\nno kernel was launched: there is nothing to time\n", "")
    assert json.loads(call("--json", "empty.py")[1])["notes"] == ["no kernel was launched: there is nothing to time"]


def test_a_file_with_a_bench_is_one_of_another_command(call: Call) -> None:
    """Where it launches nothing itself; a function of that name may also be the script's own."""
    Path("my relu.py").write_text("def bench(rt, n: int = 4):\n    pass\n")
    assert call("my relu.py") == (
        2, "", "error: 'my relu.py' has a bench(rt, …), and launches nothing itself; run it by 'kernbench run 'my "
        "relu.py''.\n",
    )  # fmt: skip
    Path("own.py").write_text("def bench(size):\n    pass\n")
    assert call("own.py") == (0, "no kernel was launched: there is nothing to time\n", "")


def test_a_module_is_run_with_all_that_is_behind_it(call: Call) -> None:
    """Options of its own that kernbench has as well are the module's."""
    code, out, _ = call("--topology", "tiny", "-m", "scale", "-q", "--json", "sys.exit(5)")
    assert code == 5
    assert out.splitlines()[0] == "found 8.0 ['-q', '--json', 'sys.exit(5)']"
    assert "scale on tiny" in out


def test_a_terminal_shows_how_far_a_script_is(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step of its run is told; at the end the line is gone, and the cursor is there again."""
    terminal, steps = io.StringIO(), []
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(ProgressDisplay, "update", lambda _, progress: steps.append(progress.phase))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    assert call("scale.py", "--topology", "tiny", "0")[0] == 0
    assert {"building", "bench", "summing"} <= set(steps)
    assert "scale.py" in terminal.getvalue() and "\x1b[?25h" in terminal.getvalue()
    steps.clear()
    assert call("-q", "scale.py", "--topology", "tiny", "0")[0] == 0 and not steps
