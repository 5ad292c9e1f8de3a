"""The command line as a hostile user meets it: in an empty folder, with everything that it leaves there counted."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from kernbench_core.cli import main
from kernbench_core.plugins import Plugins, load_plugins, own_plugins
from tests.core.forked import Forked, command

REPO = Path(__file__).parents[2]
BUILTIN = own_plugins("builtin")
COMMAND = (
    "import sys; from kernbench_core.cli import main; from kernbench_core.plugins import load_plugins; "
    f"sys.exit(main(plugins=load_plugins({BUILTIN!r}, installed=False)))"
)


@attrs.frozen
class Outcome:
    """What a command did: exit code, streams, and the names of the files that it left behind."""

    code: int
    out: str
    err: str
    left: frozenset[str]


@attrs.frozen
class Folder:
    """A folder of the user's own, in which commands run."""

    path: Path
    plugins: Plugins
    read: Callable[[], tuple[str, str]]

    def write(self, name: str, text: str | bytes) -> None:
        """Put a file into the folder."""
        (self.path / name).write_bytes(text if isinstance(text, bytes) else text.encode())

    def files(self) -> frozenset[str]:
        """Return the names of all files and folders, Python's caches left out."""
        return frozenset(str(p.relative_to(self.path)) for p in self.path.rglob("*") if "__pycache__" not in str(p))

    def call(self, *args: str, plugins: Plugins | None = None) -> Outcome:
        """Run one command in this process."""
        before = self.files()
        code = main(args, plugins or self.plugins)
        out, err = self.read()
        return Outcome(code, out, err, self.files() - before)

    def run(self, bench: str, *args: str, plugins: Plugins | None = None) -> Outcome:
        """Run a bench on the smallest machine, asking for every file that a run can write."""
        return self.call("run", bench, "--topology", "tiny", "--trace", "t.json", "--out", "o", *args, plugins=plugins)

    def fork(self, *args: str) -> Forked:
        """Begin a command in a process of its own, as signals need."""
        pipe = subprocess.PIPE
        return Forked(command(*args, plugins=self.plugins), cwd=self.path, stdout=pipe, stderr=pipe)

    def start(self, *args: str) -> subprocess.Popen[str]:
        """Start Python for a command, as all needs that happens at the end of it."""
        environment = {**os.environ, "PYTHONPATH": str(REPO)}
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, "-c", COMMAND, *args], cwd=self.path, env=environment, stdout=pipe, stderr=pipe, text=True
        )


@pytest.fixture(scope="session")
def builtin() -> Plugins:
    """Load the plug-in of the builtin package, and nobody else's."""
    return load_plugins(BUILTIN, installed=False)


@pytest.fixture
def folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], builtin: Plugins
) -> Folder:
    """Give an empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)

    def read() -> tuple[str, str]:
        out, err = capsys.readouterr()
        return out, err

    return Folder(tmp_path, builtin, read)
