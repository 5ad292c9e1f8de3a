"""The math ops of plug-ins: records that are imported when a kernel first calls one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

import attrs

from kernbench_core.compute.ops.plugin_faults import Blame, blame_of, keywords_of
from kernbench_core.compute.ops.record import MathOp
from kernbench_core.compute.ops.record_faults import with_rules_checked
from kernbench_core.errors import PluginError


class OpsOfPlugins:
    """Find records by the names that plug-ins registered them under, as "module:attr" in `functions`.

    `load(name)` imports what is registered under a name; by default its "module:attr". `fault(name, what)` makes the
    error for one that is not as it must be; by default it names the distribution whose entry point is beside it.
    """

    def __init__(
        self,
        functions: Mapping[str, str],
        load: Callable[[str], object] | None = None,
        fault: Callable[[str, str], PluginError] | None = None,
    ) -> None:
        self._functions = functions
        self._load = load or self._imported
        self._fault = fault
        self._found: dict[str, MathOp | Callable[..., object]] = {}
        self._keywords: dict[str, tuple[frozenset[str], frozenset[str]]] = {}

    def callable_record(self, name: str, call: str) -> MathOp | None:
        """Return the record that a kernel calls by its name; None for a name that no plug-in has an op under.

        PluginError for a function, for a record of another name, and where the import fails. The rules of the record
        raise PluginError for answers that will not do.
        """
        if name not in self._functions:
            return None
        found = self._found_as(name)
        if not isinstance(found, MathOp):
            raise self._blame(name)(f"must be a MathOp for {call}, not a function, which tl.unit_op calls")
        return found

    def keywords(self, name: str) -> tuple[frozenset[str], frozenset[str]] | None:
        """Return the keywords that a call of an op may give, and which of them it must; None for no op of a plug-in."""
        if name not in self._functions:
            return None
        if name not in self._keywords:
            found = self._found_as(name)
            if isinstance(found, MathOp):
                self._keywords[name] = frozenset((*found.form.keywords, *found.keywords)), frozenset()
            else:
                self._keywords[name] = keywords_of(found)
        return self._keywords[name]

    def _found_as(self, name: str) -> MathOp | Callable[..., object]:
        if name not in self._found:
            made = self._load(name)
            if isinstance(made, MathOp):
                self._found[name] = self._checked(name, made)
            else:
                self._found[name] = checked_function(made, self._blame(name))
        return self._found[name]

    def _blame(self, name: str) -> Blame:
        fault = self._fault
        return blame_of(name, self._functions[name]) if fault is None else lambda what: fault(name, what)

    def _checked(self, name: str, op: MathOp) -> MathOp:
        if op.name != name.rpartition(":")[2]:  # of two that are called alike, the one of a vendor
            raise PluginError(
                f"op {name!r} must be the record of an op of that name, and {self._functions[name]!r} is that of "
                f"{op.name!r}; register it under its own name."
            )
        return attrs.evolve(with_rules_checked(op, self._blame(name)), name=name)

    def _imported(self, name: str) -> object:
        module, _, attribute = self._functions[name].partition(":")
        return getattr(import_module(module), attribute)


def checked_function(made: object, fault: Blame) -> Callable[..., object]:
    """Return what an op is registered as, which is no record: a function, or PluginError."""
    if not callable(made) or isinstance(made, type):
        raise fault(f"must be a function of params and inputs, or a MathOp, not {made!r}")
    return made
