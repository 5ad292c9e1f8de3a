"""The parts of a machine made by hand: what stands where, by which class, and what is logged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import attrs

from kernbench_core.component import ComponentBase
from kernbench_core.engine.hardware import ComponentClasses
from kernbench_core.errors import ConfigError
from kernbench_core.graph import Node
from kernbench_core.messages import MsgBase
from kernbench_core.params import resolve_params


@attrs.frozen
class Placed:
    """Say what stands at a node: a component class or a registered name, its parameters, the node's kind.

    `params` are written as in YAML, with units ("5 ns"); what is left out has its default.
    """

    model: type[ComponentBase] | str
    params: Mapping[str, object] = attrs.field(factory=dict)
    kind: str = "under_test"


#: What `Harness` and `Rig` take for a component.
Model: TypeAlias = type[ComponentBase] | str | Placed


@attrs.frozen
class LogLine:
    """Say that a component served a logged message from `t_start` to `t_end` (ns)."""

    t_start: float
    t_end: float | None
    component: str
    label: str


class ServiceRecorder:
    """Keep what components log, as an OpLogger would be told."""

    def __init__(self) -> None:
        self.lines: list[tuple[float, float | None, str, MsgBase]] = []
        self._open: dict[tuple[str, int], int] = {}

    def record_start(self, t: float, component_id: str, msg: MsgBase) -> None:
        self._open[component_id, id(msg)] = len(self.lines)
        self.lines.append((t, None, component_id, msg))

    def record_end(self, t: float, component_id: str, msg: MsgBase) -> None:
        index = self._open.pop((component_id, id(msg)))
        self.lines[index] = (self.lines[index][0], t, component_id, msg)


class ModelClasses:
    """Name the classes of a hand-made graph, so that nodes can refer to them as they do to registered ones."""

    def __init__(self, catalogue: ComponentClasses | None) -> None:
        self._catalogue = catalogue
        self._classes: dict[str, type[ComponentBase]] = {}

    def nodes(self, models: Mapping[str, Model]) -> list[Node]:
        """Return a node for each model; raise ConfigError with every wrong parameter."""
        nodes, problems = [], []
        for node_id, model in models.items():
            placed = placed_of(model)
            impl = self._name(placed.model)
            declared = self._classes[impl].PARAMS
            params, wrong = resolve_params(declared, placed.params, _where(node_id))
            problems += wrong
            nodes.append(Node(node_id, placed.kind, impl, params))
        if problems:
            raise ConfigError(*problems)
        return nodes

    def load(self, name: str) -> type[ComponentBase]:
        """Return the class that `nodes` gave this name."""
        return self._classes[name]

    def _name(self, model: type[ComponentBase] | str) -> str:
        if isinstance(model, str):
            if self._catalogue is None:
                from kernbench_core.plugins import load_plugins

                self._catalogue = load_plugins().components
            self._classes[model] = self._catalogue.load(model)
            return model
        name = base = f"{model.__module__}.{model.__qualname__}"
        number = 1
        while self._classes.setdefault(name, model) is not model:
            number += 1
            name = f"{base}#{number}"
        return name


def placed_of(model: Model) -> Placed:
    return model if isinstance(model, Placed) else Placed(model)


def _where(node_id: str) -> Any:
    return lambda *names: ".".join((node_id, *names))
