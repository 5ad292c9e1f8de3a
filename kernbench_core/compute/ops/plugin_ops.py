"""The math ops of plug-ins: records that are imported when a kernel first calls one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from kernbench_core.compute.ops.record import MathOp
from kernbench_core.compute.ops.record_faults import record_faults, with_rules_checked
from kernbench_core.errors import PluginError


class OpsOfPlugins:
    """Find records by the names that plug-ins registered them under, as "module:attr" in `functions`.

    `load(name)` imports what is registered under a name; by default its "module:attr". `fault(name, what)` makes the
    error for one that is not as it must be; by default it names no distribution.
    """

    def __init__(
        self,
        functions: Mapping[str, str],
        load: Callable[[str], object] | None = None,
        fault: Callable[[str, str], PluginError] | None = None,
    ) -> None:
        self._functions = functions
        self._load = load or self._imported
        self._fault = fault or self._nameless
        self._found: dict[str, MathOp | None] = {}

    def get(self, name: str) -> MathOp | None:
        """Return the record of a math op; None for a name that no plug-in has one under.

        PluginError for a record of another name, for one that is not as it must be, and where the import fails. Its
        rules raise PluginError for answers that will not do.
        """
        if name not in self._functions:
            return None
        if name not in self._found:
            made = self._load(name)
            self._found[name] = self._checked(name, made) if isinstance(made, MathOp) else None
        return self._found[name]

    def _checked(self, name: str, op: MathOp) -> MathOp:
        if op.name != name:
            raise PluginError(
                f"op {name!r} must be the record of an op of that name, and {self._functions[name]!r} is that of "
                f"{op.name!r}; register it under its own name."
            )
        wrong = next(record_faults(op), None)
        if wrong is not None:
            raise self._fault(name, wrong)
        return with_rules_checked(op, lambda what: self._fault(name, what))

    def _nameless(self, name: str, what: str) -> PluginError:
        return PluginError(f"op {name!r} {what}; repair {self._functions[name]!r}.")

    def _imported(self, name: str) -> object:
        module, _, attribute = self._functions[name].partition(":")
        return getattr(import_module(module), attribute)
