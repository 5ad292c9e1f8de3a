"""`kb.sizes_from`: a bench whose arrays say its sizes, and which other benches call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from kernbench_builtin.sizes.array_sizes import ANY_SHAPE, ArraySizes, Extents
from kernbench_core.host.bench import SIZES, describe_bench

_Function = TypeVar("_Function", bound=Callable[..., Any])


def sizes_from(
    *, dtypes: Mapping[str, str] | None = None, **shapes: str | Extents | list[Extents]
) -> Callable[[_Function], _Function]:
    """Take sizes and dtypes of a bench from its array parameters, and let other benches call it.

    Each array is given with the names of its extents: of parameters, which then need not be given, or of extents that
    arrays have in common. "heads*tokens" is a product; a list holds one form for each number of dimensions; the bare
    text "n" is what the elements of any shape are counted by. `dtypes` names, for arrays, the parameter that is their
    dtype; by default that is `dtype` for all, where there is one. A size that is given all the same, and contradicts,
    is a UsageError.

    The bench may be called with its `rt` by another one: parameters are checked as those of a run are, and arrays may
    be tensors of the device. `rt.operand` makes either, and None, a tensor.

    >>> @kb.sizes_from(x=("rows", "cols"))
    ... def bench(rt, rows: int = 8, cols: int = 4, dtype: str = "f16", x: "np.ndarray | None" = None):
    ...     return rt.operand(x, (rows, cols), dtype, name="x")
    >>> import numpy as np
    >>> kb.run(bench, "tiny", {"x": np.ones((6, 2), np.float32)}).params["rows"]
    6
    """

    def decorate(function: _Function) -> _Function:
        forms = {name: _forms(form) for name, form in shapes.items()}
        has_dtype = "dtype" in inspect.signature(function).parameters
        named = {name: "dtype" for name in shapes if has_dtype} if dtypes is None else dict(dtypes)

        @functools.wraps(function)
        def call(rt: Any, *args: object, **kwargs: object) -> Any:
            name = function.__name__
            bench = describe_bench(function.__module__.rpartition(".")[2] if name == "bench" else name, call)
            given = {**dict(zip((param.name for param in bench.params), args, strict=False)), **kwargs}
            if len(given) < len(args) + len(kwargs):
                inspect.signature(function).bind(rt, *args, **kwargs)  # which says what is wrong
            for param in bench.params:
                if param.kind == "npy" and isinstance(given.get(param.name), str | Path):
                    given[param.name] = rt.input_file(given[param.name])
            return function(rt, **bench.values(given, tensors=True))

        setattr(call, SIZES, ArraySizes(forms, named))
        return call  # type: ignore[return-value]  # it takes what the function takes

    return decorate


def _forms(form: str | Extents | list[Extents]) -> tuple[Extents, ...]:
    if isinstance(form, str):
        return ((ANY_SHAPE, form),)
    return tuple(form) if isinstance(form, list) else (form,)
