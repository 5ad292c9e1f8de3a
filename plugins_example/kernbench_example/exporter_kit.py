"""A kit of checks for a sort that kernbench has none for: formats of traces, tried on the log of a small run."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import IO, Any

import numpy as np

import kernbench_core as kb
from kernbench_builtin.pages.plugin import EXPORTERS
from kernbench_core.plugins import Plugins
from kernbench_core.testing import CheckFailed, NotApplicable, kit_of


class Exporter:
    """What is checked: the function of a format of the op log, and a log to write."""

    def __init__(self, plugins: Plugins, name: str) -> None:
        self.takes = plugins.of(EXPORTERS)[name].takes
        self.export: Callable[[Any, IO[bytes]], None] = plugins.of(EXPORTERS).load(name)
        self.op_log = kb.run(_double, topology="tiny", plugins=plugins).op_log

    def written(self) -> bytes:
        """Return what the format makes of the log."""
        if self.takes != "op_log":
            raise NotApplicable(f"it takes the {self.takes}, and here is an op log")
        out = io.BytesIO()
        self.export(self.op_log, out)
        if out.closed:
            raise CheckFailed("it must leave the file open, whose owner closes it, not close it")
        return out.getvalue()


def writes_something(exporter: Exporter) -> None:
    """A log with records is not an empty file."""
    if not exporter.written():
        raise CheckFailed("it must write a log that has records, not nothing")


def writes_the_same_twice(exporter: Exporter) -> None:
    """The same log gives the same bytes."""
    first, second = exporter.written(), exporter.written()
    if first != second:
        raise CheckFailed(f"it must write the same bytes each time, not {len(first)} and then {len(second)} others")


def _kernel(x_ptr, tl):  # type: ignore[no-untyped-def]
    x = tl.load(x_ptr, shape=(16,))
    tl.store(x_ptr, x + x)


def _double(rt: Any) -> None:
    """Double a few numbers."""
    rt.launch(_kernel, rt.tensor(np.ones(16, np.float32)), grid=(1,))


KIT = kit_of(Exporter, writes_something, writes_the_same_twice)
