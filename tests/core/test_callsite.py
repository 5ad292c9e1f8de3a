"""A call site is the user's own innermost line, however deep the machinery below it."""

from __future__ import annotations

from typing import Any

import pytest

from kernbench_core.callsite import (
    call_site,
    describe_site,
    line_number,
    site_of_frame,
    site_of_traceback,
    user_traceback,
)
from kernbench_core.errors import ShapeError
from kernbench_core.kernel.index import IndexTensor, broadcast_shapes
from kernbench_core.package import is_ours


def test_a_call_site_is_the_line_that_executes() -> None:
    """Also in the middle of a function, on a line after a loop."""
    first = test_a_call_site_is_the_line_that_executes.__code__.co_firstlineno
    sites = []
    for _ in range(2):
        sites.append(call_site())
    later = call_site()
    assert [line_number(site) - first for site in (*sites, later)] == [5, 5, 6]
    assert describe_site(later) == f"{__file__}:{first + 6}"
    assert describe_site(None) == "an unknown line"


def test_machinery_is_skipped() -> None:
    """Frames of core are not the user's; neither are they in a traceback."""
    first = test_machinery_is_skipped.__code__.co_firstlineno
    try:
        IndexTensor((4,), 0, (1,)) + IndexTensor((3,), 0, (1,))
    except ShapeError as error:
        assert describe_site(site_of_traceback(error.__traceback__)) == f"{__file__}:{first + 4}"
        frame = error.__traceback__.tb_next.tb_frame if error.__traceback__ and error.__traceback__.tb_next else None
        assert frame is not None
        assert frame.f_globals["__name__"] == "kernbench_core.kernel.index"
        site = site_of_frame(frame)
        assert site is not None
        assert site[0] is test_machinery_is_skipped.__code__
    assert broadcast_shapes((4, 1), (3,), "x") == (4, 3)
    assert site_of_frame(None) is None


def test_a_module_that_hides_itself_is_no_user_line() -> None:
    """A package between the user and the host API has the user's line named, not its own."""
    hidden: dict[str, Any] = {"__name__": "acme.between", "__tracebackhide__": True, "call_site": call_site}
    exec("def ask():\n    return call_site()", hidden)
    first = test_a_module_that_hides_itself_is_no_user_line.__code__.co_firstlineno
    assert describe_site(hidden["ask"]()) == f"{__file__}:{first + 5}"


@pytest.mark.parametrize(
    ("module", "ours"),
    [
        ("kernbench_core", True),
        ("kernbench_core.kernel.index", True),
        ("kernbench.__main__", True),
        ("kernbench_builtin.triton", True),
        ("kernbench_builtin.sweeps.cli.command", True),
        ("kernbench_builtin.benches.gemm", False),
        ("kernbench_builtin.components.host", False),
        ("kernbench_builtin.sweepstake", False),
        ("kernbench_ccl.algorithms.ring_all_reduce", False),
        ("kernbench_example.models", False),
        ("__main__", False),
        ("", False),
    ],
)
def test_features_are_ours_and_programs_and_models_a_users(module: str, ours: bool) -> None:
    """A feature stands between a user's line and what it asked for, as core does; a bench is a user's program."""
    assert is_ours(module) is ours


def test_a_line_of_a_feature_is_no_users() -> None:
    """Whoever called it asked; in a traceback its frames are left out."""
    feature: dict[str, Any] = {"__name__": "kernbench_builtin.triton.calls", "call_site": call_site}
    exec("def ask(fails=False):\n    return 1 / 0 if fails else call_site()", feature)
    first = test_a_line_of_a_feature_is_no_users.__code__.co_firstlineno
    assert describe_site(feature["ask"]()) == f"{__file__}:{first + 5}"
    with pytest.raises(ZeroDivisionError) as caught:
        feature["ask"](fails=True)
    assert describe_site(site_of_traceback(caught.value.__traceback__)) == f"{__file__}:{first + 7}"
    assert user_traceback(caught.value).count('  File "') == 1
