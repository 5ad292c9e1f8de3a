"""What every test may use: the plug-ins of this source tree, installed or not."""

from __future__ import annotations

import gc
import importlib.util
import os
import re
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import hypothesis
import pytest

from kernbench_core.plugins import Plugins, load_plugins

# A loaded machine is no failure; and what CI tries is the same every time.
hypothesis.settings.register_profile("kernbench", deadline=None, derandomize=bool(os.environ.get("CI")))
hypothesis.settings.load_profile("kernbench")
#: For `make test`: fewer examples than `make test-all` tries.
hypothesis.settings.register_profile("quick", hypothesis.settings.get_profile("kernbench"), max_examples=16)
#: For tools/mutants.py, which asks whether a test fails and not for the smallest example.
hypothesis.settings.register_profile(
    "mutants",
    hypothesis.settings.get_profile("quick"),
    phases=[phase for phase in hypothesis.Phase if phase not in (hypothesis.Phase.shrink, hypothesis.Phase.explain)],
)


SOURCE_TREE = ("builtin = kernbench_builtin.plugin", "ccl = kernbench_ccl.plugin")


def pytest_configure(config: pytest.Config) -> None:
    """Keep a cache for this session alone; try fewer examples where the slow tests are left out, in time."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="kernbench-cache-")
        config.add_cleanup(folder.cleanup)
        os.environ["KERNBENCH_CACHE"] = folder.name  # of workers and commands, too: nobody's own is touched
    if config.getoption("markexpr") == "not slow" and not config.getoption("--hypothesis-profile"):
        hypothesis.settings.load_profile("quick")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have of the cases of a test that is marked so every n-th alone be quick."""
    seen: Counter[str] = Counter()
    for item in items:
        sample = item.get_closest_marker("sample")
        if sample is not None:
            name = item.nodeid.partition("[")[0]
            if seen[name] % sample.args[0]:
                item.add_marker(pytest.mark.slow)
            seen[name] += 1


def pytest_collection_finish() -> None:
    """Leave what stays, the tests themselves, out of every later search for garbage."""
    gc.collect()
    gc.freeze()


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
    """Load the plug-ins of this tree, as far as their packages are there, and nobody else's."""
    present = [line for line in SOURCE_TREE if importlib.util.find_spec(line.split()[-1].partition(".")[0])]
    return load_plugins(present, installed=False)


def examples(number: int, **more: Any) -> hypothesis.settings:
    """Try `number` examples in `make test-all`, and as many less in `make test` as of the usual 100."""
    return hypothesis.settings(max_examples=max(1, number * hypothesis.settings().max_examples // 100), **more)


def slow_but(quick: Iterable[object], values: Iterable[object]) -> list[object]:
    """Return cases of a test of which all but the `quick` ones are slow; a tuple is several values."""
    few = list(quick)
    several = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*each, marks=() if each in few or each[0] in few else pytest.mark.slow) for each in several]


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
