"""What `kernbench ccl COLLECTIVE` prints: the table of one algorithm, or all algorithms side by side, or JSON."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext, redirect_stdout
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from attrs import evolve

from kernbench_ccl.cli.explained import run_of, spread_of
from kernbench_ccl.measure import SweepRow
from kernbench_ccl.measure.comparison import Comparison, WideComparison, crossovers, fastest, sound
from kernbench_ccl.measure.remarks import broken, remarks, told_queues, tried
from kernbench_ccl.measure.sweep import Failed, counts_of, size_of
from kernbench_ccl.measure.table import footer, layout
from kernbench_ccl.plan.candidates import first_sentence
from kernbench_ccl.plan.configuration import AUTO
from kernbench_core.engine import Limits, Progress
from kernbench_core.process import shown
from kernbench_core.runs import ProgressDisplay, make_console, show_answers
from kernbench_core.spread import NOT_KNOWN, Contest, contest
from kernbench_core.units import format_bandwidth, format_bytes, format_time
from kernbench_core.values.dtypes import itemsize

if TYPE_CHECKING:
    from kernbench_ccl.measure import Chooser, Question, Sweep, TimedMachine
    from kernbench_ccl.measure.choice import Choice
    from kernbench_core.cli.shell import Shell
    from kernbench_core.runs import RunResult
    from kernbench_core.spread import TimeSpread

SCHEMA = "kernbench.ccl/1"
ALL = "all"
"""What --algo says for every algorithm that does these ranks."""


class Table:
    """Print one table while its rows come; sub-classes say what a row is."""

    def __init__(
        self,
        shell: Shell,
        options: dict[str, Any],
        question: Question,
        sizes: Sequence[int],
        sweep: Sweep,
        chooser: Chooser,
        name: str,
    ) -> None:
        self.shell, self.options, self.question, self.name = shell, options, question, name
        self.sweep, self.chooser = sweep, chooser
        self.machine: TimedMachine = sweep.machine
        self.counts = counts_of(sizes, question.kind, question.dtype, self.machine.world)
        self.rows: list[SweepRow] = []
        self.as_json, self.quiet = options["as_json"], options["quiet"]
        self.run_again: RunResult | None = None
        """The row once more as a run, with the parts that are asked for."""
        self.shaken: dict[int, Contest] = {}
        """What algorithms came to on other machines, by size; empty without --shake."""
        self.told_choice: Callable[[int, int], None] = lambda *_: None

    @property
    def width(self) -> int | None:
        """Characters of the terminal; None where there is none."""
        if not sys.stdout.isatty():
            return None
        return shutil.get_terminal_size().columns

    def run(self) -> int:
        """Print the table; return the exit code."""
        prints = redirect_stdout(sys.stderr) if self.as_json else nullcontext()
        title = f"{self.title}, choosing the algorithm"
        with ProgressDisplay(title, enabled=not self.quiet, rows=not self.as_json) as display, prints:
            self.told_choice = _teller(display, title)
            self.prepare()

            def report(what: str, progress: Any) -> None:
                display.title = f"{self.title}, {what}"
                display.update(progress)

            self.sweep = evolve(self.sweep, report=report)
            self.say(*self.header())
            for lines in self.body():
                self.say(*lines)
            self.run_parts()
            if self.options.get("shake"):
                self.shake()
        if self.as_json:
            click.echo(json.dumps(self.to_json(), indent=2, allow_nan=False))
        elif self.quiet:
            click.echo(shown(self.in_one_line()))
        else:
            self.say(*self.footer(), *self.faults())
            if self.run_again is not None:
                show_answers(self.run_again, make_console(sys.stdout), self.shell.plugins)
        return self.failure() or self.verdict()

    def shake(self) -> None:
        """Run rows again on machines that are the same but for a thousandth, and keep in `shaken` what it says."""

    def spread_of(self, choice: Choice, size: int) -> TimeSpread:
        """Return what a row's time comes to on such machines."""
        sweep = self.sweep
        return spread_of(self.shell, self.question, sweep.setup, choice, size, self.options, sweep.limits or Limits())

    def run_parts(self) -> None:
        """Run the row once more with the parts that are asked for, if any are."""

    def spreads(self) -> list[str]:
        """Say how much the times say, where that was asked for."""
        told = ((format_bytes(size), next(iter(found.spreads)), found.against) for size, found in self.shaken.items())
        return [f"# {size} shaken: {best} {against}" for size, best, against in told]

    def failure(self) -> int:
        """Tell of runs that ended with an error; return the exit code of the first, or 0."""
        return 0

    def verdict(self) -> int:
        """Return 1 where data is wrong or memory races, else 0."""
        return 1 if any(row.wrong or m.failures or m.hazards for row in self.rows for m in row.measured) else 0

    @property
    def title(self) -> str:
        """What the progress line calls it."""
        return f"{self.question.collective}, {self.vectors} ranks"

    @property
    def vectors(self) -> int:
        """How many ranks there are as nccl-tests counts them: who brings a vector, each SIP or each PE."""
        return self.machine.vectors(self.question.contributors)

    def say(self, *lines: str) -> None:
        """Print lines at once, unless JSON or one line is asked for."""
        if not (self.as_json or self.quiet):
            for line in lines:
                click.echo(shown("\n".join(broken(line, self.width))))

    def prepare(self) -> None:
        """Choose the algorithms."""
        raise NotImplementedError

    def header(self) -> list[str]:
        """Return the lines above the rows."""
        raise NotImplementedError

    def body(self) -> Any:
        """Yield the lines of each row as it comes."""
        raise NotImplementedError

    def footer(self) -> list[str]:
        """Return the lines below the rows."""
        raise NotImplementedError

    def in_one_line(self) -> str:
        """Say which sizes took how long, at which bus bandwidth, and whether the data is right."""
        measured = [m for row in self.rows for m in row.measured]
        times = _range([row.out_of_place.time_ns for row in self.rows if row.out_of_place], format_time)
        mean = sum(m.busbw for m in measured) / len(measured) if measured else 0.0
        verdict = "data right" if self.options["check"] else "data not checked"
        return (
            f"{self.title} of {self.options['topology']}: {self._span()} in {times}, "
            f"average bus bandwidth {mean:.4g} GB/s, {'DATA IS WRONG OR RACES' if self.verdict() else verdict}"
        )

    def _span(self) -> str:
        sizes = [self._size(count) for count in self.counts]
        return format_bytes(sizes[0]) if len(sizes) == 1 else f"{format_bytes(sizes[0])} to {format_bytes(sizes[-1])}"

    def about(self) -> list[str]:
        """Say what is measured, on which machine."""
        machine, question = self.machine, self.question
        shape = machine.network
        grid = f" of {shape.width} x {shape.height}" if shape.height > 1 else ""
        ideal = ", idealised" if self.options["idealised"] else ""
        who = f"the SIPs of {self.options['topology']}"
        if question.contributors == "pe":
            who = f"the PEs of {self.options['topology']}, {machine.world} SIP{'s' if machine.world > 1 else ''}"
        rates = _range([link.bandwidth for link in machine.fabric.links], format_bandwidth)
        delays = _range([link.latency for link in machine.fabric.links], format_time)
        links = f"# {shape.name}{grid}, {rates} and {delays} a link and direction"
        told = [question.dtype]
        if question.redop is not None:
            told.append(question.redop)
        if question.kind.rooted:
            told.append(f"root {question.root}")
        by = "" if self.options["backend"] == "numpy" else f" by {self.options['backend']}"
        checked = f"data checked{by}" if self.options["check"] else "data not checked"
        return [
            f"# {question.collective}: {self.vectors} ranks, {who}{ideal}",
            *([links] if machine.world > 1 else []),
            f"# {', '.join(told)}; {self._span()}; {checked}",
        ]

    def _size(self, count: int) -> int:
        return size_of(count, self.question.kind, self.question.dtype, self.machine.world)

    def how(self, choice: Choice) -> str:
        """Say how an algorithm runs: what is not the default, and as what is sent."""
        settings, name = choice.settings, choice.algorithm.name
        message = self.machine.message(settings, choice.algorithm, itemsize(self.question.dtype))
        entry = "" if settings.name == name else f"{settings.name}: "
        told = [
            f"{entry}{name}", "pipelined" if settings.pipeline else "step by step",
            f"messages of {format_bytes(message)}",
        ]  # fmt: skip
        queues = told_queues(settings)
        if queues:
            told.append(queues)
        if settings.topology is not None:
            told.append(f"laid over a {settings.topology}")
        if settings.pes is not None:
            told.append(f"{settings.pes} PE{'s' if settings.pes > 1 else ''} a rank")
        return ", ".join(told)

    def faults(self) -> list[str]:
        """Say what is wrong with the data, and which uses of memory race: of the first run in full, then which others.

        --json has all of it.
        """
        faulty = [
            (f"{format_bytes(row.size)} by {row.called}, {where}", found)
            for row in self.rows
            for where, found in (("out of place", row.out_of_place), ("in place", row.in_place))
            if found is not None and (found.failures or found.hazards)
        ]
        if not faulty:
            return []
        first, found = faulty[0]
        lines = [f"{first}:"]
        lines += [f"  wrong data: {line}" for line in found.failures]
        lines += [f"  hazard: {line}" if not line.startswith(" ") else f"  {line}" for line in found.hazards]
        if len(faulty) > 1:
            runs = "run" if len(faulty) == 2 else "runs"
            lines.append(f"and {len(faulty) - 1} more {runs}: {'; '.join(name for name, _ in faulty[1:])}.")
        return lines

    def to_json(self) -> dict[str, Any]:
        """Return the object of --json."""
        machine, question = self.machine, self.question
        bandwidth, latency = machine.link()
        measured = [m for row in self.rows for m in row.measured]
        return {
            "schema": SCHEMA,
            "collective": question.collective,
            "ranks": self.vectors,
            "contributors": question.contributors,
            "topology": self.options["topology"],
            "components": self.options["components"],
            "sets": list(self.sweep.setup.sets),
            "config": self.options["config"],
            "idealised": self.options["idealised"],
            "network": {
                "topology": machine.network.name, "width": machine.network.width, "height": machine.network.height,
                "bandwidth": bandwidth, "latency_ns": latency,
            },
            "checked": self.options["check"],
            "backend": self.options["backend"] if self.options["check"] else None,
            "rows": [row.to_json() for row in self.rows],
            "wrong": sum(row.wrong for row in self.rows),
            "hazards": sum(m.races for m in measured),
            "average_busbw": sum(m.busbw for m in measured) / len(measured) if measured else 0.0,
            "shaken": [
                {"size": size, "not_shown_to_differ": list(found.equals),
                 "algorithms": {name: spread.to_json() for name, spread in found.spreads.items()}}
                for size, found in self.shaken.items()
            ],
            "run": None if self.run_again is None else self.run_again.to_json(),
        }  # fmt: skip


class OneAlgorithm(Table):
    """The table of one algorithm for each size: nccl-tests' columns."""

    def prepare(self) -> None:
        """Choose an algorithm for each size, by its name or the best."""
        if self.name == AUTO:
            self.planned = []
            for count in self.counts:
                self.planned.append((count, self.chooser.best(self._size(count))))
                self.told_choice(len(self.planned), len(self.counts))
            for sentence in self.chooser.warnings:
                self.shell.warn(sentence)
        else:
            choice = self.chooser.named(self.name)
            self.planned = [(count, choice) for count in self.counts]

    def header(self) -> list[str]:
        """Say what is measured and by which algorithm, then the columns."""
        self.layout = layout(self.width, largest=self._size(self.counts[-1]), wide=self.options["wide"])
        gone = self.layout.missing
        few = [f"# {self.width} columns are too few for {_and(gone)}; --json has them"] if gone else []
        return [*self.about(), *self._algorithms(), *few, "#", *self.layout.header()]

    def _algorithms(self) -> list[str]:
        """Say which algorithm each size gets, and why."""
        runs: list[tuple[Choice, int]] = []
        for count, choice in self.planned:
            if runs and runs[-1][0] == choice:
                runs.pop()
            runs.append((choice, count))
        if len(runs) == 1 and self.name != AUTO:
            return [f"# {self.how(runs[0][0])}"]
        spans = [f"up to {format_bytes(self._size(count))}" for _, count in runs[:-1]]
        spans.append("above" if len(runs) > 1 else "all sizes")
        chosen = (f"#   {span}: {self.how(choice)}" for span, (choice, _) in zip(spans, runs, strict=True))
        return [f"# auto ({self.chooser.basis}):", *chosen]

    def body(self) -> Any:
        """Yield a line for each size."""
        for row in self.sweep.rows(self.planned):
            self.rows.append(row)
            yield [self.layout.line(row)]

    def to_json(self) -> dict[str, Any]:
        """Return the object of --json, with what auto went by, None where somebody named the algorithm."""
        return {**super().to_json(), "auto": self.chooser.basis if self.name == AUTO else None}

    def run_parts(self) -> None:
        """Run the row once more with the parts that are asked for, if any are."""
        parts = self.options["parts"]
        if parts:
            [(count, choice)] = self.planned
            size, setup, limits = self._size(count), self.sweep.setup, self.sweep.limits or Limits()
            self.run_again = run_of(self.shell, self.question, setup, choice, size, parts, limits, self.vectors)

    def shake(self) -> None:
        """Run each row again on machines that are the same but for a thousandth."""
        for row, (_, choice) in zip(self.rows, self.planned, strict=True):
            self.shaken[row.size] = Contest({row.called: self.spread_of(choice, row.size)})

    def footer(self) -> list[str]:
        """Return nccl-tests' last lines."""
        wide = self.options["wide"]
        by_trial = tried(self.chooser.estimates) if wide else []
        told = remarks(self.rows, wide, idealised=self.options["idealised"])
        return [*self.spreads(), *told, *by_trial, *footer(self.rows)]


class AllAlgorithms(Table):
    """The times of all algorithms side by side, out of place."""

    def prepare(self) -> None:
        """Take the algorithms that are named, or every one that does these ranks and then others that are named."""
        names = self.options["algo"] if len(self.options["algo"]) > 1 else (ALL,)
        every = ALL in names and (len(names) == 1 or not self.chooser.has_entry(ALL))
        self.choices = self.chooser.compared() if every else {}
        for name in names:
            if name == ALL and every:
                continue
            choice = self.chooser.named(name)
            if not every or choice not in self.choices.values():
                self.choices[name] = choice
        self.times: list[tuple[int, dict[str, Any]]] = []
        self.failed: list[Failed] = []

    def header(self) -> list[str]:
        """Say what is measured, by which algorithms, and which refuse."""
        names, largest = list(self.choices), self._size(self.counts[-1])
        wide, beside = self.options["wide"], Comparison(tuple(names))
        self.layout: Comparison | WideComparison = beside
        if wide or not beside.fits(self.width):
            self.layout = WideComparison.of(names, self.width, largest, wide)
        sentences = (sentence.removesuffix("; choose another.") for sentence in self.chooser.refusals.values())
        refused = [f"# left out: {sentence}" for sentence in sentences]
        how = [f"# {self.how(choice)}" for choice in self.choices.values()]
        return [*self.about(), *how, *refused, "#", "# time out of place; * is the least", *self.layout.header()]

    def body(self) -> Any:
        """Yield a line for each size."""
        for ends in self.sweep.comparison(self.counts, self.choices):
            named = dict(zip(self.choices, ends, strict=True))
            rows = {name: end for name, end in named.items() if isinstance(end, SweepRow)}
            failed = {name: end for name, end in named.items() if isinstance(end, Failed)}
            self.rows += rows.values()
            self.failed += failed.values()
            times = {name: row.out_of_place for name, row in rows.items()}
            self.times.append((ends[0].size, times))
            words = {name: end.word for name, end in failed.items()}
            if isinstance(self.layout, WideComparison):
                yield self.layout.lines(ends[0].size, rows, words)
            else:
                yield [self.layout.line(ends[0].size, times, words)]

    def failure(self) -> int:
        """Tell, for each algorithm, with which size it failed first and how."""
        for name in dict.fromkeys(failed.algorithm for failed in self.failed):
            first, *more = [failed for failed in self.failed if failed.algorithm == name]
            others = f"; {len(more)} more {'sizes' if len(more) > 1 else 'size'} failed" if more else ""
            told = first_sentence(first.error)
            self.shell.error(f"{format_bytes(first.size)} by {name}: {told.rstrip('.:')}{others}.")
        return self.failed[0].error.exit_code if self.failed else 0

    def footer(self) -> list[str]:
        """Say where the algorithms cross, and whether the data is right."""
        known = self.spreads() or [f"# single times: {NOT_KNOWN}"]
        faulty = any(row.out_of_place.is_faulty for row in self.rows)
        mark = ["# ! is wrong data or a race, and never the best"] if faulty else []
        return [f"# {crossovers(self.times)}", *mark, *known, *footer(self.rows)[:-2], "#"]

    def shake(self) -> None:
        """Run the fastest of each size again, until one is beyond the best of them and its spread."""
        for size, found in self.times:
            times = sound(found)
            if times:
                self.shaken[size] = contest(times, partial(self._spread_of, size))

    def _spread_of(self, size: int, name: str) -> TimeSpread:
        return self.spread_of(self.choices[name], size)

    def to_json(self) -> dict[str, Any]:
        """Return the object of --json, with the best of each size and what refuses."""
        best = []
        for size, times in self.times:
            name = fastest(times)
            if name is not None:
                row = next(row for row in self.rows if row.size == size and row.out_of_place is times[name])
                best.append({"size": size, "algorithm": row.algorithm, "entry": row.entry})
        return {
            **super().to_json(), "best": best, "crossovers": crossovers(self.times),
            "refused": dict(self.chooser.refusals), "failed": [failed.to_json() for failed in self.failed],
        }  # fmt: skip


def _teller(display: ProgressDisplay, title: str) -> Callable[[int, int], None]:
    """Return what shows for how many sizes an algorithm is chosen, and how long the rest takes."""
    began = time.perf_counter()

    def told(done: int, of: int) -> None:
        display.title = f"{title}, {done} of {of} sizes"
        display.update(Progress(0.0, 0, time.perf_counter() - began, done / of))

    return told


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _range(values: Collection[float], told: Callable[[float], str]) -> str:
    """Tell one value, or the least and the largest of several."""
    least, largest = told(min(values, default=0.0)), told(max(values, default=0.0))
    return least if least == largest else f"{least} to {largest}"
