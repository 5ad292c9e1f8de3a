"""From logs to a fitted machine: read them all, fit what their rows tell of, simulate every row on the result."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from attrs import evolve, field, frozen

from kernbench_builtin.calibrate.checks import SPARE, kept_out
from kernbench_builtin.calibrate.fit import (
    Fit,
    FittedValue,
    Slopes,
    closed_elasticities,
    fit,
    glance,
    middle_of,
    terms_of,
    values_of,
)
from kernbench_builtin.calibrate.plausibility import refusal_of, require_rising
from kernbench_builtin.calibrate.plugin import CALIBRATORS
from kernbench_builtin.calibrate.search import Simulate, Vector
from kernbench_core.calibration import Calibrator, LogOptions, LogRow, MachineChoice, SimulatedRow, Unknown
from kernbench_core.errors import ConfigError, KernbenchWarning, UsageError
from kernbench_core.params import did_you_mean
from kernbench_core.plugins import Plugins

LARGEST_LOG = 4 << 20
"""Bytes of a log, at most."""

_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""How files begin that a Windows shell wrote."""
_USUAL = "\t\n\r\f\v\b\x1b"
_NOISY, _CLOSER = 0.03, 0.6
"""Rows are off by noise up to here, on average; another way to run is taken if it is off by less than this part."""
_WRONG = 0.1
"""Rows that are further off after the first steps of a fit may have run in another way: its first steps are tried."""
_STRANGE = 0.05
"""A part of its characters above which what a file has is no text, but for a name or two."""


_Found = TypeVar("_Found")
_Step = Callable[[Sequence[Unknown], Vector, Slopes, Simulate], _Found]


@frozen
class CalibratedRow:
    """A measured row and what the fitted machine takes for it, both in ns; whether the machine was fitted to it."""

    row: LogRow
    simulated: SimulatedRow
    fitted: bool = True

    @property
    def error(self) -> float:
        """How far the simulation is from the measurement, as a part of the measurement."""
        return self.simulated.ns / self.row.ns - 1


@frozen
class Logs:
    """Measurements of several logs, by the calibrators of their formats; `full` simulate each row as it is."""

    sources: tuple[str, ...]
    groups: tuple[tuple[Calibrator, tuple[LogRow, ...]], ...]
    full: tuple[Calibrator, ...] = ()
    way: str | None = None
    """How its rows are simulated, if not as ever."""

    @property
    def rows(self) -> list[LogRow]:
        """All rows, format by format."""
        return [row for _, rows in self.groups for row in rows]

    def settings(self) -> tuple[str, ...]:
        """Return what the logs say of the machine itself."""
        return tuple(dict.fromkeys(one for calibrator, rows in self.groups for one in calibrator.settings(rows)))

    def unknowns(self, machine: MachineChoice) -> dict[str, Unknown]:
        """Return the parameters that the rows tell of, by name."""
        return {one.name: one for calibrator, rows in self.groups for one in calibrator.unknowns(rows, machine)}

    def things(self) -> tuple[Logs, list[int]]:
        """Return one row for each different thing, with the mean of its times, and which of them each row measured."""
        groups, places = list[tuple[Calibrator, tuple[LogRow, ...]]](), list[int]()
        count = 0
        for calibrator, rows in self.groups:
            same: dict[Hashable, list[LogRow]] = {}
            for row in rows:
                same.setdefault(row.case, []).append(row)
            at = {case: count + index for index, case in enumerate(same)}
            places += [at[row.case] for row in rows]
            count += len(same)
            means = tuple(evolve(one[0], ns=math.fsum(row.ns for row in one) / len(one)) for one in same.values())
            groups.append((calibrator, means))
        return evolve(self, groups=tuple(groups)), places

    def otherwise(self) -> Logs | None:
        """Return the same rows, to be simulated in the other way that calibrators know of; None where none does."""
        other = [_other(one, rows) for one, rows in self.groups]
        full = [_other(one, rows) for one, (_, rows) in zip(self.full, self.groups, strict=True)]
        told = [way for way, _ in other if way is not None]
        if not told:
            return None
        groups = tuple((one, rows) for (_, one), (_, rows) in zip(other, self.groups, strict=True))
        return evolve(self, groups=groups, full=tuple(one for _, one in full), way=told[0])

    def quick(self) -> Logs | None:
        """Return the same rows, to be simulated in less work and nearly; None where no calibrator can."""
        found = [getattr(one, "quick", lambda _: None)(rows) for one, rows in self.groups]
        if not any(found):
            return None
        pairs = zip(found, self.groups, strict=True)
        return evolve(self, groups=tuple((near or exact, rows) for near, (exact, rows) in pairs))

    def only(self, wanted: Sequence[bool]) -> Logs:
        """Return the rows that are wanted."""
        flags = iter(wanted)
        return evolve(
            self, groups=tuple((one, tuple(row for row in rows if next(flags))) for one, rows in self.groups)
        )

    def ran(self, machine: MachineChoice) -> list[str]:
        """Say how a machine simulated rows, where that is a choice: who wants the same times needs the same options."""
        found = [getattr(one, "ran", lambda *_: ())(rows, machine) for one, rows in self.groups]
        return [sentence for told in found for sentence in told]

    def simulate(self, machine: MachineChoice, *, full: bool = False) -> list[SimulatedRow]:
        """Return what a machine takes for every row; in `full` none is continued from a smaller one."""
        by = self.full if full else [calibrator for calibrator, _ in self.groups]
        pairs = [(calibrator, rows) for calibrator, (_, rows) in zip(by, self.groups, strict=True) if rows]
        return [one for calibrator, rows in pairs for one in calibrator.simulate(rows, machine)]


@frozen
class Calibrated:
    """A fit: the machine it began with, the fitted parameters, every row, and how often all rows were simulated.

    `factor` is a power of 1000 by which all times would fit far better, None where there is none. `ran` has sentences
    on how rows were simulated.
    """

    logs: Logs = field(repr=False)
    base: MachineChoice
    values: tuple[FittedValue, ...]
    rows: tuple[CalibratedRow, ...]
    rounds: int
    factor: float | None = None
    ran: tuple[str, ...] = ()

    @property
    def refusal(self) -> str | None:
        """Why the machine is no fit, a sentence; None where it explains its rows."""
        return refusal_of(self.mean_error, [(one.unknown.name, one.limit) for one in self.values], self.factor)

    @property
    def machine(self) -> MachineChoice:
        """The fitted machine."""
        return self.base.having([fitted.unknown.setting(fitted.value) for fitted in self.values])

    @property
    def fitted(self) -> list[CalibratedRow]:
        """The rows that the machine was fitted to."""
        return [row for row in self.rows if row.fitted]

    @property
    def checks(self) -> list[CalibratedRow]:
        """Rows that it was not fitted to, and that were simulated on it."""
        return [row for row in self.rows if not row.fitted and row.simulated.settled]

    @property
    def mean_error(self) -> float:
        """The mean of the magnitudes of errors, of what was fitted."""
        return float(np.mean([abs(row.error) for row in self.fitted]))

    @property
    def check_error(self) -> float | None:
        """The same of the rows that check it; None without any."""
        return float(np.mean([abs(row.error) for row in self.checks])) if self.checks else None

    @property
    def worst(self) -> CalibratedRow:
        """The row with the largest error, of those that were fitted."""
        return max(self.fitted, key=lambda row: abs(row.error))


def _other(calibrator: Calibrator, rows: Sequence[LogRow]) -> tuple[str | None, Calibrator]:
    """Return the other way that a calibrator's rows may have run, and who simulates it; itself where there is none."""
    ask: Callable[[Sequence[LogRow]], tuple[str, Calibrator] | None] | None = getattr(calibrator, "otherwise", None)
    return (ask(rows) if ask is not None else None) or (None, calibrator)


def signed_percent(part: float) -> str:
    """Write an error as %, with its sign; what rounds to none has none."""
    text = f"{part:+.1%}"
    return text[1:] if text in ("+0.0%", "-0.0%") else text


def open_logs(paths: Sequence[Path], plugins: Plugins, options: LogOptions, form: str | None = None) -> Logs:
    """Read logs, each in the format that it is in, or all in `form`.

    Raises:
        UsageError: no such format.
        ConfigError: a log cannot be read, is in no known format, or is wrong; `problems` has every fault of all logs.
    """
    known = plugins.of(CALIBRATORS)
    if form is not None and form not in known:
        raise UsageError(f"option --format must be one of {', '.join(known)}, not {form!r}.{did_you_mean(form, known)}")
    names = list(known) if form is None else [form]
    calibrators = {name: known.load(name)(plugins, options) for name in names}
    found: dict[str, list[LogRow]] = {}
    problems: list[str] = []
    for path in paths:
        try:
            text = _text(path)
            name = form or _format_of(str(path), text, calibrators)
            found.setdefault(name, []).extend(calibrators[name].read(str(path), text))
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(*problems)
    groups = tuple((calibrators[name], tuple(rows)) for name, rows in sorted(found.items()))
    full = tuple(known.load(name)(plugins, evolve(options, whole=True)) for name in sorted(found))
    return Logs(tuple(str(path) for path in paths), groups, full)


def _text(path: Path) -> str:
    try:
        size = path.stat().st_size
        if size > LARGEST_LOG:
            most = f"{LARGEST_LOG >> 20} MiB"
            raise ConfigError(f"{path}: a log must be at most {most}, not {size:,} B; give a part of it.")
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: a log must be a file that can be read: {error.strerror}.") from None
    encoding = next((name for mark, name in _MARKS.items() if data.startswith(mark)), "utf-8")
    text = data.decode(encoding, errors="replace")
    strange = sum(1 for one in text if one == "\ufffd" or (one < " " and one not in _USUAL))
    if "\0" in text or strange > _STRANGE * len(text):
        raise ConfigError(f"{path}: a log must be text, not binary data; give what was printed, or a CSV of it.")
    return text


def _format_of(name: str, text: str, calibrators: dict[str, Calibrator]) -> str:
    """Return the format of a log; ConfigError naming all formats, and the line that belongs to none."""
    for form, calibrator in calibrators.items():
        if calibrator.recognises(text):
            return form
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    number, there = next((one for one in lines if not one[1].startswith("#")), (lines or [(1, "")])[0])
    forms = "; ".join(f"{form}, {calibrator.FORM}" for form, calibrator in calibrators.items())
    shown = there if len(there) <= 60 else f"{there[:57]}..."
    raise ConfigError(
        f"{name}:{number}: a log must be in a known format ({forms}), and this one begins with {shown!r}; name the "
        "format with --format to see what is wrong with it."
    )


def calibrate(
    logs: Logs,
    machine: MachineChoice,
    chosen: Sequence[str] = (),
    on_round: Callable[[int], None] | None = None,
) -> Calibrated:
    """Fit the parameters that logs tell of, or those that are `chosen` among them; `on_round` is told of each round.

    Where rows are off by more than noise, and may have run in another way, that is taken if it is far closer.

    Raises:
        UsageError: a name is no parameter of these logs, or the rows do not identify one.
    """
    first, other = _Plan.of(logs, machine, chosen, on_round), logs.otherwise()
    if other is None:
        return first.carried_out()
    with suppress(UsageError):
        second = _Plan.of(other, machine, chosen, on_round)
        if (off := first.tried.glance()) > _WRONG and second.tried.glance(_CLOSER * off) < _CLOSER * off:
            return second.carried_out()
    found = first.carried_out()
    if found.mean_error > _NOISY:
        with suppress(UsageError):
            second = _Plan.of(other, machine, chosen, on_round)
            if second.tried.glance(found.mean_error) < found.mean_error:
                other_way = second.carried_out()
                return other_way if other_way.mean_error < _CLOSER * found.mean_error else found
    return found


@frozen
class _Plan:
    """What is to be fitted of logs: one row of each thing, those that are `used`, and those `kept` out to check it."""

    logs: Logs
    base: MachineChoice
    things: Logs
    places: Sequence[int]
    used: Sequence[bool]
    kept: Sequence[int]
    tried: _Tried

    @classmethod
    def of(
        cls, logs: Logs, machine: MachineChoice, chosen: Sequence[str], on_round: Callable[[int], None] | None
    ) -> _Plan:
        """Plan a fit; raise UsageError as `calibrate`."""
        base = machine.having([one for one in logs.settings() if one.partition("=")[0] not in _keys(machine)])
        known = logs.unknowns(base)
        for name in chosen:
            if name not in known:
                raise UsageError(
                    f"option --fit must be one of {', '.join(known)}, which these logs cover, not {name!r}."
                    f"{did_you_mean(name, known).partition(' Known: ')[0]}"
                )
        unknowns = [known[name] for name in (dict.fromkeys(chosen) if chosen else known)]
        things, places = logs.things()
        used = [not row.check for row in things.rows]
        if sum(used) < len(unknowns) + SPARE:
            used = [True for _ in used]
        slopes = _steepness(things.only(used), base, unknowns)
        require_rising(things.only(used).rows, slopes(middle_of(unknowns)))
        held = kept_out(*closed_elasticities(unknowns, _measured(things.only(used)), slopes))
        kept = [at for index, at in enumerate(np.flatnonzero(used)) if index in held]
        used = [one and at not in kept for at, one in enumerate(used)]
        tried = _Tried(things.only(used), base, unknowns, on_round)
        return cls(logs, base, things, places, used, [int(at) for at in kept], tried)

    def carried_out(self) -> Calibrated:
        """Fit, and simulate all rows on the machine that was fitted."""
        used, kept, fitted, took = self.used, self.kept, self.tried.fit(), dict[int, SimulatedRow]()
        machine = self.base.having([one.unknown.setting(one.value) for one in fitted.values])
        for full, wanted in ((True, [at in kept for at in range(len(used))]),
                             (False, [not one and at not in kept for at, one in enumerate(used)])):  # fmt: skip
            simulated = self.things.only(wanted).simulate(machine, full=full)
            took.update(zip(np.flatnonzero(wanted), simulated, strict=True))
        took.update(zip(np.flatnonzero(used), self.tried.simulated_rows(fitted), strict=True))
        paired = (
            CalibratedRow(row, took[at], used[at] and took[at].settled)
            for row, at in zip(self.logs.rows, self.places, strict=True)
        )
        ran = tuple(self.logs.ran(machine))
        return Calibrated(self.logs, self.base, fitted.values, tuple(paired), self.tried.rounds, fitted.factor, ran)


def _steepness(things: Logs, base: MachineChoice, unknowns: Sequence[Unknown]) -> Slopes:
    """Return what gives how steep closed forms of rows are in the terms of parameters."""

    def slopes(terms: Vector) -> Vector:
        at = {u.name: v for u, v in zip(unknowns, values_of(unknowns, terms), strict=True)}
        found = [one for calibrator, own in things.groups for one in calibrator.slopes(own, base, at)]
        return np.array([[row.get(u.name, 0.0) for u in unknowns] for row in found])

    return slopes


def _measured(things: Logs) -> Vector:
    return np.array([row.ns for row in things.rows])


class _Tried:
    """The machines that a fit tried, each simulated once; only what is fitted in the end warns."""

    def __init__(
        self, logs: Logs, base: MachineChoice, unknowns: Sequence[Unknown], on_round: Callable[[int], None] | None
    ) -> None:
        self._logs, self._base, self._unknowns, self._on_round = logs, base, unknowns, on_round
        self._quick = logs.quick()
        self._known: dict[tuple[bool, tuple[str, ...]], tuple[list[SimulatedRow], list[warnings.WarningMessage]]] = {}
        self._told = [True] * len(logs.rows)

    @property
    def rounds(self) -> int:
        """How often all rows were simulated."""
        return len(self._known)

    def glance(self, enough: float = math.inf) -> float:
        """Return how far rows are off after the first steps, as `fit.glance`; of rows that tell something there."""

        def rows_of(_: float) -> list[SimulatedRow]:
            rows = list(self._known.values())[-1][0]
            few = sum(row.settled for row in rows) <= len(self._unknowns)
            return [evolve(row, settled=True) for row in rows] if few else rows

        before = self._told
        off = self._settled(lambda u, m, slopes, all_: glance(u, m, slopes, self._near or all_, enough), rows_of)
        self._told = before
        return off

    def fit(self) -> Fit:
        """Fit to all rows; where times do not grow evenly as far as they were simulated, again without such rows."""
        return self._settled(partial(fit, near=self._near), lambda found: self._of(self._terms(found))[0])

    def _settled(self, step: _Step[_Found], rows_of: Callable[[_Found], list[SimulatedRow]]) -> _Found:
        """Return what a step finds with rows that are all settled then; others are left out, one by one."""
        while True:
            told = self._logs.only(self._told)
            slopes = _steepness(told, self._base, self._unknowns)
            found = step(self._unknowns, _measured(told), slopes, self._times)
            settled = [row.settled for row in rows_of(found)]
            if not any(one and not even for one, even in zip(self._told, settled, strict=True)):
                return found
            self._told = [one and even for one, even in zip(self._told, settled, strict=True)]

    def simulated_rows(self, found: Fit) -> list[SimulatedRow]:
        """Return all rows on the fitted machine, and pass on what it warned of."""
        took, told = self._of(self._terms(found))
        for one in {str(warning.message): warning for warning in told}.values():
            warnings.warn(one.message, one.category, stacklevel=2)
        return [row if one else evolve(row, settled=False) for row, one in zip(took, self._told, strict=True)]

    def _terms(self, found: Fit) -> Vector:
        return terms_of(self._unknowns, [one.value for one in found.values])

    @property
    def _near(self) -> Simulate | None:
        """What gives nearly the same times in less work, if there is that."""
        return None if self._quick is None else partial(self._times, quick=True)

    def _times(self, terms: Vector, quick: bool = False) -> Vector:
        """Return what the machine with these terms takes for each row that tells something, in ns."""
        return np.array([row.ns for row, one in zip(self._of(terms, quick)[0], self._told, strict=True) if one])

    def _of(self, terms: Vector, quick: bool = False) -> tuple[list[SimulatedRow], list[warnings.WarningMessage]]:
        values = values_of(self._unknowns, terms)
        settings = tuple(u.setting(v) for u, v in zip(self._unknowns, values, strict=True))
        logs = self._quick if quick and self._quick is not None else self._logs
        if (quick, settings) not in self._known:
            if self._on_round is not None:
                self._on_round(self.rounds + 1)
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always", KernbenchWarning)
                self._known[quick, settings] = logs.simulate(self._base.having(settings)), told
        return self._known[quick, settings]


def _keys(machine: MachineChoice) -> set[str]:
    return {one.partition("=")[0].strip() for one in machine.sets}
