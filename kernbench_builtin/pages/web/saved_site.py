"""The site of a folder: an index of the runs and sweeps below it, and the report's pages of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from kernbench_builtin.compare.saved_result import RESULT
from kernbench_builtin.pages.report import render_report, render_sweep
from kernbench_builtin.pages.report.saved_runs import read_run
from kernbench_builtin.pages.web.loopback import Answer
from kernbench_builtin.pages.web.pages import page, sentence
from kernbench_builtin.pages.web.saved_runs import check_no_links, saved_runs
from kernbench_builtin.pages.web.saved_sweeps import check_no_links_in_sweep, saved_sweeps
from kernbench_core.errors import KernbenchError, UsageError
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_builtin.pages.web.saved_sweeps import SweepReader
    from kernbench_core.plugins import Registry, ReportSectionEntry

#: Of more runs side by side nobody sees anything.
_MOST = 6


class SavedSite:
    """What is below `folder`, read anew whenever it is asked for; raise UsageError where that is no folder."""

    def __init__(
        self,
        folder: Path,
        sections: Registry[ReportSectionEntry],
        *,
        strict: bool = False,
        read_sweep: SweepReader | None = None,
    ) -> None:
        if not folder.is_dir():
            what = "is a file" if folder.exists() else "does not exist"
            raise UsageError(f"{str(folder)!r} must be a folder, and {what}; give the one that your runs are in.")
        self.folder = folder.resolve()
        self._sections = sections
        self._strict = strict
        self._read_sweep = read_sweep

    def answer(self, path: str, query: Mapping[str, Sequence[str]]) -> Answer | None:
        """Return the index at `/`, at `/run` the runs that `at` names, side by side, and at `/sweep` a sweep."""
        if path == "/":
            runs = saved_runs(self.folder)
            sweeps = [] if self._read_sweep is None else saved_sweeps(self.folder)
            title = f"{'Runs and sweeps' if sweeps else 'Runs'} in {self.folder.name or self.folder}"
            return page(
                "index.html", script="index.js", themed=True, title=title, folder=self.folder, runs=runs, sweeps=sweeps
            )
        if path == "/sweep" and self._read_sweep is not None:
            return self._sweep(self._read_sweep, "".join(query.get("at", ())[:1]))
        return self._runs(query.get("at", ())) if path == "/run" else None

    def _sweep(self, read: SweepReader, name: str) -> Answer:
        """Return the page of a sweep, which must be among those that the index lists."""
        folder = next((sweep.folder for sweep in saved_sweeps(self.folder) if sweep.at == name), None)
        if folder is None:
            text = f"There is no sweep {brief(name)} in this folder: it was deleted or renamed, or it never was there."
            return sentence("No such sweep", text)
        try:
            check_no_links_in_sweep(folder)
            return Answer(render_sweep(read(folder, self._run_at)).encode())
        except KernbenchError as error:
            return sentence("This sweep cannot be shown", str(error))

    def _run_at(self, folder: Path) -> str:
        """Return the address of a run that is kept in a folder, "" where there is none."""
        at = folder.relative_to(self.folder).as_posix()
        return f"/run?{urlencode({'at': at})}" if (folder / RESULT).is_file() else ""

    def _runs(self, names: Sequence[str]) -> Answer:
        """Return the page of runs, the oldest first, which must be among those that the index lists."""
        known = {run.at: run.folder for run in reversed(saved_runs(self.folder))}
        chosen = sorted(set(names), key=[*known, *names].index)
        if not chosen:
            return sentence("No run is chosen", "Choose one or more of the runs, and then to show them.", status=200)
        gone = [name for name in chosen if name not in known]
        if gone:
            text = f"There is no run {brief(gone[0])} in this folder: it was deleted or renamed, or it never was there."
            return sentence("No such run", text)
        if len(chosen) > _MOST:
            text = f"At most {_MOST} runs stand side by side, not {len(chosen)}; choose fewer."
            return sentence("Too many runs", text)
        try:
            for name in chosen:
                check_no_links(known[name])
            pages = [read_run(known[name], self.folder.name if name == "." else name) for name in chosen]
            return Answer(render_report(pages, self._sections, strict=self._strict).encode())
        except KernbenchError as error:
            return sentence("This run cannot be shown", str(error))
