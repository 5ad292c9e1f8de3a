"""The suffix of a trace file chooses its exporter, before the run."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from kernbench_core.errors import PluginError, UsageError
from kernbench_core.registry import ExporterEntry, Provider, Registry
from kernbench_core.runs.trace import open_trace

HERE = Provider("t", "t", "1")


def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *suffixes: str) -> Registry[ExporterEntry]:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "an_exporter.py").write_text("def export(op_log, out):\n    out.write(repr(list(op_log)).encode())\n")
    entries = [(ExporterEntry(f"e{i}", "an_exporter:export", (s,), "x"), HERE) for i, s in enumerate(suffixes)]
    return Registry("exporter", entries)


@pytest.mark.parametrize("name", ["t.txt", "t.txt.gz"])
def test_a_trace_is_written_by_suffix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """`.gz` after the exporter's suffix compresses."""
    trace = open_trace(tmp_path / name, registry(tmp_path, monkeypatch, ".txt"))
    trace.write([1, 2])
    written = (tmp_path / name).read_bytes()
    assert (gzip.decompress(written) if name.endswith(".gz") else written) == b"[1, 2]"


@pytest.mark.parametrize(
    ("name", "suffixes", "sentence"),
    [
        ("t.csv", (".json",), "trace file must end in .json or .json.gz, not 't.csv'."),
        ("t.csv", (), "trace file must end in a suffix that an exporter claims, not 't.csv'."),
        (
            "t.json",
            (".json", "json"),
            "trace file 't.json' must fit one exporter, not e0 and e1; choose another suffix.",
        ),
    ],
)
def test_a_name_that_fits_no_exporter_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, suffixes: tuple[str, ...], sentence: str
) -> None:
    """Nothing is run for a trace that cannot be written."""
    with pytest.raises(UsageError) as caught:
        open_trace(tmp_path / name, registry(tmp_path, monkeypatch, *suffixes))
    assert str(caught.value) == sentence


def test_a_folder_that_is_not_there_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is asked for before the run."""
    path = tmp_path / "none" / "t.txt"
    with pytest.raises(UsageError) as caught:
        open_trace(path, registry(tmp_path, monkeypatch, ".txt"))
    folder = str(tmp_path / "none")
    assert str(caught.value) == f"trace file {str(path)!r} must be in a folder that exists; make {folder!r} first."


def test_an_exporter_that_raises_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace is whole or not there; the sentence names the exporter and where it is from."""

    def log() -> Any:
        raise ZeroDivisionError
        yield

    trace = open_trace(tmp_path / "t.txt", registry(tmp_path, monkeypatch, ".txt"))
    with pytest.raises(PluginError, match=r"^exporter '.*' of .* raised ZeroDivisionError\.\n") as caught:
        trace.write(log())
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert not (tmp_path / "t.txt").exists()
