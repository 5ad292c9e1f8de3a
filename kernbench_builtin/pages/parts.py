"""`--trace`, `--report`, `--web`, and what they look at: what runs are asked for to be looked at."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

import attrs

from kernbench_builtin.machines.figures.part import require_figures
from kernbench_builtin.pages.plugin import EXPORTERS
from kernbench_builtin.pages.timeline.levels import LEVELS, LEVELS_IN_WORDS, TIMELINE
from kernbench_core.errors import KernbenchWarning, UsageError
from kernbench_core.process.whole_files import check_file, write_text
from kernbench_core.runs.options import ANALYSIS, Option, OptionRecord, RunCall
from kernbench_core.runs.parts import RunPart, SoFar

if TYPE_CHECKING:
    from kernbench_builtin.explain.scratchpad_map import TcmRecorder
    from kernbench_builtin.pages.live_pages import RunWatcher
    from kernbench_builtin.pages.timeline import Timeline, TimelineRecorder
    from kernbench_builtin.pages.timeline.window import TimeWindow
    from kernbench_core.cli.shell import Shell
    from kernbench_core.engine.watchdog import Progress
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.plugins import Plugins
    from kernbench_core.runs.result import RunResult

#: The machine of a run as it is drawn, in its folder.
MACHINE = "machine.json"
_PICTURED = ("timeline", "machine", "explain")
#: So many of the last passages over wires a page has of a run that goes on, so that it takes no longer as that does.
_LATEST: Final = 40_000


@attrs.frozen(kw_only=True)
class TimelineOptions(OptionRecord):
    """How far down a timeline goes, and from when to when; `timeline` keeps it in the result."""

    level: Annotated[
        str,
        Option(
            f"Lowest level of the timeline: {LEVELS_IN_WORDS}.",
            "LEVEL",
            choices=LEVELS,
            group=ANALYSIS,
        ),
    ] = LEVELS[-1]
    window: Annotated[
        str | None, Option("Cut the timeline to these simulated times ('10 us..20 us').", "FROM..TO", group=ANALYSIS)
    ] = None
    timeline: bool = False

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        _ = self.cut_to

    @property
    def cut_to(self) -> "TimeWindow | None":
        """The simulated times that a timeline is cut to; UsageError for what is no window."""
        if self.window is None:
            return None
        from kernbench_builtin.pages.timeline.window import parse_window

        return parse_window(self.window)


class TimelinePart(RunPart):
    """Says what happened when."""

    NAME, OPTIONS, EXAMPLE = "timeline", TimelineOptions, {"timeline": True}
    REPEATABLE = False
    SAVES = (TIMELINE,)
    #: So many of the last passages over wires are told; None for all.
    latest: int | None = None

    @classmethod
    def wanted(cls, options: TimelineOptions, call: RunCall) -> bool:
        """A folder has it, too."""
        return options.timeline or call.out is not None

    @classmethod
    def check(cls, options: TimelineOptions, wanted: bool) -> None:
        """Refuse to say which part of a timeline is kept where none is made."""
        for name in ("window", "level"):
            if not wanted and getattr(options, name) != getattr(attrs.fields(TimelineOptions), name).default:
                raise UsageError(
                    f"--{name} limits the recorded timeline, and must be given with --trace, --out, --report or --web "
                    f"(in Python also timeline=True); add one of them, or leave out --{name}."
                )

    def observer(self) -> "TimelineRecorder":
        """Return a recorder, of which there is one."""
        from kernbench_builtin.pages.timeline import TimelineRecorder

        self._recorder = TimelineRecorder(self.options.level, self.options.cut_to)
        return self._recorder

    def scratchpads(self) -> "type[TcmRecorder]":
        """Return what notes what they hold, as the map does."""
        from kernbench_builtin.explain.scratchpad_map import TcmRecorder

        return TcmRecorder

    def answer(self, session: "GraphEngine") -> "Timeline":
        """Return what has happened so far."""
        return self._recorder.timeline(
            session.shared.requests, session.op_log, session.device.recorder, self.latest
        )

    def save(self, folder: Path, answers: Mapping[str, Any]) -> None:
        """Write it beside the result."""
        from kernbench_builtin.pages.timeline import save

        save(answers[self.NAME], folder / TIMELINE)

    def end(self, result: "RunResult", answers: Mapping[str, Any]) -> None:
        """Warn of what it does not show."""
        for note in answers[self.NAME].notes:
            warnings.warn(note, KernbenchWarning, stacklevel=4)


class MachinePart(RunPart):
    """Draws the machine of a run, with what everything did; other parts get it, the result does not."""

    NAME, KEPT, REPEATABLE = "machine", False, False
    SAVES = (MACHINE,)
    _drawing: Mapping[str, Any] | None = None

    @classmethod
    def wanted(cls, options: OptionRecord, call: RunCall) -> bool:
        """A folder has it."""
        return call.out is not None

    def answer(self, session: "GraphEngine") -> Mapping[str, Any]:
        """Return the drawing as it is now; plain JSON types."""
        from kernbench_builtin.pages.run_report import drawing_json, use_json

        if self._drawing is None:
            self._drawing = drawing_json(session, self.request.config, self.request.topology)
        return {**self._drawing, "use": use_json(session)}

    def save(self, folder: Path, answers: Mapping[str, Any]) -> None:
        """Write it beside the result."""
        import json

        write_text(folder / MACHINE, json.dumps(answers[self.NAME], allow_nan=False))


@attrs.frozen(kw_only=True)
class TraceOptions(OptionRecord):
    """The option of a trace."""

    trace: Annotated[
        str | Path | None, Option("Write a timeline (.pftrace, .json) for Perfetto.", "FILE", group=ANALYSIS)
    ] = None


@attrs.frozen(kw_only=True)
class OpenOptions(OptionRecord):
    """What the command line alone has of a trace."""

    open: Annotated[bool, Option("Open --trace in the Perfetto UI; needs kernbench[trace].", group=ANALYSIS)] = False


class TracePart(RunPart):
    """Writes the timeline as a file for a viewer."""

    NAME, OPTIONS, COMMAND = "trace", TraceOptions, OpenOptions
    EXAMPLE: ClassVar = {"trace": "{folder}/t.json"}
    NEEDS, KEPT, REPEATABLE, BEGINS = ("timeline",), False, False, "loading the exporter"

    @classmethod
    def wanted(cls, options: TraceOptions, call: RunCall) -> bool:
        """Whether a file is named."""
        return options.trace is not None

    @classmethod
    @contextmanager
    def at_terminal(
        cls, shell: "Shell", given: dict[str, Any], title: str
    ) -> Iterator[Callable[[], None] | None]:
        """Serve the trace when it is written, for `--open`."""
        if not given.pop("open"):
            yield None
            return
        if given["trace"] is None:
            raise UsageError("--open shows what --trace writes; give --trace FILE, too.")
        from kernbench_builtin.pages.perfetto_ui import show, shown_at

        with shown_at(Path(given["trace"])) as page:
            yield lambda: show(page)

    def __init__(self, options: TraceOptions, call: RunCall, plugins: "Plugins") -> None:
        super().__init__(options, call, plugins)
        from kernbench_builtin.pages.trace_file import open_trace

        self._file = open_trace(str(options.trace), plugins.of(EXPORTERS))

    @property
    def files(self) -> Mapping[str, Path]:
        """The trace."""
        return {"trace": self._file.path}

    def end(self, result: "RunResult", answers: Mapping[str, Any]) -> None:
        """Write it."""
        self._file.write(result.op_log, self.call.timeout_s, timeline=answers["timeline"])


@attrs.frozen(kw_only=True)
class ReportOptions(OptionRecord):
    """The option of a page."""

    report: Annotated[
        str | Path | None, Option("Write an HTML page: machine, timeline, where the time went.", "FILE", group=ANALYSIS)
    ] = None


class ReportPart(RunPart):
    """Writes a page of the run."""

    NAME, OPTIONS, EXAMPLE = "report", ReportOptions, {"report": "{folder}/r.html"}
    NEEDS, KEPT, REPEATABLE = _PICTURED, False, False

    @classmethod
    def wanted(cls, options: ReportOptions, call: RunCall) -> bool:
        """Whether a file is named."""
        return options.report is not None

    def __init__(self, options: ReportOptions, call: RunCall, plugins: "Plugins") -> None:
        super().__init__(options, call, plugins)
        require_figures(plugins, "--report")
        self._path = check_file("report", Path(str(options.report)), ".html")

    @property
    def files(self) -> Mapping[str, Path]:
        """The page."""
        return {"report": self._path}

    def end(self, result: "RunResult", answers: Mapping[str, Any]) -> None:
        """Write it."""
        from kernbench_builtin.pages.run_report import page_of, write_report

        write_report(self._path, [page_of(result, answers["machine"])], self.plugins)

    @classmethod
    def write_saved(cls, path: Path, runs: Sequence[tuple[str, Path]], plugins: "Plugins") -> None:
        """Write one page of saved runs, side by side, each with the name that it has there."""
        from kernbench_builtin.pages.report.saved_runs import read_page
        from kernbench_builtin.pages.run_report import write_report

        write_report(path, [read_page(place, name) for name, place in runs], plugins)


@attrs.frozen(kw_only=True)
class WatchOptions(OptionRecord):
    """Who watches a run: a `RunWatcher` of `kernbench_builtin.pages.live_pages`."""

    watcher: "RunWatcher | None" = None


@attrs.frozen(kw_only=True)
class WebOptions(OptionRecord):
    """What the command line alone has of that."""

    web: Annotated[
        bool, Option("Show the run in a browser while it goes on, until Ctrl-C.", group=ANALYSIS)
    ] = False
    port: Annotated[int, Option("Port of --web; 0 for any free one.", "PORT", group=ANALYSIS)] = 0


class WatchPart(RunPart):
    """Shows somebody pages of a run while it goes on."""

    NAME, OPTIONS, COMMAND = "watch", WatchOptions, WebOptions
    NEEDS, KEPT, REPEATABLE = _PICTURED, False, False

    @classmethod
    def wanted(cls, options: WatchOptions, call: RunCall) -> bool:
        """Whether somebody does."""
        return options.watcher is not None

    @classmethod
    @contextmanager
    def at_terminal(
        cls, shell: "Shell", given: dict[str, Any], title: str
    ) -> Iterator[Callable[[], None] | None]:
        """Serve the pages, for `--web`."""
        web, port = given.pop("web"), given.pop("port")
        if port and not web:
            raise UsageError(f"--port must be given with --web; leave out --port {port}, or give --web, too.")
        if not web:
            yield None
            return
        from kernbench_builtin.pages.served import wait, watched

        with ExitStack() as stack:
            given["watcher"] = stack.enter_context(watched(shell, title, port))
            yield wait

    def __init__(self, options: WatchOptions, call: RunCall, plugins: "Plugins") -> None:
        super().__init__(options, call, plugins)
        require_figures(plugins, "--web")
        from kernbench_builtin.pages.live_pages import PartialPages

        assert options.watcher is not None
        self._pages = PartialPages(options.watcher)

    def progressed(self, progress: "Progress", so_far: "SoFar | None") -> None:
        """Show what there is so far where that is wanted."""
        from kernbench_builtin.pages.run_report import page_of

        timeline = next(part for part in self.request.parts if isinstance(part, TimelinePart))

        def page() -> Any:
            assert so_far is not None
            timeline.latest = _LATEST
            try:
                result, answers = so_far()
            finally:
                timeline.latest = None
            return attrs.evolve(page_of(result, answers["machine"]), goes_on=True)

        self._pages.progressed(progress, None if so_far is None else page)

    def end(self, result: "RunResult", answers: Mapping[str, Any]) -> None:
        """Show the whole run."""
        from kernbench_builtin.pages.run_report import page_of

        self._pages.watcher.show(page_of(result, answers["machine"]), complete=True)
