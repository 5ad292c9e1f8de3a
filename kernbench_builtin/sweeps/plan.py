"""What a sweep is asked for: the bench, what is fixed, what is varied, and what is looked at."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from kernbench_builtin.sweeps.axes import PARAM, SET, TOPOLOGY, Axis, setting_text, value_text
from kernbench_builtin.sweeps.shaken import PointOptions
from kernbench_core.errors import UsageError
from kernbench_core.runs.options import command_options
from kernbench_core.wording import brief

PLAN_SCHEMA: Final = "kernbench.plan/1"
TRITON: Final = "triton:"
"""What stands before the path of a script written in Triton, in place of a bench."""
#: Options of a run that may end it, and change nothing of what it gives.
LIMITS: Final = ("max_events", "max_sim_ns", "timeout_s")
#: Options of a run that every point of a sweep may have.
OPTIONS: Final = tuple(name for name, option in command_options(PointOptions).items() if option.kept)
SAMPLERS: Final = ("random", "lhs")
_MOST_POINTS: Final = 10**6


def _sample(given: str) -> str:
    how, colon, count = given.partition(":")
    if given == "grid" or (colon and how in SAMPLERS and count.isdecimal() and 0 < int(count[:9]) <= _MOST_POINTS):
        return given
    raise UsageError(f"--sample must be grid, random:N or lhs:N with N from 1 to {_MOST_POINTS:,}, not {brief(given)}.")


def _texts(given: Iterable[str]) -> tuple[str, ...]:
    return tuple(given)


def _axes(given: Iterable[Axis]) -> tuple[Axis, ...]:
    return tuple(given)


@attrs.frozen(kw_only=True)
class SweepPlan:
    """A sweep as it is asked for; plain data, and equal where the sweeps are.

    `set` and `params` are what is the same in all points. `where` are expressions that must hold of a point,
    `objectives` expressions of what a run gives, `figures` a file with functions for these. `sample` is "grid",
    "random:N" or "lhs:N", drawn with `seed`; `search` says instead who chooses points, and `options` are those of
    every run; `cached` has runs taken from the user's cache, or kept there, and `retime` has points that differ in
    hardware alone timed again from a recorded run. `arguments` are those of a script written
    in Triton, where `{NAME}` is the value of an axis or parameter.
    """

    bench: str
    topology: str = "default"
    components: str | None = None
    set: Mapping[str, Any] = attrs.field(factory=dict, converter=dict)
    params: Mapping[str, Any] = attrs.field(factory=dict, converter=dict)
    axes: tuple[Axis, ...] = attrs.field(default=(), converter=_axes)
    where: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    objectives: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    figures: str | None = None
    sample: str = attrs.field(default="grid", converter=_sample)
    seed: int = 0
    search: str | None = None
    fidelity: str | None = None
    options: Mapping[str, Any] = attrs.field(factory=dict, converter=dict)
    arguments: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    cached: bool = False
    retime: bool = False

    def __attrs_post_init__(self) -> None:
        for text in _texts_in(self.to_json()):
            if not text.isascii() and text.encode("utf-8", "ignore").decode() != text:
                raise UsageError(f"a sweep must use valid UTF-8 text, not {brief(text)}; rename it.")

    @property
    def is_script(self) -> bool:
        """Whether a script written in Triton is run, and no bench."""
        return self.bench.startswith(TRITON)

    @property
    def is_grid(self) -> bool:
        """Whether its points are all combinations of the values of its axes."""
        return self.sample == "grid" and self.search is None

    def axis(self, name: str) -> Axis | None:
        """Return the axis of this name."""
        return next((axis for axis in self.axes if axis.name == name), None)

    def run_of(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is run at the point that has these values, by axis: plain data."""
        targets = {axis.name: axis.target for axis in self.axes}
        by_target: dict[str, dict[str, Any]] = {SET: dict(self.set), PARAM: dict(self.params), TOPOLOGY: {}}
        for name, value in values.items():
            by_target[targets[name]][name] = value
        return {
            "bench": self.bench,
            "arguments": list(self.arguments),
            "topology": by_target[TOPOLOGY].get(TOPOLOGY, self.topology),
            "components": self.components,
            "set": by_target[SET],
            "params": by_target[PARAM],
            "options": dict(self.options),
        }

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        told = {field.name: getattr(self, field.name) for field in attrs.fields(type(self))}
        lists = ("where", "objectives", "arguments")
        told |= {name: list(told[name]) for name in lists}
        return {"schema": PLAN_SCHEMA, **told, "axes": [axis.to_json() for axis in self.axes]}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> SweepPlan:
        """Return the plan that `to_json` told of."""
        given = {name: value for name, value in told.items() if name != "schema"}
        return cls(**{**given, "axes": [Axis.from_json(axis) for axis in given["axes"]]})

    def without_limits(self) -> SweepPlan:
        """Return the same plan without what may end its runs early, or spare them: it has the same points."""
        rest = {name: value for name, value in self.options.items() if name not in LIMITS}
        return attrs.evolve(self, cached=False, options=rest)


def _texts_in(value: object) -> Iterator[str]:
    """Yield all texts of plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts_in([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts_in(each)


def point_key(run: Mapping[str, Any]) -> str:
    """Return the SHA-256, in hex, of what is run at a point; limits play no part."""
    told = {**run, "options": {name: value for name, value in run["options"].items() if name not in LIMITS}}
    return hashlib.sha256(canonical(told)).hexdigest()


def canonical(value: object) -> bytes:
    """Write plain data as JSON in one and the same way."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def settings_of(run: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the settings of a point as `--set` takes them."""
    return tuple(f"{key}={setting_text(value)}" for key, value in run["set"].items())


def params_of(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a point as `-p` takes them; what is not given stays None."""
    return {name: value if value is None else value_text(value) for name, value in run["params"].items()}
