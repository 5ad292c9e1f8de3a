"""Other data in the place of what a run was given: the same ops on other inputs, without simulating again.

A value is immutable and says what it is made of, so the values of a log can be made anew from other arrays. What a
kernel decided while it ran stays decided: only the data that ops compute follows the new inputs.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernbench_core.errors import ExecutionError
from kernbench_core.values.arrays import Array
from kernbench_core.values.dtypes import numpy_dtype
from kernbench_core.values.region import Region
from kernbench_core.values.value import ArrayValue, AssemblyValue, LoadedValue, Part, ResultValue, Value
from kernbench_core.values.views import view_of


class Substitution:
    """Make values anew with other `arrays` in the place of some; each value is made once.

    The keys are ready values as the host put them into memory each array has the shape and
    dtype of its value. Raise ExecutionError for an array that does not fit, and for data that an op computed while its
    kernel ran (`tl` does so for integers), which cannot follow. Without arrays all is made anew from the same data.
    """

    def __init__(self, arrays: Mapping[ArrayValue, Array]) -> None:
        self._made: dict[int, Value] = {}
        self._keep: list[Value] = []
        self._all_stay = not arrays
        for value, array in arrays.items():
            if array.shape != value.shape or array.dtype != numpy_dtype(value.dtype):
                raise ExecutionError(
                    f"Data in the place of {value.dtype}{list(value.shape)} must have that shape and dtype, not "
                    f"{array.dtype.name}{list(array.shape)}; give an array like the first one."
                )
            self._note(value, ArrayValue(array))

    def of(self, value: Value) -> Value:
        """Return the value made anew, or itself where nothing that it is made of was replaced."""
        found = self._made.get(id(value))
        return self._note(value, self._make(value)) if found is None else found

    def _note(self, value: Value, made: Value) -> Value:
        self._keep.append(value)  # an id is a name only while its object lives
        self._made[id(value)] = made
        return made

    def _make(self, value: Value) -> Value:
        if isinstance(value, ResultValue):
            return ResultValue(value.op_id, value.shape, value.dtype)
        if isinstance(value, LoadedValue):
            return value if not value.bound else self.of(value.content())
        if isinstance(value, AssemblyValue):
            parts = value.parts()
            made = tuple(Part(part.dst, self.of(part.source), part.src) for part in parts)
            if all(new.source is old.source for new, old in zip(made, parts, strict=True)):
                return value
            return AssemblyValue(value.shape, value.dtype, made, value.makers())
        if not isinstance(value, ArrayValue):
            return value
        if value.writer is not None and not self._all_stay:
            pe, issue = value.writer
            raise ExecutionError(
                f"The result of op {issue} of PE {pe} was computed while its kernel ran, and cannot follow other "
                "inputs; simulate again with them."
            )
        return value if value.origin is None or value.src is None else self._view(value, value.origin, value.src)

    def _view(self, value: ArrayValue, origin: ArrayValue, src: Region) -> Value:
        made = self.of(origin)
        if made is origin:
            return value
        whole = Region(0, value.nbytes)
        view = view_of(made, src, value.shape, value.dtype) if isinstance(made, ArrayValue) else None
        return AssemblyValue(value.shape, value.dtype, (Part(whole, made, src),)) if view is None else view
