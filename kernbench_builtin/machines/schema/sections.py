"""The schema of a section, from its attrs class, with what its names choose: parameters of a component or a network."""

from __future__ import annotations

import collections.abc
import inspect
from collections.abc import Callable, Iterable, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import attrs
from attrs import frozen

from kernbench_builtin.machines.schema.values import (
    Schema,
    params_schema,
    quantity_schema,
    quantity_text,
    required_params,
)
from kernbench_builtin.machines.specification import NetworkSpec
from kernbench_core.params import Param
from kernbench_core.topology.sections import ComponentSpec, Derivation, OverrideSpec, Quantity

PREFIXES: Mapping[str, str] = {"impl": "component", "topology": "network"}
"""What the names of a key are those of, as in "#/$defs/component.acme.gemm"."""


@frozen
class Names:
    """What may be named by one key, `impl` or `topology`: each name with the parameters that it declares."""

    key: str
    declared: Mapping[str, tuple[Param, ...]]

    def definitions(self) -> dict[str, Schema]:
        """Return the parameters of each name, for `$defs`."""
        return {f"{PREFIXES[self.key]}.{name}": params_schema(params) for name, params in self.declared.items()}

    def only(self, names: Iterable[str]) -> Names:
        """Return some of them."""
        return Names(self.key, {name: self.declared[name] for name in names})

    def choose(self, section: Schema, *, complete: bool, default: str = "") -> Schema:
        """Have a section's name pick its parameters; without a name, those of `default`, or of any of them.

        `complete` asks for the parameters that have no default.
        """
        told, optional = section["properties"][self.key], "anyOf" in section["properties"][self.key]
        picks = "|".join(filter(None, map(_picks, self.declared)))
        picked = [{"enum": [name for name in self.declared if ":" in name]}, {"pattern": f"^(?:{picks})$"}]
        named: Schema = {
            "if": {"type": "string", "pattern": ":"},
            "then": {"anyOf": picked},
            "else": {"enum": [*self.declared, *([None] if optional else [])]},
        }
        kept = {key: told[key] for key in ("description", "default") if key in told}
        section["properties"][self.key] = kept | named
        section["properties"]["params"] = {"type": "object"}
        given = {"properties": {self.key: {"type": "string"}}, "required": [self.key]}
        cases = [
            {
                "if": {"properties": {self.key: _written(name)}, "required": [self.key]},
                "then": self._of(name, complete),
            }
            for name in self.declared
        ]
        other = self._of(default, complete) if default in self.declared else {"properties": {"params": self._any()}}
        return section | {"allOf": [*section.get("allOf", ()), *cases, {"if": given, "else": other}]}

    def _of(self, name: str, complete: bool) -> Schema:
        params: Schema = {"$ref": self._reference(name)}
        needed = required_params(self.declared[name]) if complete else []
        if not needed:
            return {"properties": {"params": params}}
        return {"properties": {"params": params | {"required": needed}}, "required": ["params"]}

    def _any(self) -> Schema:
        """Return parameters as any of the names declares them."""
        owners: dict[str, list[str]] = {}
        for name, params in self.declared.items():
            for param in params:
                owners.setdefault(param.name, []).append(name)
        return {
            "type": "object",
            "properties": {param: self._either(param, names) for param, names in owners.items()},
            "additionalProperties": False,
        }

    def _either(self, param: str, names: list[str]) -> Schema:
        escaped = param.replace("~", "~0").replace("/", "~1")
        found = [{"$ref": f"{self._reference(name)}/properties/{escaped}"} for name in names]
        return found[0] if len(found) == 1 else {"anyOf": found}

    def _reference(self, name: str) -> str:
        return f"#/$defs/{PREFIXES[self.key]}.{name}"


def _picks(name: str) -> str:
    """Return a regular expression of a name with its vendor before it; "" for one that has one.

    A distribution's name may be any, so that the schema is the same however a plug-in is installed.
    """
    plugin, dot, thing = name.partition(".")
    whole = name.replace(".", "\\.")
    return "" if ":" in name else f"[^:]+:{whole}" + (f"|{plugin}:{thing}".replace(".", "\\.") if dot else "")


def _written(name: str) -> Schema:
    """Return the schema of a name as a configuration may write it, with its vendor before it or without."""
    picks = _picks(name)
    written: Schema = {"const": name}
    return {"anyOf": [written, {"type": "string", "pattern": f"^(?:{picks})$"}]} if picks else written


@frozen
class Sections:
    """Makes the schemas of sections; `merged` ones must have every key without a default."""

    components: Names
    networks: Names
    merged: bool

    def of(self, cls: type[Any], whole: bool | None = None) -> Schema:
        """Return the schema of a section; `whole` sections are not laid over others: items of lists."""
        complete = self.merged if whole is None else whole
        hints, forms = get_type_hints(cls, include_extras=True), tuple(getattr(cls, "FORMS", ()))
        schema: Schema = {
            "type": "object",
            "description": described(cls),
            "properties": {each.name: self._key(each, hints[each.name], forms) for each in attrs.fields(cls)},
            "additionalProperties": False,
        }
        needed = [each.name for each in attrs.fields(cls) if each.default is attrs.NOTHING]
        if complete and needed:
            schema["required"] = needed
        if forms:
            schema["allOf"] = [rule for form in forms for rule in _either_form(form, complete)]
        if issubclass(cls, ComponentSpec):
            return self.components.choose(schema, complete=complete)
        if issubclass(cls, OverrideSpec):
            return self.components.choose(schema, complete=False)
        if issubclass(cls, NetworkSpec):
            ring = str(attrs.fields(NetworkSpec).topology.default)
            return self.networks.choose(schema, complete=complete, default=ring if self.merged else "")
        return schema

    def _key(self, each: Any, hint: Any, forms: tuple[Derivation, ...]) -> Schema:
        schema = dict(self._value(hint))
        told = next((mark for mark in get_args(hint)[1:] if isinstance(mark, str)), "")
        if told and get_origin(hint) is Annotated:
            schema = {"description": told} | schema
        mark, plain = _quantity_of(hint), isinstance(each.default, str | int | float | NoneType)
        derived = any(each.name == form.key for form in forms)
        if mark is None or not plain or derived or each.default == "" or (each.default is None and not mark.auto):
            return schema
        return schema | {"default": quantity_text(mark, each.default)}

    def _value(self, hint: Any) -> Schema:
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            mark = next((mark for mark in arguments[1:] if isinstance(mark, Quantity)), None)
            return self._value(arguments[0]) if mark is None else quantity_schema(mark)
        if origin in (Union, UnionType):
            (kind,) = (kind for kind in arguments if kind is not NoneType)
            return {"anyOf": [self._value(kind), {"type": "null"}]}
        if origin is list:
            return {"type": "array", "items": self.of(arguments[0], whole=True)}
        if origin is collections.abc.Mapping:
            return {"type": "object", "additionalProperties": self._value(arguments[1])}
        return self.of(hint) if attrs.has(hint) else {}


def described(thing: Callable[..., Any]) -> str:
    """Return the first paragraph of a docstring, in one line."""
    return " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())


def _quantity_of(hint: Any) -> Quantity | None:
    """Return the quantity that a key is, also of one that may be left out."""
    marks = [mark for mark in get_args(hint)[1:] if isinstance(mark, Quantity)] if _annotated(hint) else []
    if marks or not get_args(hint):
        return marks[0] if marks else None
    inner = get_args(hint)[:1] if _annotated(hint) else get_args(hint)
    return next(filter(None, map(_quantity_of, inner)), None)


def _annotated(hint: Any) -> bool:
    return get_origin(hint) is Annotated


def _either_form(form: Derivation, complete: bool) -> list[Schema]:
    """Return rules for a figure with two forms: never both, and where nothing is below, one of them whole."""
    direct, others = {"required": [form.key]}, {"required": list(form.others)}
    apart: list[Schema] = [{"not": {"required": [form.key, other]}} for other in form.others]
    return [*apart, {"anyOf": [direct, others]}] if complete else apart
