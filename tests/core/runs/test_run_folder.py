"""--out replaces what a run wrote, and nothing else; what it cannot write is said before the run."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kernbench_builtin.saved import whole_folder
from kernbench_core.cli import main
from kernbench_core.errors import KernbenchWarning, UsageError
from kernbench_core.runs.bench_run import RunInterrupted, run


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refusal(toy: ModuleType, out: str | Path, **more: Any) -> str:
    """Return the sentence that refuses an --out before anything is simulated; it changes no file."""
    before, engines = contents(Path.cwd()), len(toy.engines)
    with pytest.raises(UsageError) as caught:
        run(**{"bench": "toy", "topology": "one", **more}, out=out, plugins=toy.plugins)
    assert (contents(Path.cwd()), len(toy.engines)) == (before, engines)
    return str(caught.value)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder the current one that holds nothing but a user's file."""
    path = tmp_path / "work"
    path.mkdir()
    (path / "precious.txt").write_text("mine")
    monkeypatch.chdir(path)
    return path


@pytest.mark.parametrize("out", ["/", "..", ".", "", "../work", "x/.."])
def test_the_current_folder_and_those_above_are_refused(toy: ModuleType, folder: Path, out: str) -> None:
    """Also where they are spelt otherwise."""
    (folder / "x").mkdir()
    assert refusal(toy, out) == (
        f"--out must name a folder of its own, not {out!r}, which is the current one or one above it; give a new name."
    )


@pytest.mark.parametrize("manifest", [None, "{", "[" * 99999, "[]", "{}", '{"schema": "kernbench.manifest/1"}'])
def test_a_folder_that_no_run_wrote_is_refused(toy: ModuleType, folder: Path, manifest: str | None) -> None:
    """Without a manifest, and with one that no run put there."""
    (folder / "o").mkdir()
    (folder / "o" / "precious.txt").write_text("mine")
    if manifest is not None:
        (folder / "o" / "manifest.json").write_text(manifest)
    assert refusal(toy, "o") == (
        "--out must name a new folder, an empty one, or one that a run wrote, not 'o', which holds other things; "
        "give another one."
    )


def test_a_printed_manifest_does_not_make_a_folder_a_runs(toy: ModuleType, folder: Path) -> None:
    """Saved beside a bench, it names the bench's file, which is the user's."""
    (folder / "p").mkdir()
    (folder / "p" / "mine.py").write_text("def bench(rt):\n    pass\n")
    result = run("p/mine.py", "one", plugins=toy.plugins)
    (folder / "p" / "manifest.json").write_text(json.dumps(result.manifest))
    assert refusal(toy, "p").startswith("--out must name a new folder, an empty one, or one that a run wrote, not 'p'")


def test_a_second_run_replaces_the_first_and_leaves_the_rest(toy: ModuleType, folder: Path) -> None:
    """What only the first wrote goes, with its folders; a user's files stay, beside and in the run's folders."""
    (folder / "mine.py").write_text("import helper\ndef bench(rt):\n    rt.logged.append(1)\n")
    (folder / "helper.py").write_text("")
    run("mine.py", "one", out="o", plugins=toy.plugins)
    assert set(contents(folder / "o")) == {
        "bench/mine.py", "bench/helper.py", "oplog/log", "manifest.json", "result.json",
    }  # fmt: skip
    for name in ("notes.txt", "oplog/notes.txt"):
        (folder / "o" / name).write_text("mine")
    run("toy", "one", {"n": 7}, out="o", plugins=toy.plugins)
    found = contents(folder / "o")
    assert set(found) == {
        "oplog/log", "oplog/notes.txt", "notes.txt", "manifest.json", "result.json",
    }  # fmt: skip
    assert (found["oplog/log"], found["notes.txt"]) == (b"[7]\n", b"mine")
    assert sorted(path.name for path in (folder / "o").iterdir() if path.is_dir()) == ["oplog"]


def test_a_function_in_memory_is_saved_with_a_warning(toy: ModuleType, folder: Path) -> None:
    """Nothing can run it again; that of a module can be imported."""

    def bench(rt: Any) -> None:
        pass

    with pytest.warns(KernbenchWarning) as caught:
        run(bench, "one", out="o", plugins=toy.plugins)
    assert [str(each.message) for each in caught] == [
        f"the run in {str(folder / 'o')!r} cannot be run again, as 'bench' is a function in memory, whose source is "
        "not saved; write it to a file, and give 'FILE.py:bench'."
    ]
    run(idle_bench, "one", out="p", plugins=toy.plugins)
    assert json.loads((folder / "p" / "manifest.json").read_text())["bench"] == {
        "function": f"{__name__}:idle_bench"
    }


def idle_bench(rt: Any) -> None:
    """Do nothing."""


def test_what_was_changed_after_the_run_is_the_users(toy: ModuleType, folder: Path) -> None:
    """A kept bench that was edited in place is not replaced."""
    (folder / "mine.py").write_text("def bench(rt):\n    pass\n")
    run("mine.py", "one", out="o", plugins=toy.plugins)
    (folder / "o" / "bench" / "mine.py").write_text("def bench(rt):\n    rt.logged.append(1)\n")
    assert refusal(toy, "o") == (
        f"--out must not replace {str(folder / 'o/bench/mine.py')!r}, which was changed after a run wrote it; move it "
        "away, or give another folder."
    )


def test_a_file_in_the_way_is_refused(toy: ModuleType, folder: Path) -> None:
    """A run's folder may hold a user's file where the next run would write."""
    run("toy", "one", out="o", plugins=toy.plugins)
    (folder / "o" / "bench").mkdir()
    (folder / "o" / "bench" / "mine.py").write_text("mine")
    (folder / "mine.py").write_text("def bench(rt):\n    pass\n")
    assert refusal(toy, "o", bench="mine.py") == (
        f"--out must not replace {str(folder / 'o/bench/mine.py')!r}, which no run wrote; move it away."
    )


@pytest.mark.parametrize("name", ["../precious.txt", "/etc/hostname", "a\0b"])
def test_a_manifest_that_names_files_elsewhere_is_refused(toy: ModuleType, folder: Path, name: str) -> None:
    """It would have them deleted."""
    run("toy", "one", out="o", plugins=toy.plugins)
    manifest = json.loads((folder / "o" / "manifest.json").read_text())
    manifest["files"][name] = "0"
    (folder / "o" / "manifest.json").write_text(json.dumps(manifest))
    assert refusal(toy, "o") == (
        f"--out must be a folder as a run wrote it, but the manifest in 'o' names {name!r}; give another one."
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_refused(toy: ModuleType, folder: Path) -> None:
    """Before the run."""
    (folder / "o").mkdir(mode=0o500)
    assert refusal(toy, "o") == "--out must be a folder that can be written, not 'o'; give another one."


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device", "x"), KeyboardInterrupt()])
def test_what_cannot_be_written_whole_is_not_written(
    toy: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch, there: bool, error: BaseException
) -> None:
    """A full disk is a sentence, Ctrl-C keeps the whole result; the folder is as it was."""
    if there:
        run("toy", "one", {"n": 1}, out="o", plugins=toy.plugins)
    before = contents(folder)

    def fail(path: Path, *_: object) -> None:
        path.mkdir()
        (path / "log").write_text("half")
        raise error

    monkeypatch.setattr(sys.modules["kernbench_builtin.saved.saved_run"], "save_run", fail)
    with pytest.raises((UsageError, RunInterrupted)) as caught:
        run("toy", "one", {"n": 2}, out="o", note="t.txt", plugins=toy.plugins)
    assert {name: data for name, data in contents(folder).items() if name != "t.txt"} == before
    assert (folder / "o").exists() == there
    if isinstance(caught.value, RunInterrupted):
        assert (caught.value.result.interrupted, caught.value.result.op_log.records) == (False, [2])
        assert str(caught.value) == (
            "interrupted while the files were written, after the run had ended; each is whole or as it was."
        )


@pytest.mark.parametrize(("what", "path"), [("note", "./a.txt"), ("note", "b.txt")])
def test_a_file_of_the_run_is_not_written_over(toy: ModuleType, folder: Path, what: str, path: str) -> None:
    """Neither an input nor another output."""
    (folder / "a.txt").write_text("system:\n  sips: 1\n")
    (folder / "b.txt").symlink_to("a.txt")
    assert refusal(toy, "o", topology="a.txt", **{what: path}) == (
        f"--{what} must be a file of its own, not {path!r}, which this run also uses; give another name."
    )


@pytest.mark.parametrize(
    ("out", "note"),
    [("new.txt", "new.txt"), ("link.txt", "new.txt"), ("o", "o/params/a.txt"), ("o", "link/oplog/a.txt")],
)
def test_a_file_does_not_lie_where_the_folder_of_the_run_is_written(
    toy: ModuleType, folder: Path, out: str, note: str
) -> None:
    """Beside what a run writes into that folder it may."""
    run("toy", "one", out="o", note="t.txt", plugins=toy.plugins)
    run("toy", "one", out="o", note="o/t.txt", plugins=toy.plugins)
    (folder / "o/params").mkdir()
    (folder / "link.txt").symlink_to("new.txt")
    (folder / "link").symlink_to("o")
    assert refusal(toy, out, note=note) == (
        f"--note must be a file of its own, not {note!r}, which this run also uses; give another name."
    )


def test_a_link_to_itself_is_no_folder(toy: ModuleType, folder: Path) -> None:
    """Alone or in a circle; one that leads to what is not there yet is a name for that."""
    (folder / "loop").symlink_to("loop")
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    for out in ("loop", "a"):
        told = refusal(toy, out)
        assert told == f"--out must name a folder, not {out!r}, a link that leads back to itself; remove it."
    (folder / "c").symlink_to("new")
    run("toy", "one", out="c", plugins=toy.plugins)
    assert (folder / "new" / "manifest.json").is_file()


def test_a_bench_may_change_the_folder(toy: ModuleType, folder: Path, tmp_path: Path) -> None:
    """Relative paths keep their meaning, and the folder is the current one again."""
    (folder / "mine.py").write_text(
        "import os\nimport numpy as np\nos.chdir('/')\ndef bench(rt, a: np.ndarray):\n    os.chdir('/tmp')\n"
    )
    import numpy as np

    np.save("a.npy", np.ones(2))
    options = {"out": "o", "note": "t.txt"}
    run("mine.py", "one", {"a": "a.npy"}, plugins=toy.plugins, **options)  # type: ignore[arg-type]
    assert Path.cwd() == folder
    assert {path.name for path in folder.iterdir()} == {"mine.py", "a.npy", "o", "t.txt", "precious.txt"}


@pytest.mark.parametrize("json_option", [(), ("--json",)])
def test_ctrl_c_while_files_are_written_still_shows_the_result(
    toy: ModuleType,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    json_option: tuple[str, ...],
) -> None:
    """All of it, as the run had ended; the exit code says that something is missing."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["kernbench_builtin.saved.saved_run"], "save_run", interrupt)
    assert main(["run", "toy", "--topology", "one", "--out", "o", *json_option], toy.plugins) == 130
    out, err = capsys.readouterr()
    assert err.splitlines()[-1] == (
        "error: interrupted while the files were written, after the run had ended; each is whole or as it was."
    )
    if json_option:
        assert (json.loads(out)["interrupted"], len(json.loads(out)["op_log_sha256"])) == (False, 64)
    else:
        assert "\ntoy on one: 412.3 us, data not verified" in out and "interrupted" not in out
    assert [path.name for path in folder.iterdir()] == ["precious.txt"]


@pytest.mark.parametrize("target", ["src", "o/kept", "gone"])
@pytest.mark.parametrize(
    "link",
    [
        *("bench", "bench/helper.py", "oplog", "inputs", "params", "bench/sub"),
        *("manifest.json", "result.json"),
    ],
)
def test_nothing_is_written_or_deleted_through_a_link(toy: ModuleType, folder: Path, link: str, target: str) -> None:
    """A link in a run's folder is the user's, and so is what it leads to, also where that is just as a run wrote it."""
    (folder / "src/sub").mkdir(parents=True)
    (folder / "src/sub/more.py").write_text("")
    (folder / "src/mine.py").write_text("import helper\nimport sub.more\ndef bench(rt):\n    rt.logged.append(1)\n")
    (folder / "src/helper.py").write_text("")
    run("src/mine.py", "one", out="o", plugins=toy.plugins)
    assert (folder / "o/bench/sub/more.py").is_file()
    here = folder / "o" / link
    old = folder / "o" / "kept"
    if os.path.lexists(here):
        here.rename(old)
    leads = folder / "src" / link.partition("/")[2] if target == "src" and link.startswith("bench") else folder / target
    here.symlink_to(leads)
    for bench in ("src/mine.py", "toy"):
        told = refusal(toy, "o", bench=bench)
        assert told == (
            f"--out must not write or delete through {str(here)!r}, which is a link; remove it, or give another folder."
        ) or (link == "manifest.json" and told.startswith("--out must name a new folder"))
    assert here.is_symlink()


def test_a_link_that_a_bench_makes_is_refused_at_the_end(toy: ModuleType, folder: Path) -> None:
    """Nothing is lost, neither of the folder nor of what the link leads to."""
    (folder / "mine.py").write_text(
        "import os\ndef bench(rt):\n    os.rename('o/oplog', 'mine')\n    os.symlink('../mine', 'o/oplog')\n"
    )
    run("toy", "one", {"n": 7}, out="o", plugins=toy.plugins)
    with pytest.raises(UsageError) as caught:
        run("mine.py", "one", out="o", plugins=toy.plugins)
    assert str(caught.value) == (
        f"{str(folder / 'o/oplog')!r} must not be a link, as a file would be replaced through it; remove it."
    )
    assert (folder / "mine/log").read_bytes() == b"[7]\n"
    assert set(contents(folder / "o")) == {"manifest.json", "result.json"}


@pytest.mark.parametrize("late", [False, True])
def test_of_two_runs_at_once_into_a_new_folder_the_later_one_says_so(
    toy: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """Another one ends while the bench runs, or just before the folder gets its name; its files stay."""
    run("toy", "one", {"n": 7}, out="first", plugins=toy.plugins)
    (folder / "mine.py").write_text(f"import shutil\ndef bench(rt):\n    {late} or shutil.copytree('first', 'o')\n")
    put = whole_folder._put

    def put_late(new: Path, path: Path) -> None:
        shutil.copytree("first", path)
        put(new, path)

    monkeypatch.setattr(whole_folder, "_put", put_late)
    with pytest.raises(UsageError) as caught:
        run("mine.py", "one", out="o", plugins=toy.plugins)
    assert str(caught.value) == (
        f"--out must name a folder for one run at a time, and another run wrote {str(folder / 'o')!r} in the "
        "meantime: this one is not kept; run it again into another folder."
    )
    assert contents(folder / "o") == contents(folder / "first")
    assert {path.name for path in folder.iterdir()} == {"first", "mine.py", "o", "precious.txt"}


def test_folders_above_are_made_for_what_is_written(toy: ModuleType, folder: Path) -> None:
    """Where the run ends well: one that fails, or is refused, makes none."""
    for fail, error in (("oops", Exception), ("interrupt", RunInterrupted)):
        with pytest.raises(error):
            run("toy", "one", {"fail": fail}, out="runs/all/o", plugins=toy.plugins)
        assert [path.name for path in folder.iterdir()] == ["precious.txt"]
    refusal(toy, "runs/all/o", params={"n": "many"})
    assert [path.name for path in folder.iterdir()] == ["precious.txt"]
    run("toy", "one", out="runs/all/o", plugins=toy.plugins)
    assert [path.name for path in (folder / "runs").iterdir()] == ["all"]
    assert [path.name for path in (folder / "runs/all").iterdir()] == ["o"]
    assert json.loads((folder / "runs/all/o/manifest.json").read_text())["schema"] == "kernbench.manifest/1"


def test_a_link_to_itself_above_is_refused(toy: ModuleType, folder: Path) -> None:
    """No folder can be made of it."""
    (folder / "round").symlink_to("round")
    assert refusal(toy, "round/o") == (
        f"--out must name a folder, not {str(folder / 'round')!r}, a link that leads back to itself; remove it."
    )
