"""`kernbench completion`: the script by which a shell asks for completions."""

from __future__ import annotations

import rich_click as click
from click.shell_completion import get_completion_class

from kernbench_core.cli.completion import SHELLS, VARIABLE
from kernbench_core.cli.option_types import completed_by
from kernbench_core.cli.run_help import GroupedCommand
from kernbench_core.errors import UsageError
from kernbench_core.wording import brief

#: What click's scripts lack: no blank behind a key that is not complete without its value. fish has that by itself.
_GOES_ON = {
    "bash": [("COMPREPLY+=($value)", "COMPREPLY+=($value)\n            [[ $value == *[.=] ]] && compopt -o nospace")],
    "zsh": [
        ("local -a response", "local -a response goes_on"),
        ('if [[ "$type" == "plain" ]]; then', 'if [[ "$type" == "plain" ]]; then\n            '
         '[[ "$key" == *[.=] ]] && goes_on=(-S "")'),
        ("completions_with_descriptions -U", 'completions_with_descriptions -U "${goes_on[@]}"'),
        ("compadd -U", 'compadd -U "${goes_on[@]}"'),
    ],
    "fish": [],
}  # fmt: skip
_EXAMPLES = """\
  eval "$(kernbench completion bash)"     # in ~/.bashrc, from bash 4.4 on
  eval "$(kernbench completion zsh)"      # in ~/.zshrc, after compinit
  kernbench completion fish | source      # in ~/.config/fish/config.fish"""


@click.command("completion", cls=GroupedCommand, epilog=_EXAMPLES)
@click.argument("name", metavar="bash|zsh|fish", default="", shell_complete=completed_by("shells"))
@click.pass_context
def completion(ctx: click.Context, name: str) -> None:
    """Print a shell's completion script, to be read when the shell starts."""
    known = get_completion_class(name)
    if name not in SHELLS or known is None:
        raise UsageError(f"kernbench completion must be followed by bash, zsh or fish, not {brief(name)}.")
    script = known(ctx.find_root().command, {}, "kernbench", VARIABLE).source()
    for old, new in _GOES_ON[name]:
        script = script.replace(old, new)
    click.echo(script.rstrip())
