"""A call site is the user's own innermost line, however deep the machinery below it."""

from __future__ import annotations

from typing import Any

from kernbench_core.callsite import call_site, describe_site, line_number, site_of_frame, site_of_traceback
from kernbench_core.errors import ShapeError
from kernbench_core.kernel.index import IndexTensor, broadcast_shapes


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
