"""What is compiled is used where it is whole, for this Python, and of the sources as they are."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import kernbench_core
from kernbench_core.cache.trees import _paths
from kernbench_core.compiled import in_words, is_compiled, made_files
from kernbench_core.compiled.form import BUILT, built, checksum, what_is_missing

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
        (place.parent / (place.name + EXTENSION_SUFFIXES[0])).write_bytes(b"\x7fELF")
    told = tmp_path / BUILT
    told.parent.mkdir(exist_ok=True)
    told.write_text("".join(f"{name} {checksum(str(tmp_path), name)}\n" for name in MODULES))
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


def test_a_compiled_file_that_is_empty_is_told(folder: Path) -> None:
    """A disk that was full leaves such."""
    file = folder / f"kernbench_core/wire{EXTENSION_SUFFIXES[0]}"
    file.write_bytes(b"")
    assert what_is_missing(str(folder)) == f"{file} is empty, as after a full disk; install again"


def test_a_module_for_another_python_is_told(folder: Path) -> None:
    """One is enough: what is compiled knows the layout of what else is."""
    file = folder / f"kernbench_core/wire{EXTENSION_SUFFIXES[0]}"
    file.rename(file.with_name("wire.cpython-27-x86_64-linux-gnu.so"))
    assert what_is_missing(str(folder)) == "kernbench_core.wire was not compiled for this Python"


@pytest.mark.parametrize("text", ["", "\n", "alone", None])
def test_a_list_that_says_nothing_is_none(folder: Path, text: str | None) -> None:
    """Whatever is wrong with it."""
    told = folder / BUILT
    told.unlink() if text is None else told.write_text(text)
    assert what_is_missing(str(folder)) == "it was not compiled when it was installed"


def test_the_environment_asks_for_python() -> None:
    """KERNBENCH_PURE takes the sources, and says so; without it the form is that of this process."""
    for setting, expected in (("1", "pure Python: KERNBENCH_PURE is set .py"), ("0", None)):
        environment = {**os.environ, "KERNBENCH_PURE": setting}
        done = subprocess.run([sys.executable, "-c", FORM], env=environment, capture_output=True, text=True, check=True)
        if expected is not None:
            assert done.stdout.strip() == expected
        elif "KERNBENCH_PURE" not in os.environ:
            assert done.stdout.strip() == f"{in_words()} {'.so' if is_compiled() else '.py'}"


def test_keys_leave_out_what_was_compiled() -> None:
    """Digests of code are those of the sources, so that machines with another compiler, or none, agree on them."""
    files = set(_paths(Path(kernbench_core.__file__).parent))
    assert f"{Path(kernbench_core.__file__).parent}/wire.py" in files
    assert not [file for file in files if file.endswith((*EXTENSION_SUFFIXES, "built.txt"))]
    assert bool(is_compiled()) <= (len(made_files()) > 2)
