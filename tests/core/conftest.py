"""Fixtures for core's own tests, and that these see no other package of kernbench."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from kernbench_core.plugins import Plugins, load_plugins
from tests.core.isolation import alone
from tests.core.plugin_site import Site


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, object, object]:
    """Import the files of tests without the other packages."""
    if Path(__file__).parent not in collector.path.parents:
        return (yield)
    with alone():
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test, from its fixtures to the end of these, without them; pytest calls this for the other tests too."""
    if Path(__file__).parent not in item.path.parents:
        return (yield)
    with alone():
        return (yield)


@pytest.fixture(scope="session")
def plugins() -> Plugins:
    """Load no plug-ins: those of this tree are not there for core's tests."""
    return load_plugins([], installed=False)


@pytest.fixture(scope="session")
def samples() -> ModuleType:
    """Give the module `samples` beside this file: results made by hand."""
    spec = importlib.util.spec_from_file_location("kernbench_test_samples", Path(__file__).parent / "samples.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, samples: ModuleType) -> ModuleType:
    """Replace compiler, engine and executor by ones that do nothing but call the bench; give what they saw.

    The fake module has `plugins` with a bench "toy", a preset "one", a part of runs "note" and a command
    "hello"; `engines` lists the engines made.
    """
    spec = importlib.util.spec_from_file_location("kernbench_test_toy", Path(__file__).parent / "toy.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.install(tmp_path, monkeypatch, samples)
    return module

@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Give a folder on the path of imports, where plug-ins are installed by writing them down."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])  # a plug-in file adds its folder
    before = set(sys.modules)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield Site(tmp_path)
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]
