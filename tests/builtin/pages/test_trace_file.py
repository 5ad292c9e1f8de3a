"""The suffix of a trace file chooses its exporter, before the run."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path
from typing import Any

import attrs
import pytest

from kernbench_builtin.pages import trace_file as trace_module
from kernbench_builtin.pages.trace_file import open_trace
from kernbench_core.errors import KernbenchWarning, LimitError, PluginError, UsageError
from kernbench_core.plugins import ExporterEntry, Provider, Registry

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


def test_an_exporter_that_never_ends_meets_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is what it was, and nothing is beside it."""
    monkeypatch.syspath_prepend(tmp_path)
    entry = ExporterEntry("endless", "endless_trace:export", (".txt",), "x")
    endless = "def export(op_log, out):\n    out.write(b'half')\n    while True:\n        pass\n"
    (tmp_path / "endless_trace.py").write_text(endless)
    (tmp_path / "t.txt").write_text("old")
    before = {*tmp_path.iterdir()}
    with pytest.raises(LimitError) as caught:
        open_trace(tmp_path / "t.txt", Registry("exporter", [(entry, HERE)])).write([1, 2], 0.2)
    assert str(caught.value) in {
        "the run reached its limit of 0.2 s of wall time while writing the trace, in "
        f"{tmp_path}/endless_trace.py:{line}; raise --timeout if it is only long."
        for line in (3, 4)
    }
    assert (tmp_path / "t.txt").read_text() == "old"
    assert {path for path in tmp_path.iterdir() if path.name != "__pycache__"} == before


@pytest.mark.parametrize(
    ("name", "suffixes", "sentence"),
    [
        ("t.csv", (".json",), "trace file must end in .json or .json.gz, not 't.csv'."),
        ("t.csv", (), "trace file must end in a suffix that an exporter claims, not 't.csv'."),
        (
            "t.json",
            (".json", "json"),
            f"trace file 't.json' must fit one exporter, not e0 of {HERE} and e1 of {HERE}; choose another suffix, or "
            "leave a plug-in out with --no-plugin.",
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


def test_a_folder_that_is_none_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is asked for before the run."""
    path = tmp_path / "none" / "t.txt"
    (tmp_path / "none").write_text("")
    with pytest.raises(UsageError) as caught:
        open_trace(path, registry(tmp_path, monkeypatch, ".txt"))
    assert str(caught.value) == (
        f"trace file {str(path)!r} must be in a folder, and {str(tmp_path / 'none')!r} is none; give another one."
    )


def test_an_exporter_that_raises_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace is whole or not there; the sentence names the exporter and where it is from."""

    def log() -> Any:
        raise ZeroDivisionError
        yield

    trace = open_trace(tmp_path / "t.txt", registry(tmp_path, monkeypatch, ".txt"))
    told = r"^exporter 'e0' of t 1 raised ZeroDivisionError; repair or reinstall t\.\n"
    with pytest.raises(PluginError, match=told) as caught:
        trace.write(log())
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert not (tmp_path / "t.txt").exists()


def test_an_exporter_is_given_what_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The op log, as ever, or the timeline."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "two_takers.py").write_text("def export(given, out):\n    out.write(given.encode())\n")
    entries = [
        (ExporterEntry("old", "two_takers:export", (".old",), "x"), HERE),
        (ExporterEntry("new", "two_takers:export", (".new",), "x", takes="timeline"), HERE),
    ]
    for suffix, given in (("old", "the op log"), ("new", "the timeline")):
        trace = open_trace(tmp_path / f"t.{suffix}", Registry("exporter", entries))
        trace.write("the op log", timeline="the timeline")
        assert (tmp_path / f"t.{suffix}").read_text() == given


@pytest.mark.parametrize(
    ("name", "digits", "others", "told"),
    [
        ("t.txt", 3, (".log",), ""),
        ("t.txt.gz", 3000, (".log",), ""),
        ("t.txt", 1023, (".log",), ""),
        (
            "t.txt", 1024, (),
            "trace file 't.txt' has 1 KiB, which viewers open slowly; 't.txt.gz' holds the same in a part of that.",
        ),
        (
            "t.txt", 3072, (".log", ".bin"),
            "trace file 't.txt' has 3 KiB, which viewers open slowly; 't.txt.gz' holds the same in a part of that, "
            "'t.bin' or 't.log' in another format.",
        ),
    ],
)  # fmt: skip
def test_a_large_trace_has_a_word_on_smaller_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, digits: int, others: tuple[str, ...], told: str
) -> None:
    """From a size on, where the file is not compressed."""
    monkeypatch.setattr(trace_module, "LARGE", 1024)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", KernbenchWarning)
        open_trace(tmp_path / name, registry(tmp_path, monkeypatch, ".txt", *others)).write(["x" * (digits - 4)], None)
    assert [str(each.message) for each in caught] == ([told] if told else [])


def test_a_large_timeline_can_be_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is said where it can: an op log has no levels."""
    monkeypatch.setattr(trace_module, "LARGE", 1024)
    made = attrs.evolve(open_trace(tmp_path / "t.txt", registry(tmp_path, monkeypatch, ".txt")), takes="timeline")
    with pytest.warns(KernbenchWarning) as caught:
        made.write(None, timeline=["x" * 2044])
    assert str(caught[0].message) == (
        "trace file 't.txt' has 2 KiB, which viewers open slowly; 't.txt.gz' holds the same in a part of that; --level "
        "and --window leave out what need not be seen."
    )
