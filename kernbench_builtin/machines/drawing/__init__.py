"""Pictures of machines and small plots, as SVG text: pure functions from plain data.

In: a compiled graph of any kind of machine, or rows of numbers. Out: a `MachineDrawing`, plain data, and SVG. Runs,
the report, `kernbench topology show --svg` and notebooks call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_builtin.machines.drawing.machine import draw_machine as draw_machine
    from kernbench_builtin.machines.drawing.machine_drawing import MachineDrawing as MachineDrawing
    from kernbench_builtin.machines.drawing.parameters import parameter_sources as parameter_sources
    from kernbench_builtin.machines.drawing.svg import view_svg as view_svg

__getattr__ = door(__name__)
