"""A sweep is ended at each step by which it writes, and goes on as if nothing had happened."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernbench_core.errors import UsageError
from kernbench_core.plugins import Plugins
from tests.core.forked import Forked, command
from tests.sweep_rig import MarkedSweeps, WriteSteps, end_here, in_a_fork

POINTS = 4
FOREIGN = [f"{place}{name}" for place in ("", "points/") for name in ("notes.txt", ".mine.tmp", ".mine.1.tmp")]
#: All steps, or so many that every kind of them is among them.
EVERY = [1, 11]

Act = Callable[[int, str, int | None], None]


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory: pytest.TempPathFactory, plugins: Plugins) -> MarkedSweeps:
    """Sweeps, of which nothing disturbed that in folder "whole"."""
    sweeps = MarkedSweeps(tmp_path_factory.mktemp("sweeps"), POINTS, plugins)
    sweeps.run("whole")
    assert sweeps.runs == {1: 1, 2: 1, 3: 1, 4: 1}
    return sweeps


def _disturbed(sweeps: MarkedSweeps, folder: str, act: Act) -> int:
    """Carry a sweep out in a process that `act` disturbs in front of its steps; return how that ended.

    A UsageError is written to a file beside the folder.
    """

    def body() -> None:
        WriteSteps(sweeps.base / folder, act)
        try:
            sweeps.run(folder)
        except UsageError as error:
            (sweeps.base / f"{folder}.error").write_text(str(error))

    sweeps.forget()
    return in_a_fork(body)


def _tear(file: int | None) -> None:
    """Cut what is being synced to its half, as where only that came to the disk."""
    if file is not None and Path(f"/proc/self/fd/{file}").is_file():
        os.ftruncate(file, os.fstat(file).st_size // 2)


def _goes_on(sweeps: MarkedSweeps, folder: str) -> None:
    """Go on with a sweep, and compare everything with one that nothing disturbed."""
    recorded = sweeps.recorded(folder)
    before = sweeps.runs
    foreign = FOREIGN if (sweeps.base / folder / "sweep.json").exists() else []
    for name in foreign:
        (sweeps.base / folder / name).write_text("mine")
    sweeps.run(folder)
    again = sweeps.runs - before
    assert set(again) == set(range(1, POINTS + 1)) - recorded
    assert set(again.values()) <= {1}
    found = sweeps.content(folder)
    assert [found.pop(name) for name in foreign] == [b"mine"] * len(foreign)
    assert found == sweeps.content("whole")


@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.parametrize("every", EVERY)
def test_a_sweep_that_is_killed_at_a_write_goes_on(sweeps: MarkedSweeps, every: int, torn: bool) -> None:
    """With `torn` the file that is synced then has its half only."""
    step = -every
    ended = -signal.SIGKILL
    while ended == -signal.SIGKILL:
        step += every

        def act(number: int, kind: str, file: int | None, at: int = step) -> None:
            if number == at:
                if torn:
                    _tear(file)
                end_here()

        folder = f"killed-{every}-{torn}-{step}"
        ended = _disturbed(sweeps, folder, act)
        _goes_on(sweeps, folder)
    assert ended == 0
    assert step >= 6 * POINTS + 6  # of each record, of the plan, and of two tables


@pytest.mark.parametrize("every", EVERY)
def test_a_disk_that_is_full_ends_a_sweep_with_a_sentence(sweeps: MarkedSweeps, every: int) -> None:
    """From a step on nothing can be made or synced; what is there can still be renamed and removed."""
    step, is_over = -every, False
    while not is_over:
        step += every

        def act(number: int, kind: str, file: int | None, at: int = step) -> None:
            if number >= at and kind in ("open", "fsync", "os.mkdir"):
                _tear(file)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        folder = f"full-{every}-{step}"
        assert _disturbed(sweeps, folder, act) == 0
        told = sweeps.base / f"{folder}.error"
        is_over = not told.exists()
        if not is_over:
            path = sweeps.base / folder
            assert told.read_text() == (
                f"the folder of the sweep, {str(path)!r}, must be writable, and that failed with 'No space left on "
                "device'; all points recorded so far are whole: make room, and go on with --resume."
                if (path / "sweep.lock").exists()
                else f"-o must name a folder that can be made and written, not {str(path)!r}: No space left on device; "
                "give another name."
            )
            assert not list(path.rglob("*kernbench-tmp"))
        assert sweeps.recorded(folder) <= set(sweeps.runs)
        _goes_on(sweeps, folder)
    assert step >= 6 * POINTS


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB; skips the test where this user may not mount one."""
    if shutil.which("mount") is None:
        pytest.skip("no file system can be mounted")
    disk = tmp_path / "disk"
    disk.mkdir()
    asked = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if subprocess.run(asked, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_is_really_full_loses_nothing(sweeps: MarkedSweeps, small_disk: Path) -> None:
    (sweeps.base / "small").symlink_to(small_disk)
    sweeps.forget()
    with pytest.raises(UsageError) as caught:
        sweeps.run("small", begin=lambda _: _fill(small_disk, 3))
    assert str(caught.value) == (
        f"the folder of the sweep, {str(sweeps.base / 'small')!r}, must be writable, and that failed with 'No space "
        "left on device'; all points recorded so far are whole: make room, and go on with --resume."
    )
    assert len(sweeps.recorded("small")) == 3
    (small_disk / "filler").unlink()
    _goes_on(sweeps, "small")


def _fill(disk: Path, but: int) -> None:
    """Leave so many blocks of a disk free."""
    blocks = os.statvfs(disk)
    (disk / "filler").write_bytes(bytes((blocks.f_bavail - but) * blocks.f_bsize))


def test_a_sweep_that_is_killed_again_and_again_comes_to_its_end(
    tmp_path: Path, plugins: Plugins
) -> None:
    """The command itself, with two processes, behind as many points as are drawn; what it started ends with it."""
    sweeps = MarkedSweeps(tmp_path, 24, plugins, busy_s=0.03)
    sweeps.run("whole")
    sweeps.forget()
    bench = sweeps.plan.bench
    asked = ["sweep", bench, "--topology", "tiny", "-p", "n=1..24:lin:24", "-j", "2"]
    asked += ["-o", str(tmp_path / "s")]
    draw = random.Random(16)
    left: int | None = 4
    while left is not None:
        recorded, before = sweeps.recorded("s"), sweeps.runs
        process = Forked(command(*asked, plugins=plugins), stdout=subprocess.DEVNULL)
        if left:
            enough = len(recorded) + draw.randrange(5)
            while len(sweeps.recorded("s")) < enough:
                time.sleep(0.01 * draw.random())
            process.kill()
        left = left - 1 if left else None
        code = process.wait()
        assert not recorded & set(sweeps.runs - before)
    assert code == 1  # the third point has failed
    assert sweeps.content("s") == sweeps.content("whole")
    after = sweeps.runs
    assert max(after.values()) <= 5
    time.sleep(0.2)
    assert sweeps.runs == after
