"""A bundle is one file that holds a run; one that a stranger made can do no harm before it runs."""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from kernbench_core.errors import UsageError
from kernbench_core.runs.bench_run import run
from kernbench_core.runs.bundle import opened
from kernbench_core.runs.reruns import rerun
from kernbench_core.units import format_bytes

MINE = """
import numpy as np
def bench(rt, a: np.ndarray):
    import helper
    rt.logged.append(helper.twice(float(a.sum())))
"""


def made(toy: ModuleType, folder: Path) -> Path:
    """Make a bundle of a bench with a module and an array of its own, and remove what it was made from."""
    folder.mkdir()
    (folder / "mine.py").write_text(MINE)
    (folder / "helper.py").write_text("def twice(x):\n    return 2 * x\n")
    (folder / "m.yaml").write_text("system:\n  sips: 1\n")
    np.save(folder / "a.npy", np.arange(4.0))
    out = folder / "b.tar.gz"
    run(folder / "mine.py", folder / "m.yaml", {"a": folder / "a.npy"}, bundle=out, plugins=toy.plugins)
    for name in ("mine.py", "helper.py", "a.npy", "m.yaml"):
        (folder / name).unlink()
    return out


def test_a_bundle_runs_again_elsewhere(toy: ModuleType, tmp_path: Path) -> None:
    """Its original files are gone; what differs is said."""
    bundle = made(toy, tmp_path / "one")
    moved = bundle.rename(tmp_path / "moved")
    again = rerun(moved, plugins=toy.plugins)
    assert (again.same, again.differences, again.result.op_log.records) == (True, (), [12.0])


def test_a_bundle_holds_the_run_and_no_place(toy: ModuleType, tmp_path: Path) -> None:
    """Manifest, sources, inputs and configuration; equal runs in two folders give equal bytes."""
    first, second = made(toy, tmp_path / "one"), made(toy, tmp_path / "two")
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as archive:
        assert archive.getnames() == [
            "bench/helper.py", "bench/mine.py", "configuration/topology-m.yaml", "manifest.json", "params/a.npy",
        ]  # fmt: skip
        assert {(entry.mtime, entry.uid, entry.uname) for entry in archive} == {(0, 0, "")}
        manifest = json.load(archive.extractfile("manifest.json"))  # type: ignore[arg-type]
    assert manifest["plugins"] == [{"plugin": "toy", "distribution": "toy_plugin (source tree)", "version": ""}]
    assert str(tmp_path) not in json.dumps(manifest)


def test_errors_name_what_is_in_the_bundle(toy: ModuleType, tmp_path: Path) -> None:
    """Not the folder in which it lay for a while, and no longer does."""
    bundle = made(toy, tmp_path / "one")
    changed = tmp_path / "changed.tgz"
    with tarfile.open(bundle) as old, tarfile.open(changed, "w:gz") as new:
        for entry in old:
            data = old.extractfile(entry).read()  # type: ignore[union-attr]
            data += b"# edited" if entry.name == "bench/mine.py" else b""
            entry.size = len(data)
            new.addfile(entry, io.BytesIO(data))
    with pytest.raises(UsageError) as caught:
        rerun(changed, plugins=toy.plugins)
    assert str(caught.value).startswith(f"the bench file at '{changed}/bench/mine.py' must have SHA-256 ")


def test_a_function_cannot_be_bundled(toy: ModuleType, tmp_path: Path) -> None:
    """There is no file to take along."""
    with pytest.raises(UsageError) as caught:
        run(lambda rt: None, "one", bundle=tmp_path / "b.tgz", plugins=toy.plugins)
    assert str(caught.value) == (
        "a bundle needs a registered bench or a .py file, not the function '<lambda>'; write that to a file."
    )
    with pytest.raises(UsageError) as caught:
        run("toy", "one", bundle=tmp_path / "b.zip", plugins=toy.plugins)
    assert str(caught.value) == "bundle must end in .tar.gz or .tgz, not 'b.zip'."
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def archive(path: Path, *entries: tuple[str, dict[str, Any]]) -> Path:
    """Write an archive with these entries, each of three bytes unless it says otherwise."""
    with tarfile.open(path, "w:gz") as out:
        for name, attributes in entries:
            entry = tarfile.TarInfo(name)
            entry.size = 3
            for key, value in attributes.items():
                setattr(entry, key, value)
            out.addfile(entry, io.BytesIO(b"xyz") if entry.isreg() else None)
    return path


@pytest.mark.parametrize(
    ("name", "attributes", "kind"),
    [
        ("/etc/x", {}, "a file"),
        ("../x", {}, "a file"),
        ("a/../../x", {}, "a file"),
        ("link", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd", "size": 0}, "no plain file"),
        ("hard", {"type": tarfile.LNKTYPE, "linkname": "manifest.json", "size": 0}, "no plain file"),
        ("null", {"type": tarfile.CHRTYPE, "size": 0}, "no plain file"),
        ("folder", {"type": tarfile.DIRTYPE, "size": 0}, "no plain file"),
        ("sparse", {"pax_headers": {"GNU.sparse.size": "9", "GNU.sparse.map": "0,3"}}, "no plain file"),
    ],
)
def test_a_bundle_writes_nowhere_but_into_its_own_folder(
    tmp_path: Path, name: str, attributes: dict[str, Any], kind: str
) -> None:
    """Absolute names, names above, links and devices are refused."""
    path = archive(tmp_path / "b.tgz", ("manifest.json", {}), (name, attributes))
    with pytest.raises(UsageError) as caught, opened(path):
        pass
    assert str(caught.value) == (
        f"bundle {str(path)!r} must hold plain files inside its own folder, not {name!r}, {kind}; do not use it."
    )


def test_a_bundle_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In files and in bytes, before any is unpacked."""
    monkeypatch.setattr("kernbench_core.runs.bundle._MOST_FILES", 2)
    monkeypatch.setattr("kernbench_core.runs.bundle._MOST_BYTES", 8)
    sentence = (
        "bundle {!r} must unpack to at most 2 files and 8 B (1 GiB, or 100 times its own size up to 8 B); do not use "
        "it."
    )
    for entries in ([("manifest.json", {}), ("a", {}), ("b", {"size": 0})], [("a", {}), ("b", {}), ("c", {})]):
        path = archive(tmp_path / "b.tgz", *entries)
        with pytest.raises(UsageError) as caught, opened(path):
            pass
        assert str(caught.value) == sentence.format(str(path))
    path = archive(tmp_path / "b.tgz", ("manifest.json", {}), ("a", {}))
    with opened(path) as manifest:
        assert sorted(found.name for found in manifest.parent.iterdir()) == ["a", "manifest.json"]
    assert not manifest.parent.exists()


@pytest.mark.parametrize("where", ["a file", "a header", "behind the end"])
def test_a_bundle_is_not_unpacked_where_it_holds_much_more_than_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Zeros beyond the size that any bundle may have are not even read, wherever they stand."""
    monkeypatch.setattr("kernbench_core.runs.bundle._FREE_BYTES", 64 << 10)
    zeros = 16 << 20
    path = tmp_path / "b.tgz"
    comment = {"comment": "0" * zeros} if where == "a header" else {}
    with gzip.open(path, "wb") as out:
        with tarfile.open(fileobj=out, mode="w", pax_headers=comment) as made_of:
            entry = tarfile.TarInfo("manifest.json")
            entry.size = zeros if where == "a file" else 0
            made_of.addfile(entry, io.BytesIO(bytes(entry.size)))
        out.write(bytes(zeros if where == "behind the end" else 0))
    monkeypatch.setattr("tempfile.TemporaryDirectory", lambda prefix: nullcontext(str(tmp_path / "unpacked")))
    read = []
    whole = gzip.GzipFile.read
    monkeypatch.setattr(gzip.GzipFile, "read", lambda *given: read.append(whole(*given)) or read[-1])
    with pytest.raises(UsageError) as caught, opened(path):
        pass
    limit = format_bytes(100 * path.stat().st_size)
    assert str(caught.value) == f"bundle {str(path)!r} must " + (
        f"unpack to at most 10,000 files and {limit} (64 KiB, or 100 times its own size up to 16 GiB); do not use it."
        if where == "a file"
        else "hold files alone, not more than 64 KiB between two or behind the last; do not use it."
    )
    assert not (tmp_path / "unpacked").exists()
    assert sum(map(len, read)) < 2 << 20


def test_a_bundle_of_zeros_runs_again(toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is too large to be compressed as well as it could be is not compressed; too many bytes are refused."""
    for name, file in (("mine.py", MINE), ("helper.py", "twice = int\n"), ("m.yaml", "system:\n  sips: 1\n")):
        (tmp_path / name).write_text(file)
    arguments = {"a": np.zeros(1 << 16)}
    monkeypatch.setattr("kernbench_core.runs.bundle._FREE_BYTES", 64 << 10)
    out = tmp_path / "b.tgz"
    run(tmp_path / "mine.py", tmp_path / "m.yaml", arguments, bundle=out, plugins=toy.plugins)
    assert rerun(out, plugins=toy.plugins).same
    monkeypatch.setattr("kernbench_core.runs.bundle._MOST_BYTES", 64 << 10)
    out.unlink()
    with pytest.raises(UsageError) as caught:
        run(tmp_path / "mine.py", tmp_path / "m.yaml", arguments, bundle=out, plugins=toy.plugins)
    assert re.fullmatch(
        r"a bundle must hold at most 10,000 files and 64 KiB, not 5 files of 51\d\.\d KiB; leave --bundle out, and "
        "keep an --out folder.",
        str(caught.value),
    )
    assert not out.exists()


def test_a_bundle_that_is_damaged_is_a_sentence(toy: ModuleType, tmp_path: Path) -> None:
    """Cut short, spoilt, doubled, or without a manifest."""
    whole = made(toy, tmp_path / "one")
    data = whole.read_bytes()
    start = f"bundle {str(whole)!r} must "
    for damaged in (data[:-40], data[:200], data[:100] + b"\0" * 40 + data[140:], b"\x1f\x8b", data[:-8] + b"\0" * 8):
        whole.write_bytes(damaged)
        with pytest.raises(UsageError) as caught:
            rerun(whole, plugins=toy.plugins)
        assert str(caught.value).startswith(f"{start}be whole, but reading it failed with ")
        assert str(caught.value).endswith("; copy it again.")
    for entries, told in (
        ([("a", {})], "hold manifest.json; make it with kernbench run --bundle."),
        ([("a", {}), ("a", {})], "hold each file once, not 'a'; do not use it."),
        ([("a", {}), ("./a", {})], "hold each file once, not 'a'; do not use it."),
        ([("a", {}), ("a/b/c", {})], "hold each file once, not 'b'; do not use it."),
    ):
        archive(whole, *entries)
        with pytest.raises(UsageError) as caught:
            rerun(whole, plugins=toy.plugins)
        assert str(caught.value) == start + told
