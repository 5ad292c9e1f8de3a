"""Functions that `triton.jit` decorates as programs: `kernbench run FILE.py:KERNEL`, and `kb.launch`, run one alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from kernbench_core.host.programs import ProgramKind, check_names, program_bench

if TYPE_CHECKING:
    from kernbench_builtin.triton.kernel_program import RunTrial
    from kernbench_core.host.bench import Bench
    from kernbench_core.host.parameters.grid import KernelGrid
    from kernbench_core.host.sources import Sources

#: Options of a run of such a kernel: as those of files that are written in Triton.
DEFAULTS = {"race_by": "program", "materialize": "on_demand"}


class JitKind(ProgramKind):
    """Kernels of Triton, and wrappers of these; the front end is imported where a file needs it."""

    def loading(self, sources: Sources) -> AbstractContextManager[object]:
        """Have a file that imports triton find kernbench's, wherever that is called."""
        if "triton" not in sources.imported:
            return nullcontext()
        from kernbench_builtin.triton.modules import imports

        return imports.replaced()

    def is_one(self, function: Callable[..., Any]) -> bool:
        """Tell it by what Triton's own has, too."""
        return hasattr(function, "constexprs") and hasattr(function, "arg_names")

    def open(self, name: str, function: Any, sources: Sources | None) -> Bench:
        """Return the bench that launches it once."""
        from kernbench_builtin.triton.kernel_program import jit_program

        def program(grid: KernelGrid | None, run_trial: RunTrial) -> Callable[..., None]:
            assert grid is not None
            check_names(grid, function.arg_names, name)
            return jit_program(function, grid.of, run_trial)

        return program_bench(
            name, function, sources, program, signature=function.signature, constants=function.constexprs,
            defaults=DEFAULTS, needs_grid=True,
        )  # fmt: skip


JIT = JitKind()
