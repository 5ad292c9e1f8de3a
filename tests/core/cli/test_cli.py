"""The command line: options, streams, exit codes, and nothing heavy for --help."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import pytest

from kernbench_core.cli import main
from kernbench_core.compiled import in_words
from kernbench_core.plugins import load_plugins
from tests.core.cli.command_line import HEAVY, call


@pytest.mark.parametrize(("given", "kept"), [({}, "20"), ({"OPENBLAS_THREAD_TIMEOUT": "26"}, "26")])
def test_numpy_s_threads_sleep_soon_in_a_process_of_the_command(given: dict[str, str], kept: str) -> None:
    """They would look for work for 25 ms of a processor, before there is any; who gave a time of their own keeps it."""
    program = (
        "import os; from kernbench_core.cli import command, main\n"
        "command.run_process = lambda plugins: print(os.environ['OPENBLAS_THREAD_TIMEOUT']) or 0\n"
        "main()"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_THREAD_TIMEOUT"} | given
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.split() == [kept], done.stderr


def test_help_imports_nothing_heavy() -> None:
    """`kernbench --help` loads no library of the simulation, and takes under 0.3 s where nothing else runs.

    That is 300 modules, Python's own among them, and 100 thousand calls.
    """
    program = (
        "import sys\ncalls = 0\n"
        "def profile(frame, event, arg):\n    global calls\n    calls += event == 'call'\n"
        "sys.setprofile(profile)\n"
        "from kernbench_core.cli import main; code = main(['--help'])\n"
        "sys.setprofile(None)\n"
        f"print(code, [name for name in {HEAVY!r} if name in sys.modules], len(sys.modules), calls)"
    )
    for _ in range(2):  # the first one may have to compile
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    *_, modules, calls = done.stdout.split()
    assert done.stdout.splitlines()[-1] == f"0 [] {modules} {calls}"
    assert "Usage: kernbench [OPTIONS] COMMAND [ARGS]..." in done.stdout
    assert int(modules) < 356
    assert int(calls) < 155_000


def test_run_prints_a_report_on_stdout_only(toy: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """Results go to stdout, in a line where no part lays them out; without a terminal no progress is on stderr."""
    assert call(toy, "run", "toy", "--topology", "one", "--verify-data") == 0
    line = "toy on one: 412.3 us, data verified: 1 tensor, largest error 0.00012"
    assert capsys.readouterr() == (f"the kernel says hello\n{line}\n", "")


def test_json_is_one_object_whatever_kernels_print(toy: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """With --json a kernel's print goes to stderr."""
    assert call(toy, "run", "toy", "--topology", "one", "--json", "-p", "n=2") == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["schema"], found["bench"], found["params"]["n"]) == ("kernbench.run/1", "toy", 2)
    assert err == "the kernel says hello\n"


def test_quiet_prints_one_line(toy: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """-q leaves the kernel's own prints and one line."""
    assert call(toy, "run", "toy", "--topology", "one", "-q") == 0
    assert capsys.readouterr().out == (
        "the kernel says hello\ntoy on one: 412.3 us, data not verified (--verify-data does)\n"
    )


def test_options_reach_the_engine(toy: ModuleType, tmp_path: Path) -> None:
    """Every option of `run` has its effect."""
    overlay = tmp_path / "more.yaml"
    overlay.write_text("cube: {pes: 2}\n")
    code = call(
        toy, "run", "toy", "--topology", "one", "--components", str(overlay), "--set", "system.sips=3",
        "--device", "sip:1", "--no-data", "--seed", "9", "--max-events", "5", "--max-sim-time", "2 us",
        "--timeout", "1.5 s", "--note", str(tmp_path / "t.txt"), "--out", str(tmp_path / "o"), "-v",
    )  # fmt: skip
    engine = toy.engines[-1]
    limits = engine.options["limits"]
    assert code == 0
    assert engine.graph.data == {"system": {"sips": 3}, "cube": {"pes": 2}}
    assert (engine.options["device"], engine.options["data"], engine.options["seed"]) == ("sip:1", False, 9)
    assert (limits.max_events, limits.max_sim_ns, limits.timeout_s) == (5, 2000.0, 1.5)
    assert (tmp_path / "t.txt").exists() and (tmp_path / "o" / "manifest.json").exists()


def test_problems_of_a_configuration_begin_with_their_place(
    toy: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each problem is a line that an editor can jump to."""
    file = tmp_path / "m.yaml"
    file.write_text("a: 1\na: 2\nbase: [1]\n")
    assert call(toy, "topology", "validate", str(file)) == 3
    assert capsys.readouterr().err == (
        f"{file}:3:1: base must be a preset or a file name, not [1].\n"
        f"{file}:2:1: key 'a' must appear once, but it is also at {file}:1:1.\n"
    )


@pytest.mark.parametrize(
    ("fail", "code"),
    [
        ("UsageError", 2), ("ConfigError", 3), ("DeadlockError", 4), ("LimitError", 5), ("KernelError", 6),
        ("ComponentError", 6), ("PluginError", 6), ("SanityError", 7),
    ],
)  # fmt: skip
def test_errors_are_sentences_with_their_exit_codes(
    toy: ModuleType, capsys: pytest.CaptureFixture[str], fail: str, code: int
) -> None:
    """Each error of the family is one sentence on stderr, nothing on stdout, and its own code."""
    assert call(toy, "run", "toy", "--topology", "one", "-p", f"fail={fail}") == code
    assert capsys.readouterr() == ("", "it failed.\n" if fail == "ConfigError" else "error: it failed.\n")


def test_wrong_data_is_exit_one(toy: ModuleType, samples: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """The report is printed, and the code says that it is wrong."""
    toy.verdict = samples.WRONG
    assert call(toy, "run", "toy", "--topology", "one", "--verify-data") == 1
    assert "DATA IS WRONG: 1 of 2 tensors, largest error 3" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["run"], "Missing argument 'BENCH'. See 'kernbench run --help'."),
        (["rum", "toy"], "kernbench must be followed by a command, not 'rum'. Did you mean 'run'?"),
        (
            ["run", "toy", "--toplogy", "1"],
            "No such option '--toplogy'. Did you mean '--topology'? See 'kernbench run --help'.",
        ),
        (["run", "toy", "-p", "n"], "option -p must be followed by NAME=VALUE, not 'n'."),
        (["run", "toy", "-q", "-v"], "options -q and -v exclude each other; give one of them."),
        (
            ["run", "toy", "--timeout", "60"],
            "option --timeout must be a positive time with its unit, as '60 s', not '60'.",
        ),
        (
            ["components", "x.y"],
            "component must be a registered name or a part of one, not 'x.y'. No plug-in registers any.",
        ),
    ],
)
def test_usage_errors_are_sentences(
    toy: ModuleType, capsys: pytest.CaptureFixture[str], args: list[str], sentence: str
) -> None:
    """Exit code 2, one sentence on stderr."""
    assert call(toy, *args) == 2
    assert capsys.readouterr() == ("", f"error: {sentence}\n")


def test_a_fault_of_our_own_is_not_a_result(
    toy: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anything else that raises shows its traceback and says not to trust the run."""

    def broken(*_: object) -> None:
        raise RuntimeError("oops")

    monkeypatch.setattr("kernbench_core.topology.compilation.compile_topology", broken)
    assert call(toy, "run", "toy", "--topology", "one") == 7
    err = capsys.readouterr().err.splitlines()
    assert err[0] == "Traceback (most recent call last):"
    assert err[-2:] == [
        "RuntimeError: oops",
        "error: kernbench itself failed; please report the lines above. Do not use any result of this run.",
    ]


def test_a_plugins_command_is_a_sub_command(toy: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """It is listed behind ours, by its sentence, without being imported, and called like them."""
    assert call(toy, "--help") == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    heads = [line for line in lines if line.endswith(":") and line[0] != " "]
    assert heads == ["Options:", "Run and compare:", "Machines:", "Look up:", "Commands:"]
    assert lines[lines.index("Commands:") + 1] == "  hello  Say hello."
    assert "toy_parts" not in sys.modules
    assert call(toy, "hello", "you") == 0
    assert capsys.readouterr().out == "hello you\n"


def test_a_plugins_command_returns_an_exit_code(toy: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """Any that a process can end with; the system would make another one of 300, such as one of ours."""
    assert [call(toy, "hello", "--", code) for code in ("0", "255")] == [0, 255]
    assert capsys.readouterr().err == ""
    for code in ("300", "-1"):
        assert call(toy, "hello", "--", code) == 6
        assert capsys.readouterr().err == (
            f"error: command 'hello' of toy_plugin (source tree) must return an exit code from 0 to 255, or None, not "
            f"{code}; repair or reinstall toy_plugin (source tree).\n"
        )


@pytest.mark.parametrize("args", [("--help",), ("plugins", "list")])
def test_a_plugins_command_with_the_name_of_ours_is_left_out_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], args: tuple[str, ...]
) -> None:
    """It would take over what users and scripts rest on."""
    entries = "[CommandEntry('run', 'm:f', 'A.'), CommandEntry('mine', 'm:f', 'B.')]"
    source = f"from kernbench_core import CommandEntry\nkernbench_api = 1\ndef kernbench_commands(): return {entries}\n"
    (tmp_path / "greedy_plugin.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    plugins = load_plugins(["greedy = greedy_plugin"], installed=False)
    assert main([*args], plugins) == 0
    out, err = capsys.readouterr()
    assert err.startswith(
        "warning: command 'run' is left out: greedy_plugin (source tree) must not call it as kernbench calls its own; "
        "rename it.\n"
    )
    assert args != ("--help",) or " A." not in out


def test_no_plugin_takes_a_name_of_ours() -> None:
    """The registry keeps those of core's commands, each with the command itself behind it."""
    registry = load_plugins(installed=False).commands
    assert {"run", "plugins"} < set(registry)
    assert all(registry.load(name).name == name.rpartition(" ")[2] for name in registry)


@pytest.mark.parametrize("prints", ["print('hello')", "import os; os.write(1, b'hello\\n')"])
def test_what_a_plugin_prints_is_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], prints: str
) -> None:
    """It goes to stderr, so that --json stays one object; so does what is not Python's, as of a program it starts."""

    class Chatty:
        metadata: ClassVar = {"Name": "chatty", "Version": "1.0"}

    (tmp_path / "chatty_plugin.py").write_text(f"kernbench_api = 1\n{prints}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    point = importlib.metadata.EntryPoint("chatty", "chatty_plugin", "kernbench")._for(Chatty())  # type: ignore[attr-defined]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [point])
    monkeypatch.delitem(sys.modules, "chatty_plugin", raising=False)
    assert main(("plugins", "list", "--json")) == 0
    out, err = capfd.readouterr()
    assert json.loads(out)["plugins"][0]["name"] == "chatty" and err.startswith("hello\n")


@pytest.mark.parametrize("columns", ["0", "abc", "-5", ""])
def test_a_width_that_is_none_is_not_used(
    toy: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: str
) -> None:
    """COLUMNS may hold anything; then output is as wide as without it."""
    call(toy, "components", "-v")
    usual = capsys.readouterr().out
    assert usual
    monkeypatch.setenv("COLUMNS", columns)
    assert (call(toy, "components", "-v"), capsys.readouterr().out) == (0, usual)


def test_version(toy: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """--version names program and version."""
    assert call(toy, "--version") == 0
    assert capsys.readouterr().out == f"kernbench 0.1.0 ({in_words()})\n"
