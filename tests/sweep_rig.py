"""Sweeps that leave a mark each time that a point runs, and processes that carry them out and are ended."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from attrs import field, frozen

from kernbench_builtin.sweeps import SweepPlan, planned, run_planned
from kernbench_builtin.sweeps.axes import read_axis
from kernbench_core.plugins import Plugins

#: The command line, with the plug-ins of this tree.
COMMAND = (
    "import sys; from kernbench_core.cli import main; from kernbench_core.plugins import load_plugins, own_plugins; "
    "sys.exit(main(sys.argv[1:], load_plugins(own_plugins(), "
    "installed=False)))"
)
BENCH = """
import os
import time

def bench(rt, n: int = 4):
    mark = os.open("MARKS", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(mark, f"{n}\\n".encode())
    os.close(mark)
    time.sleep(BUSY_S)
    if n == 3:
        raise ValueError("three is none")
    x = rt.tensor((n,), "f32", name="x")

    def kernel(x, n, tl):
        tl.store(x + tl.arange(0, n), tl.load(x + tl.arange(0, n)) * 2)

    rt.launch(kernel, x, n, grid=(1,))
"""


@frozen
class MarkedSweeps:
    """Sweeps of the same points, of which the third fails, in folders of `base`; each run of a point leaves a mark."""

    base: Path
    points: int
    plugins: Plugins = field(repr=False)
    busy_s: float = 0.0

    @property
    def bench(self) -> Path:
        """The file of the bench."""
        return self.base / "marked.py"

    @property
    def runs(self) -> Counter[int]:
        """How often each point ran since `forget`, by its parameter."""
        marks = self.base / "marks"
        return Counter(map(int, marks.read_text().split())) if marks.exists() else Counter()

    def forget(self) -> None:
        """Forget all marks."""
        (self.base / "marks").unlink(missing_ok=True)

    @property
    def plan(self) -> SweepPlan:
        """What is asked for; nothing comes from the cache, where it would leave no mark."""
        self.bench.write_text(BENCH.replace("MARKS", str(self.base / "marks")).replace("BUSY_S", str(self.busy_s)))
        axis = read_axis("n", "param", f"1..{self.points}:lin:{self.points}")
        return SweepPlan(bench=str(self.bench), topology="tiny", axes=(axis,), cached=False)

    def run(self, folder: str, **how: Any) -> None:
        """Carry it out in a folder, or go on with it."""
        how.setdefault("processes", 1)
        run_planned(planned(self.plan, self.plugins), self.plugins, folder=self.base / folder, **how)

    def recorded(self, folder: str) -> set[int]:
        """The points that have a record, by their parameter."""
        records = [json.loads(path.read_bytes()) for path in (self.base / folder / "points").glob("[!.]*.json")]
        return {record["values"]["n"] for record in records}

    def content(self, folder: str) -> dict[str, bytes]:
        """What is in a folder, by path, but for the lock, and of records but for how long they took."""
        found = {}
        for path in sorted((self.base / folder).rglob("*")):
            data = path.read_bytes() if path.is_file() else b"a folder"
            if path.parent.name == "points" and path.suffix == ".json":
                data = json.dumps({**json.loads(data), "wall_s": 0}).encode()
            found[path.relative_to(self.base / folder).as_posix()] = data
        found.pop("sweep.lock", None)
        return found


def in_a_fork(body: Callable[[], None]) -> int:
    """Call `body` in a child of this process that then ends; return how that ended, as `waitstatus_to_exitcode`."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            body()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class WriteSteps:
    """Counts the steps by which this process, and none that it forks, changes what is below a folder.

    A step is a file that is opened for writing, synced, renamed or removed, or a folder that is made. `act` is called
    in front of each with its number, from 0 on, its kind, and the file that is synced.
    """

    def __init__(self, folder: Path, act: Callable[[int, str, int | None], None]) -> None:
        self._count = 0
        self._folder, self._act, self._pid = f"{folder}/", act, os.getpid()
        self._sync = os.fsync
        os.fsync = self._synced
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = args
            if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                self._step(event, path)
        elif event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink"):
            self._step(event, args[0])

    def _synced(self, file: Any) -> None:
        number = file if isinstance(file, int) else file.fileno()
        self._step("fsync", Path(f"/proc/self/fd/{number}").readlink(), number)
        self._sync(file)

    def _step(self, kind: str, path: Any, file: int | None = None) -> None:
        is_path = isinstance(path, str | bytes | os.PathLike)
        if is_path and f"{os.fsdecode(path)}/".startswith(self._folder) and os.getpid() == self._pid:
            self._count += 1
            self._act(self._count - 1, kind, file)


def end_here() -> NoReturn:
    """End this process as `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError
