"""Run a kernel alone, with arrays for its tensors: a launch of its own, on a machine of its own."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import attrs

from kernbench_core.errors import UsageError
from kernbench_core.host.launch_arguments import bind_arguments, full_grid, kernel_signature, name_of
from kernbench_core.host.programs import KERNEL, ProgramKinds
from kernbench_core.kernel.arguments import replace_nested
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.runs.bench_run import OF_TRIALS, run
from kernbench_core.runs.options import RunCall, plain_annotation
from kernbench_core.runs.parts import parts_of

if TYPE_CHECKING:
    from kernbench_core.host.bench import Bench
    from kernbench_core.host.device_tensor import DeviceTensor
    from kernbench_core.host.runtime import Runtime
    from kernbench_core.values.arrays import Array

    from .runs import ResultWithFigures

#: Options of a run that need a bench: what checks its data, and what writes its source down.
_NOT_HERE = ("bench", "params", "verify_data", "grid", "cached", "depends")
_OPTIONS = tuple(field.name for field in attrs.fields(RunCall) if field.name not in _NOT_HERE)
_OF_MACHINE = ("topology", "components", "set", "plugins")
_PLAIN = (bool, int, float, str)


def launch(kernel: Callable[..., object], *args: object, **given: Any) -> ResultWithFigures:
    """Run `kernel(*args, **kwargs, tl)` alone and return the result, whose `outputs` are what it wrote, by parameter.

    Each numpy array among the arguments, ml_dtypes' among them, becomes a tensor of the device that is called as the
    kernel's parameter, "rest[0]" inside a tuple or list; rows are dealt over the PEs, and the content is there when the
    kernel starts. An array that is given twice is one tensor, called as the first parameter; of arrays that share a
    part of their memory each is a copy. The caller's arrays stay as they are. Everything else is given to the kernel as
    it is. Without `grid` there is one program per PE, as in `rt.launch`. The options are those of `kb.run` that need no
    bench.

    A function of a kind that a plug-in brings, as one that `triton.jit` decorated, is launched on a machine of its own,
    too, and has no `tl`; its `grid` may be a function of its arguments.

    Raise the KernbenchError that says what is wrong, as `kb.run` does.

    >>> import numpy as np
    >>> def double(x, y, n, tl):
    ...     tl.store(y + tl.arange(0, n), tl.load(x + tl.arange(0, n)) * 2)
    >>> result = kb.launch(double, np.arange(8, dtype="f4"), np.zeros(8, "f4"), 8, topology="tiny", grid=(1,))
    >>> result.outputs["y"].tolist()
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]
    """
    opened = _opened(kernel, given)
    if opened is not None:
        kernel = opened
    options, kwargs = _split_arguments(kernel, args, given)
    grid = options.pop("grid", None)
    if grid is not None and not (callable(grid) and opened is not None):
        grid = full_grid(grid, "kb.launch")
    arguments = bind_arguments(kernel, args, kwargs, "kb.launch")
    for name, value in arguments.items():
        _check(name_of(kernel), name, value)
    if opened is not None:
        return _run_opened(opened, arguments, grid, options)
    return cast("ResultWithFigures", run(_program(kernel, arguments, grid), **options))


@attrs.frozen
class _Given:
    """A grid as Python gives it: extents, or a function of the kernel's arguments."""

    extents: Any
    text = "grid"
    names = ()

    def of(self, arguments: Mapping[str, Any]) -> Any:
        """Return the extents."""
        return self.extents(arguments) if callable(self.extents) else self.extents


class _Opened:
    """A kernel of a kind that a plug-in brings, as other kernels look: with a parameter `tl`."""

    def __init__(self, kernel: Any, bench: Bench, plugins: Plugins) -> None:
        functools.update_wrapper(self, kernel)
        self.bench, self.plugins = bench, plugins
        tl = inspect.Parameter("tl", inspect.Parameter.KEYWORD_ONLY)
        own = [
            inspect.Parameter(
                each.name, tl.POSITIONAL_OR_KEYWORD, default=inspect.Parameter.empty if each.required else each.default
            )
            for each in bench.params
        ]
        self.__signature__ = inspect.Signature([*own, tl])

    def __call__(self, **arguments: object) -> None:
        """Call the function inside a kernel."""
        self.bench.function(**arguments)


def _opened(kernel: object, given: Mapping[str, Any]) -> _Opened | None:
    """Return a kernel of a kind that a plug-in brings; None for any other."""
    if not callable(kernel) or KERNEL.is_one(kernel):
        return None
    plugins = given.get("plugins")
    plugins = plugins if isinstance(plugins, Plugins) else load_plugins()
    bench = ProgramKinds(plugins).open(name_of(kernel), kernel)
    return None if bench is None else _Opened(kernel, bench, plugins)


def _run_opened(
    kernel: _Opened, arguments: Mapping[str, object], grid: Any, options: dict[str, Any]
) -> ResultWithFigures:
    if grid is None and kernel.bench.needs_grid:
        raise UsageError(
            f"kb.launch: kernel {name_of(kernel)!r} must have a grid; add grid=(x,), grid=(x, y) or grid=(x, y, z)."
        )
    options = {"plugins": kernel.plugins, **kernel.bench.defaults, **options}
    of_trials = {name: options[name] for name in (*OF_TRIALS, *_OF_MACHINE) if name in options}
    launched = kernel.bench.host_program(None if grid is None else _Given(grid), functools.partial(run, **of_trials))

    def program(rt: Runtime, /, **shown: object) -> None:
        launched(rt, **arguments)

    return cast("ResultWithFigures", run(_shown(program, kernel, arguments), **options))


def _split_arguments(
    kernel: Callable[..., object], args: tuple[object, ...], given: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Divide keyword arguments into options and those of the kernel.

    Raise UsageError for a name that could be either, and for one that is neither.
    """
    signature = kernel_signature(kernel, "kb.launch")
    own = dict(signature.parameters)
    for name in list(own)[: len(args)]:
        if own[name].kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD):
            del own[name]
    known = {"grid", *_OPTIONS, *_of_parts(given.get("plugins"))}
    for name in given:
        if name in own and name in known:
            raise UsageError(
                f"kb.launch: argument {name!r} must be that of kernel {name_of(kernel)!r} or the option of this name, "
                "and could be either; give the kernel's by position."
            )
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in own.values())
    for name in given:
        if name not in known and name not in signature.parameters and not takes_any and name != "tl":
            raise UsageError(
                f"kb.launch: argument {name!r} must be a parameter of kernel {name_of(kernel)!r}{signature} or one of "
                f"the options {', '.join(sorted(known))}; correct its name."
            )
    return (
        {name: value for name, value in given.items() if name in known},
        {name: value for name, value in given.items() if name not in known},
    )


def _of_parts(plugins: Plugins | None) -> Iterator[str]:
    """Yield the options of parts of runs, but for those that need a bench."""
    for part in parts_of(load_plugins() if plugins is None else plugins):
        yield from (name for name in attrs.fields_dict(part.OPTIONS) if name not in _NOT_HERE)


def _check(kernel: str, name: str, value: object) -> None:
    """Raise UsageError for an array that cannot be a tensor, and for a tensor of somebody else."""
    import numpy as np

    from kernbench_core.values.dtypes import NAMES, is_known

    def array(given: Any) -> Any:
        if not is_known(given.dtype):
            raise UsageError(
                f"kb.launch: array {name!r} of kernel {kernel!r} must be of dtype {', '.join(NAMES)}, not "
                f"{given.dtype}; cast it, as in {name}.astype(np.float32)."
            )
        if not given.size:
            raise UsageError(
                f"kb.launch: array {name!r} of kernel {kernel!r} must hold an element, not be of shape {given.shape}."
            )
        return given

    replace_nested(value, np.ndarray, array)
    foreign = hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__")
    if foreign and not isinstance(value, np.ndarray | np.generic):
        raise UsageError(
            f"kb.launch: argument {name!r} of kernel {kernel!r} must be a numpy array to become a tensor, not a "
            f"{type(value).__name__}; give numpy.asarray({name})."
        )


def _program(
    kernel: Callable[..., object],
    arguments: Mapping[str, object],
    grid: tuple[int, ...] | None,
) -> Callable[..., None]:
    """Return the host program that places the arrays and launches the kernel.

    The arrays and plain values among its arguments are what the result and the manifest show.
    """
    import numpy as np

    from kernbench_core.values.dtypes import dtype_name

    signature = kernel_signature(kernel)

    def program(rt: Runtime, /, **shown: object) -> None:
        tensors: dict[object, DeviceTensor] = {}

        def placed(value: object, names: Callable[[], str]) -> object:
            def place(array: Array) -> DeviceTensor:
                name, memory = names(), (array.ctypes.data, array.shape, array.strides, array.dtype)
                if memory not in tensors:
                    tensors[memory] = rt.tensor(array, dtype_name(array.dtype), name=name, resident=True)
                return tensors[memory]

            return replace_nested(value, np.ndarray, place)

        made: dict[str, Any] = {}
        for name, value in arguments.items():
            if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD and isinstance(value, dict):
                made[name] = {key: placed(each, _names(key, each)) for key, each in value.items()}
            else:
                made[name] = placed(value, _names(name, value))
        bound = inspect.BoundArguments(signature, made)
        rt.launch(kernel, *bound.args, grid=grid, **bound.kwargs)

    return _shown(program, kernel, arguments)


def _shown(
    program: Callable[..., None], kernel: Callable[..., object], arguments: Mapping[str, object]
) -> Callable[..., None]:
    """Give a host program the arrays and plain values among the arguments as its parameters, and the kernel's name."""
    import numpy as np

    parameters = [inspect.Parameter("rt", inspect.Parameter.POSITIONAL_ONLY)]
    for name, value in arguments.items():
        if name != "rt" and (type(value) in _PLAIN or isinstance(value, np.ndarray)):
            kind = np.ndarray if isinstance(value, np.ndarray) else type(value)
            parameters.append(
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value, annotation=kind)
            )
    program.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    program.__name__, program.__doc__ = name_of(kernel), kernel.__doc__
    return program


def _names(name: str, value: object) -> Callable[[], str]:
    """Return what gives the names of the arrays in `value`: `name` itself, or "name[0]", "name[1]", … one by one."""
    import numpy as np

    if isinstance(value, np.ndarray):
        return lambda: name
    numbers = itertools.count()
    return lambda: f"{name}[{next(numbers)}]"


def _signature() -> inspect.Signature:
    """Return what `launch` takes, for `help` and editors: the options are those of the record."""
    own = inspect.signature(launch)
    options = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=plain_annotation(parameter.annotation))
        for name, parameter in inspect.signature(RunCall).parameters.items()
        if name in _OPTIONS
    ]
    grid = inspect.Parameter(
        "grid", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="tuple[int, ...] | None"
    )
    first, rest, more = own.parameters.values()
    return own.replace(parameters=[first, rest, grid, *options, more.replace(name="kwargs")])


launch.__signature__ = _signature()  # type: ignore[attr-defined]
