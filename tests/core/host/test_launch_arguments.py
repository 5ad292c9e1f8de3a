"""What `rt.launch` takes: devices in every spelling, and arguments in every form that Python has."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from kernbench_core.errors import KernelError, UsageError
from kernbench_core.graph import PeSite
from kernbench_core.host.launch_arguments import bind_arguments, choose_pes

SITES = tuple(PeSite(i, i // 2, 0, i % 2, f"p{i}", f"c{i}", f"h{i}", "m", "io") for i in range(6))


@pytest.mark.parametrize(
    ("device", "sips"),
    [
        (None, {0, 1, 2}), ("all", {0, 1, 2}), (1, {1}), ("sip:2", {2}), ([2, 0], {0, 2}), ((1, 1), {1}),
        ({0}, {0}), (range(3), {0, 1, 2}), ((n for n in (1, 2)), {1, 2}),
    ],
)  # fmt: skip
def test_a_device_is_some_sips(device: Any, sips: set[int]) -> None:
    """PEs keep their order; an iterable that can be gone through once is enough."""
    assert choose_pes(SITES, device) == tuple(site for site in SITES if site.sip in sips)


FORM = "rt.launch: device must be the number of a SIP, several of them, 'sip:N' or 'all', not "
UNKNOWN = "rt.launch: device must name SIPs of this run, not "


@pytest.mark.parametrize(
    ("device", "sentence"),
    [
        (7, f"{UNKNOWN}[7]; this run has [0, 1, 2]."),
        ([0, 7], f"{UNKNOWN}[0, 7]; this run has [0, 1, 2]."),
        ((), f"{UNKNOWN}[]; this run has [0, 1, 2]."),
        ("sip:3", f"{UNKNOWN}[3]; this run has [0, 1, 2]."),
        ("gpu", f"{FORM}'gpu'."),
        ("sip:-1", f"{FORM}'sip:-1'."),
        (["0"], f"{FORM}['0']."),
        (True, f"{FORM}[True]."),
        (1.0, f"{FORM}[1.0]."),
    ],
)
def test_what_is_no_device_is_a_sentence(device: Any, sentence: str) -> None:
    """A form that means nothing, and SIPs that are not there."""
    with pytest.raises(UsageError) as caught:
        choose_pes(SITES, device)
    assert str(caught.value) == sentence


def plain(a: Any, b: Any = 2, *, tl: Any) -> Any:
    return a, b, tl


def many(*ptrs: Any, tl: Any) -> Any:
    return ptrs, tl


def before(a: Any, tl: Any, *ptrs: Any, c: Any = 3, **more: Any) -> Any:
    return a, tl, ptrs, c, more


def only(a: Any, tl: Any, /, b: Any = 5) -> Any:
    return a, tl, b


def last(a: Any = 1, tl: Any = None, b: Any = 2) -> Any:
    return a, tl, b


@pytest.mark.parametrize(
    ("kernel", "args", "kwargs", "seen"),
    [
        (plain, (1,), {}, (1, 2, "T")),
        (plain, (), {"a": 4, "b": 5}, (4, 5, "T")),
        (many, (), {}, ((), "T")),
        (many, (1, 2, 3), {}, ((1, 2, 3), "T")),
        (before, (1,), {"x": 7}, (1, "T", (), 3, {"x": 7})),
        (before, (1, 8, 9), {"c": 4, "y": 0}, (1, "T", (8, 9), 4, {"y": 0})),
        (only, (1,), {"b": 6}, (1, "T", 6)),
        (last, (9,), {}, (9, "T", 2)),
    ],
)
def test_every_form_of_parameter_gets_its_arguments(
    kernel: Callable[..., Any], args: Any, kwargs: Any, seen: Any
) -> None:
    """Bound by name without tl, then called with it: as if tl had been left out of the signature."""
    arguments = bind_arguments(kernel, args, kwargs)
    bound = inspect.BoundArguments(inspect.signature(kernel), {**arguments, "tl": "T"})  # type: ignore[arg-type]
    assert kernel(*bound.args, **bound.kwargs) == seen


def no_tl(*tl: Any) -> None:
    """Lack a parameter named tl that holds one thing."""


@pytest.mark.parametrize(
    ("kernel", "kwargs", "error", "sentence"),
    [
        (5, {}, UsageError, "rt.launch: the kernel must be a function, not 5; give it first."),
        (no_tl, {}, KernelError, "kernel 'no_tl' must have a parameter named 'tl'; add it, last by custom."),
        (
            before,
            {"a": 1, "tl": 3},
            UsageError,
            "rt.launch: argument 'tl' of kernel 'before' must be left out; every program has its own.",
        ),
    ],
)
def test_what_cannot_be_called_is_a_sentence(kernel: Any, kwargs: Any, error: type[Exception], sentence: str) -> None:
    """Neither a silent overwrite of tl nor a TypeError."""
    with pytest.raises(error) as caught:
        bind_arguments(kernel, (), kwargs)
    assert str(caught.value) == sentence
