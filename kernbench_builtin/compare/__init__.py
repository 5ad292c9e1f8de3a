"""What moved between two runs: the figures of each, laid side by side and ranked.

In: two results, saved or just made. Out: the differences by phase, kind of component, link, op, kernel line, path,
configuration and source. The command line, the tests of budgets and the report call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_builtin.compare.differences import RunComparison as RunComparison
    from kernbench_builtin.compare.differences import compare as compare
    from kernbench_builtin.compare.figures import RunFigures as RunFigures
    from kernbench_builtin.compare.moved_rows import MovedRow as MovedRow
    from kernbench_builtin.compare.run_figures import figures_of as figures_of
    from kernbench_builtin.compare.saved_figures import figures_of_saved as figures_of_saved

__getattr__ = door(__name__)
