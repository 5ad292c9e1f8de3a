"""Faults planted by hand, each of which a made-up program must find, and a small program be cut from."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from kernbench_builtin.triton import logic, scalars
from kernbench_core.compiled import is_compiled
from kernbench_core.compute.ops import OPS
from kernbench_core.kernel.tl import language
from kernbench_core.kernel.tl.tensor import Tensor
from kernbench_core.values import value as values
from kernbench_core.values import views
from kernbench_core.values.views import FillValue
from tests.reference.generator import Maker
from tests.reference.harness import compare
from tests.reference.shrink import shrink


def _fill_lost_in_views(patch: pytest.MonkeyPatch) -> None:
    view = Tensor.view

    def mutant(self: Tensor, shape: tuple[int, ...]) -> Tensor:
        made = view(self, shape)
        value = made.value
        if isinstance(value, values.AssemblyValue):
            parts = tuple(_without_fill(part) for part in value.parts())
            made.value = values.AssemblyValue(value.shape, value.dtype, parts, value.makers())
        return made

    patch.setattr(Tensor, "view", mutant)


def _without_fill(part: values.Part) -> values.Part:
    if not isinstance(part.source, FillValue):
        return part
    return values.Part(part.dst, FillValue(np.full_like(part.source.array(), 3)), part.src)


def _fill_lost_in_parts(patch: pytest.MonkeyPatch) -> None:
    if is_compiled():
        pytest.skip("compiled code calls sub_parts past the module that it is planted in; .ci/run tries it in Python")
    sub_parts = values.sub_parts

    def mutant(*args: Any) -> list[values.Part]:
        return [part for part in sub_parts(*args) if not isinstance(part.source, FillValue)]

    patch.setattr(values, "sub_parts", mutant)
    patch.setattr("kernbench_core.values.memory_store.sub_parts", mutant)


def _mask_of_a_store_ignored(patch: pytest.MonkeyPatch) -> None:
    known = language.TLContext._known_mask

    def mutant(self: Any, mask: Any, op: str) -> Any:
        return None if op == "tl.store" else known(self, mask, op)

    patch.setattr(language.TLContext, "_known_mask", mutant)


def _sum_in_f16(patch: pytest.MonkeyPatch) -> None:
    def mutant(params: Any, x: Any) -> Any:
        narrow = np.float16 if x.dtype.kind == "f" else x.dtype
        return np.sum(x.astype(narrow), axis=params.get("axis"), keepdims=bool(params.get("keepdims")), dtype=narrow)

    patch.setitem(OPS, "sum", evolve(OPS["sum"], function=mutant))


def _division_floors(patch: pytest.MonkeyPatch) -> None:
    def mutant(params: Any, a: Any, b: Any) -> Any:
        return np.floor_divide(a, np.where(b == 0, 1, b).astype(b.dtype))

    patch.setitem(OPS, "floordiv", evolve(OPS["floordiv"], function=mutant))


def _view_a_row_off(patch: pytest.MonkeyPatch) -> None:
    view_of = views.view_of

    def mutant(source: Any, src: Any, shape: Any, dtype: str) -> Any:
        moved = values.Region(src.base + src.row_bytes, src.row_bytes, src.rows, src.pitch)
        inside = src.base and moved.base + (src.rows - 1) * src.pitch + src.row_bytes <= source.nbytes
        return view_of(source, moved if inside else src, shape, dtype)

    patch.setattr("kernbench_core.values.memory_store.view_of", mutant)


def _load_sees_a_later_store(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(language.TLContext, "_wait_for_others", lambda self, command: None, raising=False)


def _branch_on_stale_data(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        "kernbench_core.compute.on_demand.OnDemand.array", lambda self, value, why, **_: np.zeros(value.shape, "f4")
    )


def _names_give_numbers_no_type(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(logic, "_CALLS", {**logic._CALLS, "__named__": lambda value: value})


def _annotations_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scalars, "annotated", lambda annotation: None)


def _places_of_nan(patch: pytest.MonkeyPatch) -> None:
    def mutant(params: Any, x: Any) -> Any:
        return np.asarray(np.argmax(x, axis=params.get("axis"), keepdims=bool(params.get("keepdims"))))

    patch.setitem(OPS, "argmax", evolve(OPS["argmax"], function=mutant))


#: Each fault with a seed that finds it.
FAULTS: dict[Callable[[pytest.MonkeyPatch], None], int] = {
    _fill_lost_in_parts: 1,
    _fill_lost_in_views: 19,
    _mask_of_a_store_ignored: 57,
    _sum_in_f16: 125,
    _division_floors: 29,
    _view_a_row_off: 2,
    _load_sees_a_later_store: 0,
    _branch_on_stale_data: 26,
    _names_give_numbers_no_type: 40007,
    _annotations_ignored: 40100,
    _places_of_nan: 40154,
}


@pytest.mark.parametrize(
    ("fault", "seed"), FAULTS.items(), ids=lambda each: getattr(each, "__name__", str(each)).strip("_")
)
def test_a_planted_fault_is_found(fault: Callable[[pytest.MonkeyPatch], None], seed: int) -> None:
    program = Maker(seed).program()
    assert compare(program) is None
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        assert compare(program) is not None


def test_a_mismatch_is_cut_down() -> None:
    program = Maker(48).program()  # one of a few dozen that find this fault which is soon small
    with pytest.MonkeyPatch.context() as patch:
        _division_floors(patch)
        mismatch = compare(program)
        assert mismatch is not None
        small, still = shrink(program, mismatch, math.inf)
    assert still.kind == "value"
    text = small.source()
    assert text.count("//") == 1
    assert text.count("tl.") <= 6
    assert compare(small) is None
