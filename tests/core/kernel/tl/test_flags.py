"""What a kernel gives where True or False is asked for."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from kernbench_core.errors import KernelError
from kernbench_core.kernel.tl.language import DIFFERS, OURS, SAME, TLContext
from tests.core.kernel.tl.bodies import collect

A = np.arange(12, dtype=np.float32).reshape(3, 4)


def pair(a: Any, tl: Any) -> tuple[Any, Any]:
    return tl.load(a, shape=(3, 4)), tl.load(a, shape=(4, 3))


def flags() -> list[tuple[str, str]]:
    """Return each name of the language with each of its parameters that is True or False by default."""
    return [
        (name, parameter.name)
        for name in (*SAME, *DIFFERS, *OURS)
        for found in [inspect.getattr_static(TLContext, name, None)]
        if hasattr(found, "__code__")
        if name not in ("issue", "load", "recv", "send")  # which look themselves: see below
        for parameter in inspect.signature(found).parameters.values()
        if isinstance(parameter.default, bool)
    ]


def test_every_flag_of_the_language_refuses_what_is_no_bool() -> None:
    some = {"dot": "wait", "sum": "keep_dims", "cumsum": "reverse"}
    assert some.items() <= {*flags()}
    for name, flag in flags():
        for value in ("no", 1, None, [False]):
            with pytest.raises(KernelError) as caught:
                getattr(TLContext, name)(None, **{flag: value})
            assert str(caught.value).endswith(
                f" must be given True or False as {flag}, not {value!r}; pass {flag}=True or {flag}=False."
            )


@pytest.mark.parametrize(
    ("body", "call", "flag", "value"),
    [
        (lambda a, tl: tl.dot(*pair(a, tl), wait="no"), "dot", "wait", "'no'"),
        (lambda a, tl: tl.load(a, shape=(3, 4), wait="False"), "load", "wait", "'False'"),
        (lambda a, tl: tl.load(a, shape=(3, 4), volatile=1), "load", "volatile", "1"),
        (lambda a, tl: tl.send(tl.load(a, shape=(3, 4)), 1, wait=None), "send", "wait", "None"),
        (lambda a, tl: tl.recv((3, 4), "f32", 1, wait="no"), "recv", "wait", "'no'"),
        (lambda a, tl: tl.recv((3, 4), "f32", 1, copy=[False]), "recv", "copy", "[False]"),
        (lambda a, tl: tl.sum(tl.load(a, shape=(3, 4)), 0, 1), "sum", "keep_dims", "1"),
        (lambda a, tl: tl.load(a, shape=(3, 4)).sum(0, keep_dims="yes"), "sum", "keep_dims", "'yes'"),
        (lambda a, tl: tl.load(a, shape=(3, 4)).to("f16", None, "no"), "cast", "bitcast", "'no'"),
        (lambda a, tl: tl.dot(*pair(a, tl), None, None, "no"), "dot", "allow_tf32", "'no'"),
        (lambda a, tl: tl.issue(None, 1), "issue", "wait", "1"),
        (lambda a, tl: tl.issue(None, wait="no"), "issue", "wait", "'no'"),
    ],
)
def test_the_sentence_has_the_users_line_however_it_is_called(body: Any, call: str, flag: str, value: str) -> None:
    with pytest.raises(KernelError) as caught:
        collect(body, A)
    line = f"{__file__}:{body.__code__.co_firstlineno}"
    assert str(caught.value).partition("\n")[0] == (
        f"tl.{call} at {line} must be given True or False as {flag}, not {value}; pass {flag}=True or {flag}=False."
    )


def test_true_and_false_of_numpy_will_do_and_hints_may_be_none() -> None:
    def body(a: Any, tl: Any) -> Any:
        x = tl.load(a, shape=(3, 4), wait=np.False_)
        tl.dot(x, tl.load(a, shape=(4, 3)), allow_tf32=None, wait=np.bool_(True))
        return tl.sum(x, 0, np.True_)

    assert collect(body, A)[0].shape == (1, 4)
