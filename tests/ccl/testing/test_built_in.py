"""What comes with kernbench keeps what the kits ask of strangers' algorithms and collectives."""

from __future__ import annotations

import pytest

from kernbench_builtin.checks import Conformance
from kernbench_ccl.collectives import COLLECTIVES as SHIPPED
from kernbench_ccl.plugin import kernbench_algorithms
from kernbench_core.plugins import Plugins, load_plugins
from tests.conftest import SOURCE_TREE


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return load_plugins(SOURCE_TREE, installed=False)


@pytest.mark.parametrize(
    "name",
    [*SHIPPED, *(entry.name for entry in kernbench_algorithms())],
)
def test_what_comes_with_kernbench_conforms(plugins: Plugins, name: str) -> None:
    """Every check of every algorithm and collective."""
    verdicts = list(Conformance.of("ccl", plugins).results([name]))
    assert len(verdicts) > 5
    assert not [str(each) for each in verdicts if not each.outcome.right]
