"""Expressions over parameters and figures, as constraints and objectives have them: arithmetic, and nothing else.

In: one line of text, and values by name. Out: a number or a truth value, or a sentence with the column of
what is wrong. Constraints and objectives of a sweep call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_builtin.sweeps.expressions.expression import Expression as Expression
    from kernbench_builtin.sweeps.expressions.quantities import UnitNumber as UnitNumber
    from kernbench_builtin.sweeps.expressions.quantities import as_known as as_known

__getattr__ = door(__name__)
