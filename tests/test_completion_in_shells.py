"""What a person gets who presses the key in zsh and fish themselves; skipped where a shell is not installed."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).parents[1]
COMMAND = f"""#!{sys.executable}
import sys
sys.path.insert(0, {str(REPO)!r})
from kernbench_core.cli import main
from kernbench_core.plugins import load_plugins, own_plugins
sys.exit(main(sys.argv[1:], load_plugins(own_plugins(), installed=False)))
"""
#: Types a line, presses the key a few times, and then one that writes down what stands there.
SETUP = """\
PS1=; unsetopt zle_bracketed_paste 2>/dev/null; autoload -Uz compinit; compinit -u -d "$HOME/dump"
source "$HOME/completion"; bindkey '^I' menu-complete; bindkey '^U' kill-whole-line
told() { print -rn -- "$BUFFER|" > "$HOME/new"; command mv "$HOME/new" "$HOME/told"; }
zle -N told; bindkey '^X' told
touch "$HOME/ready"
"""
Press = Callable[..., str]


def shell(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with `kernbench` in its bin, and files to complete."""
    found = tmp_path_factory.mktemp("shells")
    (found / "bin").mkdir()
    (found / "bin" / "kernbench").write_text(COMMAND)
    (found / "bin" / "kernbench").chmod(0o755)
    (found / "here" / "folder").mkdir(parents=True)
    for file in ("mine.py", "M.npy"):
        (found / "here" / file).write_text("")
    return found


def environment(home: Path) -> dict[str, str]:
    path = f"{home / 'bin'}:{os.environ.get('PATH', '')}"
    return {"PATH": path, "HOME": str(home), "TERM": "dumb", "LC_ALL": "C.UTF-8", "XDG_CONFIG_HOME": str(home)}


def source(home: Path, name: str) -> str:
    env = {**environment(home), "_KERNBENCH_COMPLETE": f"{name}_source"}
    return subprocess.run(["kernbench"], env=env, capture_output=True, text=True, check=True).stdout


def wait_for(path: Path, ours: int) -> str:
    """Wait until a shell has written a file, and read what it says in the meantime; return what the file holds."""
    until, said = time.monotonic() + 60, b""
    while not path.exists():
        assert time.monotonic() < until, said
        if select.select([ours], [], [], 0.02)[0]:
            said += os.read(ours, 65536)
    text = path.read_text()
    path.unlink()
    return text


@pytest.fixture(scope="module")
def zsh(home: Path) -> Iterator[Press]:
    """Start zsh in a terminal, and give what types a line and presses the key; it returns the line, ended by "|"."""
    (home / "completion").write_text(source(home, "zsh"))
    (home / "setup").write_text(SETUP)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["zsh", "-f", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, env=environment(home), cwd=home / "here",
        start_new_session=True,
    ) as process:  # fmt: skip
        os.close(theirs)
        os.write(ours, b'source "$HOME/setup"\n')
        wait_for(home / "ready", ours)

        def press(line: str, times: int = 1) -> str:
            os.write(ours, b"\x15" + line.encode() + b"\t" * times + b"\x18")
            return wait_for(home / "told", ours)

        yield press
        process.kill()
    os.close(ours)


ZSH = [
    ("kernbench run gemm -p M", 1, "kernbench run gemm -p M=|"),
    ("kernbench run gemm --topology=ti", 1, "kernbench run gemm --topology=tiny |"),
    ("kernbench run softm", 1, "kernbench run softmax |"),
    ("kernbench run gemm -p ", 1, "kernbench run gemm -p M=|"),
    ("kernbench run gemm -p ", 3, "kernbench run gemm -p K=|"),
    ("kernbench run gemm -p dtype=b", 1, "kernbench run gemm -p dtype=bf16 |"),
    ("kernbench run gemm -p dtype=", 2, "kernbench run gemm -p dtype=bf16|"),
    ("kernbench run gemm --topology t", 1, "kernbench run gemm --topology tiny|"),
    ("kernbench run gemm -p a=M", 1, "kernbench run gemm -p a=M.npy |"),
    ("kernbench run gemm --trace=mi", 1, "kernbench run gemm --trace=mine.py |"),
    ("kernbench run gemm --out fo", 1, "kernbench run gemm --out folder/|"),
    ("kernbench run min", 1, "kernbench run mine.py |"),
    ("kernbench components builtin.pe_f", 1, "kernbench components builtin.pe_fetch_store |"),
    ("kernbench ccl all_reduce --algo ring_b", 1, "kernbench ccl all_reduce --algo ring_bidirectional |"),
    ("kernbench run nothing -p ", 1, "kernbench run nothing -p |"),
]
FISH = {
    "kernbench run gemm -p t": ["tile_m=\tint = 128", "tile_n=\tint = 128", "tile_k=\tint = 128"],
    "kernbench run gemm --topology=ti": ["--topology=tiny\t1 SIP of 1 cube with 4 PEs, for tests."],
    "kernbench run gemm -p d": ["dtype=\tLiteral['f16', 'bf16', 'f32', 'int8'] = 'f16'"],
    "kernbench run gemm -p dtype=": ["dtype=f16", "dtype=bf16", "dtype=f32", "dtype=int8"],
    "kernbench run gemm -p a=": ["a=M.npy", "a=folder/", "a=mine.py"],
    "kernbench run gemm --trace ": ["M.npy", "folder/", "mine.py"],
    "kernbench run gemm --trace=m": ["--trace=mine.py"],
    "kernbench run gemm --out f": ["folder/\tDirectory"],
    "kernbench run softm": ["softmax"],
    "kernbench run nothing -p ": [],
}


@shell("zsh")
@pytest.mark.parametrize(("line", "times", "stands"), ZSH)
def test_zsh_completes(zsh: Press, line: str, times: int, stands: str) -> None:
    """The whole word, with a blank where it is over; the key again goes on to the next answer, in their order."""
    assert zsh(line, times) == stands


@shell("fish")
@pytest.mark.parametrize("line", FISH)
def test_fish_completes(home: Path, line: str) -> None:
    """Whole words in their order, each with all that is said of it."""
    (home / "completion.fish").write_text(source(home, "fish"))
    asked = subprocess.run(
        ["fish", "--no-config", "-c", f'source "$HOME/completion.fish"; complete -C {line!r}'],
        env=environment(home), cwd=home / "here", capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (asked.stdout.splitlines(), asked.stderr) == (FISH[line], "")
