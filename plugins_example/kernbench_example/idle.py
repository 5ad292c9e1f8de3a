"""A part of runs: when the machine did nothing at all, as no unit of it was busy; `--idle`, and `idle=True`.

It has an option, looks on while the run goes on, answers in the result and in `--json`, prints lines, and has a
section of the report.
"""

from html import escape
from typing import TYPE_CHECKING, Annotated, Any

import attrs

from kernbench_builtin.pages.report import RunPage, Section
from kernbench_core.process import Pictured
from kernbench_core.runs import Option, OptionRecord, RunPart

if TYPE_CHECKING:
    from rich.console import Console

    from kernbench_core.component import ComponentBase
    from kernbench_core.host import GraphEngine


@attrs.frozen(kw_only=True)
class IdleOptions(OptionRecord):
    """The option: an argument of `kb.run`, and one of `kernbench run`."""

    idle: Annotated[bool, Option("Tell when no unit was busy, the longest times first.")] = False


@attrs.frozen
class Idle(Pictured):
    """The times from and until which no unit was busy, the longest first, and how long the run took; all in ns."""

    gaps: tuple[tuple[float, float], ...]
    total_ns: float

    @property
    def share(self) -> float:
        """How much of the run no unit was busy, from 0 to 1."""
        return sum(end - begin for begin, end in self.gaps) / self.total_ns if self.total_ns else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {"share": self.share, "gaps": [list(gap) for gap in self.gaps]}


class BusyTimes:
    """Look on: components tell when they were busy. It brings no clock of its own."""

    env = None

    def __init__(self) -> None:
        self.seen: list[tuple[float, float]] = []

    def begin(self, hardware: Any) -> None:
        """Want nothing built otherwise."""

    def attach(self, hardware: Any) -> None:
        """Listen to every component."""
        for component in hardware.components.values():
            component.observe(self)

    def submitted(self, request: Any) -> None:
        """Let requests of the host be."""

    def answered(self, component: "ComponentBase", msg: Any) -> None:
        """Let answers be."""

    def served(self, component: "ComponentBase", msg: Any) -> None:
        """Let what was served be."""

    def waited(self, component: "ComponentBase", waited: float, until: float) -> None:
        """Let queues be."""

    def was_busy(self, component: "ComponentBase", took: float, until: float) -> None:
        """Note when a unit was busy."""
        self.seen.append((until - took, until))


class IdlePart(RunPart):
    """Says when no unit was busy."""

    NAME, OPTIONS, EXAMPLE = "idle", IdleOptions, {"idle": True}

    def observer(self) -> BusyTimes:
        """Return who looks on."""
        self._busy = BusyTimes()
        return self._busy

    def answer(self, session: "GraphEngine") -> Idle:
        """Return what lies between the busy times until now."""
        now = session.hardware.env.now
        gaps, at = [], 0.0
        for begin, end in sorted((*self._busy.seen, (now, now))):
            if begin > at:
                gaps.append((at, min(begin, now)))
            at = max(at, end)
        return Idle(tuple(sorted(gaps, key=lambda gap: gap[0] - gap[1])), now)

    @classmethod
    def show(cls, answer: Idle, console: "Console", *, verbose: bool = False) -> None:
        """Print a line, and the longest gap or all."""
        console.print(f"\nno unit was busy for {answer.share:.1%} of the run")
        for begin, end in answer.gaps if verbose else answer.gaps[:1]:
            console.print(f"  {end - begin:,.1f} ns from {begin:,.1f} ns on")


def _html(page: RunPage) -> str:
    """Say it in words; a run that was not asked has no answer."""
    found = page.result.get("idle")
    if found is None:
        return f"<p>{escape(page.name)} was not asked; run it with --idle.</p>"
    rows = "".join(f"<tr><td>{begin:,.1f} ns</td><td>{end - begin:,.1f} ns</td></tr>" for begin, end in found["gaps"])
    table = f"<table><tr><th>from</th><th>for</th></tr>{rows}</table>"
    return f"<p>No unit was busy for {found['share']:.1%} of the run.</p>{table}"


def _data(page: RunPage) -> dict[str, Any]:
    """Give scripts the gaps."""
    return dict(page.result.get("idle") or {})


IDLE = Section("Idle times", 46, _html, _data)


def picture(thing: object) -> str | None:
    """Show an answer in a notebook as a bar that is dark where no unit was busy; nothing else."""
    if not isinstance(thing, Idle):
        return None
    total = thing.total_ns or 1.0
    gaps = [(100 * begin / total, 100 * (end - begin) / total) for begin, end in thing.gaps]
    bars = (f'<rect x="{at}" width="{wide}" height="4"/>' for at, wide in gaps)
    return f'<svg viewBox="0 0 100 4" width="400" role="img" aria-label="idle times">{"".join(bars)}</svg>'
