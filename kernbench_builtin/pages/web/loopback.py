"""Serve pages to browsers on this machine: loopback only, for reading only, and to nobody who came by another name."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import SEEK_END, BytesIO
from pathlib import Path
from shutil import copyfileobj
from typing import Any, Final, Protocol
from urllib.parse import parse_qs, urlsplit

import attrs

from kernbench_core.errors import UsageError

LOOPBACK: Final = "127.0.0.1"
HTML: Final = "text/html; charset=utf-8"
JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"
#: How often (s) a server looks whether it is to end.
_LOOK_S: Final = 0.05
_NOTHING: Final = b"There is nothing at this address; go back to the first page, at /.\n"
_FOREIGN: Final = b"This server answers to browsers on its own machine, by its own address, only.\n"
_READ_ONLY: Final = b"This server can be read only, by GET and HEAD.\n"
_SAFE: Final = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@attrs.frozen
class Answer:
    """What is sent: bytes, or those of a file, of a `kind` (a media type), and their Content-Security-Policy."""

    body: bytes | Path
    kind: str = HTML
    policy: str = "frame-ancestors 'self'"
    status: int = 200


class WebSite(Protocol):
    """Whatever can be looked at."""

    def answer(self, path: str, query: Mapping[str, Sequence[str]]) -> Answer | None:
        """Return what stands at a path, None for nothing; called in threads of the server."""


class _Handler(BaseHTTPRequestHandler):
    """Ask the site for what a browser wants to read."""

    server: _Server
    server_version = "kernbench"
    sys_version = ""

    def do_GET(self) -> None:
        """Send an answer of the site."""
        self._send(with_body=True)

    def do_HEAD(self) -> None:
        """Send what stands above an answer."""
        self._send(with_body=False)

    def _refuse(self) -> None:
        self._answer(Answer(_READ_ONLY, TEXT, status=405), with_body=True)
        self.close_connection = True

    do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _refuse  # noqa: N815  # as http.server calls them

    def _send(self, *, with_body: bool) -> None:
        address = urlsplit(self.path)
        if self._is_own():
            found = self.server.site.answer(address.path, parse_qs(address.query))
            answer = Answer(_NOTHING, TEXT, status=404) if found is None else found
        else:
            answer = Answer(_FOREIGN, TEXT, status=403)
        self._answer(answer, with_body=with_body)

    def _answer(self, answer: Answer, *, with_body: bool) -> None:
        with answer.body.open("rb") if isinstance(answer.body, Path) else BytesIO(answer.body) as body:
            size = body.seek(0, SEEK_END)
            body.seek(0)
            self._head(answer, size)
            if with_body:
                copyfileobj(body, self.wfile)

    def _head(self, answer: Answer, size: int) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(size))
        self.send_header("Content-Security-Policy", answer.policy)
        self.end_headers()

    def _is_own(self) -> bool:
        """Whether a request is for this address, and not made by a page of another one."""
        own = {f"{name}:{self.server.server_port}" for name in (LOOPBACK, "localhost")}
        origin = self.headers.get("Origin")
        site = self.headers.get("Sec-Fetch-Site", "none")
        return (
            self.headers.get("Host") in own
            and (origin is None or origin.removeprefix("http://") in own)
            and (site in ("none", "same-origin") or self.headers.get("Sec-Fetch-Mode") == "navigate")
        )

    def end_headers(self) -> None:
        """Have nothing kept, guessed, or given to other pages."""
        for name, value in _SAFE.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: stderr is the run's."""


class _Server(ThreadingHTTPServer):
    allow_reuse_address = False
    daemon_threads = True

    def __init__(self, port: int, site: WebSite) -> None:
        self.site = site
        super().__init__((LOOPBACK, port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over browsers that went away; what else fails is ours, and told as Python does."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


@contextmanager
def served(site: WebSite, port: int = 0) -> Iterator[str]:
    """Serve a site from a thread of its own, on any free port for 0; give its address.

    Raise UsageError where the port cannot be had.
    """
    try:
        server = _Server(port, site)
    except OSError as error:
        raise UsageError(
            f"--port must be a free port, but {port} is not available: {error.strerror}; give another one, or none."
        ) from None
    thread = threading.Thread(target=server.serve_forever, args=(_LOOK_S,), name="kernbench web", daemon=True)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
