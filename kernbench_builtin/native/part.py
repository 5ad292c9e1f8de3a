"""`--record`, which keeps what a run asked for, `--what-if`, which asks it, and `--engine both`, which compares."""

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import attrs

from kernbench_core.errors import SanityError, UsageError
from kernbench_core.runs.options import ANALYSIS, OUTPUT, Option, OptionRecord
from kernbench_core.runs.parts import RunPart

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kernbench_builtin.native.recorded import RecordedRun
    from kernbench_builtin.native.recorder import StreamRecorder
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.runs.options import RunCall

FILE = "recording.npz"
PYTHON, BOTH = "python", "both"


@attrs.frozen(kw_only=True)
class NativeOptions(OptionRecord):
    """The options of recordings and of the native engine."""

    record: Annotated[
        bool, Option("Keep in --out what the run asked for, so that it can be timed on other machines.", group=OUTPUT)
    ] = False
    what_if: Annotated[
        bool,
        Option("Say what the run would gain if a resource were twice as fast, or free.", group=ANALYSIS),
    ] = False
    engine: Annotated[
        str,
        Option(
            "Which engine times the run: python, or both, whose times must then be equal in every bit.",
            metavar="NAME",
            choices=(PYTHON, BOTH),
            group=ANALYSIS,
        ),
    ] = PYTHON


class NativePart(RunPart):
    """Records what a run asks for; keeps it in the run's folder, or has the native engine time it, too."""

    NAME, OPTIONS, SAVES, EXAMPLE = "native", NativeOptions, (FILE,), {"record": True, "out": "{folder}/run"}
    REPEATABLE, ORDER = False, 40  # behind those that look on at programs, too

    @classmethod
    def wanted(cls, options: Any, call: "RunCall") -> bool:
        """Whether anything is asked for."""
        return bool(options.record or options.what_if or options.engine == BOTH)

    @classmethod
    def at_terminal(cls, shell: Any, given: dict[str, Any], title: str) -> AbstractContextManager[None]:
        """Require a folder for a recording, which nobody could ask anything of otherwise."""
        if given.get("record") and not given.get("out"):
            raise UsageError("--record must have a folder to keep the recording in; add --out DIR.")
        return nullcontext()

    def observer(self) -> "StreamRecorder":
        """Return a recorder, of which there is one."""
        from kernbench_builtin.native.recorder import StreamRecorder

        self._recorder = StreamRecorder()
        return self._recorder

    def answer(self, session: "GraphEngine") -> "RecordedRun | None":
        """Record a run that is over, and compare; what there is to say of that is a warning of the result.

        UsageError for what the native engine cannot time, SanityError for other times.
        """
        from kernbench_builtin.native.compared import compare, differences
        from kernbench_builtin.native.recorded import RecordedRun
        from kernbench_builtin.native.recorder import is_whole

        if not is_whole(session):
            return None
        recording = self._recording = self._recorder.recording(session)
        if self.options.engine == BOTH:
            timed = compare(session, recording)
            found = differences(session, recording, timed)
            if found:
                raise SanityError("\n".join(["both engines must give the same times, and do not:", *found]))
            equal = f"{recording.ops:,} ops, {len(timed.wires):,} wires, {len(timed.requests):,} requests of the host"
            session.shared.notes[f"Both engines give the same times, bit for bit: of {equal}."] = None
        else:
            for cause in recording.causes if self.options.record else ():
                session.shared.notes[f"The recording does not hold for other times, because of {cause}."] = None
            for call in recording.looked_at if self.options.record and not recording.causes else ():
                session.shared.notes[f"The recording holds for what-if alone, as the program asks for {call}."] = None
        if not self.options.record and not self.options.what_if:
            return None
        recorded = RecordedRun(recording, session.machine, self.plugins)
        if not self.options.what_if:
            return recorded
        try:
            return recorded.asked_what_if()
        except UsageError as error:  # the run itself is as it was
            session.shared.notes[f"--what-if has no answer: {error}"] = None
            return recorded

    @classmethod
    def show(cls, answer: "RecordedRun", console: Any, *, verbose: bool = False) -> None:
        """Print what a faster resource would gain."""
        if answer.gains is not None:
            from kernbench_builtin.native.gain_text import gain_lines

            console.print("\n" + "\n".join(gain_lines(answer.gains)), highlight=False, markup=False)

    def save(self, folder: "Path", answers: "Mapping[str, Any]") -> None:
        """Write the recording into the run's folder."""
        if self.options.record:
            self._recording.save(folder / FILE)
