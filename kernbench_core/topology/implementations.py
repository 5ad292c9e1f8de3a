"""Which component class serves each node, and with which parameters: kinds and overrides of the configuration."""

from __future__ import annotations

import copy
import fnmatch
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from attrs import evolve, frozen

from kernbench_core.errors import PluginError, UsageError
from kernbench_core.params import Param, did_you_mean, resolve_params
from kernbench_core.plugins import ComponentRegistry
from kernbench_core.topology.configuration import Config, KeyPath, dotted
from kernbench_core.topology.sections import Choices, ComponentSpec
from kernbench_core.wording import MOST_TOLD, brief

#: Parameters that are named with the place of each where they are dropped; of more, the place of the first is told.
_MOST_PLACES: Final = 2


@frozen
class _Choice:
    """An implementation as written: its name, its raw parameters, and the key paths both came from.

    `inherited` names the parameters that were given for another implementation, `replaced` those of them that are
    dropped without a word.
    """

    impl: str
    impl_path: KeyPath
    params: Mapping[str, tuple[object, KeyPath]]
    params_path: KeyPath
    inherited: frozenset[str] = frozenset()
    replaced: frozenset[str] = frozenset()

    def where(self, name: str) -> KeyPath:
        """Return the key path of a parameter, also of one that was not written."""
        return self.params[name][1] if name in self.params else (*self.params_path, name)


class Implementations:
    """Resolve the implementation of one node after another; `problems` and `warnings` collect what is to be told."""

    def __init__(self, config: Config, written: Choices, catalogue: ComponentRegistry, kinds: Iterable[str]) -> None:
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self._config, self._written, self._catalogue = config, written, catalogue
        self._patterns = [re.compile(fnmatch.translate(item.match)) for item in written.overrides]
        self._matched = [False] * len(self._patterns)
        self._resolved: dict[tuple[str, tuple[int, ...]], tuple[str, Mapping[str, Any]]] = {}
        self._declared: dict[str, tuple[Param, ...] | None] = {}
        self._kinds = frozenset(kinds)
        known = {*self._kinds, *written.units}
        for kind in written.components:
            path: KeyPath = ("components", kind)
            if kind in written.units:
                told = f"must not repeat a kind of {dotted(written.units_at)}; give its impl and params there."
                self._report(path, told)
            elif kind not in known:
                hint = did_you_mean(kind, known) if len(self.problems) <= MOST_TOLD else ""
                self._report(path, f"must be a kind of node.{hint}")

    def of(self, kind: str, node_id: str) -> tuple[str, Mapping[str, object]]:
        """Return the implementation and the resolved parameters of a node; ("", {}) when they are wrong."""
        matched = tuple(i for i, pattern in enumerate(self._patterns) if pattern.match(node_id))
        key = (kind, matched)
        if key not in self._resolved:
            for index in matched:
                self._matched[index] = True
            self._resolved[key] = self._resolve(kind, matched)
        return self._resolved[key]

    def check(self, unused_kinds: Iterable[str], node_ids: Iterable[str]) -> None:
        """Report overrides that matched no node, and faults of kinds that this machine happens not to have."""
        ids = list(node_ids)
        for index, matched in enumerate(self._matched):
            if not matched:
                pattern = self._written.overrides[index].match
                hint = did_you_mean(pattern, ids) if len(self.problems) <= MOST_TOLD else ""
                told = f"must match at least one node id, not {brief(pattern)}.{hint}"
                self._report(("overrides", index, "match"), told)
        for kind in unused_kinds:
            if kind in self._written.components:
                self._resolve(kind, ())

    def check_written(self) -> None:
        """Report what is wrong with implementations and parameters whatever the machine looks like."""
        for kind in (*self._written.components, *self._written.units):
            self._resolve(kind, ())
        for index, override in enumerate(self._written.overrides):
            if override.impl is not None:
                self._parameters(self._overridden(_Choice("", (), {}, ()), index))

    def _resolve(self, kind: str, overrides: tuple[int, ...]) -> tuple[str, Mapping[str, object]]:
        choice = self._base(kind)
        if choice is None:
            self._report(("components",), f"must name an implementation for {kind}; add '{kind}: {{impl: …}}'.")
            return "", {}
        for index in overrides:
            choice = self._overridden(choice, index)
        values = self._parameters(choice)
        self._check_kind(kind, choice)
        return choice.impl, values

    def _check_kind(self, kind: str, choice: _Choice) -> None:
        """Report an implementation that is registered for other kinds; units that YAML adds take any."""
        made_for = self._catalogue.made_for(choice.impl) if self._declared.get(choice.impl) is not None else ()
        if kind in self._kinds and made_for and kind not in made_for:
            self._report(
                choice.impl_path,
                f"must be a component for {kind}, not {brief(choice.impl)}, which is made for "
                f"{' and '.join(made_for)}; "
                "see 'kernbench components'.",
            )

    def _parameters(self, choice: _Choice) -> Mapping[str, object]:
        declared = self._declaration(choice)
        if declared is None:
            return {}
        dropped = lacking(declared, choice.inherited, choice.params)
        places = {name: self._config.where(choice.where(name)) for name in dropped if name not in choice.replaced}
        if places:
            self.warnings.append(_dropped_warning(dotted(choice.params_path[:-1]), choice.impl, places))
        given = {name: value for name, (value, _) in choice.params.items() if name not in dropped}
        values, problems = resolve_params(
            declared, given, lambda name, *entry: self._config.at((*choice.where(name), *entry))
        )
        self.problems.extend(problems)
        return MappingProxyType(values)

    def _base(self, kind: str) -> _Choice | None:
        unit = self._written.units.get(kind)
        path: KeyPath = ("components", kind) if unit is None else (*self._written.units_at, kind)
        written: ComponentSpec | None = unit or self._written.components.get(kind)
        if written is None:
            return None
        params_path = (*path, "params")
        params = {name: (value, (*params_path, name)) for name, value in written.params.items()}
        inherited, replaced = (
            frozenset(name for name, (_, at) in params.items() if at in paths)
            for paths in (self._config.inherited, self._config.replaced)
        )
        return _Choice(written.impl, (*path, "impl"), params, params_path, inherited, replaced)

    def _overridden(self, below: _Choice, index: int) -> _Choice:
        """Lay an override over a choice: another class inherits the parameters of the one below."""
        written = self._written.overrides[index]
        params_path: KeyPath = ("overrides", index, "params")
        params = {name: (value, (*params_path, name)) for name, value in written.params.items()}
        laid, inherited = {**below.params, **params}, below.inherited - params.keys()
        if written.impl is None or written.impl == below.impl:
            return _Choice(below.impl, below.impl_path, laid, params_path, inherited, below.replaced)
        inherited = frozenset(below.params.keys() - params.keys())
        replaced = inherited if params else frozenset[str]()
        return _Choice(written.impl, ("overrides", index, "impl"), laid, params_path, inherited, replaced)

    def _declaration(self, choice: _Choice) -> tuple[Param, ...] | None:
        if choice.impl not in self._declared:
            try:
                self._declared[choice.impl] = self._catalogue.declared(choice.impl)
            except (UsageError, PluginError) as fault:
                self._declared[choice.impl] = None
                if isinstance(fault, PluginError):
                    self._report(choice.impl_path, f"must be usable, not {brief(choice.impl)}: {fault}")
                else:
                    hint = self._closest(choice, getattr(fault, "suggestions", ()))
                    self._report(choice.impl_path, f"must be a registered component, not {brief(choice.impl)}.{hint}")
        return self._declared[choice.impl]

    def _closest(self, choice: _Choice, names: Iterable[str]) -> str:
        """Suggest the closest of `names`, best first, that is made for the kind of node that the choice is for."""
        section, key, *_ = choice.impl_path
        kind = str(choice.impl_path[-2])
        if section == "overrides":
            kind = self._written.overrides[int(key)].match.rpartition(".")[2].rstrip("0123456789*?")
        for name in names:
            made_for = self._catalogue.made_for(name)
            if not made_for or kind not in self._kinds or kind in made_for:
                return f" Did you mean {name!r}?"
        return " See 'kernbench components'; --plugin FILE.py, or a package that is installed, adds more."

    def _report(self, path: KeyPath, text: str) -> None:
        self.problems.append(f"{self._config.at(path)} {text}")


def settle(config: Config, catalogue: ComponentRegistry) -> Config:
    """Drop the parameters that a configuration gave for another implementation and that the one that holds lacks.

    Those that it has are kept. Each implementation that loses some is named in `Config.warnings`, with their places,
    but where what chose it gives parameters for it, too.
    """
    owners = dict.fromkeys(path[:-2] for path in config.places if path in config.inherited)
    data, warnings = copy.deepcopy(dict(config.data)), []
    for owner in owners:
        section: Any = data
        for key in owner:
            section = section[key]
        if not isinstance(section["impl"], str):
            continue  # whoever compiles the configuration says so
        try:
            declared = catalogue.declared(section["impl"])
        except (UsageError, PluginError):
            continue  # and this
        given = {path[-1] for path in config.inherited if path[:-2] == owner}
        dropped = lacking(declared, given, section["params"])
        paths = {name: (*owner, "params", name) for name in dropped}
        places = {name: config.where(path) for name, path in paths.items() if path not in config.replaced}
        if places:
            warnings.append(_dropped_warning(dotted(owner), section["impl"], places))
        if dropped:
            section["params"] = {name: value for name, value in section["params"].items() if name not in dropped}
    settled = MappingProxyType(data)
    return evolve(config, data=settled, inherited=frozenset(), replaced=frozenset(), warnings=tuple(warnings))


def lacking(declared: Iterable[Param], inherited: Iterable[object], given: Iterable[str]) -> tuple[str, ...]:
    """Return those of the parameters that were inherited and are not declared, in the order that they were given in."""
    known, held = {param.name for param in declared}, set(inherited)
    return tuple(name for name in given if name in held and name not in known)


def _dropped_warning(owner: str, impl: str, places: Mapping[str, str]) -> str:
    if len(places) <= _MOST_PLACES:
        named = " and no ".join(f"{name!r} that {place} gave" for name, place in places.items())
        return f"{owner}: {impl} has no parameter {named}; {'it is' if len(places) == 1 else 'they are'} dropped."
    *names, last = map(repr, places)
    first = next(iter(places.values()))
    return (
        f"{owner}: {impl} has none of the parameters {', '.join(names)} and {last} that were given (the first at "
        f"{first}); they are dropped."
    )
