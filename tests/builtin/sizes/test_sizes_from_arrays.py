"""Benches whose arrays say their sizes, and benches that call each other."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from kernbench_builtin.sizes.decorator import sizes_from
from kernbench_core.errors import UsageError
from kernbench_core.host.bench import describe_bench


class Rt:
    """Stand in for the runtime: all that the decorator asks of it."""

    def input_file(self, path: Any) -> Path:
        return Path("elsewhere") / path


@sizes_from(x=("rows", "cols"), scale=("cols",), dtypes={"x": "kind"})
def sized(
    rt: Any,
    rows: int = 2,
    cols: int = 3,
    factor: float = 1,
    kind: Literal["f16", "f32"] = "f16",
    x: np.ndarray | None = None,
    scale: np.ndarray | None = None,
) -> Any:
    """Give back what it was called with."""
    return rows, cols, factor, kind


def test_a_bench_with_sizes_from_arrays_is_described_as_it_is_written() -> None:
    found = describe_bench("sized", sized)
    assert found.sentence == "Give back what it was called with."
    assert [param.kind for param in found.params] == ["int", "int", "float", "choice", "npy", "npy"]
    assert [param.sentence for param in found.params[4:]] == ["Of shape (rows, cols).", "Of shape (cols,)."]


def test_arrays_say_sizes_in_values_and_in_calls() -> None:
    """By the command line's door, and when another bench calls; defaults and conversions are the same."""
    x = np.zeros((5, 7), np.float32)
    values = describe_bench("sized", sized).values({"x": x, "factor": "2"})
    assert (values["rows"], values["cols"], values["factor"], values["kind"]) == (5, 7, 2.0, "f32")
    assert list(values) == ["rows", "cols", "factor", "kind", "x", "scale"]
    assert sized(Rt(), x=x, factor=2) == (5, 7, 2.0, "f32")
    assert type(sized(Rt(), factor=2)[2]) is float
    assert sized(Rt(), 4, 6) == (4, 6, 1.0, "f16")
    assert sized(Rt(), 5, x=x)[:2] == (5, 7)
    assert sized(Rt(), scale=np.zeros(9))[:2] == (2, 9), "its dtype is none of the bench's parameters"


def test_a_contradiction_in_a_call_is_a_sentence() -> None:
    with pytest.raises(UsageError) as caught:
        sized(Rt(), 4, x=np.zeros((5, 7), np.float32))
    assert str(caught.value) == (
        "parameter 'rows' of bench 'sized' must be 5, as in array 'x' of shape (rows, cols) = (5, 7), not 4; leave it "
        "out, or give another array."
    )


def test_a_file_in_a_call_is_one_that_the_run_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("elsewhere").mkdir()
    np.save("elsewhere/x.npy", np.zeros((5, 7), np.float32))
    assert sized(Rt(), x="x.npy")[:2] == (5, 7)


@pytest.mark.parametrize(("args", "kwargs"), [((1, 2), {"rows": 3}), ((1, 2, 3, "f16", None, None, 7), {})])
def test_arguments_that_python_refuses(args: Any, kwargs: Any) -> None:
    with pytest.raises(TypeError, match=r"multiple values for argument 'rows'|too many positional arguments"):
        sized(Rt(), *args, **kwargs)


@pytest.mark.parametrize(
    ("shapes", "named", "words"),
    [
        ({"y": ("rows",)}, "'y'", "an array"),
        ({"rows": ("cols",)}, "'rows'", "an array"),
        ({"x": ("rows", "kind")}, "'kind'", "an integer"),
        ({"x": ("rows*factor",)}, "'factor'", "an integer"),
        ({"x": ("rows",), "dtypes": {"x": "rows"}}, "'rows'", "a text"),
        ({"x": ("rows",), "dtypes": {"x": "dtype"}}, "'dtype'", "a text"),
    ],
)
def test_sizes_of_parameters_that_are_not_there(shapes: Any, named: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        describe_bench("sized", sizes_from(**shapes)(inspect.unwrap(sized)))
    assert str(caught.value) == (
        f"sizes_from of bench 'sized' must name {named} as {words} only if the bench has such a parameter; its "
        "parameters are: rows, cols, factor, kind, x, scale."
    )
