"""What every test may use: the plug-ins of this source tree, installed or not."""

from __future__ import annotations

import gc
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import hypothesis
import pytest

from kernbench_core import package
from kernbench_core.cli import main
from kernbench_core.plugins import Plugins, load_plugins, own_plugins
from kernbench_core.process import collection
from tests.commands import Run
from tests.selection.session import Selection

package.IMPORTED_NS = 1 << 63  # that files are written while tests go on is no reason to keep no result

# A loaded machine is no failure; and what CI or tools/suite.py tries of a commit is the same every time.
same = any(os.environ.get(name) for name in ("CI", "KB_CASES", "KB_FAILED"))
hypothesis.settings.register_profile("kernbench", deadline=None, derandomize=same)
hypothesis.settings.load_profile("kernbench")
#: For tools/mutants.py, which asks whether a test fails and not for the smallest example.
hypothesis.settings.register_profile(
    "mutants",
    hypothesis.settings.get_profile("kernbench"),
    phases=[phase for phase in hypothesis.Phase if phase not in (hypothesis.Phase.shrink, hypothesis.Phase.explain)],
)


def forget_executed() -> None:
    """Forget the modules of files that kernbench executed: of those that were written since no cache keeps a run."""
    for name, module in list(sys.modules.items()):
        if hasattr(getattr(getattr(module, "__spec__", None), "loader_state", None), "hashes"):
            del sys.modules[name]


SOURCE_TREE = own_plugins()


def pytest_configure(config: pytest.Config) -> None:
    """Keep a cache for this session alone, and choose among the tests."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="kernbench-cache-")
        config.add_cleanup(folder.cleanup)
        os.environ["KERNBENCH_CACHE"] = folder.name  # of workers and commands, too: nobody's own is touched
    config.pluginmanager.register(Selection(), "selection")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have tests in a browser come last: from the first of them on, this thread is in an event loop of playwright."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


def pytest_collection_finish() -> None:
    """Leave what stays, the tests themselves, out of every later search for garbage, and search seldom."""
    gc.collect()
    gc.freeze()
    collection._has_frozen = lambda: True  # counting what is frozen takes each run 40 ms
    gc.set_threshold(1_000_000)  # a machine is garbage of 100,000 objects at most


@pytest.fixture(autouse=True)
def _no_narrow_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print as wide as anywhere without a window: whoever runs the tests may have set the width of theirs."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(autouse=True)
def _ctrl_c_works() -> Iterator[None]:
    """Take Ctrl-C, and let processes that are started take it: a shell has those in the background ignore it."""
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    if ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    if ignored:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep runs in a folder of this session, in processes that are started too, and not in that of the user."""
    before = os.environ.get("KERNBENCH_CACHE")
    os.environ["KERNBENCH_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["KERNBENCH_CACHE"]
    else:
        os.environ["KERNBENCH_CACHE"] = before


@pytest.fixture(scope="session")
def plugins() -> Plugins:
    """Load the plug-ins of this tree, and nobody else's."""
    return load_plugins(SOURCE_TREE, installed=False)


@pytest.fixture(scope="session")
def browser(pytestconfig: pytest.Config) -> Any:
    """Start the one Chromium of this run, for tests marked `browser`; skip them where there is none."""
    from tests.chromium import start

    return start(pytestconfig.add_cleanup)


@pytest.fixture
def inside(capfd: pytest.CaptureFixture[str], plugins: Plugins) -> Run:
    """Give a function that does what `kernbench` does, in this process."""

    def call(*args: str) -> subprocess.CompletedProcess[str]:
        code = main(args, plugins)
        return subprocess.CompletedProcess(args, code, *capfd.readouterr())

    return call


def without_carets(text: str) -> str:
    """Return text without the lines that mark a part of the line above: each Python marks something else."""
    return re.sub(r"\n *[~^]+(?=\n|$)", "", text)


def count_calls(function: Callable[[], object]) -> int:
    """Return how many calls of Python functions `function` makes: its time, whatever else the machine does."""
    found = 0

    def profile(_: FrameType, event: str, __: object) -> None:
        nonlocal found
        found += event == "call"

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(before)
    return found


@contextmanager
def loaded_tool(name: str) -> Iterator[ModuleType]:
    """Give tools/NAME.py as a module; what it puts on the import path is taken off again."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[1] / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path[:] = before
