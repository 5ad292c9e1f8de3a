"""Write the op log of a run as a timeline, in the format that the suffix of the file names."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from kernbench_core.errors import KernbenchError, KernbenchWarning, UsageError
from kernbench_core.process.interrupt import INTERRUPTS, WallTime
from kernbench_core.process.whole_files import check_file, whole_file
from kernbench_core.units import format_bytes
from kernbench_core.wording import PLAIN, never_runs

if TYPE_CHECKING:
    from kernbench_core.plugins import ExporterEntry, Registry

Exporter: TypeAlias = Callable[[Any, IO[bytes]], None]
"""Called once, after the run, as `export(given, out)`; must write the same bytes for the same op log or timeline."""

LARGE: Final = 64 << 20
"""From how many bytes on a trace that could be smaller is worth a word."""


@attrs.frozen
class TraceFile:
    """A file to write a trace to, and the exporter that its suffix chose; `.gz` at the end compresses.

    `takes` says what the exporter is given: the "op_log" or the "timeline" of the run. `others` are the suffixes of
    other formats that take the same.
    """

    path: Path
    export: Exporter
    compress: bool
    takes: str = "op_log"
    others: tuple[str, ...] = ()

    def write(self, op_log: object, timeout_s: float | None = None, *, timeline: object = None) -> None:
        """Write the whole file, or raise and leave it as it was; LimitError where that takes the exporter too long.

        Warn of a file that is large and need not be.
        """
        with whole_file(self.path, compress=self.compress) as out, WallTime(timeout_s).spent_on("writing the trace"):
            self.export(timeline if self.takes == "timeline" else op_log, out)
        size = self.path.stat().st_size
        if size >= LARGE and not self.compress:
            name = self.path.name
            other = [repr(f"{name.removesuffix(self.path.suffix)}{suffix}") for suffix in self.others]
            others = f", {' or '.join(other)} in another format" if other else ""
            less = "; --level and --window leave out what need not be seen" if self.takes == "timeline" else ""
            warnings.warn(
                f"trace file {name!r} has {format_bytes(size)}, which viewers open slowly; '{name}.gz' holds the same "
                f"in a part of that{others}{less}.",
                KernbenchWarning,
                stacklevel=2,
            )


def open_trace(path: str | Path, exporters: Registry[ExporterEntry]) -> TraceFile:
    """Choose the exporter for `path`; called before the run, so that a bad name costs no time.

    `VENDOR:path` is for the exporter of a plug-in, or of a distribution. Raise UsageError when no exporter, or more
    than one, claims the suffix, or the folder does not exist.
    """
    vendor, of_vendor = _of_vendor(str(path), exporters)
    path = Path(str(path).removeprefix(vendor))
    compress = path.suffix == ".gz"
    stem = path.name.removesuffix(".gz")
    fitting = [name for name, entry in exporters.items() if stem.endswith(entry.suffixes)]
    known = sorted({suffix for entry in exporters.values() for suffix in entry.suffixes})
    if not fitting:
        accepted = ", ".join(f"{suffix} or {suffix}.gz" for suffix in known) or "a suffix that an exporter claims"
        raise UsageError(f"trace file must end in {accepted}, not {path.name or str(path)!r}.")
    fitting = [name for name in fitting if name in of_vendor] or fitting
    if len(fitting) > 1:
        several = " and ".join(f"{name} of {exporters.provider(name)}" for name in fitting)
        picks = dict.fromkeys(repr(f"{_vendor(exporters, name, fitting)}:{path}") for name in fitting)
        told = f"write {' or '.join(picks)}" if len(picks) == len(fitting) else "leave a plug-in out with --no-plugin"
        raise UsageError(
            f"trace file {path.name!r} must fit one exporter, not {several}; choose another suffix, or {told}."
        )
    takes = exporters[fitting[0]].takes
    others = (entry.suffixes for name, entry in exporters.items() if name != fitting[0] and entry.takes == takes)
    return TraceFile(
        check_file("trace file", path), _guarded(exporters, fitting[0]), compress, takes,
        tuple(sorted(suffix for each in others for suffix in each)),
    )  # fmt: skip


def _of_vendor(path: str, exporters: Registry[ExporterEntry]) -> tuple[str, Collection[str]]:
    """Return the vendor before a path with its colon, and its exporters; "" and none where no vendor stands there."""
    vendor, colon, _ = path.partition(":")
    givers = {name: exporters.provider(name) for name in exporters}
    named = [name for name, giver in givers.items() if colon and vendor in giver.names]
    return (f"{vendor}:", named) if named else ("", ())


def _vendor(exporters: Registry[ExporterEntry], name: str, others: Collection[str]) -> str:
    """Return what tells the giver of an exporter from those of others: its plug-in's name, or its distribution's."""
    giver = exporters.provider(name)
    alike = [other for other in others if exporters.provider(other).plugin == giver.plugin]
    return giver.plugin if len(alike) == 1 else giver.distribution


def _guarded(exporters: Registry[ExporterEntry], name: str) -> Exporter:
    """Return an exporter that names its plug-in when it raises; what the file system refuses is no fault of its."""
    loaded = exporters.load(name)
    if never_runs(loaded):
        raise exporters.fault(name, PLAIN)

    def export(given: Any, out: IO[bytes]) -> None:
        try:
            loaded(given, out)
        except (OSError, KernbenchError, MemoryError, *INTERRUPTS):
            raise
        except BaseException as error:
            raise exporters.raised(name, error) from error

    return export
