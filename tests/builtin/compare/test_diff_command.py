"""`kernbench diff`: what moved, ranked; an exit code; and a sentence for what cannot be compared."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import kernbench_core as kb
from kernbench_builtin.compare.limit import SlowerLimit
from kernbench_core.cli import main
from kernbench_core.plugins import Plugins
from kernbench_core.runs.result import json_text
from kernbench_core.spread import NOT_KNOWN, TimeSpread
from tests.conftest import forget_executed

SIZE = {"n": 64}
LATER = {"host.pcie.latency": "301 ns"}
TOTAL = "total time 6.596 us → 6.61 us, +14 ns (+0.21 %)"
Diff: TypeAlias = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def saved(plugins: Plugins, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with runs: folders `a` and `b`, of which b is 14 ns slower, and files of --json."""
    folder = tmp_path_factory.mktemp("saved")
    a = kb.run("vector-add", "tiny", SIZE, explain=True, out=folder / "a", plugins=plugins)
    kb.run("vector-add", "tiny", SIZE, set=LATER, explain=True, out=folder / "b", plugins=plugins)
    (folder / "a.json").write_text(json_text(a.to_json()))
    return folder


@pytest.fixture
def diff(
    plugins: Plugins, saved: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Diff:
    """Give what calls the command in the folder of saved runs, and returns exit code, stdout and stderr."""
    monkeypatch.chdir(saved)

    def call(*words: str) -> tuple[int, str, str]:
        code = main(["diff", *words], plugins)
        return code, *capsys.readouterr()

    return call


def limiter(run: Path) -> str:
    """Return what a saved run says that limits it."""
    found = json.loads((run / "result.json").read_text())["verdict"]["limiter"]["sentence"]
    assert found.startswith("the slowest PE spends ")
    return str(found)


def test_two_folders(diff: Diff, saved: Path) -> None:
    """The wires of the key that was set before all others, and last the verdict; nothing is missing."""
    code, out, err = diff("a", "b")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:4] == ["A  a: vector-add on tiny", "B  b: vector-add on tiny", "", "phases, 3 moved"]
    at = lines.index(TOTAL)
    assert lines[at - 1 : at + 2] == ["", TOTAL, NOT_KNOWN]
    assert limiter(saved / "a") == limiter(saved / "b")
    verdict = " ".join(map(str.strip, lines[at + 2 :]))
    assert verdict.startswith("changed: configuration host.pcie.latency: 300 ns → 301 ns moved: host to device ")
    assert verdict.endswith(f" before and after: {limiter(saved / 'a')}")
    at = lines.index("links, 2 moved")
    assert lines[at + 1 : at + 3] == [
        "  2 pcie wires, each latency 300 ns → 301 ns, +1 ns (+0.33 %)",
        "    host->sip0.io0.pcie_ep, sip0.io0.pcie_ep->host",
    ]  # fmt: skip
    assert "critical path, 6 moved" in lines and "not compared" not in out
    assert max(map(len, lines)) <= 80


def test_the_object_of_json(diff: Diff) -> None:
    """Everything that moved, and the whole critical path before and after."""
    code, out, _ = diff("a", "b", "--json", "--fail-above", "1 us")
    found = json.loads(out)
    assert code == 0
    assert {key: found[key] for key in ("schema", "same", "fail_above", "fails", "notes", "unknown", "causes")} == {
        "schema": "kernbench.diff/1", "same": False, "fail_above": "1 us", "fails": False, "notes": [], "unknown": {},
        "causes": [{"sort": "configuration", "name": "host.pcie.latency", "before": "300 ns", "after": "301 ns"}],
    }  # fmt: skip
    assert found["change_ns"] == found["after"]["total_ns"] - found["before"]["total_ns"] == 14.0
    for side in ("before", "after"):
        assert sum(found["critical_path"][side]["path"].values()) == found[side]["total_ns"]
    assert found["rows"][0] == {
        "sort": "total", "name": "time_ns", "about": "",
        "figures": {"time_ns": {**{side: found[side]["total_ns"] for side in ("before", "after")}, "change": 14.0}},
    }  # fmt: skip


@pytest.mark.parametrize("other", ["a", "a.json", "a/manifest.json"])
def test_a_run_is_the_same_as_itself_however_it_was_saved(diff: Diff, other: str) -> None:
    """A folder, the manifest in it, and a file of --json, which says which links it does not list."""
    code, out, err = diff("a", other, "--fail-above", "0%")
    told = "" if "json" not in other or "/" in other else (
        "\nnot compared: kinds of links, links (not known of B: run it with --out, or\n  with --links all)\n\n"
    )  # fmt: skip
    same = "the same: 6.596 us, and no figure moved\n"
    assert (code, out, err) == (0, f"A  a: vector-add on tiny\nB  {other}: vector-add on tiny\n{told}{same}", "")


def test_a_rerun_and_figures_are_results_too(diff: Diff, saved: Path) -> None:
    """As `rerun --json` prints one, and as golden files of tests hold them, which are called as they were given."""
    from kernbench_builtin.compare import figures_of_saved

    whole = json.loads((saved / "a.json").read_text())
    (saved / "rerun.json").write_text(json.dumps({"schema": "kernbench.rerun/1", "same": True, "result": whole}))
    figures = figures_of_saved(saved / "a").to_json()
    (saved / "figures.json").write_text(json.dumps(figures))
    (saved / "golden.json").write_text(json.dumps({"schema": "kernbench.golden/1", "test": "t", "figures": figures}))
    for name in ("rerun.json", "figures.json", "golden.json"):
        code, out, _ = diff("a", name, "-q")
        assert (code, out) == (0, f"a → {name}: the same: 6.596 us, and no figure moved\n")
    assert "not compared" not in diff("a", "golden.json")[1]


@pytest.mark.parametrize(
    ("words", "code", "err"),
    [
        (("a", "b", "--fail-above", "14 ns"), 0, ""),
        (("a", "b", "--fail-above", "13.99 ns"), 1,
         f"error: B must not be slower than A by more than 13.99 ns: {TOTAL}.\n"),
        (("a", "b", "--fail-above", "0.22 %"), 0, ""),
        (("a", "b", "--fail-above", "0.21%"), 1,
         f"error: B must not be slower than A by more than 0.21%: {TOTAL}.\n"),
        (("b", "a", "--fail-above", "0%"), 0, ""),
    ],
)  # fmt: skip
def test_slower_runs_fail(diff: Diff, words: tuple[str, ...], code: int, err: str) -> None:
    """Past the limit, and not at it; a faster one never does."""
    found = diff(*words, "-q")
    assert (found[0], found[2]) == (code, err)


def test_a_slower_run_within_the_spread_does_not_fail(diff: Diff, saved: Path) -> None:
    """The medians are 14 ns apart: spreads of 20 ns hide that, spreads of 10 ns do not."""
    for name, code in (("wide", 0), ("narrow", 1)):
        for side, total in (("a", 6596.0), ("b", 6610.0)):
            result = json.loads((saved / side / "result.json").read_text())
            half = {"wide": 10.0, "narrow": 5.0}[name]
            result["shake"] = {"total": TimeSpread(total, total - half, total + half, 8).to_json()}
            (saved / f"{side}.{name}.json").write_text(json.dumps(result))
        found = diff(f"a.{name}.json", f"b.{name}.json", "--fail-above", "5 ns")
        assert found[0] == code
        assert ("no difference shown" in found[1]) is (code == 0)
        found = diff("a", f"b.{name}.json", "--fail-above", "5 ns", "-q")  # of which one alone was shaken
        told = "no difference shown within" if code == 0 else "beyond"
        line = f"a → b.{name}.json: {TOTAL}; {told} the spread of B, {2 * half:.0f} ns; A has no spread: run it with"
        assert (found[0], found[1]) == (code, f"{line} --shake\n")


def test_one_line_has_the_spread_of_both(diff: Diff) -> None:
    """And says whether the difference is beyond it."""
    words = ("vector-add", "--topology", "tiny", "-p", "n=64", "--b-set", "host.pcie.latency=400 ns", "--shake", "3")
    lines, (code, out, _) = diff(*words)[1].splitlines(), diff(*words, "-q")
    at = next(at for at, line in enumerate(lines) if line.startswith("total time "))
    assert code == 0 and out.endswith(f": {lines[at]}; {lines[at + 1]}\n")
    assert re.fullmatch(r"median .+ → .+, beyond the spread of .+ ns", lines[at + 1])


def test_one_line_breaks_at_blanks_in_a_terminal(diff: Diff, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which else breaks a number in two."""
    line = diff("a", "b", "-q")[1]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    told = diff("a", "b", "-q")[1]
    assert max(map(len, told.splitlines())) <= 40 and told.split() == line.split()


def test_a_bench_is_shaken_under_both(diff: Diff) -> None:
    code, out, _ = diff("vector-add", "--topology", "tiny", "-p", "n=64", "--b-set", "host.pcie.latency=400 ns",
                        "--shake", "3")  # fmt: skip
    (told,) = (line for line in out.splitlines() if line.startswith("median "))
    assert code == 0 and ", beyond the spread of" in told


def test_a_limit_of_no_time() -> None:
    """A share of nothing is nothing."""
    assert SlowerLimit("3%", share=0.03).allows(0.0, 0.0)
    assert not SlowerLimit("3%", share=0.03).allows(0.0, 1.0)


def test_a_bench_runs_now_under_both(diff: Diff) -> None:
    """B has all that A has, but for what is otherwise, which is its name."""
    a = ("--topology", "tiny", "-p", "n=64", "-p", "dtype=f16", "--set", "cube.noc.bandwidth=200 GB/s")
    b = ("--b-set", "host.pcie.latency=301 ns", "--b-param", "n=65")
    code, out, _ = diff("vector-add", *a, *b, "--fail-above", "3%")
    assert code == 0
    lines = out.splitlines()
    assert lines[:2] == ["A  vector-add on tiny", "B  vector-add on tiny, host.pcie.latency=301 ns, n=65"]
    limiters = [line.partition("%")[0] for line in lines if line.startswith(("before: ", "after: "))]
    assert limiters == [f"{side} the slowest PE spends {share}" for side, share in (("before:", 49), ("after:", 53))]
    assert "changed: parameter n: 64 → 65; configuration host.pcie.latency: 300 ns → 301 ns" in " ".join(out.split())
    assert "what was run otherwise" not in lines
    assert "not compared" not in out


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--b-set", "cube.pess=2"), 3, "--set cube.pess=2: cube.pess must be a known key. Did you mean 'pes'?\n"),
        (("--b-param", "nn=2"), 2, "error: bench 'vector-add' has no parameter 'nn'; its parameters are: n, block, "
                                   "ahead, dtype, x, y. Did you mean 'n'?\n"),
    ],
)  # fmt: skip
def test_what_b_has_is_checked_before_a_runs(
    diff: Diff, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int, told: str
) -> None:
    """The run of A may be long."""
    monkeypatch.setattr("kernbench_core.host.session.GraphEngine.run", None)
    assert diff("vector-add", "--topology", "tiny", *words) == (code, "", told)


def test_runs_come_from_the_cache(
    diff: Diff, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugins: Plugins
) -> None:
    """With --cached, and nothing is simulated the second time; all that moved is the same."""
    monkeypatch.setenv("KERNBENCH_CACHE", str(tmp_path))
    forget_executed()
    words = ("vector-add", "--topology", "tiny", "-p", "n=64", "--b-param", "n=128", "--cached", "--json", "-q")
    first = diff(*words)
    monkeypatch.setattr("kernbench_core.host.session.GraphEngine.run", None)
    again = diff(*words)
    assert again[:2] == first[:2] and first[2] == ""
    assert re.fullmatch(r"(note: from the cache \(.*; what the program reads besides is not covered\.\n){2}", again[2])
    assert json.loads(first[1])["unknown"] == {}


def test_b_may_be_another_bench_machine_and_components(diff: Diff, saved: Path) -> None:
    """Each in the place of that of A."""
    (saved / "two.yaml").write_text("cube: {pes: 2}\n")
    (saved / "more.yaml").write_text("base: tiny\ncube: {noc: {bandwidth: 200 GB/s}}\n")
    (saved / "mine.py").write_text("def bench(rt, n: int = 4):\n    '''Do little.'''\n    rt.zeros((n,), 'f32')\n")
    words = ("--b-bench", "mine.py", "--b-topology", "more.yaml", "--b-components", "two.yaml", "--json")
    found = json.loads(diff("vector-add", "--topology", "tiny", "-p", "n=64", "--b-param", "n=8", *words)[1])
    assert found["notes"] == ["A and B ran different benches, vector-add and mine."]
    assert (found["after"]["name"], found["after"]["topology"]) == ("mine.py on more.yaml, two.yaml, n=8", "more.yaml")
    keys = {cause["name"] for cause in found["causes"] if cause["sort"] == "configuration"}
    assert keys == {"cube.pes", "cube.noc.bandwidth"}


MINE = """N = 4

def double(x_ptr, n, tl):
    at = x_ptr + tl.program_id(0) * n + tl.arange(0, n)
    tl.store(at, tl.load(at) * 2.0)


def bench(rt):
    x = rt.zeros((N * rt.n_pes,), "f32")
    rt.launch(double, x, N)
"""


def test_files_of_a_bench_are_compared(plugins: Plugins, tmp_path: Path, diff: Diff) -> None:
    """A constant of the file, which no kernel's source shows; a file that is a link to elsewhere is not read."""
    for name, text in (("a", MINE), ("b", MINE.replace("N = 4", "N = 8"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text(text)
        kb.run(tmp_path / name / "mine.py", "tiny", out=tmp_path / name / "out", plugins=plugins)
    heads = ["  --- mine.py", "  +++ mine.py", "  @@ -1,3 +1,3 @@"]
    told = ["the source of mine.py", *heads, "  -N = 4", "  +N = 8", "   "]
    a, b = (str(tmp_path / name / "out") for name in ("a", "b"))
    lines = diff(a, b)[1].splitlines()
    at = lines.index(told[0])
    assert lines[at : at + 7] == told
    kept = tmp_path / "b" / "out" / "bench" / "mine.py"
    kept.rename(tmp_path / "elsewhere.py")
    kept.symlink_to(tmp_path / "elsewhere.py")
    assert told[0] not in diff(a, b)[1].splitlines()
    kept.unlink()
    kept.write_text("changed = True\n")
    assert told[0] not in diff(a, b)[1].splitlines()


def test_files_of_benches_that_run_now_are_compared(tmp_path: Path, diff: Diff) -> None:
    """As they are now."""
    for name, text in (("a", MINE), ("b", MINE.replace("N = 4", "N = 8"))):
        (tmp_path / f"{name}.py").write_text(text)
    lines = diff(f"{tmp_path}/a.py", "--topology", "tiny", "--b-bench", f"{tmp_path}/b.py")[1].splitlines()
    at = lines.index("the source of a.py → b.py")
    assert lines[at + 1 : at + 6] == ["  --- a.py", "  +++ b.py", "  @@ -1,3 +1,3 @@", "  -N = 4", "  +N = 8"]


def broken(saved: Path, name: str, **changed: Any) -> str:
    """Write the result of run a with other fields; return the name of the file."""
    whole = json.loads((saved / "a.json").read_text())
    (saved / name).write_text(json.dumps({**whole, **changed}))
    return name


def test_an_interrupted_run(diff: Diff, saved: Path) -> None:
    """It is compared as far as it came, which is said; a limit needs both ends."""
    name = broken(saved, "cut.json", interrupted=True, op_log_sha256=None)
    assert "\n\nA was interrupted: its figures are of what it did until then.\ntotal time " in diff(name, "b")[1]
    assert diff(name, "b", "--fail-above", "3%") == (
        2, "", "error: --fail-above must be given runs that ended, and one was interrupted; run it again.\n"
    )  # fmt: skip


def test_a_run_of_no_time(diff: Diff, saved: Path) -> None:
    """It has no share to be slower by."""
    nothing = dict.fromkeys(("host_to_device", "launch", "kernel", "device_to_host"), 0.0)
    name = broken(saved, "nothing.json", total_ns=0.0, phases=nothing)
    code, out, err = diff(name, "b", "-q", "--fail-above", "500%")
    assert (code, out.splitlines()[-1]) == (1, "nothing.json → b: total time 0 ns → 6.61 us, +6.61 us")
    assert err == "error: B must not be slower than A by more than 500%: total time 0 ns → 6.61 us, +6.61 us.\n"


def test_wrong_data_fail(diff: Diff, saved: Path) -> None:
    """A run is not compared without saying so."""
    code, out, _ = diff("a", broken(saved, "wrong.json", verified=False, wrong=1), "-q")
    assert (code, out.count("\n")) == (1, 1) and out.startswith("a → wrong.json: B gave wrong data; ")


BAD = [
    (("a",), "diff must be given a second run, not 'a' alone; give two saved runs, or a bench and changes for B, as "
             "--b-set KEY=VALUE."),
    (("a", "b", "c"), "diff must be given two saved runs, or one bench, not 3 names; leave some out."),
    (("a", "b", "--b-set", "x=1"), "--b-set applies only when diff runs a bench, not to two saved runs; leave it "
                                   "out."),
    (("a", "b", "-p", "n=1"), "-p applies only when diff runs a bench, not to two saved runs; leave it out."),
    (("a", "b", "--max-sim-time", "1 us"), "--max-sim-time applies only when diff runs a bench, not to two saved "
                                           "runs; leave it out."),
    (("a", "b", "--no-data"), "--no-data applies only when diff runs a bench, not to two saved runs; leave it out."),
    (("a", "b", "--fail-above", "3"), "option --fail-above must be a share or a time by which B may be slower, as '3%' "
                                      "or '50 ns', not '3'."),
    (("a", "b", "--fail-above", "-3%"), "option --fail-above must be a share or a time by which B may be slower, as "
                                        "'3%' or '50 ns', not '-3%'."),
    (("a", "gone"), "run 'gone' must be a folder that --out wrote, or a file that --json was written to, and is not "
                    "there."),
    (("a", "empty"), "run 'empty' must hold result.json, and does not; give a folder that --out wrote."),
    (("a", "m.json"), "run 'm.json' must be a saved result, not a manifest, which holds no results; make one by "
                      "kernbench rerun m.json --json > FILE."),
    (("a", "text"), "file 'text' must be whole JSON, and is cut off or changed; run it again with --out."),
    (("a", "list"), "file 'list' must hold a JSON object; run it again with --out."),
    (("a", "nan"), "file 'nan' must hold finite numbers, not NaN; run it again with --out."),
    (("a", "other"), "file 'other' must have schema 'kernbench.run/1', not 'kernbench.run/2'; a later kernbench wrote "
                     "it; use a newer kernbench."),
    (("a", "plan"), "file 'plan' must have schema 'kernbench.run/1', not 'kernbench.benches/1'; give a folder that "
                    "--out wrote."),
    (("a", "lines"), "file 'lines' must hold lines[0].ops as an integer, not 'four'; run it again with --out."),
    (("a", "uneven"), "file 'uneven' must hold links as columns of one length; run it again with --out."),
    (("a", "b", "--report", "x.txt"), "report 'x.txt' must end in .html; give such a name."),
]  # fmt: skip


@pytest.fixture(scope="module")
def strange(saved: Path) -> None:
    """Write what is no saved run beside those that are."""
    (saved / "empty").mkdir(exist_ok=True)
    shutil.copy(saved / "a" / "manifest.json", saved / "m.json")
    (saved / "text").write_text('{"schema": "kernbench.run/1", ')
    (saved / "list").write_text("[]")
    (saved / "nan").write_text('{"schema": "kernbench.run/1", "total_ns": NaN}')
    (saved / "plan").write_text('{"schema": "kernbench.benches/1"}')
    broken(saved, "other", schema="kernbench.run/2")
    broken(saved, "lines", lines=[{"file": "a.py", "line": 3, "text": "", "ops": "four", "ns": 1.0}])
    empty: dict[str, list[Any]] = {name: [] for name in ("kind", "gb_per_s", "latency_ns", "bytes", "deliveries",
                                                         "busy_ns", "waited_ns")}  # fmt: skip
    broken(saved, "uneven", links={"name": ["a"], **empty})


@pytest.mark.usefixtures("strange")
@pytest.mark.parametrize(("words", "told"), BAD)
def test_what_cannot_be_compared_is_told(diff: Diff, words: tuple[str, ...], told: str) -> None:
    """In a sentence, with exit code 2."""
    assert diff(*words) == (2, "", f"error: {told}\n")


def test_damaged_links_are_told(diff: Diff, saved: Path) -> None:
    """Cut off, or without what is compared."""
    shutil.copytree(saved / "a", saved / "cut", dirs_exist_ok=True)
    whole = (saved / "cut" / "links.npz").read_bytes()
    (saved / "cut" / "links.npz").write_bytes(whole[:-30])
    told = "must be whole, as a run wrote it, and is damaged (BadZipFile); run it again with --out."
    assert diff("a", "cut") == (2, "", f"error: file 'cut/links.npz' {told}\n")
    (saved / "cut" / "links.npz").unlink()
    assert "not compared: kinds of links, links (not known of B: run it with --out" in diff("a", "cut")[1]


def test_a_page_of_both(diff: Diff, saved: Path, tmp_path: Path) -> None:
    """The terminal says what it says without."""
    page = tmp_path / "page.html"
    assert diff("a", "b", "--report", str(page)) == diff("a", "b")
    assert re.findall(r'<h3 class="of">(.*?)</h3>', page.read_text())[:2] == ["a", "b"]


def test_a_page_of_runs_made_now(diff: Diff, tmp_path: Path) -> None:
    """With what they have otherwise as their names."""
    page = tmp_path / "page.html"
    assert diff("vector-add", "--topology", "tiny", "-p", "n=64", "--b-param", "n=128", "--report", str(page))[0] == 0
    names = re.findall(r'<h3 class="of">(.*?)</h3>', page.read_text())[:2]
    assert names == ["vector-add on tiny", "vector-add on tiny, n=128"]
