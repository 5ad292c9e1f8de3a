"""What `run FILE` and `run FILE:NAME` may be: a bench, or what a kind of program makes a bench of.

Plug-ins bring kinds by the hook `kernbench_programs`; one is core's own, a kernel that is run alone. Completion asks
the kinds, too: what numpy is needed for is imported when a program is opened.
"""

from __future__ import annotations

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from kernbench_core.errors import KernbenchError, KernbenchWarning, PluginError, UsageError
from kernbench_core.plugins import CORE
from kernbench_core.process.interrupt import INTERRUPTS

if TYPE_CHECKING:
    from kernbench_core.host.bench import Bench
    from kernbench_core.host.parameters.bench_param import BenchParam
    from kernbench_core.host.parameters.grid import KernelGrid
    from kernbench_core.host.runtime import Runtime
    from kernbench_core.host.sources import Sources
    from kernbench_core.plugins import Plugins, ProgramEntry, Registry

    Program = Callable[[KernelGrid | None, Callable[..., Any]], Callable[..., None]]

_Answer = TypeVar("_Answer")


@attrs.frozen
class RecordedProgram:
    """A program as a manifest has it: its entry, parameters, the options and the configuration of its run.

    `read` reads the file and the modules that the entry names; UsageError where they are gone, or not what they were.
    `trust` says whether what lies elsewhere than beside the manifest may be run.
    """

    bench: Mapping[str, Any]
    params: Mapping[str, Any]
    options: Mapping[str, Any]
    configuration: Mapping[str, Any]
    read: Callable[[], Sources]
    trust: bool


class ProgramKind(ABC):
    """A kind of program. It is asked of every file that is run: import what is heavy in `open`."""

    def loading(self, sources: Sources) -> AbstractContextManager[object]:
        """Return what is entered while a file is executed, for modules that only such files know."""
        return nullcontext()

    @abstractmethod
    def is_one(self, function: Callable[..., Any]) -> bool:
        """Tell whether what a file calls by the name that was given is one of the kind."""

    @abstractmethod
    def open(self, name: str, function: Any, sources: Sources | None) -> Bench:
        """Return it as a bench with a `program`; `sources` are None where Python gives it, to `kb.launch`."""

    def run_again(self, recorded: RecordedProgram, make: Callable[[Bench], Any], plugins: Plugins) -> None:
        """Run again a program whose `recipe` names this kind; `make` runs its bench as the manifest says.

        Raise UsageError where that cannot be done.
        """
        kind = recorded.bench["kind"]
        raise UsageError(f"a program of kind {kind!r} cannot be run again from its manifest; run it as it was run.")


class KernelKind(ProgramKind):
    """A kernel of kernbench's, with a parameter `tl`: its parameters are the bench's, which launches it once."""

    def is_one(self, function: Callable[..., Any]) -> bool:
        """Tell it by the parameters."""
        try:
            return _has_tl(inspect.signature(function).parameters)
        except (TypeError, ValueError):  # of what is not written in Python nobody knows
            return False

    def open(self, name: str, function: Any, sources: Sources | None) -> Bench:
        """Return the bench that launches it."""

        def program(grid: KernelGrid | None, run_trial: Callable[..., Any]) -> Callable[..., None]:
            if grid is not None:
                check_names(grid, own.parameters, name)

            def launch(rt: Runtime, /, **given: object) -> None:
                rt.launch(function, grid=None if grid is None else grid.of(given), **on_device(rt, given))

            return launch

        signature = inspect.signature(function)
        own = signature.replace(parameters=[each for name, each in signature.parameters.items() if name != "tl"])
        return program_bench(name, function, sources, program, signature=own, constants=own.parameters)


KERNEL = KernelKind()


def open_kind(registry: Registry[ProgramEntry], name: str) -> ProgramKind:
    """Import a kind of program; PluginError for what is none."""
    kind = registry.load(name)
    if not isinstance(kind, ProgramKind):
        raise registry.fault(name, f"must be a ProgramKind, not {kind!r}")
    return kind


class ProgramKinds:
    """The kinds of program that there are: those of plug-ins by name, then core's own.

    The first that says that a function is one of it opens it. One that cannot be had is left out with a
    KernbenchWarning; where plug-ins are strict, it is a PluginError.
    """

    def __init__(self, plugins: Plugins) -> None:
        self._registry = plugins.programs
        self._kinds: dict[str, ProgramKind] = {}
        for name in sorted(self._registry, key=lambda name: self._registry.provider(name) == CORE):
            try:
                self._kinds[name] = open_kind(self._registry, name)
            except PluginError as error:
                if plugins.strict:
                    raise
                warnings.warn(str(error), KernbenchWarning, stacklevel=3)

    def function_of(self, sources: Sources) -> Callable[..., object]:
        """Execute a file as any of the kinds has it, and return its function."""
        from kernbench_core.host.bench import function_of

        with ExitStack() as around:
            for name, kind in self._kinds.items():
                around.enter_context(self._ask(name, kind.loading, sources))
            return function_of(sources)

    def open(self, title: str, function: Callable[..., object], sources: Sources | None = None) -> Bench | None:
        """Return a function of one of the kinds as a bench; None for what is of none."""
        from kernbench_core.host.bench import Bench

        for name, kind in self._kinds.items():
            if self._ask(name, kind.is_one, function):
                bench: object = self._ask(name, kind.open, title, function, sources)
                if isinstance(bench, Bench) and bench.program is not None:
                    return bench
                raise self._registry.fault(name, f"must open a Bench with a program, not {bench!r}")
        return None

    def _ask(self, name: str, ask: Callable[..., _Answer], *given: object) -> _Answer:
        """Return what a kind answers; PluginError for what it raises, but for errors that are meant for the user."""
        try:
            return ask(*given)
        except (KernbenchError, *INTERRUPTS, MemoryError):
            raise
        except BaseException as error:
            raise self._registry.raised(name, error) from error


def open_program(bench: str | Path | Sources | Callable[..., object] | Bench, plugins: Plugins) -> Bench:
    """Find a bench as `open_bench` does; of a file also a program of a kind that core or a plug-in knows."""
    from kernbench_core.host.bench import Bench, describe_bench, open_bench, sources_of

    if isinstance(bench, Bench):
        return bench
    sources = None if callable(bench) else sources_of(bench)
    if sources is None:
        return open_bench(bench, plugins.benches)
    kinds = ProgramKinds(plugins)
    try:
        function = kinds.function_of(sources)
        return kinds.open(sources.title, function, sources) or describe_bench(sources.title, function, sources)
    except KernbenchError as error:
        _tell_of_what_is_left_out(error, sources, plugins)
        raise


def _tell_of_what_is_left_out(error: KernbenchError, sources: Sources, plugins: Plugins) -> None:
    """Raise UsageError where a file imports what is not there, and plug-ins that may know such files are left out."""
    missing = error.__cause__
    left_out = [each for each in (*plugins.failures, *plugins.blocked) if not each.entry]
    if isinstance(missing, ModuleNotFoundError) and left_out:
        name = str(missing.name).partition(".")[0]
        who = " or ".join(f"{each.provider.plugin!r} ({each.provider}: {each.reason})" for each in left_out)
        raise UsageError(
            f"bench file {str(sources.given)!r} imports {name!r}, which is missing or comes from a plug-in that was "
            f"left out, {who}; load that plug-in, or install {name!r}."
        ) from error


def check_names(grid: KernelGrid, names: Collection[str], kernel: str) -> None:
    """Raise UsageError for a grid that is made of other names than parameters of a kernel."""
    for name in grid.names:
        if name not in names:
            raise UsageError(
                f"--grid {grid.text} must be made of parameters of kernel {kernel!r}, which are {', '.join(names)}, "
                f"not of {name!r}; correct the name."
            )


def on_device(rt: Runtime, given: Mapping[str, object]) -> dict[str, Any]:
    """Return what a program is given with tensors of the device for arrays, whose content is there already."""
    from kernbench_core.host.parameters.kernel_argument import constant_of, placed

    return {name: placed(rt, name, constant_of(value)) for name, value in given.items()}


def program_bench(
    name: str, function: Any, sources: Sources | None, program: Program,
    *, signature: inspect.Signature | None = None, constants: Collection[str] = (), **more: Any,
) -> Bench:  # fmt: skip
    """Return a function as the bench that `program` makes the host program of, with the function's parameters.

    These are of a `signature` where that is another one; those among `constants` may be any text. `more` is what a
    `Bench` has besides. Raise UsageError where it takes any number of arguments.
    """
    from kernbench_core.host.bench import Bench

    doc = (inspect.getdoc(function) or "").strip()
    params = _params(name, inspect.signature(function) if signature is None else signature, constants, doc)
    return Bench(name, function, doc.partition("\n")[0], params, sources, program=program, **more)


def _params(
    kernel: str, signature: inspect.Signature, constants: Collection[str], doc: str
) -> tuple[BenchParam, ...]:
    from kernbench_core.host.parameters.bench_param import BenchParam
    from kernbench_core.host.parameters.docstrings import argument_sentences

    told = argument_sentences(doc)
    found = []
    for name, each in signature.parameters.items():
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            raise UsageError(
                f"kernel {kernel!r} must have parameters with names to run without a bench, not {str(each)!r}; launch "
                "it from a bench."
            )
        required = each.default is each.empty
        default = None if required else each.default
        kind = "constant" if name in constants else "argument"
        found.append(BenchParam(name, kind, not required, required, default, (), told.get(name, "")))
    return tuple(found)


def _has_tl(names: Collection[str]) -> bool:
    return "tl" in names and "rt" not in names
