"""A bench: a function `bench(rt, …)`, found by name or in a file, whose signature is its parameter schema.

The first line of its docstring is its sentence. Each parameter after `rt` is annotated `int`, `float`,
`str`, `bool`, `Literal[…]` of strings, or `np.ndarray` (given as the path of a `.npy` file), or one of these
`| None`. Values typed on a command line and values given in Python go through the same checks.
"""

from __future__ import annotations

import difflib
import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs

from kernbench_core.errors import UsageError
from kernbench_core.host.sources import Sources, read_sources
from kernbench_core.units import finite

if TYPE_CHECKING:
    from kernbench_core.registry import BenchEntry, Registry

_KINDS: dict[object, str] = {int: "int", float: "float", str: "str", bool: "bool"}
_WORDS = {"int": "an integer", "float": "a finite number", "str": "text", "bool": "true or false", "npy": "a .npy file"}
#: The head of a docstring's section on parameters, in Google's style, and what it says of one.
_HEAD = re.compile(r"(?:Args|Arguments|Parameters):\s*")
_ARGUMENT = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)")


@attrs.frozen
class BenchParam:
    """One parameter of a bench. `kind` is "int", "float", "str", "bool", "choice" or "npy".

    `sentence` is what the bench's docstring says of it.
    """

    name: str
    kind: str
    optional: bool
    required: bool
    default: Any
    choices: tuple[str, ...] = ()
    sentence: str = ""

    @property
    def must_be(self) -> str:
        """What a value must be, in words."""
        if self.kind == "choice":
            return "one of " + ", ".join(repr(choice) for choice in self.choices)
        return _WORDS[self.kind]

    def to_json(self) -> dict[str, object]:
        """Return the plain form that `kernbench list --json` prints."""
        shown: dict[str, object] = {"name": self.name, "type": self.kind, "required": self.required}
        if not self.required:
            shown["default"] = self._shown_default()
        if self.choices:
            shown["choices"] = list(self.choices)
        if self.sentence:
            shown["sentence"] = self.sentence
        return shown

    def _shown_default(self) -> object:
        """Give the default as JSON has it: an array, and what fits no kind, in words."""
        if isinstance(self.default, float):
            return finite(self.default)
        return self.default if isinstance(self.default, int | str | None) else repr(self.default)


@attrs.frozen
class Bench:
    """A bench that is ready to be called: `registered` under its name, or from a file's `sources`, or a function."""

    name: str
    function: Callable[..., Any]
    sentence: str
    params: tuple[BenchParam, ...]
    sources: Sources | None = None
    registered: bool = False

    def importable(self) -> AbstractContextManager[None]:
        """Let the modules beside a bench file be imported while a block runs."""
        return nullcontext() if self.sources is None else self.sources.importable()

    def values(self, given: Mapping[str, object], folder: Path | None = None) -> dict[str, object]:
        """Check `given` (texts, or Python values) and return the value of every parameter, defaults included.

        A `.npy` parameter becomes a read-only numpy array; its path starts from `folder`, or from the current one.
        Raise UsageError for an unknown or missing parameter and for a value of the wrong type.
        """
        known = {param.name: param for param in self.params}
        for name in given:
            if name not in known:
                raise UsageError(self._unknown(name))
        values: dict[str, Any] = {}
        for param in self.params:
            if param.name in given:
                values[param.name] = self._value(param, given[param.name], folder or Path())
            elif param.required:
                raise UsageError(
                    f"bench {self.name!r} needs a value for {param.name!r}; give it with -p {param.name}=VALUE."
                )
            else:
                values[param.name] = self._default(param, folder or Path())
        return values

    def _unknown(self, name: str) -> str:
        names = [param.name for param in self.params]
        close = difflib.get_close_matches(name, names, n=1) or [n for n in names if n.lower() == name.lower()]
        hint = f" Did you mean {close[0]!r}?" if close else ""
        has = ", ".join(names) if names else "none"
        return f"bench {self.name!r} has no parameter {name!r}; its parameters are: {has}.{hint}"

    def _value(self, param: BenchParam, given: object, folder: Path) -> object:
        try:
            return _converted(param, given, folder)
        except ValueError as error:
            reason = f" ({error})" if str(error) else ""
            raise UsageError(
                f"parameter {param.name!r} of bench {self.name!r} must be {param.must_be}, not {given!r}{reason}."
            ) from None

    def _default(self, param: BenchParam, folder: Path) -> object:
        """Convert a default as if it were given, so that it is the same when a manifest gives it."""
        try:
            return _converted(param, param.default, folder)
        except ValueError as error:
            reason = f" ({error})" if str(error) else ""
            raise UsageError(
                f"the default of parameter {param.name!r} of bench {self.name!r} must be {param.must_be}, as it is "
                f"annotated, not {param.default!r}{reason}; correct either, or give a value."
            ) from None


def open_bench(bench: str | Path | Sources | Callable[..., object], registry: Registry[BenchEntry]) -> Bench:
    """Find a bench by registered name, by the path of a `.py` file or what was read of it, or take a function as it is.

    Raise UsageError when there is no such bench, and KernelError when its file cannot be executed.
    """
    if callable(bench):
        return describe_bench(bench.__name__, bench)
    if isinstance(bench, Path) or (isinstance(bench, str) and bench.endswith(".py")):
        bench = read_sources(Path(bench))
    if isinstance(bench, Sources):
        return describe_bench(bench.given.stem, _from_sources(bench), bench)
    text = str(bench)
    function = registry.load(text)
    if not callable(function):
        raise registry.fault(text, f"must be a function bench(rt, …), not {function!r}")
    return attrs.evolve(describe_bench(text, function), registered=True)


def describe_bench(name: str, function: Callable[..., object], sources: Sources | None = None) -> Bench:
    """Read a bench's sentence and parameters off its docstring and signature; raise UsageError if it cannot be one."""
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise UsageError(f"bench {name!r} must be a plain function, with neither yield nor async: it would never run.")
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters:
        raise UsageError(
            f"bench {name!r} must take the runtime as its first parameter: def {function.__name__}(rt, …)."
        )
    params = tuple(_declared(name, parameter, _hint(function, parameter)) for parameter in parameters[1:])
    doc = (inspect.getdoc(function) or "").strip()
    told = argument_sentences(doc)
    params = tuple(attrs.evolve(param, sentence=told.get(param.name, "")) for param in params)
    return Bench(name, function, doc.partition("\n")[0], params, sources)


def argument_sentences(doc: str) -> dict[str, str]:
    """Return what stands behind each name of the section `Args:` of a docstring, its lines joined.

    The section ends with the first line that is indented no more than its head; lines that are indented more than the
    first name go on with what is said of the name above them.
    """
    found: dict[str, list[str]] = {}
    within: list[str] | None = None
    head = names = None
    for line in doc.splitlines():
        indent, text = len(line) - len(line.lstrip()), line.strip()
        if head is None:
            head = indent if _HEAD.fullmatch(text) else None
        elif text and indent <= head:
            break
        elif text:
            names = indent if names is None else names
            argument = _ARGUMENT.fullmatch(text) if indent <= names else None
            if argument is not None:
                within = found.setdefault(argument[1], [])
                within.append(argument[2])
            elif within is not None:
                within.append(text)
    return {name: " ".join(filter(None, lines)) for name, lines in found.items()}


def _from_sources(sources: Sources) -> Callable[..., object]:
    module = sources.execute()
    function = getattr(module, "bench", None)
    if not callable(function):
        raise UsageError(f"bench file {str(sources.given)!r} must define a function bench(rt, …).")
    found: Callable[..., Any] = function
    return found


def _hint(function: Callable[..., object], parameter: inspect.Parameter) -> object:
    """Evaluate one annotation; that of `rt` may name what only a type checker imports, so it is left alone."""
    if not isinstance(parameter.annotation, str):
        return None if parameter.annotation is inspect.Parameter.empty else parameter.annotation
    try:
        return eval(parameter.annotation, function.__globals__)
    except NameError:
        return parameter.annotation


def _declared(bench: str, parameter: inspect.Parameter, hint: object) -> BenchParam:
    required = parameter.default is inspect.Parameter.empty
    default = None if required else parameter.default
    if hint is None:
        hint = type(default)
    hint, optional = _without_none(hint)
    choices: tuple[str, ...] = ()
    if typing.get_origin(hint) is Literal:
        choices = typing.get_args(hint)
        kind: str | None = "choice"
    else:
        array = getattr(typing.get_origin(hint) or hint, "__name__", "") == "ndarray"
        kind = "npy" if array else _KINDS.get(hint)
    if kind is None or parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        bare = parameter.annotation is inspect.Parameter.empty
        found = "left bare" if bare else repr(parameter.annotation)
        raise UsageError(
            f"parameter {parameter.name!r} of bench {bench!r} must be annotated int, float, str, bool, "
            f"Literal[…] or np.ndarray, or one of these | None, not {found}."
        )
    return BenchParam(parameter.name, kind, optional, required, default, choices)


def _without_none(hint: object) -> tuple[object, bool]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        rest = [part for part in typing.get_args(hint) if part is not type(None)]
        if len(rest) == 1 and len(rest) < len(typing.get_args(hint)):
            return rest[0], True
    return hint, False


def _converted(param: BenchParam, given: object, folder: Path) -> object:
    """Return what the bench gets for a text or value; ValueError, with the reason if there is more to say, for none."""
    if given is None and (param.optional or param.default is None):
        return None
    if param.kind == "npy":
        return _array(given, folder)
    return _parsed(param, given) if isinstance(given, str) else _checked(param, given)


def _parsed(param: BenchParam, text: str) -> object:
    if param.kind in ("int", "float"):
        try:
            return _checked(param, int(text) if param.kind == "int" else float(text))
        except ValueError:
            raise ValueError from None
    if param.kind == "bool":
        if text not in ("true", "false"):
            raise ValueError
        return text == "true"
    return _checked(param, text)


def _checked(param: BenchParam, value: Any) -> Any:
    """Return a value of just Python's own type (numpy scalars and enumerations become it); ValueError for any other.

    A number that is not finite is right where it is the default.
    """
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if param.kind == "float" and is_number:
        return _real(value, param.default)
    if param.kind == "int" and is_number and isinstance(value, int):
        return int(value)
    if param.kind == "bool" and isinstance(value, bool):
        return value
    if (param.kind == "str" or (param.kind == "choice" and value in param.choices)) and isinstance(value, str):
        return str.__str__(value)
    raise ValueError


def _real(number: float, default: object) -> float:
    try:
        real = float(number)
    except OverflowError:
        real = math.inf
    if not math.isfinite(real) and not (isinstance(default, float) and str(real) == str(default)):
        raise ValueError
    return real


def _array(given: object, folder: Path) -> object:
    """Load a `.npy` file, or take an array as it is; raise ValueError saying what is wrong with it."""
    import numpy as np

    if isinstance(given, np.ndarray):
        return given
    if not isinstance(given, str | Path):
        raise ValueError
    path = folder / given
    if not path.is_file():
        raise ValueError("there is no such file")
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(_why_not_npy(path, str(error))) from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise ValueError("it holds several arrays")
    array.flags.writeable = False
    return array


def _why_not_npy(path: Path, told: str) -> str:
    """Say why numpy did not read a file; what it says itself misleads, as it takes all else for a pickle."""
    with path.open("rb") as file:
        if file.read(6) != b"\x93NUMPY":
            return "it does not begin like one; save the array with numpy.save"
    return "it holds Python objects; save numbers" if "Object arrays" in told else "it is cut short or damaged"


def parse_assignments(texts: Sequence[str], option: str) -> dict[str, str]:
    """Split `NAME=VALUE` texts of a command-line option; raise UsageError for one without `=` or given twice."""
    assigned: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise UsageError(f"option {option} must be followed by NAME=VALUE, not {text!r}.")
        if name in assigned:
            raise UsageError(f"option {option} must give {name!r} once, not as {assigned[name]!r} and as {value!r}.")
        assigned[name] = value
    return assigned
