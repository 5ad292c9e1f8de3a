"""A bench: a function `bench(rt, …)`, found by name or in a file, whose signature is its parameter schema.

The first line of its docstring is its sentence. Each parameter after `rt` is annotated `int`, `float`,
`str`, `bool`, `Literal[…]` of strings, or `np.ndarray` (given as the path of a `.npy` file), or one of these
`| None`; a number may also be a word, `int | Literal["auto"]`. Values typed on a command line and values given in
Python go through the same checks, and so do those that one bench gives another, which it calls.
"""

from __future__ import annotations

import difflib
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import attrs

from kernbench_core.errors import UsageError
from kernbench_core.host.parameters.bench_param import BenchParam as BenchParam
from kernbench_core.host.parameters.bench_param import converted
from kernbench_core.host.parameters.docstrings import argument_sentences
from kernbench_core.host.parameters.grid import KernelGrid
from kernbench_core.host.parameters.kernel_argument import argument
from kernbench_core.host.sources import Sources, file_and_function, read_sources
from kernbench_core.memory.hazard import ORDERS
from kernbench_core.wording import PLAIN, brief, never_runs

if TYPE_CHECKING:
    from kernbench_core.compute.on_demand import HostReads
    from kernbench_core.plugins import BenchEntry, Registry

_KINDS: dict[object, str] = {int: "int", float: "float", str: "str", bool: "bool"}
#: The attribute of a function that says which of its parameters its arrays tell.
SIZES = "kernbench_sizes"
_ARRAY = "an array, or a tensor of this run"
#: Functions of a file that an error names, at most.
_MOST_NAMED = 8


_Function = TypeVar("_Function", bound=Callable[..., Any])


class SaysSizes(Protocol):
    """What says which parameters of a bench its arrays tell."""

    def sentences(self) -> Mapping[str, str]:
        """Return what each array is like, in words."""

    def check(self, bench: str, kinds: Mapping[str, str]) -> None:
        """Raise UsageError where it speaks of parameters that a bench does not have, by their kinds, or not as such."""

    def derive(
        self, bench: str, given: Mapping[str, Any], files: Mapping[str, str], choices: Mapping[str, Sequence[str]]
    ) -> Mapping[str, Any]:
        """Return the parameters that the arrays among those given tell; UsageError where they contradict."""


@attrs.frozen
class Bench:
    """A bench that is ready to be called: `registered` under its name, or from a file's `sources`, or a function.

    `sizes` say which of its parameters its arrays tell. A kernel that is run alone is one, too: then `program` makes
    the `function` for a grid, with what launches trials of configurations, and `defaults` are options of its runs;
    `needs_grid` says that it has no programs by itself. `recipe` gives at the end of a run what a manifest keeps of it
    besides: the `kind` of program that runs it again, and its `launches`. `data_words` say of what was read before the
    end whether that is right, where nothing is compared with a reference, and whether the program failed; `orders` says
    what orders uses of memory.
    """

    name: str
    function: Callable[..., Any]
    sentence: str
    params: tuple[BenchParam, ...]
    sources: Sources | None = None
    registered: bool = False
    sizes: SaysSizes | None = None
    program: Callable[[KernelGrid | None, Any], Callable[..., Any]] | None = None
    defaults: Mapping[str, Any] = attrs.field(factory=dict)
    needs_grid: bool = False
    recipe: Callable[[], Mapping[str, Any]] | None = None
    data_words: Callable[[HostReads], tuple[str, bool]] | None = None
    orders: str = ORDERS

    @property
    def noun(self) -> str:
        """What messages call it."""
        return "bench" if self.program is None else "kernel"

    def host_program(self, grid: KernelGrid | None, run_trial: Callable[..., Any] | None) -> Callable[..., Any]:
        """Return the host program of a run; UsageError where a kernel is to have a grid, and there is none."""
        if self.program is None:
            return self.function
        if grid is None and self.needs_grid:
            raise UsageError(f"kernel {self.name!r} must have a grid; add --grid X, --grid X,Y or --grid X,Y,Z.")
        return self.program(grid, run_trial)

    def importable(self) -> AbstractContextManager[None]:
        """Let the modules beside a bench file be imported while a block runs."""
        return nullcontext() if self.sources is None else self.sources.importable()

    def values(
        self, given: Mapping[str, object], folder: Path | None = None, *, tensors: bool = False
    ) -> dict[str, object]:
        """Check `given` (texts, or Python values) and return the value of every parameter, defaults included.

        A `.npy` parameter becomes a read-only numpy array; its path starts from `folder`, or from the current one.
        With `tensors` it may be one of the device, too. What arrays say of others is not taken from defaults.
        Raise UsageError for an unknown or missing parameter, for a value of the wrong type, and for sizes and arrays
        that contradict each other.
        """
        known = {param.name: param for param in self.params}
        for name in given:
            if name not in known:
                raise UsageError(self._unknown(name))
        values: dict[str, Any] = {
            param.name: self._value(param, given[param.name], folder or Path(), tensors)
            for param in self.params
            if param.name in given
        }
        if self.sizes is not None:
            choices = {param.name: param.choices for param in self.params}
            files = {name: str(file) for name, file in given.items() if isinstance(file, str | Path)}
            said = self.sizes.derive(self.name, values, files, choices)
            values |= {name: value for name, value in said.items() if name in known}
        for param in self.params:
            if param.name in values:
                continue
            if param.required:
                raise UsageError(
                    f"{self.noun} {self.name!r} needs a value for {param.name!r}; give it with -p {param.name}=VALUE."
                )
            values[param.name] = self._default(param, folder or Path())
        return {param.name: values[param.name] for param in self.params}

    def _unknown(self, name: str) -> str:
        names = [param.name for param in self.params]
        close = difflib.get_close_matches(name, names, n=1) or [n for n in names if n.lower() == name.lower()]
        hint = f" Did you mean {close[0]!r}?" if close else ""
        has = ", ".join(names) if names else "none"
        return f"{self.noun} {self.name!r} has no parameter {name!r}; its parameters are: {has}.{hint}"

    def _value(self, param: BenchParam, given: object, folder: Path, tensors: bool) -> object:
        if tensors and param.kind == "npy" and type(given).__name__ == "DeviceTensor":
            return given
        try:
            return _converted(param, given, folder)
        except ValueError as error:
            reason = f" ({error})" if str(error) else ""
            must_be = param.must_be
            if param.kind == "npy" and not isinstance(given, str | Path):
                must_be = _ARRAY if tensors else f"an array or {must_be}"
            raise UsageError(
                f"parameter {param.name!r} of {self.noun} {self.name!r} must be {must_be}, not {brief(given)}{reason}."
            ) from None

    def _default(self, param: BenchParam, folder: Path) -> object:
        """Convert a default as if it were given, so that it is the same when a manifest gives it."""
        try:
            return _converted(param, param.default, folder)
        except ValueError as error:
            reason = f" ({error})" if str(error) else ""
            raise UsageError(
                f"the default of parameter {param.name!r} of bench {self.name!r} must be {param.must_be}, as it is "
                f"annotated, not {brief(param.default)}{reason}; correct either, or give a value."
            ) from None


def _converted(param: BenchParam, given: object, folder: Path) -> object:
    if param.kind in ("argument", "constant"):
        return argument(given, folder, is_constant=param.kind == "constant")
    return converted(param, given, folder)


def open_bench(bench: str | Path | Sources | Callable[..., object], registry: Registry[BenchEntry]) -> Bench:
    """Find a bench by registered name, by the path of a `.py` file or what was read of it, or take a function as it is.

    Behind the path ":NAME" may name another function than `bench`.

    Raise UsageError when there is no such bench, and KernelError when its file cannot be executed.
    """
    if callable(bench):
        name = getattr(bench, "__name__", None)
        if name is None:  # a partial, or an object that can be called: a manifest could not name it
            raise UsageError(f"bench must be a function, not {brief(bench)}; write a function that calls it.")
        return describe_bench(name, bench)
    sources = sources_of(bench)
    if sources is not None:
        return describe_bench(sources.title, function_of(sources), sources)
    text = str(bench)
    function = registry.load(text)
    if not callable(function):
        raise registry.fault(text, f"must be a function bench(rt, …), not {brief(function)}")
    return attrs.evolve(describe_bench(text, function), registered=True)


def sources_of(bench: str | Path | Sources) -> Sources | None:
    """Read the file that is named; None for the name of a registered bench."""
    if isinstance(bench, Sources):
        return bench
    named = file_and_function(str(bench))
    if named is not None:
        return read_sources(Path(named[0]), named[1])
    return read_sources(bench) if isinstance(bench, Path) else None


def describe_bench(name: str, function: Callable[..., object], sources: Sources | None = None) -> Bench:
    """Read a bench's sentence and parameters off its docstring and signature; raise UsageError if it cannot be one."""
    if never_runs(function):
        raise UsageError(f"bench {name!r} {PLAIN}.")
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters:
        raise UsageError(
            f"bench {name!r} must take the runtime as its first parameter: def {function.__name__}(rt, …)."
        )
    params = tuple(_declared(name, parameter, _hint(function, parameter)) for parameter in parameters[1:])
    doc = (inspect.getdoc(function) or "").strip()
    sizes: SaysSizes | None = getattr(function, SIZES, None)
    told = {**({} if sizes is None else sizes.sentences()), **argument_sentences(doc)}
    params = tuple(attrs.evolve(param, sentence=told.get(param.name, "")) for param in params)
    if sizes is not None:
        sizes.check(name, {param.name: param.kind for param in params})
    return Bench(name, function, doc.partition("\n")[0], params, sources, sizes=sizes)


def depends(*places: str) -> Callable[[_Function], _Function]:
    """Say which files and variables a bench reads by itself, so that `cached` runs run again when these change.

    A place is a file, a folder, a pattern of files, from the folder of the bench, or `$NAME`, a variable. What is read
    by `rt.tensor` and `rt.input_file`, parameters and modules need not be named.

    >>> @kb.depends("tables/*.csv", "$SCALE")
    ... def bench(rt, n: int = 64):
    ...     rt.tensor(np.full(n, float(os.environ["SCALE"]), np.float32))
    """

    def decorate(function: _Function) -> _Function:
        function.kernbench_depends = places  # type: ignore[attr-defined]
        return function

    return decorate


def function_of(sources: Sources) -> Callable[..., object]:
    """Execute a file and return its function; UsageError where it has none of that name."""
    module = sources.execute()
    function = getattr(module, sources.function, None)
    if not callable(function):
        has = [name for name, each in vars(module).items() if getattr(each, "__module__", "") == module.__name__]
        hint = f" It has {', '.join(has[:_MOST_NAMED])}: name one behind the path, as FILE.py:{has[0]}." if has else ""
        raise UsageError(f"bench file {str(sources.given)!r} must define a function {sources.function}(rt, …).{hint}")
    found: Callable[..., Any] = function
    return found


def _hint(function: Callable[..., object], parameter: inspect.Parameter) -> object:
    """Evaluate one annotation; that of `rt` may name what only a type checker imports, so it is left alone."""
    if not isinstance(parameter.annotation, str):
        return None if parameter.annotation is inspect.Parameter.empty else parameter.annotation
    try:
        return eval(parameter.annotation, inspect.unwrap(function).__globals__)
    except NameError:
        return parameter.annotation


def _declared(bench: str, parameter: inspect.Parameter, hint: object) -> BenchParam:
    required = parameter.default is inspect.Parameter.empty
    default = None if required else parameter.default
    if hint is None:
        hint = type(default)
    hint, choices, optional = _apart(hint)
    if typing.get_origin(hint) is Literal:
        choices = typing.get_args(hint)
        kind: str | None = "choice"
    else:
        kind = "npy" if _is_array(hint) else _KINDS.get(hint)
    if kind is None or parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        bare = parameter.annotation is inspect.Parameter.empty
        found = "left bare" if bare else repr(parameter.annotation)
        raise UsageError(
            f"parameter {parameter.name!r} of bench {bench!r} must be annotated int, float, str, bool, "
            f"Literal[…] or np.ndarray, or one of these | None, not {found}."
        )
    return BenchParam(parameter.name, kind, optional, required, default, choices)


def _is_array(hint: object) -> bool:
    """Tell whether a hint is numpy's array; `NDArray` is an alias with a `__value__` from numpy 2.5 on."""
    for _ in range(2):
        hint = typing.get_origin(hint) or hint
        hint = getattr(hint, "__value__", hint)
    return getattr(hint, "__name__", "") == "ndarray"


def _apart(hint: object) -> tuple[object, tuple[str, ...], bool]:
    """Return what is left of a union, the words that may stand for its number, and whether None may.

    The tensors that another bench may give for arrays are left out. What is no such union is returned as it is.
    """
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint, (), False
    parts = [part for part in typing.get_args(hint) if getattr(part, "__name__", "") != "DeviceTensor"]
    rest = [part for part in parts if part is not type(None)]
    words = [part for part in rest if typing.get_origin(part) is Literal]
    left = [part for part in rest if part not in words] or rest
    if len(left) != 1 or (words and left[0] not in (int, float, *words)):
        return hint, (), False
    choices = () if left == rest else tuple(word for each in words for word in typing.get_args(each))
    return left[0], choices, len(rest) < len(parts)


def parse_assignments(texts: Sequence[str], option: str) -> dict[str, str]:
    """Split `NAME=VALUE` texts of a command-line option; raise UsageError for one without `=` or given twice."""
    assigned: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise UsageError(f"option {option} must be followed by NAME=VALUE, not {brief(text)}.")
        if name in assigned:
            raise UsageError(f"option {option} must give {name!r} once, not as {assigned[name]!r} and as {value!r}.")
        assigned[name] = value
    return assigned
