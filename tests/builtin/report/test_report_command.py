"""`kernbench report` and `run --report`: a whole page, or a sentence, an exit code and no file."""

from __future__ import annotations

import html
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_builtin.compare.result_form import FORM, faults
from kernbench_core.cli import main
from kernbench_core.plugins import Plugins, load_plugins, own_plugins

EXAMPLE = Path(__file__).parents[3] / "plugins_example"


@pytest.fixture(scope="module")
def saved(plugins: Plugins, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run."""
    folder = tmp_path_factory.mktemp("saved") / "run"
    kb.run("vector-add", "tiny", {"n": 64}, plugins=plugins, out=folder)
    return folder


def test_saved_runs_become_one_page(
    plugins: Plugins, saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each under the name that it was given by; what was there is replaced."""
    page = tmp_path / "page.html"
    page.write_text("old")
    assert main(["report", str(saved), str(saved), "-o", str(page)], plugins) == 0
    assert capsys.readouterr().out == f"{page}: 2 runs side by side\n"
    text = page.read_text()
    assert text.startswith("<!doctype html>") and text.rstrip().endswith("</html>")
    assert re.findall(r'<h3 class="of">(.*?)</h3>', text)[:2] == [str(saved), str(saved)]


def test_a_run_writes_its_page(plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a critical path, which the terminal is not asked for; result and op log are those of a run without."""
    page = tmp_path / "page.html"
    assert main(["run", "vector-add", "--topology", "tiny", "-p", "n=64", "--report", str(page)], plugins) == 0
    assert "where the time went" not in capsys.readouterr().out
    text = page.read_text()
    assert "Where the time went" in text and 'data-of="timeline"' in text
    bare = kb.run("vector-add", "tiny", {"n": 64}, plugins=plugins)
    assert str(bare.op_log_sha256) in text


@pytest.mark.parametrize("kept", [(), ("--out", "kept")])
def test_the_command_of_a_page_runs_it_again(
    plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    kept: tuple[str, ...],
) -> None:  # fmt: skip
    """Pasted into the folder in which it was given, with copies of the inputs elsewhere or without: the same op log."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "adds.py").write_text(
        "import numpy as np\nimport kernels\n\n\n"
        "def twice(rt, x: np.ndarray):\n"
        "    rt.launch(kernels.double, rt.tensor(x, name='x'), len(x), grid=(1,))\n"
    )
    (tmp_path / "mine" / "kernels.py").write_text(
        "def double(x, n, tl):\n    tl.store(x + tl.arange(0, n), tl.load(x + tl.arange(0, n)) * 2)\n"
    )
    np.save(tmp_path / "my x.npy", np.ones(24, np.float32))
    given = ["run", "mine/adds.py:twice", "--topology", "tiny", "-p", "x=my x.npy"]
    assert main([*given, *kept, "--report", "page.html"], plugins) == 0
    capsys.readouterr()
    page = (tmp_path / "page.html").read_text()
    told = re.findall(r'<pre class="command">(.*?)</pre>', page)
    program, *again = shlex.split(html.unescape(told[1]))
    assert (program, again) == ("kernbench", given)
    assert main([*again, "--json"], plugins) == 0
    assert f"<code>{json.loads(capsys.readouterr().out)['op_log_sha256']}</code>" in page


def both_store(x_ptr: Any, tl: Any) -> None:
    """Store where the others do, too."""
    tl.store(x_ptr + 0, tl.load(x_ptr + 0, shape=(8,)) + 1.0)


def racing_bench(rt: Any) -> None:
    """Have PEs race, get something wrong, report rows, and launch twice."""
    x = rt.tensor(np.zeros(8, np.float32), name="x")
    for _ in range(2):
        rt.launch(both_store, x)
    rt.check(x, np.full(8, 9.0, np.float32))
    rt.report(what="x", times=2)


def test_what_runs_write_has_the_form_that_pages_read(plugins: Plugins) -> None:
    """With everything that they may be asked for, hazards and wrong data too; and each field there is looked at."""
    asked: dict[str, Any] = {"explain": True, "tcm_map": True, "verify_data": True, "plugins": plugins}
    racing = kb.run(racing_bench, "tiny", **asked).to_json()
    assert racing["hazards"] and racing["failures"] and racing["rows"]
    gemm = kb.run("gemm-composite", "tiny", {"M": 128, "N": 128, "K": 128}, **asked).to_json()
    bare = kb.run("vector-add", "tiny", {"n": 64}, plugins=plugins).to_json()
    for each in (racing, gemm, bare):
        found = json.loads(json.dumps(each))
        assert [*faults(found)] == []
        for name in FORM:
            if found.get(name) is not None:
                assert next(faults({**found, name: object()})).startswith(f"{name} as ")


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("result.json", '{"schema"', "error: file '{run}/result.json' must be whole JSON, and is cut off or changed; "
         "run it again with --out.\n"),
        ("timeline.npz", "PK", None),
        ("machine.json", "{}", "error: file '{run}/machine.json': schema must be 'kernbench.machine/1', not None; "
         "run it again with --out.\n"),
    ],
)  # fmt: skip
def test_what_is_cut_off_is_told_and_nothing_written(
    plugins: Plugins, saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str,
    told: str | None,
) -> None:  # fmt: skip
    """One sentence, exit code 2; the page that was there stays."""
    run, page = tmp_path / "run", tmp_path / "page.html"
    run.mkdir()
    for file in ("result.json", "machine.json", "timeline.npz"):
        (run / file).write_bytes((saved / file).read_bytes())
    (run / name).write_text(text)
    page.write_text("old")
    assert main(["report", str(run), "-o", str(page)], plugins) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1 and str(run / name) in error
    if told is not None:
        assert error == told.format(run=run)
    assert page.read_text() == "old"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["page.html", "run"]


def test_a_page_that_cannot_be_written_is_told_before_the_run(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file for a folder, a folder, and a name that is read as something else."""
    (tmp_path / "no").write_text("")
    for options, told in (
        (["--report", str(tmp_path / "no/p.html")], f"report '{tmp_path}/no/p.html' must be in a folder, and "
         f"'{tmp_path}/no' is none; give another one."),
        (["--report", str(tmp_path)], f"report '{tmp_path}' must end in .html; give such a name."),
        (["--report", str(tmp_path / "t.tgz")], f"report '{tmp_path}/t.tgz' must end in .html; give such a name."),
    ):  # fmt: skip
        assert main(["run", "vector-add", "--topology", "tiny", *options], plugins) == 2
        assert capsys.readouterr().err == f"error: {told}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["no"]


def test_the_example_adds_a_section(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands between the ledger and the run, with the data for its script."""
    monkeypatch.syspath_prepend(EXAMPLE)
    both = load_plugins([*own_plugins("builtin"), "example = kernbench_example.plugin"], installed=False)
    result = json.loads((saved / "result.json").read_text())
    result["late_starts"] = [{"pe": "<pe0>", "late_ns": 2.5}, {"pe": "pe1", "late_ns": 4.0}]
    run = tmp_path / "run"
    run.mkdir()
    (run / "result.json").write_text(json.dumps(result))
    page = tmp_path / "page.html"
    assert main(["report", str(run), "-o", str(page)], both) == 0
    text = page.read_text()
    assert re.findall(r'<section id="(\w+)"', text)[-4:] == ["ledger", "late", "idle", "run"]
    assert "<td>&lt;pe0&gt;</td><td>2.5 ns</td>" in text
    (data,) = re.findall(r'data-of="late" data-run="0">(.*?)</script>', text)
    assert json.loads(data) == {"pes": ["<pe0>", "pe1"], "late_ns": {"$": "float32", "v": [2.5, 4.0]}}
