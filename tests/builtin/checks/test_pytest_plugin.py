"""What pytest is given: a case for each check, and rigs that must come to rest."""

from __future__ import annotations

import pytest

from kernbench_builtin.checks.pytest_plugin import RigMaker, parametrize_checks
from kernbench_core.errors import UsageError
from kernbench_core.plugins import load_plugins
from tests.builtin.checks.faulty_models import Hop, KeepsTheLast
from tests.core.plugin_site import Site

pytest_plugins = ["kernbench_builtin.checks.pytest_plugin", "pytester"]
OPS = """
from kernbench_core import OpEntry
from kernbench_core.compute.ops import Again, MathOp
from kernbench_core.compute.ops.shape_rules import elementwise
from kernbench_core.compute.ops.type_rules import floats
CUBE = MathOp("cube", lambda params, x: x**3, types=floats, shapes=elementwise)
HUMP = MathOp("hump", lambda params, x: x, types=floats, shapes=elementwise, again=Again(lambda params, x: x + 1))
def kernbench_ops():
    return [OpEntry(name, f"{__name__}:{name.upper()}") for name in ("cube", "hump", "gone")]
kernbench_expected_failures = {"hump": {"agrees_with_its_second_way": "as it is", "opens": "as a test"}}
"""
TESTS = """
from kernbench_core.plugins import load_plugins
from kernbench_builtin.checks.pytest_plugin import parametrize_checks

PLUGINS = load_plugins(["acme = acme_cased"], installed=False)

@parametrize_checks("acme", PLUGINS, only=["opens", "keeps_to_its_form", "agrees_with_its_second_way"])
def test_it_keeps_its_word(check):
    check()
"""


def test_a_check_is_a_case(site: Site, pytester: pytest.Pytester) -> None:
    """It passes, fails or is skipped with its reason; what is said to fail must, and what cannot be opened does."""
    site.module("acme_cased", OPS)
    pytester.makepyfile(TESTS)
    ran = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", "-p", "no:kernbench", "-rA")
    ran.assert_outcomes(passed=3, failed=2, skipped=3, xfailed=1)
    ran.stdout.fnmatch_lines_random([
        "*its record has no `again`*",
        "*it does not open*",
        "*[[]XPASS(strict)] as a test*",
        "PASSED *test_it_keeps_its_word[[]cube-keeps_to_its_form]",
        "PluginError: op 'gone' of acme_cased (source tree) must be importable from 'acme_cased:GONE', but that *",
        "XFAIL *test_it_keeps_its_word[[]hump-agrees_with_its_second_way] - as it is",
    ])  # fmt: skip


def test_a_plug_in_that_is_not_there_has_no_cases() -> None:
    """With the nearest that is."""
    plugins = load_plugins(["faulty = tests.builtin.checks.faulty_models"], installed=False)
    with pytest.raises(UsageError) as caught:
        parametrize_checks("faulti", plugins)
    assert str(caught.value) == "plug-in must be one that is loaded, not 'faulti'. Did you mean 'faulty'?"


def test_a_rig_is_made_with_its_options(component_rig: RigMaker) -> None:
    """As `Rig` makes it; what it holds when the test is over, it serves then."""
    rig = component_rig(Hop, {"overhead": "6 ns"}, inputs=2, latency=2.0)
    rig.feed(0, port=1)
    assert [each.time for each in rig.run().arrivals] == [2.0 + 6.0 + 2.0]
    rig.feed(100)


def test_a_model_that_keeps_something_fails_its_test(pytester: pytest.Pytester) -> None:
    """Unless the test says that it may."""
    pytester.makepyfile(f"""
        from tests.builtin.checks.faulty_models import {KeepsTheLast.__name__} as Model
        pytest_plugins = ["kernbench_builtin.checks.pytest_plugin"]

        def test_kept(component_rig):
            component_rig(Model).feed(0)

        def test_may_keep(component_rig):
            component_rig(Model, at_rest=False).feed(0)
    """)
    ran = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", "-p", "no:kernbench")
    ran.assert_outcomes(passed=2, errors=1)
    ran.stdout.fnmatch_lines(["*under_test*must hold nothing in the end, and holds [[]<Ping 0 B at under_test*"])
