"""Fixtures for core's own tests."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


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

    The fake module has `plugins` with a bench "toy", a preset "one", an exporter for .txt and a command
    "hello"; `engines` lists the engines made.
    """
    spec = importlib.util.spec_from_file_location("kernbench_test_toy", Path(__file__).parent / "toy.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.install(tmp_path, monkeypatch, samples)
    return module
