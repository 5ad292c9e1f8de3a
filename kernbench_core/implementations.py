"""Which component class serves each node, and with which parameters: kinds and overrides of the configuration."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from attrs import frozen

from kernbench_core.config import Config, KeyPath
from kernbench_core.errors import PluginError, UsageError
from kernbench_core.params import Param, did_you_mean, resolve_params
from kernbench_core.spec import Choices, ComponentSpec


class ComponentCatalogue(Protocol):
    """What knows the component classes; asked once for each implementation that a configuration names."""

    def declared(self, impl: str) -> tuple[Param, ...]:
        """Return the parameters that the class declares.

        Raises:
            UsageError: nothing is registered by that name.
            PluginError: the plug-in that registers it cannot be used.
        """
        ...

    def made_for(self, impl: str) -> tuple[str, ...]:
        """Return the kinds of node that the class is registered for, none for any; asked after `declared`."""
        ...


@frozen
class Choice:
    """An implementation as written: its name, its raw parameters, and the key paths both came from."""

    impl: str
    impl_path: KeyPath
    params: Mapping[str, tuple[object, KeyPath]]
    params_path: KeyPath

    def where(self, name: str) -> KeyPath:
        """Return the key path of a parameter, also of one that was not written."""
        return self.params[name][1] if name in self.params else (*self.params_path, name)


class Implementations:
    """Resolve the implementation of one node after another; `problems` collects what is wrong."""

    def __init__(self, config: Config, written: Choices, catalogue: ComponentCatalogue, kinds: Iterable[str]) -> None:
        self.problems: list[str] = []
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
                self._report(path, "must not repeat a kind of pe.units; give its impl and params there.")
            elif kind not in known:
                self._report(path, f"must be a kind of node.{did_you_mean(kind, known)}")

    def of(self, kind: str, node_id: str) -> tuple[str, Mapping[str, Any]]:
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
                hint = did_you_mean(pattern, ids)
                self._report(("overrides", index, "match"), f"must match at least one node id, not {pattern!r}.{hint}")
        for kind in unused_kinds:
            if kind in self._written.components:
                self._resolve(kind, ())

    def check_written(self) -> None:
        """Report what is wrong with implementations and parameters whatever the machine looks like."""
        for kind in (*self._written.components, *self._written.units):
            self._resolve(kind, ())
        for index, override in enumerate(self._written.overrides):
            if override.impl is not None:
                self._parameters(self._overridden(Choice("", (), {}, ()), index))

    def _resolve(self, kind: str, overrides: tuple[int, ...]) -> tuple[str, Mapping[str, Any]]:
        choice = self._base(kind)
        if choice is None:
            self._report(("components",), f"must name an implementation for {kind}; add '{kind}: {{impl: …}}'.")
            return "", {}
        for index in overrides:
            choice = self._overridden(choice, index)
        values = self._parameters(choice)
        self._check_kind(kind, choice)
        return choice.impl, values

    def _check_kind(self, kind: str, choice: Choice) -> None:
        """Report an implementation that is registered for other kinds; units that YAML adds take any."""
        made_for = self._catalogue.made_for(choice.impl) if self._declared.get(choice.impl) is not None else ()
        if kind in self._kinds and made_for and kind not in made_for:
            self._report(
                choice.impl_path,
                f"must be a component for {kind}, not {choice.impl!r}, which is made for {' and '.join(made_for)}; "
                "see 'kernbench components'.",
            )

    def _parameters(self, choice: Choice) -> Mapping[str, Any]:
        declared = self._declaration(choice)
        if declared is None:
            return {}
        given = {name: value for name, (value, _) in choice.params.items()}
        values, problems = resolve_params(
            declared, given, lambda name, *entry: self._config.at((*choice.where(name), *entry))
        )
        self.problems.extend(problems)
        return MappingProxyType(values)

    def _base(self, kind: str) -> Choice | None:
        unit = self._written.units.get(kind)
        path: KeyPath = ("components", kind) if unit is None else ("pe", "units", kind)
        written: ComponentSpec | None = unit or self._written.components.get(kind)
        if written is None:
            return None
        params_path = (*path, "params")
        params = {name: (value, (*params_path, name)) for name, value in written.params.items()}
        return Choice(written.impl, (*path, "impl"), params, params_path)

    def _overridden(self, below: Choice, index: int) -> Choice:
        """Lay an override over a choice: another class drops the parameters of the one below."""
        written = self._written.overrides[index]
        params_path: KeyPath = ("overrides", index, "params")
        params = {name: (value, (*params_path, name)) for name, value in written.params.items()}
        if written.impl is None or written.impl == below.impl:
            return Choice(below.impl, below.impl_path, {**below.params, **params}, params_path)
        return Choice(written.impl, ("overrides", index, "impl"), params, params_path)

    def _declaration(self, choice: Choice) -> tuple[Param, ...] | None:
        if choice.impl not in self._declared:
            try:
                self._declared[choice.impl] = self._catalogue.declared(choice.impl)
            except (UsageError, PluginError) as fault:
                self._declared[choice.impl] = None
                suggestions = tuple(getattr(fault, "suggestions", ()))
                if isinstance(fault, PluginError):
                    self._report(choice.impl_path, f"must be usable, not {choice.impl!r}: {fault}")
                else:
                    hint = f" Did you mean {suggestions[0]!r}?" if suggestions else " See 'kernbench components'."
                    self._report(choice.impl_path, f"must be a registered component, not {choice.impl!r}.{hint}")
        return self._declared[choice.impl]

    def _report(self, path: KeyPath, text: str) -> None:
        self.problems.append(f"{self._config.at(path)} {text}")
