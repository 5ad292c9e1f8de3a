"""An algorithm that is checked: which calls of it are timed."""

from __future__ import annotations

import pytest
from attrs import evolve

from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.testing import AlgorithmUnderTest
from kernbench_core.plugins import load_plugins

PLUGINS = load_plugins()


@pytest.mark.parametrize("contributors", [("sip",), ("pe",), ("sip", "pe"), ("pe", "sip")])
def test_those_bring_a_vector_in_timed_calls_who_may(contributors: tuple[str, ...]) -> None:
    """Of several the first; else an algorithm that takes a vector of each PE alone would be checked with others."""
    algorithm = evolve(Catalogue.of(PLUGINS).open("ccl.direct_all_reduce", "all_reduce"), contributors=contributors)
    under_test = AlgorithmUnderTest(algorithm, PLUGINS, ranks=(2,))
    assert under_test.case(2, 5).contributors == contributors[0]
