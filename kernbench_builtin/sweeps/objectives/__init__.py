"""What a run gives: its named figures, functions of a user's own over them, and the objectives made of both.

In: a result, or the text of an objective. Out: plain numbers by name. Whoever carries out a point of a sweep calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_builtin.sweeps.objectives.figures import FAMILIES as FAMILIES
    from kernbench_builtin.sweeps.objectives.figures import FIGURES as FIGURES
    from kernbench_builtin.sweeps.objectives.figures import MEDIAN as MEDIAN
    from kernbench_builtin.sweeps.objectives.figures import SECTIONS as SECTIONS
    from kernbench_builtin.sweeps.objectives.figures import SPREAD as SPREAD
    from kernbench_builtin.sweeps.objectives.figures import may_be_figure as may_be_figure
    from kernbench_builtin.sweeps.objectives.figures import named_figures as named_figures
    from kernbench_builtin.sweeps.objectives.functions import FigureFunctions as FigureFunctions
    from kernbench_builtin.sweeps.objectives.functions import flat as flat
    from kernbench_builtin.sweeps.objectives.functions import read_figures as read_figures
    from kernbench_builtin.sweeps.objectives.objective import Objective as Objective
    from kernbench_builtin.sweeps.objectives.objective import measure as measure
    from kernbench_builtin.sweeps.objectives.objective import parse_objective as parse_objective
    from kernbench_builtin.sweeps.objectives.objective import require_apart as require_apart
    from kernbench_builtin.sweeps.objectives.objective import split_commas as split_commas

__getattr__ = door(__name__)
