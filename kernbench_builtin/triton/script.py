"""Run a whole script, or a module, as Python does: its launches go to a machine, its exit code is kept."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import runpy
import shlex
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from kernbench_core.callsite import machinery
from kernbench_core.errors import KernbenchError, UsageError
from kernbench_core.host.sources import BENCH_FUNCTION, Sources, read_sources
from kernbench_core.process.interrupt import INTERRUPTS

if TYPE_CHECKING:
    from kernbench_builtin.triton.session import MakeRun, TritonRun
    from kernbench_core.host.programs import RecordedProgram
    from kernbench_core.plugins import Plugins


@frozen
class Script:
    """A file, or a module where `is_module`, with the arguments that it finds in `sys.argv`."""

    name: str
    arguments: Sequence[str] = ()
    is_module: bool = False

    @property
    def files(self) -> list[str]:
        """The file that is executed, of a module all that it may be: to find it would import its package."""
        if not self.is_module:
            return [self.name]
        at = self.name.replace(".", "/")
        places = [Path(folder, at) for folder in ("", *sys.path)]
        found = [path for place in places for path in (place.with_name(f"{place.name}.py"), place / "__main__.py")]
        return [str(path) for path in found if path.is_file()]

    @property
    def words(self) -> list[str]:
        """What names it, with its arguments, on a command line; of an absolute path only the file."""
        if self.is_module:
            return ["-m", self.name, *self.arguments]
        file = self.title if Path(self.name).is_absolute() else self.name
        return [file, *(["--", *self.arguments] if self.arguments else [])]

    @property
    def title(self) -> str:
        """What its run is called."""
        return self.name if self.is_module else Path(self.name).name

    def session(
        self, topology: str | Path | Mapping[str, object], options: Mapping[str, Any], points: int | None,
        sources: Sources | None = None, make: MakeRun | None = None,
    ) -> TritonRun:  # fmt: skip
        """Return a run of it, which `make` makes, by default `kb.run`; `sources` are its files, read where not given.

        Raise UsageError where there is no such file or module.
        """
        from kernbench_builtin.triton.recipe import ScriptRecipe
        from kernbench_builtin.triton.session import TritonRun

        with self._as_main():
            self.check()
        if sources is None and not self.is_module:
            sources = read_sources(Path(self.name))
        kept = None if sources is None else evolve(sources, modules={})  # Python imports them
        first = [] if points is None else ["--points", str(points)]
        module = self.name if self.is_module else ""
        recipe = ScriptRecipe(["triton", *first, *self.words], module, self.arguments, points, kept)
        return TritonRun(topology, options, name=self.title, points=points, recipe=recipe, make=make)

    def check(self) -> None:
        """Raise UsageError where there is no such file or module."""
        if self.is_module and not _is_importable(self.name):
            raise UsageError(f"-m must be followed by a module that can be imported, not {self.name!r}; install it.")
        if not self.is_module and not Path(self.name).is_file():
            raise UsageError(
                f"the script must be a .py file that is there, not {self.name!r}; name a file, or a module by -m "
                "MODULE."
            )

    def run(self, session: TritonRun) -> int:
        """Run it with its launches on the machine of a session that is not open; return its exit code.

        What it raises is told as Python tells it, on stderr, and the code is 1; a KernbenchError and interrupts are
        raised on. Raise UsageError for a file that has a bench, and launches nothing itself.
        """
        found: Mapping[str, Any] = {}
        with self._as_main(), session:
            try:
                if self.is_module:
                    runpy.run_module(self.name, run_name="__main__", alter_sys=True)
                else:
                    found = runpy.run_path(self.name, run_name="__main__")
            except SystemExit as stop:
                if code := _code(stop):
                    session.failed(f"exit code {code}")
                return code
            except (KernbenchError, *INTERRUPTS):
                raise
            except BaseException as error:
                session.failed(_print_traceback(error))
                return 1
        if not session.launches and _is_bench(found.get(BENCH_FUNCTION)):
            raise UsageError(
                f"{self.name!r} has a bench(rt, …), and launches nothing itself; run it by 'kernbench run "
                f"{shlex.quote(self.name)}'."
            )
        return 0

    @contextmanager
    def _as_main(self) -> Iterator[None]:
        """Have `sys.argv` and `sys.path` as Python has them for a main program."""
        argv, path, main = sys.argv, list(sys.path), sys.modules["__main__"]
        sys.argv = [self.name, *self.arguments]
        sys.path.insert(0, "" if self.is_module else str(Path(self.name).resolve().parent))
        try:
            yield
        finally:
            sys.argv, sys.path[:] = argv, path
            sys.modules["__main__"] = main


def run_recorded(recorded: RecordedProgram, make: MakeRun, plugins: Plugins) -> None:
    """Run again the script, or the module, of a manifest; UsageError where that cannot be, or launches nothing."""
    from kernbench_builtin.triton.recipe import POINTS, arguments_of

    module, arguments = recorded.bench.get("module"), arguments_of(recorded.params)
    if module is None and "file" not in recorded.bench:
        raise UsageError(
            "a run of kb.triton cannot be run again from its manifest, as its caller's own code launched the kernels; "
            "put that into a file, and run it by kernbench triton FILE.py --out DIR."
        )
    if module is not None and not recorded.trust:
        raise UsageError(
            f"the manifest names the module {module!r}, which may do anything; look at it, and give --trust to run it."
        )
    if module is None:
        try:
            sources = recorded.read()
        except UsageError as error:
            words = recorded.bench.get("command") or ("triton", recorded.bench["file"])
            error.add_note(f"To run the script as it is now: {shlex.join(['kernbench', *words])}")
            raise
        script = Script(str(sources.given), arguments)
    else:
        script, sources = Script(module, arguments, is_module=True), None
    options = {**recorded.options, "plugins": plugins}
    session = script.session(recorded.configuration, options, recorded.params.get(POINTS), sources, make)
    script.run(session)
    if session.result is None:
        raise UsageError(
            f"{script.title} must launch kernels, as it did, and launched none; give it the files and variables that "
            "it read then."
        )


def _is_bench(found: object) -> bool:
    """Whether a function of the name takes what a bench does first."""
    return isinstance(found, FunctionType) and found.__code__.co_varnames[: found.__code__.co_argcount][:1] == ("rt",)


def _is_importable(module: str) -> bool:
    """Look for a module without importing the packages that it is in, which may need Triton."""
    top, *parts = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
        for part in parts:
            top = f"{top}.{part}"
            spec = spec and importlib.machinery.PathFinder.find_spec(top, spec.submodule_search_locations or ())
    except (ImportError, ValueError):
        return False
    return spec is not None


def _print_traceback(error: BaseException) -> str:
    """Write what a script raised, as Python does, from its own lines on; return what it was, and at which of these."""
    if isinstance(error, ImportError) and (error.name or "").split(".")[0] == "triton":
        error.add_note("kernbench has those modules and names of Triton's that kernels need, and not this one.")
    at = error.__traceback__
    while at is not None and (machinery(at.tb_frame.f_globals) or at.tb_frame.f_globals.get("__name__") == "runpy"):
        at = at.tb_next
    traceback.print_exception(type(error), error, at)
    lines = traceback.extract_tb(at)
    own = [each for each in lines if each.filename == lines[0].filename]
    return f"{type(error).__name__}{f' at {Path(own[-1].filename).name}:{own[-1].lineno}' if own else ''}"


def _code(stop: SystemExit) -> int:
    """Return the exit code of a script that ended by `sys.exit`; a text is written, as Python does."""
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    sys.stderr.write(f"{stop.code}\n")
    return 1
