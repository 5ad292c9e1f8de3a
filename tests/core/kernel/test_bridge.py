"""The bridge stops a plain function in the middle and continues it."""

from __future__ import annotations

import sys

import pytest

from kernbench_core.callsite import describe_site, site_of_frame
from kernbench_core.errors import KernelError
from kernbench_core.kernel.bridge import Bridge, in_kernel


def test_requests_come_out_and_answers_go_in() -> None:
    """Each suspend hands a request out and gives what resume brings; the return value comes last."""
    def body() -> int:
        first = bridge.suspend(("give", 1))
        second = bridge.suspend(("give", 5))
        return int(first) + int(second)

    bridge = Bridge(body)
    assert bridge.resume() == ("give", 1)
    assert bridge.resume(10) == ("give", 5)
    assert not bridge.finished
    assert bridge.resume(20).value == 30
    assert bridge.finished


def test_an_exception_leaves_through_resume() -> None:
    """What the function raises reaches the one who resumed it, with its own traceback."""
    def body() -> None:
        bridge.suspend("once")
        raise ZeroDivisionError("mine")

    bridge = Bridge(body)
    bridge.resume()
    with pytest.raises(ZeroDivisionError, match=r"^mine$") as caught:
        bridge.resume()
    assert caught.traceback[-1].name == "body"
    assert bridge.finished


def test_throw_raises_at_the_suspended_place() -> None:
    """The function may catch what is thrown in and go on."""
    def body() -> str:
        try:
            bridge.suspend("wait")
        except KeyError:
            return "caught"
        return "missed"

    bridge = Bridge(body)
    bridge.resume()
    assert bridge.throw(KeyError("late")).value == "caught"


def test_close_unwinds() -> None:
    """Closing runs the finally blocks of a function that never ends, and does nothing to a finished one."""
    seen: list[str] = []

    def body() -> None:
        try:
            bridge.suspend("wait")
        finally:
            seen.append("unwound")

    bridge = Bridge(body)
    bridge.resume()
    bridge.close()
    bridge.close()
    assert seen == ["unwound"]
    assert bridge.finished
    never_started = Bridge(body)
    never_started.close()
    assert seen == ["unwound"]


def test_bridges_nest_and_move() -> None:
    """A bridge may be resumed from inside another one: requests go to whoever resumed it last."""
    def inner_body() -> str:
        got = inner.suspend("first")
        inner.suspend(got)
        return "done"

    inner = Bridge(inner_body)

    def outer_body() -> object:
        return inner.resume("answer")

    assert inner.resume() == "first"
    outer = Bridge(outer_body)
    assert outer.resume().value == "answer"
    assert inner.resume().value == "done"


def test_the_suspended_line_is_known() -> None:
    """The frame of a suspended function names the line it stands at; a running or finished one has none."""
    def body() -> None:
        assert bridge.inside
        bridge.suspend("here")

    bridge = Bridge(body)
    assert not bridge.inside
    bridge.resume()
    expected = body.__code__.co_firstlineno + 2
    assert describe_site(site_of_frame(bridge.frame)) == f"{__file__}:{expected}"
    bridge.resume()
    assert bridge.frame is None


def test_print_works_inside(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output inside the function is the one outside."""
    bridge = Bridge(lambda: print("hello from inside"))
    bridge.resume()
    assert capsys.readouterr().out == "hello from inside\n"


def test_breakpoint_works_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """`breakpoint()` reaches the hook with the function's frame as its caller."""
    seen: list[str] = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: seen.append(sys._getframe(1).f_code.co_name))

    def body() -> None:
        breakpoint()

    Bridge(body).resume()
    assert seen == ["body"]


def test_only_the_function_itself_can_suspend() -> None:
    """A call from outside, or from another bridge, is refused, and neither function is disturbed."""
    outer = Bridge(lambda: outer.suspend("wait"))
    assert outer.resume() == "wait"
    inner = Bridge(lambda: outer.suspend("stolen"))
    for call in (lambda: outer.suspend("stolen"), inner.resume):
        with pytest.raises(KernelError) as caught:
            call()
        assert str(caught.value) == (
            "a call that takes simulated time must be made by the kernel or host program that was given the tl or rt, "
            "while it runs, not from elsewhere; call it there."
        )
    assert outer.resume("answer").value == "answer"


def test_a_kernel_is_told_from_a_host_program() -> None:
    """Only the innermost function counts: a host program that a kernel runs is none."""
    def kernel() -> tuple[object, object]:
        return in_kernel(), Bridge(in_kernel).resume().value

    assert not in_kernel()
    assert Bridge(in_kernel).resume().value is False
    assert Bridge(kernel, kernel=True).resume().value == (True, False)
