"""The command line of collectives, with the algorithms of `faulty.py` registered."""

from __future__ import annotations

import sys
from contextlib import chdir
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from kernbench_core.cli import main
from kernbench_core.plugins import load_plugins, own_plugins


@pytest.fixture(scope="module")
def faulty_plugins(tmp_path_factory):
    """The installed plug-ins and those of a stranger."""
    spec = spec_from_file_location("kernbench_test_faulty", Path(__file__).parents[1].joinpath("faulty.py"))
    faulty = module_from_spec(spec)
    spec.loader.exec_module(faulty)
    folder = tmp_path_factory.mktemp("acme")
    sys.path.insert(0, str(folder))
    try:
        yield load_plugins(
            [*own_plugins(), faulty.write_plugin(folder)],
            installed=False,
        )
    finally:
        sys.path.remove(str(folder))


@pytest.fixture
def call(faulty_plugins, capsys):
    """Run a command line; return its exit code, stdout and stderr."""

    def run(*args, folder="."):
        with chdir(folder):
            code = main(["ccl", *args], faulty_plugins)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
