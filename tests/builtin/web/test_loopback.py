"""The server of pages: what it sends, and whom it refuses."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

import pytest

from kernbench_builtin.pages.web.loopback import JSON, Answer, served
from kernbench_core.errors import UsageError


class Paths:
    """A site that says what it was asked for."""

    def answer(self, path: str, query: Mapping[str, Sequence[str]]) -> Answer | None:
        """Return the path and the query, nothing for `/none`."""
        if path == "/raises":
            raise RuntimeError("a fault of ours")
        return None if path == "/none" else Answer(f"{path} {dict(query)}".encode(), JSON, "default-src 'none'")


@pytest.fixture
def port() -> Iterator[int]:
    """Serve, and give the port."""
    with served(Paths()) as address:
        yield int(urlsplit(address).port or 0)


def asked(port: int, path: str = "/", method: str = "GET", **headers: str) -> tuple[int, Mapping[str, str], bytes]:
    """Return status, headers and body of an answer; `Sec_Fetch_Site` stands for `Sec-Fetch-Site`."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def test_an_answer_is_sent_whole_and_kept_nowhere(port: int) -> None:
    """With its policy and its kind, under both names of this machine."""
    status, headers, body = asked(port, "/a/b?at=x&at=y%20z")
    assert (status, body) == (200, b"/a/b {'at': ['x', 'y z']}")
    expected = {
        "Content-Type": JSON, "Content-Length": str(len(body)), "Content-Security-Policy": "default-src 'none'",
        "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "same-origin",
    }  # fmt: skip
    assert {name: headers[name] for name in expected} == expected
    assert asked(port, Host=f"localhost:{port}")[0] == 200
    nothing = b"There is nothing at this address; go back to the first page, at /.\n"
    status, _, body = asked(port, "/none")
    assert (status, body) == (404, nothing)


def test_only_the_head_is_sent_where_that_is_asked_for(port: int) -> None:
    """As long as it would be, and without what follows."""
    _, headers, body = asked(port, "/a", "HEAD")
    assert (int(headers["Content-Length"]), body) == (len("/a {}"), b"")


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "example.com"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1:1"},
        {"Origin": "http://example.com"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "cors"},
    ],
)
def test_pages_of_elsewhere_are_refused(port: int, headers: Mapping[str, str]) -> None:
    """Another name that leads to this machine, and scripts of other sites."""
    status, _, body = asked(port, **{name: value.format(port=port) for name, value in headers.items()})
    assert (status, body) == (403, b"This server answers to browsers on its own machine, by its own address, only.\n")


def test_a_link_of_another_page_may_be_followed(port: int) -> None:
    """By whoever clicks on it; the page's own requests come through, too."""
    assert asked(port, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == 200
    assert asked(port, Sec_Fetch_Site="same-origin", Origin=f"http://127.0.0.1:{port}")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_nothing_can_be_written(port: int, method: str) -> None:
    """In a sentence."""
    status, _, body = asked(port, method=method)
    assert (status, body) == (405, b"This server can be read only, by GET and HEAD.\n")


def test_it_listens_on_loopback_only(port: int) -> None:
    """An address of this machine that others see is not listened on."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as other, pytest.raises(OSError):
        other.connect(("127.0.0.2", port))


def test_browsers_that_go_away_are_passed_over(port: int, capfd: pytest.CaptureFixture[str]) -> None:
    """In the middle of a request, or of an answer; the next one is served, and nobody is told."""
    for sent in (b"GET / HTTP/1.1\r\nHo", b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port):
        with socket.create_connection(("127.0.0.1", port)) as browser:
            browser.sendall(sent)
            browser.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # ends with a reset
    assert asked(port)[0] == 200
    assert capfd.readouterr().err == ""


def test_a_port_in_use_is_named(port: int) -> None:
    """With what to do; the server that has it goes on."""
    with pytest.raises(UsageError) as caught, served(Paths(), port):
        pass
    assert str(caught.value) == (
        f"--port must be a free port, but {port} is not available: Address already in use; give another one, or none."
    )
    assert asked(port)[0] == 200
