"""The folder of a sweep: what is written, what is refused, and that nothing recorded is ever lost."""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import os
import signal
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kernbench_builtin.sweeps import SweepPlan, open_sweep, read_sweep
from kernbench_builtin.sweeps.axes import SET, read_axis
from kernbench_builtin.sweeps.drive import record_all
from kernbench_builtin.sweeps.evaluate import blank_record, job_of
from kernbench_builtin.sweeps.folder import write_whole
from kernbench_builtin.sweeps.points import points_of
from kernbench_builtin.sweeps.table import write_tables
from kernbench_core.errors import KernbenchWarning, UsageError
from kernbench_core.package import __version__
from kernbench_core.wording import brief

PLAN = SweepPlan(bench="gemm", axes=(read_axis("cube.pes", SET, "1,2,4"),), objectives=("time",))


def records(plan: SweepPlan = PLAN, **more: Any) -> list[dict[str, Any]]:
    """Return a record for each point, as `evaluate` gives them."""
    return [
        blank_record(job_of(plan, point))
        | {"status": "ok", "figures": {"time_ns": 0.1 + point.index, "note": None}, "objectives": {"time": point.index}}
        | {"wall_s": os.getpid(), **more}
        for point in points_of(plan)
    ]


def test_what_is_put_is_read_in_the_order_of_the_points(tmp_path: Path) -> None:
    """In whichever order it came, as it was put; the tables depend on nothing else."""
    first, second = tmp_path / "a", tmp_path / "b"
    for path, order in ((first, records()), (second, records(wall_s=7.5)[::-1])):
        with open_sweep(path, PLAN) as folder:
            for record in order:
                folder.put(record)
            write_tables(folder)
    found = read_sweep(first)
    assert found.plan == PLAN and list(found.records) == records() and found.folder == first
    names = sorted(each.name for each in first.iterdir())
    assert [name for name in names if name != "table.parquet"] == [
        "points", "sweep.json", "sweep.lock", "table.csv", "table.jsonl",
    ]  # fmt: skip
    for name in ("table.csv", "table.jsonl"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    assert [json.loads(line) for line in (first / "table.jsonl").read_text().splitlines()] == found.rows
    key = found.records[1]["key"]
    assert (first / "table.csv").read_text().splitlines()[::2] == [
        "index,cube.pes,status,time,time_ns,note,error,op_log_sha256,key",
        f"1,2,ok,1,1.1,,,,{key}",
    ]


def test_a_folder_goes_on_with_the_same_plan_only(tmp_path: Path) -> None:
    """Other limits are the same plan; other objectives, values and files are not."""
    bench = tmp_path / "own.py"
    bench.write_text("def bench(rt): ...")
    with open_sweep(tmp_path / "s", PLAN, {"own.py": "1"}) as folder:
        folder.put(records(code=folder.code)[0])
    longer = SweepPlan.from_json({**PLAN.to_json(), "options": {"timeout_s": 60.0}})
    with open_sweep(tmp_path / "s", longer, {"own.py": "1"}) as folder:
        assert list(folder.records) == [records()[0]["key"]]
    assert read_sweep(tmp_path / "s").plan == longer
    place = repr(str(tmp_path / "s"))
    other = SweepPlan.from_json({**PLAN.to_json(), "objectives": ["gflops"], "sample": "lhs:3"})
    with pytest.raises(UsageError) as caught, open_sweep(tmp_path / "s", other):
        pass
    assert str(caught.value) == (
        f"{place} must hold points of the same sweep, and its plan differs in objectives, sample; give another folder."
    )
    with pytest.raises(UsageError) as caught, open_sweep(tmp_path / "s", PLAN, {"own.py": "2"}):
        pass
    assert str(caught.value) == (
        f"the points in {place} must be of the same files, but 'own.py' has changed for 1 of them; run these again "
        "with --retry-changed, or give another folder."
    )
    with open_sweep(tmp_path / "s", PLAN, {"own.py": "2"}, retry_changed=True) as folder:
        assert not folder.records
        folder.put(records(code=folder.code)[1])
    with open_sweep(tmp_path / "s", PLAN, {"own.py": "2"}) as folder:  # the first is no more there
        assert [record["index"] for record in folder.records.values()] == [1]
        folder.put(records(code="other")[0])
    with pytest.raises(UsageError, match="but 'the code of kernbench or of a plug-in' has changed for 1 of them;"):
        open_sweep(tmp_path / "s", PLAN, {"own.py": "2"}).__enter__()


def test_points_whose_files_were_changed_are_refused_or_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are those of the bench's folder, and variables; whoever reads the folder finds points of one version."""
    (tmp_path / "helper.py").write_text("1")
    monkeypatch.setenv("SCALE", "2")
    one, two = hashlib.sha256(b"1").hexdigest(), hashlib.sha256(b"2").hexdigest()
    plan = SweepPlan.from_json({**PLAN.to_json(), "bench": str(tmp_path / "b.py")})
    made_of = ({"helper.py": one, "$SCALE": two}, {"helper.py": two}, {"gone.csv": one})
    with pytest.warns(KernbenchWarning), open_sweep(tmp_path / "s", plan) as folder:
        for each in ({**record, "files": files} for record, files in zip(records(plan), made_of, strict=True)):
            folder.put(each)
    (tmp_path / "helper.py").write_text("3")
    monkeypatch.setenv("SCALE", "3")
    told = r"but '(helper\.py|\$SCALE|gone\.csv)' has changed for 3 of them; run these again"
    with pytest.raises(UsageError, match=told):
        open_sweep(tmp_path / "s", plan).__enter__()
    (tmp_path / "helper.py").write_text("2")
    with open_sweep(tmp_path / "s", plan, retry_changed=True) as folder:
        assert [record["index"] for record in folder.records.values()] == [1]
        assert list(read_sweep(tmp_path / "s").records) == list(folder.records.values())


def test_points_that_failed_are_tried_again_with_those_that_changed(tmp_path: Path) -> None:
    """Nobody knows what they read; where nothing changed they stay."""
    failed, old, _ = records()
    for code, left in (("", 2), ("other", 0)):
        with open_sweep(tmp_path, PLAN, retry_changed=True) as folder:
            folder.put(failed | {"status": "error", "error": {"sentence": "so."}})
            folder.put(old | {"code": code})
        with open_sweep(tmp_path, PLAN, retry_changed=True) as folder:
            assert len(folder.records) == left


@pytest.mark.parametrize("planned", [True, False])
def test_what_changes_while_a_sweep_goes_on_is_warned_of(tmp_path: Path, planned: bool) -> None:
    """A file of the plan, and one that points say that they read."""
    file = tmp_path / "own.py"
    file.write_text("1")
    digests = {str(file): hashlib.sha256(b"1").hexdigest()}
    first, second = digests, {str(file): hashlib.sha256(b"2").hexdigest()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with open_sweep(tmp_path / "s", PLAN, digests) as folder:
            for each in records(code=folder.code, files=first):
                folder.put(each)
    with pytest.warns(KernbenchWarning) as warned, open_sweep(tmp_path / "s", PLAN, digests) as folder:
        if planned:
            file.write_text("2")
        else:
            folder.put(records(files=second)[2])
    assert [str(each.message) for each in warned] == [
        f"{str(file)!r} was changed while the sweep went on, and its points may be of two versions; run it again, in a "
        "folder with --retry-changed."
    ]


def test_records_of_another_version_are_refused(tmp_path: Path) -> None:
    """And what is no record, or is cut short."""
    with open_sweep(tmp_path, PLAN) as folder:
        folder.put(records()[0])
    head = tmp_path / "sweep.json"
    whole = head.read_text()
    head.write_text(whole.replace(f'"version": "{__version__}"', '"version": "0.0.9"'))
    with pytest.raises(UsageError) as caught:
        read_sweep(tmp_path)
    assert str(caught.value) == (
        f"the points in {str(tmp_path)!r} must be of this version of kernbench, {__version__}, and are of 0.0.9: "
        "models may have changed; give another folder, or run that version."
    )
    head.write_text(whole.replace("kernbench.sweep/1", "kernbench.sweep/9"))
    with pytest.raises(UsageError) as caught:
        read_sweep(tmp_path)
    assert str(caught.value) == (
        f"{str(head)!r} must have the schema 'kernbench.sweep/1', not 'kernbench.sweep/9'; a later kernbench wrote it; "
        "use a newer kernbench."
    )
    head.write_text(whole[:40])
    with pytest.raises(UsageError) as caught, open_sweep(tmp_path, PLAN):
        pass
    assert str(caught.value) == (f"{str(head)!r} must be as a sweep wrote it, and is damaged; give another folder.")
    head.write_text(whole)
    (point,) = (tmp_path / "points").iterdir()
    for text, told in (
        ('{"schema": "kernbench.point/0", "key": "x"}', "must have the schema 'kernbench.point/2' and the name of its "
         "key, not 'kernbench.point/0'; remove it."),
        ("[]", "must be as a sweep wrote it, and is damaged; remove it."),
    ):  # fmt: skip
        point.write_text(text)
        with pytest.raises(UsageError) as caught:
            read_sweep(tmp_path)
        assert str(caught.value) == f"{str(point)!r} {told}"
    with pytest.raises(UsageError) as caught:
        read_sweep(tmp_path / "points")
    assert str(caught.value) == (
        f"{str(tmp_path / 'points')!r} must be the folder of a sweep, which has a file 'sweep.json'."
    )


def test_points_of_nobody_knows_what_are_not_gone_on_with(tmp_path: Path) -> None:
    """Without the plan nothing tells of which bench and models they are; an empty folder of points is free."""
    (tmp_path / "points").mkdir()
    with open_sweep(tmp_path, PLAN) as folder:
        for each in (blank_record(job_of(PLAN, point)) for point in points_of(PLAN)):
            folder.put(each)
    (tmp_path / "sweep.json").unlink()
    with pytest.raises(UsageError) as caught, open_sweep(tmp_path, PLAN):
        pass
    assert str(caught.value) == (
        f"-o must not name a folder with points and without 'sweep.json', as {str(tmp_path)!r}: nothing says which "
        "sweep they belong to; give another folder."
    )


def test_what_is_no_folder_of_a_sweep_is_left_alone(tmp_path: Path) -> None:
    """A file, and a folder with something of somebody else's."""
    (tmp_path / "notes.txt").write_text("mine")
    for path, told in (
        (tmp_path / "notes.txt", f"-o must name a folder, not the file {str(tmp_path / 'notes.txt')!r}; give another "
         "name."),
        (tmp_path, f"-o must name a new folder, an empty one, or that of a sweep, not {str(tmp_path)!r}, which holds "
         "'notes.txt'; give another name."),
        (tmp_path / "notes.txt" / "s", f"-o must name a folder that can be made and written, not "
         f"{str(tmp_path / 'notes.txt' / 's')!r}: Not a directory; give another name."),
        (tmp_path / ("a" * 300), f"-o must name a folder that can be made and written, not "
         f"{brief(str(tmp_path / ('a' * 300)))}: File name too long; give another name."),
    ):  # fmt: skip
        with pytest.raises(UsageError) as caught, open_sweep(path, PLAN):
            pass
        assert str(caught.value) == told
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]


def test_two_sweeps_in_one_folder_are_told_apart_by_a_lock(tmp_path: Path) -> None:
    """The second is refused while the first is at work, in whichever process; one that is killed lets go."""
    refused = (
        f"{str(tmp_path)!r} must have one sweep at a time, and another one is running there; wait for it, or give "
        "another folder."
    )
    ready, told = os.pipe()
    other = os.fork()
    if other == 0:
        with open_sweep(tmp_path, SweepPlan(bench="gemm")):
            os.write(told, b"held")
            time.sleep(60)
    os.read(ready, 4)
    with pytest.raises(UsageError) as caught, open_sweep(tmp_path, SweepPlan(bench="gemm")):
        pass
    assert str(caught.value) == refused
    os.kill(other, signal.SIGKILL)
    os.waitpid(other, 0)
    with open_sweep(tmp_path, SweepPlan(bench="gemm")):
        pass


def test_what_a_killed_process_left_half_written_is_removed(tmp_path: Path) -> None:
    """Temporary files go when the sweep goes on; records stay."""
    with open_sweep(tmp_path, PLAN) as folder:
        folder.put(records()[0])
    for name in (".sweep.json.1.kernbench-tmp", "points/.abc.json.1.kernbench-tmp", "mine.tmp"):
        (tmp_path / name).write_text("{")
    with open_sweep(tmp_path, PLAN) as folder:
        assert len(folder.records) == 1
    assert [path.name for path in tmp_path.rglob("*tmp")] == ["mine.tmp"]


def test_a_sweep_that_is_not_over_says_how_much_is_left(tmp_path: Path) -> None:
    """Of a search nobody knows, as trials may be of one point."""
    with open_sweep(tmp_path / "s", PLAN, most=3) as folder:
        folder.put(records()[0])
    assert read_sweep(tmp_path / "s").left == 2
    searched = SweepPlan.from_json({**PLAN.to_json(), "search": "nsga2:9"})
    with open_sweep(tmp_path / "t", searched, most=9) as folder:
        folder.put(records()[0])
    assert read_sweep(tmp_path / "t").left == 0


def test_a_full_disk_is_a_sentence_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record that found no room is absent, those before it are whole."""
    first, second, _ = records()
    with open_sweep(tmp_path, PLAN) as folder:
        folder.put(first)

        def full(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(UsageError) as caught:
            folder.put(second)
        assert str(caught.value) == (
            f"the folder of the sweep, {str(tmp_path)!r}, must be writable, and that failed with 'No space left on "
            "device'; all points recorded so far are whole: make room, and go on with --resume."
        )
        assert list(folder.records) == [first["key"]]
    assert list(read_sweep(tmp_path).records) == [first]
    assert not [*tmp_path.rglob("*tmp")]


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Content, name, folder: in this order, so that no power cut leaves half a file under the name."""
    done: list[str] = []
    real_sync, real_replace = os.fsync, Path.replace

    def sync(descriptor: int) -> None:
        done.append(f"sync {Path(f'/proc/self/fd/{descriptor}').readlink().name}")
        real_sync(descriptor)

    def replace(path: Path, target: Path) -> Path:
        done.append(f"rename {path.name} {target.name}")
        return real_replace(path, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Path, "replace", replace)
    write_whole(tmp_path / "a.json", b"x")
    temporary = f".a.json.{os.getpid()}.kernbench-tmp"
    assert done == [f"sync {temporary}", f"rename {temporary} a.json", f"sync {tmp_path.name}"]
    assert (tmp_path / "a.json").read_bytes() == b"x"


def test_a_folder_that_is_not_kept_holds_no_record(tmp_path: Path) -> None:
    """What is known of the points is known all the same."""
    with open_sweep(tmp_path, PLAN, kept=False) as folder:
        for record in records():
            folder.put(record)
        write_tables(folder)
        assert list(folder.sweep().records) == records()
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["points", "sweep.json", "sweep.lock"]


def test_what_had_finished_is_kept_when_the_executor_fails(tmp_path: Path) -> None:
    """Each record is kept before it is told of."""
    told: list[int] = []

    class Failing:
        def run(self, jobs: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
            for job in itertools.islice(jobs, 2):
                yield blank_record(job)
            raise UsageError("the scheduler is gone.")

        def close(self) -> None:
            pass

    def on_record(record: Mapping[str, Any]) -> None:
        told.append(record["index"])
        assert len(list((tmp_path / "points").iterdir())) == len(told)

    with open_sweep(tmp_path, PLAN) as folder, pytest.raises(UsageError, match="gone"):
        record_all(folder, [job_of(PLAN, point) for point in points_of(PLAN)], Failing(), on_record)
    assert told == [0, 1]
    assert len(read_sweep(tmp_path).records) == 2
