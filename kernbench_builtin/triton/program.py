"""Functions that `triton.jit` decorates as programs: `kernbench run FILE.py:KERNEL`, and `kb.launch`, run one alone."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from kernbench_core.errors import UsageError
from kernbench_core.host.programs import ProgramKind, check_names, program_bench
from kernbench_core.host.sources import BENCH_FUNCTION

if TYPE_CHECKING:
    from kernbench_builtin.triton.kernel_program import RunTrial
    from kernbench_core.host.bench import Bench
    from kernbench_core.host.parameters.grid import KernelGrid
    from kernbench_core.host.programs import RecordedProgram
    from kernbench_core.host.sources import Sources
    from kernbench_core.plugins import Plugins

#: Options of a run of such a kernel: as those of files that are written in Triton.
DEFAULTS = {"race_by": "program", "materialize": "on_demand"}


def _check_bench(sources: Sources) -> None:
    """Raise UsageError for a file without a bench, before anything of it runs: a script launches its kernels itself."""
    try:
        tree = ast.parse(sources.files[sources.given.name])
    except (SyntaxError, ValueError):
        return  # told when it is executed
    nodes = [*ast.walk(tree)]
    functions = [each for each in nodes if isinstance(each, ast.FunctionDef)]
    named = {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    named |= {each.name for each in functions}
    named |= {one.asname or one.name for each in nodes if isinstance(each, ast.ImportFrom) for one in each.names}
    if not named & {BENCH_FUNCTION, "*"}:
        file = shlex.quote(str(sources.given))
        kernels = "" if _runs_at_once(tree) else ", ".join(filter(None, map(_kernel, functions)))
        alone = f", or a kernel of it alone by 'kernbench run {file}:NAME' ({kernels})" if kernels else ""
        raise UsageError(
            f"{str(sources.given)!r} is a script written in Triton, which has no bench(rt, …); run it by 'kernbench "
            f"triton {file}'{alone}."
        )


def _runs_at_once(tree: ast.Module) -> bool:
    """Whether a file calls something when it is imported, so that its kernels cannot be had without running it."""
    return any(isinstance(each, ast.Expr | ast.For | ast.With | ast.While) and _calls(each) for each in tree.body)


def _calls(statement: ast.stmt) -> bool:
    return any(isinstance(each, ast.Call) for each in ast.walk(statement))


def _kernel(function: ast.FunctionDef) -> str:
    """Return the name of a kernel, "" of a helper, which returns something, and of any other function."""
    is_jit = any("jit" in ast.unparse(each) for each in function.decorator_list)
    returns = any(isinstance(each, ast.Return) and each.value for each in ast.walk(function))
    return function.name if is_jit and not returns else ""


class JitKind(ProgramKind):
    """Kernels of Triton, and wrappers of these; the front end is imported where a file needs it."""

    def loading(self, sources: Sources) -> AbstractContextManager[object]:
        """Have a file that imports triton find kernbench's, wherever that is called; UsageError for a whole script."""
        if "triton" not in sources.imported:
            return nullcontext()
        if sources.function == BENCH_FUNCTION:
            _check_bench(sources)
        from kernbench_builtin.triton.modules import imports

        return imports.replaced()

    def is_one(self, function: Callable[..., Any]) -> bool:
        """Tell it by what Triton's own has, too."""
        return hasattr(function, "constexprs") and hasattr(function, "arg_names")

    def open(self, name: str, function: Any, sources: Sources | None) -> Bench:
        """Return the bench that launches it once."""
        from kernbench_builtin.triton.kernel_program import jit_program
        from kernbench_builtin.triton.recipe import ORDERS

        def program(grid: KernelGrid | None, run_trial: RunTrial) -> Callable[..., None]:
            assert grid is not None
            check_names(grid, function.arg_names, name)
            return jit_program(function, grid.of, run_trial)

        return program_bench(
            name, function, sources, program, signature=function.signature, constants=function.constexprs,
            defaults=DEFAULTS, needs_grid=True, orders=ORDERS,
        )  # fmt: skip

    def run_again(self, recorded: RecordedProgram, make: Callable[[Bench], Any], plugins: Plugins) -> None:
        """Run a script again, or a module, as its manifest says."""
        from kernbench_builtin.triton.script import run_recorded

        run_recorded(recorded, make, plugins)


JIT = JitKind()
