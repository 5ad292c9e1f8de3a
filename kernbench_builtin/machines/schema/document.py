"""The schema of a whole file, of every kind of machine that is registered, or of one of its sections."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import attrs

from kernbench_builtin.machines.schema.sections import Names, Sections
from kernbench_builtin.machines.schema.values import Schema
from kernbench_builtin.machines.specification import Spec
from kernbench_core.errors import PluginError, UsageError
from kernbench_core.params import Param, did_you_mean
from kernbench_core.plugins import ComponentRegistry, MachineRegistry, NetworkRegistry
from kernbench_core.topology.machine_kinds import DEFAULT, SHARED, MachineKind, open_kind
from kernbench_core.topology.networks import open_shape
from kernbench_core.topology.sections import ComponentSpec

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_BASE: Final[Schema] = {"type": "string", "description": "Preset or file to start from: a file lies over its base."}


def configuration_schema(
    components: ComponentRegistry,
    networks: NetworkRegistry,
    machines: MachineRegistry,
    *,
    merged: bool = False,
    warn: Callable[[str], None] = lambda _: None,
) -> Schema:
    """Return the schema of a configuration file, whose base may give what it leaves out.

    Args:
        components: what `impl` may name, with their parameters.
        networks: what `system.network.topology` may name, likewise.
        machines: the kinds of machine, each with its section.
        merged: of what all files and settings give together instead, as a manifest holds it: nothing may be left out.
        warn: told of what is registered and cannot be used; it is not in the schema.
    """

    def usable(names: Iterable[str], opened: Callable[[str], Any]) -> dict[str, Any]:
        found = {}
        for name in names:
            try:
                found[name] = opened(name)
            except PluginError as fault:
                warn(str(fault))
        return found

    models: Mapping[str, tuple[Param, ...]] = usable(components, components.declared)
    shapes = usable(networks, lambda name: open_shape(networks, name))
    kinds: Mapping[str, MachineKind[Any]] = usable(machines, lambda name: open_kind(machines, name))
    sections = Sections(
        Names("impl", models), Names("topology", {name: shape.params for name, shape in shapes.items()}), merged
    )
    return _Document(sections, components, kinds).schema()


def section_schema(whole: Schema, name: str) -> Schema:
    """Return the schema of one section of a configuration's; raise UsageError where it has none of that name."""
    if name not in whole["properties"]:
        hint = did_you_mean(name, whole["properties"])
        raise UsageError(f"section must be one at the top of a configuration, not {name!r}.{hint}")
    schema = {"$schema": DIALECT, "title": f"{name} of a kernbench configuration", **whole["properties"][name]}
    used = set(re.findall(r'"#/\$defs/([^"/]+)', json.dumps(schema, ensure_ascii=False)))
    return schema | ({"$defs": {each: whole["$defs"][each] for each in sorted(used)}} if used else {})


@attrs.frozen
class _Document:
    sections: Sections
    components: ComponentRegistry
    kinds: Mapping[str, MachineKind[Any]]

    def schema(self) -> Schema:
        merged = self.sections.merged
        whole, layer = "what all files and settings give together", "a file, whose base may give what it leaves out"
        packages = self._packages()
        own = {name: self._own(kind) for name, kind in self.kinds.items() if name != DEFAULT}
        shared = {name: packages.pop(name) for name in SHARED}
        properties = {} if merged else {"base": _BASE}
        properties |= {"title": shared.pop("title"), **packages, **own, **shared}
        properties["components"] = self._components()
        return {
            "$schema": DIALECT,
            "title": "kernbench configuration",
            "description": f"A machine: {whole if merged else layer}.",
            "type": "object",
            "properties": properties,
            "patternProperties": {f"^[^:]+:{name}$": {"$ref": f"#/properties/{name}"} for name in own},
            "additionalProperties": False,
            "allOf": [self._alone(name, packages, own) for name in self.kinds],
            "$defs": self.sections.components.definitions() | self.sections.networks.definitions(),
        }

    def _packages(self) -> dict[str, Schema]:
        """Return the sections of a machine of packages, and those that it shares with the other kinds."""
        return dict(self.sections.of(Spec)["properties"])

    def _own(self, kind: MachineKind[Any]) -> Schema:
        return {"description": kind.what} if kind.section is None else self.sections.of(kind.section)

    def _alone(self, name: str, packages: Iterable[str], own: Iterable[str]) -> Schema:
        """Return the rule for one kind of machine: sections that it must, and must not, have, and its kinds of node."""
        others = list(own)
        if name == DEFAULT:
            needed = [field.name for field in attrs.fields(Spec) if field.default is attrs.NOTHING]
            mine = _has_none(others) if self.sections.merged else _any_of(packages)
            strange: Iterable[str] = ()
        else:
            needed, mine, strange = ["components"], {"not": _has_none([name])}, packages
            others = [other for other in others if other != name]
        then: Schema = {"properties": dict.fromkeys(strange, False)}
        if others:
            then["patternProperties"] = {_sections(others): False}
        then["properties"]["components"] = {"propertyNames": {"enum": list(self.kinds[name].node_kinds)}}
        if self.sections.merged:
            then["required"] = needed
        return {"if": mine, "then": then}

    def _components(self) -> Schema:
        """Return the section `components`: every kind of node, with the components that are made for it."""
        kinds = dict.fromkeys(kind for machine in self.kinds.values() for kind in machine.node_kinds)
        return {
            "type": "object",
            "description": "Implementation of every kind of node.",
            "properties": {kind: self._made_for(kind) for kind in kinds},
            "additionalProperties": False,
        }

    def _made_for(self, kind: str) -> Schema:
        all_names = self.sections.components
        names = [each for each in all_names.declared if kind in (made := self.components.made_for(each)) or not made]
        only = attrs.evolve(self.sections, components=all_names.only(names))
        return only.of(ComponentSpec) | {"description": f"Implementation of every {kind}."}


def _sections(names: Iterable[str]) -> str:
    """Return a regular expression of sections of kinds of machine, which their vendors may stand before."""
    return f"^(?:[^:]+:)?(?:{'|'.join(names)})$"


def _has_none(names: Iterable[str]) -> Schema:
    return {"propertyNames": {"not": {"pattern": _sections(names)}}}


def _any_of(names: Iterable[str]) -> Schema:
    return {"anyOf": [{"required": [name]} for name in names]}
