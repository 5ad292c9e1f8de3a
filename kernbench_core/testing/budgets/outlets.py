"""Where reports go: what the options say, checked before tests run, and written when they are over."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from kernbench_core.errors import UsageError
from kernbench_core.params import did_you_mean
from kernbench_core.process.whole_files import check_file, write_text
from kernbench_core.wording import brief

MARKDOWN: Final = "md"
#: The forms of `--kernbench-json`; the first is what a file alone means.
SMALLER, BENCHMARK = "customSmallerIsBetter", "pytest-benchmark"
_FORMS: Final = (SMALLER, BENCHMARK)
#: What GitHub shows below a job: steps append to it.
_SUMMARY: Final = "GITHUB_STEP_SUMMARY"


@attrs.frozen
class Outlet:
    """A form, and the file that it is written to; None for the terminal. `appends` leaves what is in the file."""

    option: str
    form: str
    file: Path | None = None
    appends: bool = False

    def write(self, text: str) -> None:
        """Write it; UsageError where that fails."""
        assert self.file is not None
        try:
            if self.appends:
                with self.file.open("a", encoding="utf-8") as out:
                    out.write(f"{text}\n")
            else:
                write_text(self.file, text)
        except OSError as error:
            raise UsageError(f"{self.option} {str(self.file)!r} must be writable: {error.strerror}.") from None


def report_outlet(given: str, environment: Mapping[str, str] = os.environ) -> Outlet:
    """Return what `--kernbench-report` asks for; UsageError for another form, and a file that cannot be written."""
    form, equals, name = given.partition("=")
    if form != MARKDOWN or (equals and not name):
        hint = did_you_mean(form, [MARKDOWN]) if equals or "." not in form else f" Did you mean 'md={form}'?"
        raise UsageError(f"--kernbench-report must be md or md=FILE, not {brief(given)}.{hint}")
    if not equals:
        return Outlet("--kernbench-report", form)
    file = check_file("--kernbench-report", Path(name))
    summary = environment.get(_SUMMARY)
    return Outlet("--kernbench-report", form, file, bool(summary) and Path(os.path.realpath(str(summary))) == file)


def json_outlet(given: str) -> Outlet:
    """Return what `--kernbench-json` asks for; UsageError for another form, and a file that cannot be written."""
    form, equals, name = given.partition("=")
    if not equals or "/" in form:
        form, name = SMALLER, given
    if form not in _FORMS:
        forms = " or ".join(f"{each}=FILE" for each in _FORMS)
        raise UsageError(f"--kernbench-json must be FILE, or {forms}, not {brief(given)}.{did_you_mean(form, _FORMS)}")
    if not name:
        raise UsageError(f"--kernbench-json must name a file, as {form}=figures.json, not {brief(given)}.")
    return Outlet("--kernbench-json", form, check_file("--kernbench-json", Path(name)))


def outlets(reports: Sequence[str], figures: Sequence[str]) -> tuple[Outlet, ...]:
    """Return all that the options ask for, each once; UsageError where two of them are to be one file."""
    found = dict.fromkeys([*map(report_outlet, reports), *map(json_outlet, figures)])
    files: dict[Path, Outlet] = {}
    for each in found:
        first = each if each.file is None else files.setdefault(each.file, each)
        if first is not each:
            raise UsageError(
                f"{each.option} {str(each.file)!r} must be a file of its own, and {first.option} writes "
                f"{first.form} into it; give another one."
            )
    return tuple(found)
