"""How parameters of benches are shown in a terminal: in the help of `run`, and by who describes a bench."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernbench_core.cli.columns import lines_of
from kernbench_core.process.terminal import shown_in_line

if TYPE_CHECKING:
    from kernbench_core.host.bench import BenchParam


def parameter_lines(params: Sequence[BenchParam], wide: int) -> list[str]:
    """Return a table of parameters, or a line that says that there are none."""
    if not params:
        return ["It has no parameters."]
    rows = [[shown_in_line(cell) for cell in (p.name, _kind(p), _default(p), p.sentence)] for p in params]
    header = ["parameter", "type", "default", "meaning"]
    if not any(param.sentence for param in params):
        header, rows = header[:3], [row[:3] for row in rows]
    return lines_of(header, rows, wide)


def _kind(param: BenchParam) -> str:
    """Say in words of a table what a value must be."""
    if param.kind == "choice":
        return "one of " + ", ".join(param.choices)
    return {"npy": ".npy file", "str": "text", "bool": "true or false"}.get(param.kind, param.kind)


def _default(param: BenchParam) -> str:
    """Write the default as it would be typed."""
    return "required" if param.required else "-" if param.default is None else typed(param.default)


def typed(value: object) -> str:
    """Write a value as `-p` takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
