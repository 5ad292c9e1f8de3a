"""By what function a record is computed: the one that it names, its plug-in's, or core's."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from kernbench_core.compute.functions import CORE_NAMES, PluginFunction, function_of
from kernbench_core.errors import ExecutionError
from kernbench_core.oplog.forms import RecordForm
from kernbench_core.oplog.log import OpRecord
from kernbench_core.wording import with_full_stop


class NamedFunctions:
    """Functions by their names, each imported once; `registered` maps op names of plug-ins to "module:attr"."""

    def __init__(self, registered: Mapping[str, str] | None) -> None:
        self._registered = registered
        self._imported: dict[str | tuple[str, str], Any] = {}

    def of(self, record: OpRecord) -> tuple[str, Any]:
        """Return the name and the function that computes a record; ExecutionError where there is none."""
        name = record.function or function_of(record.op_name, self._registered)
        if name is None:
            raise ExecutionError(
                f"{record} must be computed by some function, and none is registered for {record.op_name!r}; "
                "let the plug-in register one."
            )
        known = name if name in CORE_NAMES else (record.op_name, name)
        if known not in self._imported:
            module, _, attribute = name.partition(":")
            try:
                made = getattr(import_module(module), attribute)
                self._imported[known] = made if known is name else PluginFunction.of(record.op_name, name, made)
            except (ImportError, AttributeError) as error:
                told = f"{record} must be computed by {name!r}, which cannot be had: {error}"
                raise ExecutionError(with_full_stop(told)) from error
        return name, self._imported[known]

    def is_core(self, form: RecordForm) -> bool:
        """Whether core computes the records of a form."""
        name = form.function or function_of(form.op_name, self._registered)
        return name in CORE_NAMES
