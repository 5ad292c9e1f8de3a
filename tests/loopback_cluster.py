"""A Dask scheduler and workers on this machine, each a process of its own that a test may end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from attrs import define, field

REPO = Path(__file__).parents[1]


@define
class LoopbackCluster:
    """A scheduler at `address`, which stays the same when it is started again, and workers by name.

    Logs and what else they write are in `folder`, which is also where they run.
    """

    folder: Path
    port: int = field(factory=lambda: _free_port())
    scheduler: subprocess.Popen[bytes] | None = None
    workers: dict[str, subprocess.Popen[bytes]] = field(factory=dict)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for name in list(self.workers):
            self.kill_worker(name)
        self.kill_scheduler()

    @property
    def address(self) -> str:
        """Where the scheduler listens."""
        return f"tcp://127.0.0.1:{self.port}"

    def start_scheduler(self, tree: Path = REPO) -> Self:
        """Start a scheduler that imports kernbench from a source tree, and wait until it listens."""
        where = ("--host", "127.0.0.1", "--port", str(self.port))
        self.scheduler = self._started("scheduler", "dask_scheduler", *where, tree=tree)
        while True:
            assert self.scheduler.poll() is None, (self.folder / "scheduler.log").read_text()
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.02)

    def start_worker(self, name: str, *, threads: int = 1, nanny: bool = False, tree: Path = REPO) -> None:
        """Start a worker that imports kernbench from a source tree; a nanny starts it anew when it is killed."""
        how = ["--nanny" if nanny else "--no-nanny", "--nthreads", str(threads), "--name", name]
        how += ["--local-directory", str(self.folder)]
        self.workers[name] = self._started(name, "dask_worker", self.address, *how, tree=tree)

    def kill_worker(self, name: str) -> None:
        """End a worker and its nanny as `kill -9` does."""
        process = self.workers.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def kill_scheduler(self) -> None:
        """End the scheduler as `kill -9` does."""
        if self.scheduler is not None:
            self.scheduler.kill()
            self.scheduler.wait()
            self.scheduler = None

    def _started(self, name: str, program: str, *args: str, tree: Path = REPO) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{program}", *args, "--no-dashboard"]
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                command, cwd=self.folder, env={**os.environ, "PYTHONPATH": str(tree)}, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip


def _free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        port: int = tried.getsockname()[1]
        return port
