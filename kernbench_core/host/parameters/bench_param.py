"""One parameter of a bench, and what a text or a value that is given for it becomes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import attrs

from kernbench_core.process.whole_files import is_file
from kernbench_core.units import finite
from kernbench_core.values.masks import NO_MASK, has_mask

_ARGUMENT = "a number, true, false, none, a .npy file, empty:DTYPE:SHAPE or zeros:DTYPE:SHAPE"
_WORDS = {
    "int": "an integer", "float": "a finite number", "str": "text", "bool": "true or false", "npy": "a .npy file",
    "argument": _ARGUMENT, "constant": f"{_ARGUMENT}, a dtype as tl.float16, or text",
}  # fmt: skip


@attrs.frozen
class BenchParam:
    """One parameter of a bench. `kind` is "int", "float", "str", "bool", "choice" or "npy".

    Of a kernel that is run alone it is "argument", or "constant" where a text may be given, too. In place of a number
    one of the `choices` may stand, if there are any.

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
        listed = ", ".join(repr(choice) for choice in self.choices)
        if self.kind == "choice":
            return f"one of {listed}"
        return f"{_WORDS[self.kind]} or {listed}" if listed else _WORDS[self.kind]

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


def converted(param: BenchParam, given: object, folder: Path) -> object:
    """Return what the bench gets for a text or value; ValueError, with the reason if there is more to say, for none."""
    if given is None and (param.optional or param.default is None):
        return None
    if has_mask(given):
        raise ValueError(f"it must be {NO_MASK}")
    if param.kind == "npy":
        return array_of(given, folder)
    return _parsed(param, given) if isinstance(given, str) else _checked(param, given)


def _parsed(param: BenchParam, text: str) -> object:
    if param.kind in ("int", "float") and text not in param.choices:
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
    if isinstance(value, str) and (param.kind == "str" or value in param.choices):
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


def array_of(given: object, folder: Path) -> Any:
    """Load a `.npy` file, or take an array as it is; raise ValueError saying what is wrong with it."""
    import numpy as np

    if isinstance(given, np.ndarray):
        return given
    if not isinstance(given, str | Path):
        raise ValueError
    path = folder / given
    if not is_file(path):
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
