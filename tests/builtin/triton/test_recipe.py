"""What a run of a script keeps of itself: run again, compared, and told on pages; and words for its data."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import kernbench as kb
from kernbench_builtin.pages.plugin import REPORT_SECTIONS
from kernbench_builtin.pages.report.run_section import command
from kernbench_builtin.pages.web.saved_site import SavedSite
from kernbench_builtin.triton.recipe import data_words
from kernbench_core.cli import main
from kernbench_core.compute.on_demand import HostReads
from kernbench_core.plugins import Plugins
from tests.builtin.triton.kernels import scaling

SCRIPT = """
import sys
import numpy as np
import triton
import triton.language as tl
from beside import TIMES

@triton.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)

@triton.jit
def fill_kernel(x_ptr, value, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), value)

def main(n, block):
    x = np.ones(n, np.float32)
    for _ in range(TIMES):
        scale_kernel[(triton.cdiv(n, block),)](x, x, n, BLOCK=block, num_warps=4)
    fill_kernel[(1,)](x, 1.5, BLOCK=16)
    print("last", x[-1], sys.argv[1:])

if __name__ == "__main__" and sys.argv[1] != "0":
    main(int(sys.argv[1]), int(sys.argv[2]))
"""

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], plugins: Plugins) -> Call:
    """Give a function that does what `kernbench` does beside a script; it gives code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "beside.py").write_text("TIMES = 2\n")
    (tmp_path / "scale.py").write_text(SCRIPT)

    def run(*args: str) -> tuple[int, str, str]:
        code = main(args, plugins)
        __import__("sys").modules.pop("beside", None)
        return code, *capfd.readouterr()

    return run


def manifest(folder: str) -> dict[str, object]:
    """Read the manifest in a folder."""
    found: dict[str, object] = json.loads(Path(folder, "manifest.json").read_text())
    return found


def test_the_manifest_says_what_ran(call: Call) -> None:
    """Script, arguments, and each kernel with grid, constants and arguments; equal launches are counted."""
    assert call("triton", "scale.py", "--topology", "tiny", "--out", "a", "-q", "100", "64")[0] == 0
    found = manifest("a")
    bench = found["bench"]
    assert isinstance(bench, dict)
    assert (bench["file"], bench["given"], list(bench["modules"])) == ("bench/scale.py", "scale.py", ["beside.py"])
    assert found["params"] == {"arguments": "100 64", "points": None}
    array = "float32[100]"
    assert bench["launches"] == [
        {
            "kernel": "scale_kernel", "grid": [2, 1, 1], "constexprs": {"BLOCK": 64},
            "arguments": {"x_ptr": array, "y_ptr": array, "n": 100}, "hints": {"num_warps": 4}, "count": 2,
        },
        {
            "kernel": "fill_kernel", "grid": [1, 1, 1], "constexprs": {"BLOCK": 16},
            "arguments": {"x_ptr": array, "value": 1.5}, "hints": {}, "count": 1,
        },
    ]  # fmt: skip
    assert Path("a/bench/scale.py").read_text() == SCRIPT


def test_a_script_is_run_again_from_its_folder(call: Call) -> None:
    """With its arguments, whatever became of the script: the same op log; from what --json printed with --trust."""
    call("triton", "scale.py", "--topology", "tiny", "--set", "cube.pes=2", "--out", "a", "-q", "100", "64")
    sha256 = manifest("a")["op_log_sha256"]
    Path("scale.py").write_text("1 / 0")
    Path("beside.py").unlink()
    code, out, errors = call("rerun", "a")
    assert (code, errors) == (0, "")
    assert out == f"last 4.0 ['100', '64']\nsame op log: {sha256} (14 ops)\n"
    assert call("rerun", "a/manifest.json")[0] == 0
    Path("scale.py").write_text(SCRIPT)
    Path("beside.py").write_text("TIMES = 2\n")
    Path("j.json").write_text(call("triton", "scale.py", "--topology", "tiny", "--json", "100", "64")[1])
    assert call("rerun", "j.json", "--trust")[0] == 0
    again = kb.rerun("a")
    assert again.same
    assert again.result.topology == "tiny"
    assert again.result.manifest["bench"]["launches"] == manifest("a")["bench"]["launches"]  # type: ignore[index]


def test_what_cannot_be_run_again_says_why_and_what_can(call: Call, plugins: Plugins) -> None:
    """A script or a module that changed or is gone, one that launches nothing now, and what no script launched."""
    call("triton", "scale.py", "--topology", "tiny", "--out", "a", "-q", "100", "64")
    shutil.copytree("a", "b")
    anyway = "To run the script as it is now: kernbench triton scale.py -- 100 64\n"
    Path("b/bench/scale.py").write_text(SCRIPT + "\n")
    code, out, errors = call("rerun", "b")
    assert (code, out) == (2, "")
    assert re.fullmatch(
        rf"error: the script at 'b/bench/scale.py' must have SHA-256 \w{{12}}…, not \w{{12}}…; restore the file that "
        rf"the manifest was made with.\n{re.escape(anyway)}",
        errors,
    )
    Path("b/bench/scale.py").unlink()
    told = "the script must be at 'b/bench/scale.py'; put the file there, or run with --out to keep a copy."
    assert call("rerun", "b") == (2, "", f"error: {told}\n{anyway}")
    found = manifest("a")
    found["params"] = {"arguments": "0 64", "points": None}
    Path("a/manifest.json").write_text(json.dumps(found))
    code, _, errors = call("rerun", "a")
    told = "must launch kernels, as it did, and launched none; give it the files and variables that it read then."
    assert (code, errors) == (2, f"error: scale.py {told}\n")
    found["params"] = {"arguments": "'0", "points": None}
    Path("a/manifest.json").write_text(json.dumps(found))
    told = "the arguments of a script must be as a run wrote them, but there is no closing quotation; restore the"
    assert call("rerun", "a") == (2, "", f"error: {told} manifest.\n")
    x = np.ones(4, np.float32)
    with kb.triton("tiny", out="held", plugins=plugins):
        scaling()[(1,)](x, x, 4, BLOCK=4)
    code, _, errors = call("rerun", "held")
    assert (code, errors) == (
        2,
        "error: a run of kb.triton cannot be run again from its manifest, as its caller's own code launched the "
        "kernels; put that into a file, and run it by kernbench triton FILE.py --out DIR.\n",
    )


def test_a_module_is_run_again_where_it_is_trusted(call: Call) -> None:
    """By its name: it may lie anywhere."""
    assert call("triton", "--topology", "tiny", "--out", "a", "-q", "-m", "scale", "100", "64")[0] == 0
    told = "the manifest names the module 'scale', which may do anything; look at it, and give --trust to run it."
    assert call("rerun", "a") == (2, "", f"error: {told}\n")
    code, out, _ = call("rerun", "a", "--trust")
    assert (code, out.splitlines()[-1].split(":")[0]) == (0, "same op log")


def test_diff_tells_what_of_two_scripts_is_otherwise(call: Call) -> None:
    """Arguments, grid, constants, kernels, and the text; with several values all of them."""
    for name, block in (("a", "64"), ("b", "32")):
        call("triton", "scale.py", "--topology", "tiny", "--out", name, "-q", "100", block)
    out = call("diff", "a", "b")[1]
    assert (
        " changed: parameter arguments: 100 64 → 100 32; kernel scale_kernel BLOCK: 64 → 32; kernel scale_kernel grid: "
        "2x1x1 → 4x1x1 moved: "
    ) in " ".join(out.split())
    Path("scale.py").write_text(SCRIPT.replace("    fill_kernel[", "    x[:] = 0  # fill_kernel["))
    call("triton", "scale.py", "--topology", "tiny", "--out", "c", "-q", "100", "64")
    found = json.loads(call("diff", "a", "c", "--json")[1])
    assert [(each["sort"], each["name"]) for each in found["causes"]] == [
        ("launches", "fill_kernel launches"), ("sources", "scale.py"), ("sources", "scale.py:fill_kernel"),
    ]  # fmt: skip
    assert "+    x[:] = 0  # fill_kernel[(1,)](x, 1.5, BLOCK=16)" in found["sources"][0]["lines"]


def test_pages_say_which_script_ran(call: Call, plugins: Plugins) -> None:
    """The title of a report and its command name script, kernels and arguments; a module's too."""
    call("triton", "scale.py", "--topology", "tiny", "--out", "a", "--report", "a.html", "-q", "100", "64")
    assert "<title>scale.py on tiny (scale_kernel, fill_kernel) – kernbench</title>" in Path("a.html").read_text()
    call("report", "a", "-o", "b.html")
    assert "<title>a: scale.py (scale_kernel, fill_kernel) – kernbench</title>" in Path("b.html").read_text()
    again = "kernbench triton --topology tiny scale.py -- 100 64"
    assert f'<pre class="command">{again}</pre>' in Path("b.html").read_text()
    index = SavedSite(Path(), plugins.of(REPORT_SECTIONS)).answer("/", {})
    assert index is not None
    assert "scale.py (scale_kernel, fill_kernel) <span class=\"small\">arguments=100 64 </span>" in index.body.decode()
    words = ("triton", "--topology", "tiny", "--points", "3", "--seed", "2", "--json", "-m", "scale", "100", "64")
    told = command(json.loads(call(*words)[1])["result"])
    assert told == "kernbench triton --topology tiny --seed 2 --points 3 -m scale 100 64"


def test_words_for_what_a_script_read(call: Call) -> None:
    """They are of scripts, and no others: what is not compared, and how often it was computed."""
    out = call("triton", "scale.py", "--topology", "tiny", "100", "64")[1]
    told = "data is for the script to check; what it read was computed twice, alike"
    assert out.count(told) == 2
    assert f"{told}\n" in out and f"; {told}.\n" in out
    assert "rt.check" not in out and "host reads" not in out
    out = call("triton", "scale.py", "--topology", "tiny", "-q", "100", "64")[1]
    assert out.endswith(f"{told}\n")
    for reads, rest in (
        (HostReads(1, 1), "what it read was computed twice, alike"),
        (HostReads(3, 2), "of 3 arrays that it read 2 were computed twice, alike"),
        (HostReads(3), "what it read was computed once"),
        (HostReads(), "nothing that it read was left to compute"),
    ):
        assert data_words(reads) == f"data is for the script to check; {rest}"


def test_files_that_are_scripts_say_how_to_run_them(call: Call) -> None:
    """Before anything in them runs; those with a bench are benches."""
    told = (
        "error: 'scale.py' is a script written in Triton, which has no bench(rt, …); run it by 'kernbench triton "
        "scale.py', or a kernel of it alone by 'kernbench run scale.py:NAME' (scale_kernel, fill_kernel).\n"
    )
    for name in ("list", "run"):
        assert call(name, "scale.py") == (2, "", told)
    Path("plain.py").write_text(f"{SCRIPT}\nmain(100, 64)\n")  # which its kernels cannot be had without
    told = "'plain.py' is a script written in Triton, which has no bench(rt, …); run it by 'kernbench triton plain.py'."
    assert call("list", "plain.py") == (2, "", f"error: {told}\n")
    Path("both.py").write_text("import triton\ndef bench(rt):\n    '''Do nothing.'''\n")
    assert call("list", "both.py") == (0, "both\n  Do nothing.\n  from both.py\n\nIt has no parameters.\n", "")


def test_races_stand_in_a_line_of_their_own(call: Call) -> None:
    """Before all else in the verdict, with what orders them in Triton; of a kernel alone, too, and no line of none."""
    racing = SCRIPT.replace("tl.arange(0, BLOCK), value)", "0, tl.load(x_ptr) + value)")
    Path("race.py").write_text(racing.replace("fill_kernel[(1,)]", "fill_kernel[(4,)]"))
    verdict = call("triton", "race.py", "--topology", "tiny", "100", "64")[1].split("\n\n")[-1].splitlines()
    assert verdict[0] == (
        "2 RACES, the first: tl.load and tl.store of x_ptr[0] (race.py:15) have no order: make it right first; "
        "tl.atomic_add where programs add to one place, or a launch in between, orders them."
    )
    assert verdict[1].startswith("kernel ") and verdict[1].endswith("computed twice, alike.")
    params = ("-p", "x_ptr=zeros:f32:4", "-p", "value=1", "-p", "BLOCK=4", "--grid", "4")
    out = call("run", "race.py:fill_kernel", *params, "--topology", "tiny")[1]
    assert "2 RACES, the first: " in out and "tl.send" not in out
    assert "RACE" not in call("triton", "scale.py", "--topology", "tiny", "100", "64")[1]


def test_a_narrow_window_cuts_places_and_no_times(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the launches' lines: a place keeps its ends."""
    monkeypatch.setenv("COLUMNS", "66")
    lines = call("triton", "scale.py", "--topology", "tiny", "100", "64")[1].splitlines()
    launch = next(line for line in lines if line.startswith("scale_kernel"))
    assert re.fullmatch(r"scale_kernel +2x1x1 +[\d.]+ [un]s +\S+…\S+ +[\d.]+% +[\d.]+ GB/s", launch)
    assert len(launch) <= 66


def test_a_script_that_failed_is_said_to_have_before_all_else(call: Call) -> None:
    """By an exception or its exit code, wherever data is spoken of; one that exits with 0 did not fail."""
    Path("ends.py").write_text(f"{SCRIPT}\nif len(sys.argv) > 3: sys.exit(int(sys.argv[3]))\nassert not sys.argv")
    code, out, _ = call("triton", "ends.py", "--topology", "tiny", "--out", "run", "100", "64")
    first = "THE SCRIPT FAILED, AssertionError at ends.py:28: make it right first."
    assert code == 1 and out.split("\n\n")[-1].splitlines()[0] == first
    assert call("explain", "run")[1].splitlines()[1] == first
    for end, told in ((3, ", THE SCRIPT FAILED, exit code 3"), (0, " computed twice, alike")):
        code, out, _ = call("triton", "ends.py", "--topology", "tiny", "-q", "100", "64", str(end))
        assert code == end and out.endswith(f"{told}\n")


def test_kernels_are_called_as_in_their_script(call: Call) -> None:
    """Not as within what is compiled around them: a comparison names their sources so."""
    code, out, _ = call("triton", "scale.py", "--topology", "tiny", "--json", "100", "64")
    named = [each["name"] for each in json.loads(out)["result"]["functions"]]
    assert code == 0 and sorted(named) == ["fill_kernel", "scale_kernel"]


def test_a_script_without_data_takes_the_same_time(call: Call) -> None:
    """Its loops load ahead as with data; its arrays stay as they are, and it says so, also where the script minds."""
    looping = """
@triton.jit
def add_up(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for at in range(0, n, BLOCK):
        total += tl.load(x_ptr + at + tl.arange(0, BLOCK))
    tl.store(y_ptr + tl.arange(0, BLOCK), total)

x, y = np.ones(8192, np.float32), np.zeros(1024, np.float32)
add_up[(1,)](x, y, 8192, BLOCK=1024)
assert len(sys.argv) == 1 or y[0] == 8
"""
    Path("sums.py").write_text(SCRIPT.partition("@triton")[0] + looping)
    said, told = "no data was computed: arrays are as the script made them (--no-data)", []
    for more in ([], ["--no-data"], ["--no-data", "sums.py", "strict"]):
        words = ["triton", "--topology", "tiny", "-q", *more]
        told.append(call(*words, *([] if "sums.py" in more else ["sums.py"])))
    (_, with_data, _), (code, without, _), (failed, minds, _) = told
    time = with_data.partition(",")[0]
    assert (code, without) == (0, f"{time}, {said}\n")
    assert (failed, minds) == (1, f"{time}, THE SCRIPT FAILED, AssertionError at sums.py:18; {said}\n")
