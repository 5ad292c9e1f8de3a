"""What a run may be asked for besides its times: each is a part that a plug-in registers, kernbench's own included.

A part has options, which are arguments of `kb.run` and options of `kernbench run`; it may look on while the run goes
on, answer when it has ended, write files, or stand around the whole of it.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeVar

import attrs

from kernbench_core.errors import KernbenchError, KernbenchWarning, PluginError, UsageError
from kernbench_core.plugins import PICTURES
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.runs.options import OptionRecord, command_options
from kernbench_core.runs.part_names import taken_name

if TYPE_CHECKING:
    import click
    from rich.console import Console

    from kernbench_core.compute.backends import Backend
    from kernbench_core.compute.executor import DataExecutor, Where
    from kernbench_core.compute.verification import Failure, Verification
    from kernbench_core.engine.engine import RunObserver
    from kernbench_core.engine.watchdog import Progress
    from kernbench_core.host.bench import Bench
    from kernbench_core.host.inputs import Inputs
    from kernbench_core.host.session import GraphEngine, MeasuresFigures
    from kernbench_core.kernel.pe_state import RecordsScratchpads
    from kernbench_core.plugins import Plugins, Registry, RunPartEntry
    from kernbench_core.runs.options import RunCall, RunOptions
    from kernbench_core.runs.result import RunResult
    from kernbench_core.runs.verdicts import OpsChecker
    from kernbench_core.topology.configuration import Config


_Given = TypeVar("_Given")


@attrs.frozen
class Request:
    """One run: its options, and what they stand for.

    `given` are the parameters of the bench as they were given, `values` what they are; `topology` is the name to show,
    `changes` what was laid over it, as far as that is known. `depends` are the places that the bench says that
    it reads, with the SHA-256 of what they hold. `kept_parts` names the answers that the result has, given or not;
    `check_ops` compares single ops, where that is asked for.
    """

    options: RunOptions
    bench: Bench
    given: Mapping[str, object]
    values: Mapping[str, Any]
    topology: str
    config: Config
    plugins: Plugins
    backend: Backend
    inputs: Inputs
    out: RunFolder | None = None
    parts: tuple[RunPart, ...] = ()
    kept_parts: tuple[str, ...] = ()
    changes: Mapping[str, Any] | None = None
    check_ops: OpsChecker | None = None
    depends: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def files(self) -> tuple[str, ...]:
        """The options of what is written when the run has ended well."""
        own = () if self.out is None else ("out",)
        return tuple(f"--{name}" for name in (*own, *(name for part in self.parts for name in part.files)))

    def ask(self, what: Callable[[RunPart], _Given], *passed: type[BaseException]) -> dict[str, _Given]:
        """Return what each part gives, by name; what it raises is its distribution's fault, what is `passed` is not."""
        given = {}
        for part in self.parts:
            with part_blamed(part, self.plugins.run_parts, *passed):
                given[part.NAME] = what(part)
        return given


class RunFolder(Protocol):
    """A folder that a run is to be written to; `path` is where links lead to."""

    @property
    def path(self) -> Path: ...

    def holds(self, file: Path) -> bool:
        """Whether it is written to when the run is, or into; links are followed already."""

    def check_room(self, request: Request) -> None:
        """Raise UsageError, before the run, where it would replace a file that no run wrote."""

    def whole(
        self, request: Request, result: RunResult, functions: Mapping[str, str]
    ) -> AbstractContextManager[Path]:
        """Write all of a run or nothing; parts write more within it. `functions` say who computes which op."""

    def only_in_memory(self, request: Request) -> str:
        """Say why the run in it cannot be run again; "" where it can be."""


SoFar: TypeAlias = "Callable[[], tuple[RunResult, Mapping[str, Any]]]"


class RunPart:
    """One thing that a run may be asked for; an object is made for each run that wants it.

    `NAME` is where the result has the answer (`result.NAME`, and in JSON), `OPTIONS` the record of its options.
    `NEEDS` names parts that it wants to be there, too, which need no others; `ORDER` says how far outside it stands.
    An answer is `KEPT` in the result, or given to other parts only. A part that is not `REPEATABLE` has to look on: no
    cache answers for it. An answer whose class and part have `GIVES`, names of attributes, gives them to the result,
    and has its JSON beside the run's. One with `in_short`, a text, has that in the one line of a run.
    """

    NAME: ClassVar[str] = ""
    OPTIONS: ClassVar[type[OptionRecord]] = OptionRecord
    COMMAND: ClassVar[type[OptionRecord]] = OptionRecord
    """The options that the command line has besides, for `at_terminal`."""
    NEEDS: ClassVar[tuple[str, ...]] = ()
    ORDER: ClassVar[int] = 0
    KEPT: ClassVar[bool] = True
    REPEATABLE: ClassVar[bool] = True
    ALWAYS: ClassVar[bool] = False
    """Whether every run has it."""
    EXAMPLE: ClassVar[Mapping[str, Any]] = {}
    """Options of a run that asks for it, for checks; "{folder}" in a text is a folder for its files."""
    GIVES: ClassVar[tuple[str, ...]] = ()
    SAVES: ClassVar[tuple[str, ...]] = ()
    """The files that it writes into the folder of a run with `out`."""
    BEGINS: ClassVar[str] = "beginning"
    """What is going on while an object is made, for the sentence of a limit."""

    @classmethod
    def wanted(cls, options: Any, call: RunCall) -> bool:
        """Whether a run with these options is to have it; raise UsageError for options without a meaning."""
        return cls.ALWAYS or bool(getattr(options, cls.NAME, False))

    @classmethod
    def check(cls, options: Any, wanted: bool) -> None:
        """Raise UsageError for options that say nothing where the part is not wanted: any but that of its name."""
        known = {} if wanted else command_options(cls.OPTIONS)
        for name, option in known.items() if cls.NAME in known else ():
            if name != cls.NAME and getattr(options, name) != getattr(cls.OPTIONS(), name):
                flag, switch = option.name or name.replace("_", "-"), known[cls.NAME].name or cls.NAME.replace("_", "-")
                raise UsageError(f"--{flag} must be given with --{switch}, not alone; add that, or leave it out.")

    @classmethod
    def at_terminal(
        cls, shell: Any, given: dict[str, Any], title: str
    ) -> AbstractContextManager[Callable[[], None] | None]:
        """Stand around a run of the command line, whose arguments may be changed; what is given is called at its end.

        `given` has the options of `COMMAND` too, which are those of the command line alone, and which it must take out.
        """
        return nullcontext()

    @classmethod
    def around_command(
        cls, shell: Any, command: str, options: Mapping[str, Any], config: Config, make: Callable[[], int]
    ) -> int:
        """Have a command that is no run print its answer, or print what it would; return the exit code.

        It is asked where --cached is; `options` are those that change the answer.
        """
        return make()

    @classmethod
    def machine_of(cls, ctx: click.Context, given: Mapping[str, Any], opts: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the `topology`, `components` and `set` that count for a command whose line gives some of them.

        `given` has those that the command has as options, None or nothing where they are not typed; `opts` is the whole
        line. It is asked of commands with --topology, and for completions.
        """
        return given

    def __init__(self, options: Any, call: RunCall, plugins: Plugins) -> None:
        """Check what is asked for, before anything takes time: raise UsageError for what cannot be done."""
        self.options, self.call, self.plugins = options, call, plugins
        self.asked = True  # and not only needed by another

    @property
    def files(self) -> Mapping[str, Path]:
        """The files that are written when the run has ended well, by the name of their option."""
        return {}

    def begin(self, request: Request) -> None:
        """Take note of a run that is going to be made."""
        self.request = request

    def around(self, make: Callable[[], RunResult]) -> RunResult:
        """Make the run, or return what it would give."""
        return make()

    def observer(self) -> RunObserver | None:
        """Return who looks on, as of `GraphEngine`."""
        return None

    def progressed(self, progress: Progress, so_far: SoFar | None) -> None:
        """Take note of how far the run is; `so_far` gives what there is until now, and the answers of all parts.

        It is None where there is nothing to see, or where the run is complete.
        """

    def scratchpads(self) -> Callable[[Callable[[], float]], RecordsScratchpads] | None:
        """Return what makes, of a function that tells the time in ns, a recorder of scratchpads; the first is taken."""
        return None

    def meter(self) -> MeasuresFigures | None:
        """Return who measures launches; the first is taken."""
        return None

    @property
    def watches(self) -> bool:
        """Whether it is to be told of progress."""
        return type(self).progressed is not RunPart.progressed

    @classmethod
    def show(cls, answer: Any, console: Console, *, verbose: bool = False) -> None:
        """Print an answer that was asked for, below the result."""

    @classmethod
    def makers(cls, session: GraphEngine, executor: DataExecutor) -> Callable[[Failure, str], str] | None:
        """Return what says of a wrong element, which a sentence calls "It", or so, what made it; None for nothing."""
        return None

    @classmethod
    def verify_ops(cls, executor: DataExecutor, where: Where) -> Verification | None:
        """Compute every op anew, by itself, and compare, for `verify_ops`; None where it is not this part that does."""
        return None

    @classmethod
    def folder(cls, out: str | Path, more: tuple[str, ...]) -> RunFolder | None:
        """Check that a run can be written to `out`, with `more` files of parts; None where this part writes none."""
        return None

    @classmethod
    def show_result(cls, result: RunResult, console: Console, *, verbose: bool = False) -> bool:
        """Print a result, without what parts answered; False where it is not this part that does."""
        return False

    def answer(self, session: GraphEngine) -> Any:
        """Return what it has to say of what has happened until now."""
        return None

    def cut_short(self, session: GraphEngine) -> Iterable[str]:
        """Yield what there is to say of a run that a limit ended, a line each; its error says it, too."""
        return ()

    def conclude(self, answer: Any, result: RunResult) -> Any:
        """Return the answer as it is kept, now that the result is known, with what other parts answered."""
        return answer

    def save(self, folder: Path, answers: Mapping[str, Any]) -> None:
        """Write files of its own into the new folder of a run with `out`."""

    def end(self, result: RunResult, answers: Mapping[str, Any]) -> None:
        """Do what is to be done when all is known: files, each whole or not at all."""


def open_part(name: str, parts: Registry[RunPartEntry]) -> type[RunPart]:
    """Import a part; PluginError for what is none, has another name, or calls something as others do."""
    part = _imported(name, parts)
    taken = None if parts.provider(name).is_ours else taken_name(part, _others(name, parts))
    if taken is not None:
        raise parts.fault(name, f"must not have {taken}")
    return part


def _imported(name: str, parts: Registry[RunPartEntry]) -> type[RunPart]:
    part = parts.load(name)
    if not (isinstance(part, type) and issubclass(part, RunPart) and name == part.NAME):
        raise parts.fault(name, f"must be a RunPart class whose NAME is {name!r}, not {part!r}")
    with part_blamed(part, parts):
        for record in (part.OPTIONS, part.COMMAND):
            command_options(record)
    return part


def _others(name: str, parts: Registry[RunPartEntry]) -> Iterator[tuple[str, type[RunPart]]]:
    for other in parts:
        if other != name and ":" not in other:
            with suppress(PluginError):  # one that cannot be used is told of by itself
                yield f"part of runs {other!r} of {parts.provider(other)}", _imported(other, parts)


def parts_of(plugins: Plugins) -> tuple[type[RunPart], ...]:
    """Return the parts that plug-ins register, the outermost last; one that cannot be used is left out, and told of."""
    found = []
    for name in plugins.run_parts:
        if ":" in name:
            continue  # one of two that have a name: its options could not be told apart from the other's
        try:
            part = open_part(name, plugins.run_parts)
        except PluginError as error:
            if plugins.strict:
                raise
            warnings.warn(f"{error}", KernbenchWarning, stacklevel=3)
            continue
        found.append(part)
    return tuple(sorted(found, key=lambda part: (part.ORDER, part.NAME)))


@contextmanager
def part_blamed(
    part: type[RunPart] | RunPart, parts: Registry[RunPartEntry], *passed: type[BaseException]
) -> Iterator[None]:
    """Make what a plug-in's part raises, other than errors that kernbench has words for, its distribution's fault.

    What is `passed` goes on as it is.
    """
    told: tuple[type[BaseException], ...] = (KernbenchError, *INTERRUPTS, MemoryError, *passed)
    try:
        yield
    except told:
        raise
    except BaseException as error:
        if part.NAME not in parts or parts.provider(part.NAME).is_ours:
            raise
        raise parts.raised(part.NAME, error) from error


def machine_of(
    plugins: Plugins, ctx: click.Context, given: Mapping[str, Any], opts: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return what the parts make of the machine that a command line gives; see `RunPart.machine_of`."""
    for part in parts_of(plugins):
        with part_blamed(part, plugins.run_parts):
            given = part.machine_of(ctx, given, opts)
    return given


def maker_of(session: GraphEngine, executor: DataExecutor) -> Callable[[Failure, str], str]:
    """Return what says what made a wrong element: a part of runs that knows, or else the failure itself."""
    plugins = session.shared.plugins
    if plugins is not None:
        for part in parts_of(plugins):
            with part_blamed(part, plugins.run_parts):
                found = part.makers(session, executor)
            if found is not None:
                return found
    return lambda failure, it: failure.maker


def checker_of_ops(plugins: Plugins) -> OpsChecker:
    """Return how a part of runs compares ops with themselves computed anew; UsageError where no part does."""
    return _method(plugins, "verify_ops", "verify_ops", "computes ops again")


def folder_of(plugins: Plugins, out: str | Path | None, more: tuple[str, ...]) -> RunFolder | None:
    """Check that a run can be written to `out`, by the part that does; UsageError where it cannot, or no part does."""
    found: RunFolder | None = None
    if out is not None:
        found = _method(plugins, "folder", "--out", "writes runs to folders")(out, more)
    return found


def _method(plugins: Plugins, name: str, option: str, does: str) -> Callable[..., Any]:
    """Return a class method of `RunPart` of the part that has one of its own; UsageError where there is none."""
    for part in parts_of(plugins):
        own: Callable[..., Any] = getattr(part, name)
        if own.__func__ is not getattr(RunPart, name).__func__:  # type: ignore[attr-defined]
            return part_blamed(part, plugins.run_parts)(own)
    raise UsageError(
        f"{option} must have a plug-in that {does}, and none is there; leave it out.{plugins.run_parts.left_out}"
    )


def show_result(result: RunResult, console: Console, plugins: Plugins, *, verbose: bool = False) -> None:
    """Print a result as a part of runs lays it out; where none does, in one line."""
    from kernbench_core.runs.summary import print_summary

    for part in parts_of(plugins):
        with part_blamed(part, plugins.run_parts):
            if part.show_result(result, console, verbose=verbose):
                return
    print_summary(result, console.file)


def show_answers(result: RunResult, console: Console, plugins: Plugins, *, verbose: bool = False) -> None:
    """Print what the parts that were asked for answered, below the result."""
    for part in parts_of(plugins):
        answer = result.parts.get(part.NAME) if part.NAME in result.asked else None
        if answer is not None:
            with part_blamed(part, plugins.run_parts):
                part.show(answer, console, verbose=verbose)


def split_options(
    parts: Sequence[type[RunPart]], given: Mapping[str, Any]
) -> tuple[dict[str, Any], list[tuple[type[RunPart], OptionRecord]]]:
    """Return the arguments of a run that are no part's, and each part with its options."""
    owners = {field: part for part in parts for field in attrs.fields_dict(part.OPTIONS)}
    theirs: dict[type[RunPart], dict[str, Any]] = {part: {} for part in parts}
    rest = {}
    for name, value in given.items():
        if name in owners:
            theirs[owners[name]][name] = value
        else:
            rest[name] = value
    return rest, [(part, part.OPTIONS(**theirs[part])) for part in parts]


def wanted_parts(
    asked: Iterable[tuple[type[RunPart], OptionRecord]], call: RunCall, plugins: Plugins
) -> tuple[tuple[type[RunPart], OptionRecord, bool], ...]:
    """Return the parts that a run has, with their options, and whether each is asked for and not only needed."""
    known = list(asked)
    direct = set()
    for part, options in known:
        with part_blamed(part, plugins.run_parts):
            if part.wanted(options, call):
                direct.add(part.NAME)
    names = direct.union(*(part.NEEDS for part, _ in known if part.NAME in direct))
    for part, options in known:
        with part_blamed(part, plugins.run_parts):
            part.check(options, part.NAME in names)
    return tuple((part, options, part.NAME in direct) for part, options in known if part.NAME in names)


@functools.cache
def _pictures() -> tuple[Callable[[object], str | None], ...]:
    from kernbench_core.plugins import load_plugins

    found = load_plugins().of(PICTURES)
    return tuple(found.load(name) for name in found)


def picture(thing: object) -> str | None:
    """Draw something for a notebook, as plug-ins do; None for what nobody draws."""
    return next((drawn for draw in _pictures() if (drawn := draw(thing)) is not None), None)
