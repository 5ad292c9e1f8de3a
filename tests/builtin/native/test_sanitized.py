"""The engine in C++ under sanitizers: no address out of its place, no undefined behaviour, whatever it is to time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernbench_builtin.native.sources import engine_checksum, engine_sources

REPO = Path(__file__).parents[3]
FLAGS = "-std=c++17 -O0 -g -fPIC -shared -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"
#: Has what times recordings tested, by the engine in a file.
PROGRAM = """
import sys
from pathlib import Path
import pytest
from kernbench_builtin.native import timing

timing.library_file = lambda: Path(sys.argv[1])
files = [f"tests/builtin/native/test_{name}.py" for name in ("timing", "triton")]
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-k", "timing or elements or room or waited", *files]))
"""


def compiled(source: Path, file: Path, *more: str) -> Path:
    """Compile a library with sanitizers."""
    subprocess.run(["g++", *FLAGS.split(), *more, str(source), "-o", str(file)], check=True)
    return file


def run_with(file: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process that has the sanitizer's library from the start; Python's own leaks are not ours.

    That of C++ comes with it, or what greenlet throws is not caught.
    """
    names = [["g++", f"-print-file-name={name}.so"] for name in ("libasan", "libstdc++")]
    libraries = [subprocess.run(name, capture_output=True, text=True, check=True).stdout.strip() for name in names]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KB_")}
    environment |= {"LD_PRELOAD": " ".join(libraries), "ASAN_OPTIONS": "detect_leaks=0"}
    command = [sys.executable, "-c", program, str(file)]
    return subprocess.run(command, cwd=REPO, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here")
def test_nothing_is_out_of_its_place(tmp_path: Path) -> None:
    """One test, which has its turn as a whole: compiling takes longest."""
    known = f"-DKERNBENCH_SOURCES={engine_checksum()}"
    done = run_with(compiled(engine_sources()[-1], tmp_path / "engine.so", known), PROGRAM)
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout + done.stderr[-3000:]


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here")
def test_a_planted_fault_would_be_found(tmp_path: Path) -> None:
    """A read beyond the end of a vector, in a library made in the same way."""
    source = tmp_path / "fault.cpp"
    source.write_text("#include <vector>\nextern \"C\" int at(int i) { std::vector<int> v(3); return v.data()[i]; }\n")
    done = run_with(compiled(source, tmp_path / "fault.so"), "import ctypes, sys\nctypes.CDLL(sys.argv[1]).at(3)")
    assert done.returncode != 0 and "heap-buffer-overflow" in done.stderr
