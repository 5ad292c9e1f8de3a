"""Commands that plug-ins register for a group: core's `plugins`, and one of their own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernbench_core.cli import main
from kernbench_core.plugins import Plugins, load_plugins
from tests.core.plugin_site import Site

ENTRIES = """
from kernbench_core import CommandEntry
def kernbench_commands():
    return [
        CommandEntry("plugins count", "words_parts:count", "Count them."),
        CommandEntry("plugins list", "words_parts:count", "No: core has it."),
        CommandEntry("plugins none", "words_parts:WORD", "Is no command."),
        CommandEntry("words", "words_parts:words", "Say words."),
        CommandEntry("words late", "words_parts:late", "Raise."),
        CommandEntry("words code", "words_parts:code", "Return 300."),
    ]
"""
PARTS = '''
import click
from kernbench_core.cli.group import CommandGroup
WORD = "word"
@click.command()
@click.argument("what")
@click.pass_obj
def count(shell, what):
    """Count the plug-ins, in a word."""
    click.echo(f"{len(shell.plugins.sources)} {what}")
@click.group(cls=CommandGroup)
def words(): """Say words."""
@words.command()
def own(): """Say one.""" ; click.echo("own")
@click.command()
def late(): raise KeyError("late")
@click.command()
def code(): return 300
'''


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plugins:
    """Give a plug-in with commands for two groups."""
    monkeypatch.syspath_prepend(str(tmp_path))
    site = Site(tmp_path)
    site.module("words_plugin", ENTRIES)
    site.module("words_parts", PARTS)
    return load_plugins(["words = words_plugin"], installed=False)


def test_a_group_has_what_is_registered_for_it(words: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """With the sentence of each in its help; the help of `kernbench` names the group alone."""
    assert main(["plugins", "count", "so far"], words) == 0
    assert capsys.readouterr().out == "1 so far\n"
    assert main(["plugins", "--help"], words) == 0
    assert re.search(r"^ +count +Count them\. *$", capsys.readouterr().out, re.MULTILINE)
    assert main(["--help"], words) == 0
    assert "count" not in capsys.readouterr().out
    assert main(["plugins count", "so far"], words) == 2
    assert "error: kernbench must be followed by a command, not 'plugins count'." in capsys.readouterr().err


def test_a_group_of_a_plug_in_has_commands_of_its_own_too(
    words: Plugins, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that click's decorators put into it."""
    assert main(["words", "own"], words) == 0
    assert main(["words", "--help"], words) == 0
    out = capsys.readouterr().out
    assert out.startswith("own\n")
    assert [line.split()[0] for line in out.partition("Commands:")[2].splitlines() if line.strip()] == [
        "code", "late", "own",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "code", "sentence"),
    [
        ("plugins cuont", 2, "kernbench plugins must be followed by a command, not 'cuont'. Did you mean 'count'?"),
        (
            "plugins none", 6,
            "command 'plugins none' of words_plugin (source tree) must be a click command, not 'word'; repair or "
            "reinstall words_plugin (source tree).",
        ),
        (
            "words code", 6,
            "command 'words code' of words_plugin (source tree) must return an exit code from 0 to 255, or None, not "
            "300; repair or reinstall words_plugin (source tree).",
        ),
        (
            "words late", 6,
            "command 'words late' of words_plugin (source tree) raised KeyError: 'late'; repair or reinstall "
            "words_plugin (source tree).",
        ),
    ],
)  # fmt: skip
def test_a_wrong_one_is_a_sentence(
    words: Plugins, capsys: pytest.CaptureFixture[str], line: str, code: int, sentence: str
) -> None:
    """It names the command with its group."""
    assert main(line.split(), words) == code
    assert f"error: {sentence}" in capsys.readouterr().err


def test_core_keeps_its_own(words: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """A plug-in cannot take the name of a command of a group."""
    assert main(["plugins", "list"], words) == 0
    assert "command 'plugins list' is left out: words_plugin" in capsys.readouterr().out.replace("\n    ", " ")
