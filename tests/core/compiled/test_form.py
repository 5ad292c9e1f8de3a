"""What is compiled is used where it is whole, for this Python, and of the sources as they are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import kernbench_core
from kernbench_core.compiled import in_words, is_compiled
from kernbench_core.compiled.form import built, checksum, compiled_file, list_file, what_is_missing, write_list

FORM = "import kernbench_core.compiled as c, kernbench_core.wire as w; print(c.in_words(), w.__file__[-3:])"
MODULES = ("kernbench_core.events.queue", "kernbench_core.wire")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which every module has a source, and was compiled from it."""
    for name in MODULES:
        place = tmp_path / name.replace(".", "/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.with_suffix(".py").write_text(f"# {name}\n")
        place.with_suffix(".pxd").write_text("# types\n")
        Path(compiled_file(str(tmp_path), name)).write_bytes(b"\x7fELF")
    write_list(str(tmp_path), {name: checksum(str(tmp_path), name) for name in MODULES})
    return tmp_path


def test_what_was_built_whole_is_used(folder: Path) -> None:
    """Nothing is missing."""
    assert what_is_missing(str(folder)) is None and tuple(built(str(folder))) == MODULES


@pytest.mark.parametrize("suffix", [".py", ".pxd"])
def test_a_source_that_was_changed_is_told(folder: Path, suffix: str) -> None:
    """Of the Python and of the types beside it, whatever their times say."""
    source = (folder / "kernbench_core/wire").with_suffix(suffix)
    time = source.stat().st_mtime_ns
    source.write_text("# another\n")
    os.utime(source, ns=(time, time))
    assert what_is_missing(str(folder)) == (
        "the source of kernbench_core.wire was changed after it was compiled; install again"
    )


def test_a_compiled_file_that_is_gone_is_told(folder: Path) -> None:
    """One is enough: what is compiled knows the layout of what else is."""
    file = folder / f"kernbench_core/wire{EXTENSION_SUFFIXES[0]}"
    file.unlink()
    assert what_is_missing(str(folder)) == f"{file} is not there; install again"


def test_another_python_has_a_list_of_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that share a checkout compile at different times, of different sources."""
    ours = Path(list_file(str(folder)))
    monkeypatch.setattr("kernbench_core.compiled.form.suffix_here", lambda: ".cpython-27-x86_64-linux-gnu.so")
    assert what_is_missing(str(folder)) == "it was not compiled when it was installed"
    assert Path(list_file(str(folder))) == ours.with_name("built.cpython-27-x86_64-linux-gnu.txt")


@pytest.mark.parametrize("text", [None, "", "kernbench_core.wire", "kernbench_core.wire 1 2\nwhole\n"])
def test_a_list_that_is_another_or_not_there_is_none(folder: Path, text: str | None) -> None:
    """One without lines, and one of an older version, too."""
    told = Path(list_file(str(folder)))
    told.unlink() if text is None else told.write_text(text)
    assert what_is_missing(str(folder)) == "it was not compiled when it was installed"


@pytest.mark.parametrize("left", ["a compiled file that no list has", "an older version's"])
def test_what_is_compiled_is_never_taken_without_its_list(tmp_path: Path, left: str) -> None:
    """As where building was stopped: `units` beside a file that cannot be loaded is Python, and the version says so."""
    package = Path(kernbench_core.__file__).parent
    ignored = shutil.ignore_patterns("*.so", "built.*", "__pycache__")
    shutil.copytree(package, tmp_path / "kernbench_core", ignore=ignored)
    root = str(tmp_path)
    Path(compiled_file(root, "kernbench_core.units")).write_bytes(b"no ELF")
    if left == "an older version's":
        Path(list_file(root)).with_name("built.txt").write_text("kernbench_core.units 0\n")
    program = "import kernbench_core.compiled as c, kernbench_core.units as u; print(c.in_words(), u.__file__)"
    for pure in ("0", "1"):
        environment = {**os.environ, "KERNBENCH_PURE": pure, "PYTHONPATH": root}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, cwd=root, capture_output=True, text=True, check=True
        )
        why = "KERNBENCH_PURE is set" if pure == "1" else "it was not compiled when it was installed"
        assert done.stdout == f"pure Python: {why} {tmp_path / 'kernbench_core' / 'units.py'}\n"


def test_the_environment_asks_for_python() -> None:
    """KERNBENCH_PURE takes the sources, and says so; without it the form is that of this process."""
    for setting, expected in (("1", "pure Python: KERNBENCH_PURE is set .py"), ("0", None)):
        environment = {**os.environ, "KERNBENCH_PURE": setting}
        done = subprocess.run([sys.executable, "-c", FORM], env=environment, capture_output=True, text=True, check=True)
        if expected is not None:
            assert done.stdout.strip() == expected
        elif "KERNBENCH_PURE" not in os.environ:
            assert done.stdout.strip() == f"{in_words()} {'.so' if is_compiled() else '.py'}"
