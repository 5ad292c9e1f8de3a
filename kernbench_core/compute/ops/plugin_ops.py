"""The math ops of plug-ins: records that are imported when a kernel first calls one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from kernbench_core.compute.ops.record import MathOp
from kernbench_core.errors import PluginError


class OpsOfPlugins:
    """Find records by the names that plug-ins registered them under, as "module:attr" in `functions`.

    `load(name)` imports what is registered under a name; by default its "module:attr".
    """

    def __init__(self, functions: Mapping[str, str], load: Callable[[str], object] | None = None) -> None:
        self._functions = functions
        self._load = load or self._imported
        self._found: dict[str, MathOp | None] = {}

    def get(self, name: str) -> MathOp | None:
        """Return the record of a math op; None for a name that no plug-in has one under.

        PluginError for a record of another name, and where the import fails.
        """
        if name not in self._functions:
            return None
        if name not in self._found:
            made = self._load(name)
            if isinstance(made, MathOp) and made.name != name:
                raise PluginError(
                    f"op {name!r} must be the record of an op of that name, and {self._functions[name]!r} is that of "
                    f"{made.name!r}; register it under its own name."
                )
            self._found[name] = made if isinstance(made, MathOp) else None
        return self._found[name]

    def _imported(self, name: str) -> object:
        module, _, attribute = self._functions[name].partition(":")
        return getattr(import_module(module), attribute)
