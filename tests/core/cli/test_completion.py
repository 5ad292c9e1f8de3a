"""What the shell completes, asked as shells ask: by click's protocol, and by a real bash that runs our script."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernbench_core.cli import main
from kernbench_core.cli.completion import networks
from kernbench_core.plugins import Plugins, load_plugins
from tests.core.cli.command_line import HEAVY
from tests.core.offered import MACHINES

PLUGIN = """
from kernbench_core.plugins import BenchEntry, CommandEntry, ComponentEntry, NetworkEntry, TopologyEntry
kernbench_api = 1
def kernbench_benches():
    return [BenchEntry(name, f"names_parts:{name}") for name in ("copy", "sort-all", "sort-some", "lost")]
def kernbench_topologies():
    return [TopologyEntry("one", "names_parts:one.yaml", "One."), TopologyEntry("other", "names_parts:o.yaml", "More.")]
def kernbench_components():
    return [ComponentEntry(f"names.{each}", "names_parts:No", "", f"Is {each}.") for each in ("pe_fast", "far_pe", "x")]
def kernbench_networks():
    return [NetworkEntry("names.star", "names_parts:STAR", "All around the first.")]
def kernbench_commands():
    return [CommandEntry("told", "names_parts:told", "Say it.")]
"""
PARTS = """
raise SystemExit("nobody needs this to complete a name")
"""
SORT = """
from typing import Literal
import numpy as np
Order = Literal["up", "down"]
def bench(rt, n: int = 8, order: Order = "up", stable: bool = False, keys: np.ndarray | None = None): ...
"""
COMMAND = (
    "import sys; from kernbench_core.cli import main; from kernbench_core.plugins import load_plugins; "
    f"code = main(sys.argv[1:], load_plugins(['names = names_plugin', '{MACHINES}'], installed=False)); "
    f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr); sys.exit(code)"
)
Ask = Callable[[str], list[str]]


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plugins:
    """Give plug-ins with names of their own, which lie in the folder `site`; beside it is the file of a bench."""
    site = tmp_path / "site"
    site.mkdir()
    for name, text in (("names_plugin", PLUGIN), ("names_parts", PARTS)):
        (site / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "sort-mine.py").write_text(SORT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(site)
    return load_plugins(["names = names_plugin", MACHINES], installed=False)


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], named: Plugins) -> Ask:
    """Give a function that completes a line as bash asks for it; its answers as "kind,value"."""
    monkeypatch.setenv("_KERNBENCH_COMPLETE", "bash_complete")

    def answers(line: str) -> list[str]:
        words = f"kernbench {line}".split(" ")
        monkeypatch.setenv("COMP_WORDS", "\n".join(words))
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        assert main((), named) == 0
        out, err = capfd.readouterr()
        assert err == ""
        return out.splitlines() if out.strip() else []

    return answers


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("ru", ["run"]),
        ("tol", ["told"]),
        ("run c", ["copy"]),
        ("run sort-", ["sort-all", "sort-some", "sort-mine.py"]),
        ("list so", ["sort-all", "sort-some", "sort-mine.py"]),
        ("'run' sort-s", ["sort-some"]),
        ("run copy --topology o", ["one", "other"]),
        ("run copy --device ", ["all", "sip:0"]),
        ("run copy --race-by ", ["pe", "program"]),
        ("topology list o", ["one", "other"]),
        ("topology show on", ["one"]),
        ("components names.", ["names.far_pe", "names.pe_fast", "names.x"]),
        ("components pe", ["pe_fast"]),
        ("components fa", ["far_pe"]),
        ("components fas", ["pe_fast"]),  # a word of it, as no name begins so
        ("components _", []),
        ("nothing ", []),
        ("completion ", ["bash", "zsh", "fish"]),
    ],
)
def test_a_line_is_completed(ask: Ask, line: str, values: list[str]) -> None:
    """None of the modules that the names stand for is executed."""
    assert ask(line) == [f"plain,{value}" for value in values]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("run ../x", "file"), ("run copy --topology ./", "file"),
        ("run copy --out ", "dir"),
    ],
)  # fmt: skip
def test_files_are_left_to_the_shell(ask: Ask, line: str, kind: str) -> None:
    """Where no name matches."""
    (answer,) = ask(line)
    assert answer == f"{kind},{line.rpartition(' ')[2]}"


def test_names_of_networks_are_those_that_are_registered(named: Plugins) -> None:
    """For commands of plug-ins that take one."""
    found = networks(SimpleNamespace(obj=SimpleNamespace(plugins=named)), None, "na")  # type: ignore[arg-type]
    assert [item.value for item in found] == ["names.star"]


@pytest.mark.parametrize(("shell", "word"), [("zsh", "3"), ("fish", "o")])
def test_other_shells_are_answered(
    shell: str, word: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], named: Plugins
) -> None:
    """By click's own protocol, whose form differs from shell to shell, with what a preset is beside its name."""
    monkeypatch.setenv("_KERNBENCH_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", "kernbench topology list o")
    monkeypatch.setenv("COMP_CWORD", word)
    assert main((), named) == 0
    told = re.split(r"[,\t\n]", capfd.readouterr().out.rstrip("\n"))
    assert told == ["plain", "one", "One.", "plain", "other", "More."]


@pytest.mark.parametrize(("shell", "goes_on"), [("bash", 1), ("zsh", 2), ("fish", 0)])
def test_a_shell_gets_its_script(
    shell: str, goes_on: int, capfd: pytest.CaptureFixture[str], named: Plugins
) -> None:
    """With every change that it needs to write no blank behind a key whose value follows."""
    assert main(("completion", shell), named) == 0
    out = capfd.readouterr().out
    assert f"_KERNBENCH_COMPLETE={shell}_complete" in out and out.count("\n\n\n") == 0
    assert out.count("compopt -o nospace") + out.count('"${goes_on[@]}"') == goes_on
    assert out.count('goes_on=(-S "")') == (shell == "zsh")


def test_another_word_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], named: Plugins
) -> None:
    for given in ((), ("tcsh",)):
        assert main(("completion", *given), named) == 2
        sentence = f"kernbench completion must be followed by bash, zsh or fish, not {given[0] if given else ''!r}."
        assert capfd.readouterr() == ("", f"error: {sentence}\n")
    monkeypatch.setenv("_KERNBENCH_COMPLETE", "tcsh_source")
    assert main((), named) == 2
    assert capfd.readouterr() == ("", (
        "error: _KERNBENCH_COMPLETE must be what the script of a shell sets, not 'tcsh_source'; unset it, and see "
        "'kernbench completion --help'.\n"
    ))  # fmt: skip


def test_what_goes_wrong_is_no_completion_and_not_a_word(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], ask: Ask
) -> None:
    """Who presses a key in the middle of a line wants no traceback there."""

    def wrong(*_: object) -> None:
        print("and this neither", file=sys.stderr)
        raise ZeroDivisionError

    monkeypatch.setattr("kernbench_core.cli.completion.benches", wrong)
    assert ask("run sort-mine") == []


BASH = """
kernbench() { :; }
eval "$("$HERE" completion bash 2>/dev/null)"
export _KERNBENCH_COMPLETE=bash_complete
complete -p kernbench
compopt() { echo "option $1 $2"; }
for word in "sort-s" "../x"
do
    COMP_WORDS=(kernbench run "$word")
    COMP_CWORD=2
    _kernbench_completion "$HERE"
    echo "${COMPREPLY[*]}"
done
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not there")
def test_a_real_bash_runs_the_script(tmp_path: Path, named: Plugins) -> None:
    """In processes of their own, which import nothing heavy: a shell asks each time that somebody presses the key."""
    here = tmp_path / "kernbench"
    here.write_text(f"#!{sys.executable}\n{COMMAND}\n")
    here.chmod(0o755)
    path = os.pathsep.join((os.environ["PYTHONPATH"], str(tmp_path / "site")))
    environment = {**os.environ, "PYTHONPATH": path, "HERE": str(here)}
    done = subprocess.run(
        ["bash", "--norc", "-c", BASH], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout.splitlines() == [
        "complete -o nosort -F _kernbench_completion kernbench", "sort-some", "option -o default", "",
    ]  # fmt: skip
