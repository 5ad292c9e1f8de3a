"""The help of every command, as a terminal of 80 columns shows it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import pytest
import rich_click as click

from kernbench_core.cli.command import LOOK, kernbench
from kernbench_core.cli.group import CommandGroup
from kernbench_core.cli.shell import Shell
from kernbench_core.runs.options import GROUPS

_WIDE = 80
#: Options that take several values, a word more, or no value in some commands.
_SEVERAL = {"-p", "--set", "--topology", "--ranks", "--algo", "--shake"}


def _commands(command: click.Command, context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.load(context, name) if isinstance(command, CommandGroup) else None
            below = below or command.get_command(context, name)
            assert below is not None
            made = below.context_class(below, parent=context, info_name=name, resilient_parsing=True)
            yield from _commands(below, made)


@pytest.fixture(scope="module")
def contexts() -> list[click.Context]:
    """Every command with ours loaded, called by nobody."""
    top = click.RichContext(kernbench, info_name="kernbench", obj=Shell(), rich_help_config=LOOK)
    top.help_option_names = ["-h", "--help"]
    return list(_commands(kernbench, top))


@pytest.fixture(scope="module")
def helps(contexts: list[click.Context]) -> dict[str, list[str]]:
    """The lines of each help, without the blanks that fill them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(_WIDE))
        return {each.command_path: [line.rstrip() for line in each.get_help().splitlines()] for each in contexts}


def test_every_help_has_one_form_and_fits(helps: dict[str, list[str]]) -> None:
    """Usage, then a sentence, then groups whose titles end with a colon; nothing is wider, boxed or cut short."""
    assert len(helps) > 40 and {"kernbench ccl all_reduce", "kernbench plugins check"} <= set(helps)
    for path, lines in helps.items():
        text = "\n".join(lines)
        assert lines[0].startswith(f"Usage: {path} [OPTIONS]") and lines[1] == "" and lines[2][0].isupper(), path
        assert max(map(len, lines)) <= _WIDE and not set("╭│╰") & set(text), path
        assert "..." not in text.partition("\n\n")[2].replace(",...", ""), path
        titles = [line for line in lines[1:] if line.endswith(":") and line[:1].strip()]
        assert "Options:" in titles and len(set(titles)) == len(titles), path
        assert "[default=" not in text and ".  [" not in text and "range: " not in text, path


def test_every_option_ends_as_a_sentence(contexts: list[click.Context]) -> None:
    """With a stop, before a default in brackets; so does what each command does."""
    for context in contexts:
        assert (context.command.help or "").rstrip().endswith("."), context.command_path
        for option in context.command.get_params(context):
            text = getattr(option, "help", None) or ""
            told = text.partition(" [default: ")[0]
            assert isinstance(option, click.Argument) or told.endswith("."), (context.command_path, option.opts, text)


def test_an_option_has_one_value_name_everywhere(contexts: list[click.Context]) -> None:
    """So that who knows one command can read the help of the next."""
    seen: dict[str, set[str]] = defaultdict(set)
    for context in contexts:
        for option in context.command.get_params(context):
            if isinstance(option, click.Option) and not option.is_flag:
                seen[option.opts[-1]].add(option.make_metavar(context))
    assert {name: found for name, found in seen.items() if len(found) > 1 and name not in _SEVERAL} == {}


def test_run_lists_its_options_in_groups_and_begins_with_two_examples(helps: dict[str, list[str]]) -> None:
    """Those of parts too; what is left over says how the result is printed."""
    lines = helps["kernbench run"]
    titles = [line.removesuffix(":") for line in lines[1:] if line.endswith(":") and line[:1].strip()]
    assert titles == ["Examples", *GROUPS, "Options"]
    at = lines.index("Examples:")
    assert [line.split()[:2] for line in lines[at + 1 : at + 3]] == [["kernbench", "run"]] * 2
    assert "  --explain" in "\n".join(lines[lines.index("Analysis:") : lines.index("Output:")])
    rest = [line.split()[-1 if len(line.split()) < 2 else 0] for line in lines[lines.index("Options:") + 1 :] if line]
    assert rest == ["--json", "-q", "-v", "-h"]


def test_all_commands_stand_under_three_titles(helps: dict[str, list[str]]) -> None:
    """None is left over."""
    lines = helps["kernbench"]
    titles = [line for line in lines[1:] if line.endswith(":")]
    assert titles == ["Options:", "Run and compare:", "Machines:", "Look up:"]
