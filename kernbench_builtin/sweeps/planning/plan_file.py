"""A plan in a YAML file, read strictly: every fault of it is told at once, with its line and column."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
from attrs import define, field

from kernbench_builtin.sweeps.axes import PARAM, SET, TOPOLOGY, Axis, axis_of
from kernbench_builtin.sweeps.plan import OPTIONS, TRITON, SweepPlan
from kernbench_builtin.sweeps.shaken import PointOptions
from kernbench_core.errors import ConfigError, UsageError
from kernbench_core.host.sources import file_and_function
from kernbench_core.params import did_you_mean
from kernbench_core.runs.options import Option, command_options
from kernbench_core.topology.strict_yaml import MAX_BYTES, Located, plain, read_yaml
from kernbench_core.units import parse_quantity
from kernbench_core.wording import brief

KEYS: Final[Mapping[str, str]] = {
    "bench": "What is run: a bench, FILE.py, FILE.py:FUNCTION, or triton:FILE.py.",
    "arguments": "The arguments of a script written in Triton; {NAME} is the value of an axis.",
    "topology": "The machine, or a list of machines.",
    "components": "A YAML file merged over every machine, to replace components.",
    "set": "Keys of the configuration, each with a value, a list of values, or a range.",
    "params": "Parameters of the bench, each with a value, a list of values, or a range.",
    "where": "Expressions that hold at every point: the others are left out.",
    "objectives": "What is looked for: figures of a run, or expressions of them.",
    "figures": "A .py file of functions (config, figures) that objectives may name.",
    "sample": "grid, random:N or lhs:N.",
    "seed": "Seed of the sample.",
    "search": "Who chooses points, as nsga2:200.",
    "fidelity": "auto: all points coarsely, and the best again in full.",
    "cached": "Whether runs are taken from the user's cache, and kept there; false without it.",
    "retime": "Whether points that differ in set alone are timed again from one recorded run; false without it.",
    "options": "Options of every run, named as those of kernbench run.",
}
"""What a plan may say, each with its sentence."""
_FILES: Final = ("components", "figures")


def read_plan(path: str | Path) -> SweepPlan:
    """Read a plan; files that it names start from its own folder.

    Raise ConfigError with every fault, each with its place, and UsageError where there is no such file.
    """
    file = Path(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(f"plan {str(path)!r} must be a readable file: {error.strerror}.") from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{path}: file must be at most 4 MiB, not {len(data)} B.")
    try:
        text = data.decode()
    except UnicodeDecodeError as fault:
        wrong = data[fault.start : fault.end]
        raise ConfigError(f"{path}: file must be UTF-8 text, not bytes like {wrong!r}.") from None
    tree = read_yaml(text, str(path))
    if not isinstance(tree.value, dict):
        raise ConfigError(f"{path}:1:1: plan must be a mapping, not {brief(plain(tree))}.")
    return _PlanReader(file.parent).read(tree.value, f"{path}:1:1")


@define
class _PlanReader:
    """Reads one plan, and collects what is wrong with it."""

    folder: Path
    problems: list[str] = field(factory=list)
    axes: list[Axis] = field(factory=list)

    def read(self, given: Mapping[str, Located], start: str) -> SweepPlan:
        for key, item in given.items():
            if key not in KEYS:
                self._fault(item, f"{key} must be a known key.{did_you_mean(key, KEYS)}")
        if "bench" not in given:
            self.problems.append(f"{start}: bench must be given: {KEYS['bench']}")
        found: dict[str, Any] = {}
        for key, read in self._readers().items():
            if key in given:
                found[key] = read(key, given[key])
        if not self.problems:
            try:
                return SweepPlan(**found, axes=self.axes)
            except UsageError as error:  # of the sample
                self._fault(given["sample"], str(error).replace("--sample", "sample"))
        raise ConfigError(*self.problems)

    def _readers(self) -> dict[str, Callable[[str, Located], Any]]:
        texts = dict.fromkeys(("sample", "search", "fidelity"), self._text)
        lists = dict.fromkeys(("where", "objectives", "arguments"), self._texts)
        return {
            "bench": self._bench, "topology": self._topology, "set": self._set, "params": self._params,
            "seed": self._seed, "cached": self._flag, "retime": self._flag, "options": self._options,
            **dict.fromkeys(_FILES, self._file), **texts, **lists,
        }  # fmt: skip

    def _fault(self, item: Located, told: str) -> None:
        self.problems.append(f"{item.place}: {told}")

    def _text(self, key: str, item: Located) -> str:
        if not isinstance(item.value, str) or not item.value.strip():
            self._fault(item, f"{key} must be text, not {brief(plain(item))}.")
            return ""
        return item.value

    def _texts(self, key: str, item: Located) -> tuple[str, ...]:
        """Read one text, or a list of texts; arguments may be numbers."""
        items = item.value if isinstance(item.value, list) else [item]
        if key == "arguments":
            items = [attrs.evolve(each, value=str(each.value)) if _is_number(each) else each for each in items]
        return tuple(self._text(key, each) for each in items)

    def _seed(self, key: str, item: Located) -> int:
        if not isinstance(item.value, int) or isinstance(item.value, bool) or item.value < 0:
            self._fault(item, f"{key} must be an integer of at least 0, not {brief(plain(item))}.")
            return 0
        return item.value

    def _flag(self, key: str, item: Located) -> bool:
        if not isinstance(item.value, bool):
            self._fault(item, f"{key} must be true or false, not {brief(plain(item))}.")
        return bool(item.value)

    def _file(self, key: str, item: Located) -> str:
        return self._here(self._text(key, item))

    def _bench(self, key: str, item: Located) -> str:
        text = self._text(key, item)
        script = text.removeprefix(TRITON)
        return self._here(text) if script == text else f"{TRITON}{self._here(script)}"

    def _here(self, name: str) -> str:
        """Return the path of a file that is beside the plan; other names as they are."""
        found = file_and_function(name)
        file = name if found is None else found[0]
        beside = self.folder / file
        if not file or Path(file).is_absolute() or not beside.is_file():
            return name
        return os.path.normpath(beside) + name[len(file) :]

    def _topology(self, key: str, item: Located) -> str:
        items = item.value if isinstance(item.value, list) else [item]
        names = [self._here(self._text(key, each)) for each in items]
        if isinstance(item.value, list) and len(names) != 1:
            self._axis(TOPOLOGY, TOPOLOGY, item, names)
        return names[0] if names else ""

    def _set(self, key: str, item: Located) -> dict[str, Any]:
        fixed: dict[str, Any] = {}
        if not isinstance(item.value, dict):
            self._fault(item, f"{key} must be a mapping, not {brief(plain(item))}.")
            return fixed
        self._keys("", item, fixed)
        return fixed

    def _keys(self, before: str, section: Located, fixed: dict[str, Any]) -> None:
        """Read keys of the configuration, dotted ones or in sections."""
        for name, item in section.value.items():
            key = f"{before}{name}"
            if isinstance(item.value, dict) and item.value:
                self._keys(f"{key}.", item, fixed)
            elif key in fixed or any(axis.name == key for axis in self.axes):
                self._fault(item, f"{key} must be given once.")
            else:
                self._value(key, SET, item, fixed)

    def _params(self, key: str, item: Located) -> dict[str, Any]:
        fixed: dict[str, Any] = {}
        if not isinstance(item.value, dict):
            self._fault(item, f"{key} must be a mapping, not {brief(plain(item))}.")
            return fixed
        for name, each in item.value.items():
            self._value(name, PARAM, each, fixed)
        return fixed

    def _value(self, name: str, target: str, item: Located, fixed: dict[str, Any]) -> None:
        axis = self._axis(name, target, item, plain(item), keep=False)
        if axis is not None and len(axis.values) == 1:
            fixed[name] = axis.values[0]
        elif axis is not None:
            self.axes.append(axis)

    def _axis(self, name: str, target: str, item: Located, given: object, *, keep: bool = True) -> Axis | None:
        try:
            axis = axis_of(name, target, given)
        except ValueError as fault:
            self._fault(item, f"{name} {fault}")
            return None
        self.axes += [axis] if keep else []
        return axis

    def _options(self, key: str, item: Located) -> dict[str, Any]:
        if not isinstance(item.value, dict):
            self._fault(item, f"{key} must be a mapping, not {brief(plain(item))}.")
            return {}
        options = command_options(PointOptions).items()
        known = {(option.name or name): name for name, option in options if name in OPTIONS}
        known |= {name.replace("-", "_"): field for name, field in known.items()}
        found = {}
        for name, each in item.value.items():
            if name not in known:
                self._fault(each, f"{key}.{name} must be an option of every run.{did_you_mean(name, known)}")
                continue
            field = known[name]
            found[field] = self._option(name, field, each)
        return found

    def _option(self, name: str, field: str, item: Located) -> Any:
        option: Option = command_options(PointOptions)[field]
        default = attrs.fields_dict(PointOptions)[field].default
        value = item.value
        must = "text"
        if isinstance(default, bool):
            right, must = isinstance(value, bool), "true or false"
        elif option.example is not None:
            return self._time(name, option, item)
        elif option.choices:
            right, must = value in option.choices, option.choice
        elif option.least is not None:
            right = isinstance(value, int) and not isinstance(value, bool) and value >= option.least
            must = f"an integer of at least {option.least}"
        else:
            value = str(value) if _is_number(item) else value
            right = isinstance(value, str)
        if not right:
            self._fault(item, f"options.{name} must be {must}, not {brief(plain(item))}.")
        return value

    def _time(self, name: str, option: Option, item: Located) -> float:
        try:
            return float(parse_quantity(item.value, "time", positive=True)) * option.per_ns
        except ValueError:
            told = f"must be a positive time with its unit, as {option.example!r}, not {brief(plain(item))}."
            self._fault(item, f"options.{name} {told}")
            return 1.0


def _is_number(item: Located) -> bool:
    return isinstance(item.value, int | float) and not isinstance(item.value, bool)
