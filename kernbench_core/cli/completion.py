"""What the shell completes: names of benches, presets and models, parameters of a bench with their values, files.

Asked each time that somebody presses the key: nothing heavy is imported, no bench is executed, and what goes wrong is
no completion and not a word.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import redirect_stderr
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ZshComplete,
    add_completion_class,
    shell_complete,
    split_arg_string,
)

from kernbench_core.cli.search import bare
from kernbench_core.errors import UsageError
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_core.cli.shell import Shell

VARIABLE = "_KERNBENCH_COMPLETE"
"""The environment variable by which a shell asks, as click's protocol has it."""
_SHELLS = ("bash", "zsh", "fish")
Items = list[CompletionItem[str]]


class Bash(BashComplete):
    """Completion of bash, which takes `NAME=VALUE` for three words, and puts a blank behind each answer if let."""

    source_template = """\
%(complete_func)s() {
    local IFS=$'\\n' response completion kind value
    response=$(env KERNBENCH_LINE="${COMP_LINE:0:COMP_POINT}" KERNBENCH_BREAKS="$COMP_WORDBREAKS" \\
        %(complete_var)s=bash_complete "$1" 2>/dev/null)
    COMPREPLY=()
    for completion in $response; do
        kind="${completion%%%%,*}" value="${completion#*,}"
        case "$kind" in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            *) COMPREPLY+=("$value") ;;
        esac
        [[ "$value" == *= ]] && compopt -o nospace
    done
    return 0
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor, and what of the next one is there, of the line as it was typed."""
        words = split_arg_string(os.environ.get("KERNBENCH_LINE", "") + "\x01")
        self._typed = words[-1].removesuffix("\x01") if words else ""
        return words[1:-1], self._typed

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Write an answer as the script reads it, without what bash takes for words before it."""
        breaks = os.environ.get("KERNBENCH_BREAKS", "")
        start = max((self._typed.rfind(mark) + 1 for mark in "=:" if mark in breaks), default=0)
        value = str(item.value)
        return f"{item.type},{value.removeprefix(self._typed[:start]) if item.type == 'plain' else value}"


class Zsh(ZshComplete):
    """Completion of zsh, where an answer replaces the whole word; nothing is put behind `NAME=`."""

    source_template = """\
#compdef %(prog_name)s

%(complete_func)s() {
    local -a names shown open_names open_shown response
    local type key told wide
    (( ! $+commands[%(prog_name)s] )) && return 1
    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) %(complete_var)s=zsh_complete \
        %(prog_name)s 2>/dev/null)}")
    for type key told in "${(@)response}"; do
        wide=$(( $#key > 20 ? $#key : 20 ))
        [[ -n "$told" ]] && told="${(r:wide:)key} -- $told" || told="$key"
        told="${told[1,$((COLUMNS-1))]}"
        case "$type" in
            dir) [[ $PREFIX == *=* ]] && compset -P '*='; _path_files -/ ;;
            file) [[ $PREFIX == *=* ]] && compset -P '*='; _path_files -f ;;
            plain) [[ "$key" == *= ]] && { open_names+=("$key"); open_shown+=("$told") } \
                || { names+=("$key"); shown+=("$told") } ;;
        esac
    done
    (( $#open_names )) && compadd -U -V unsorted -S '' -l -d open_shown -a open_names
    (( $#names )) && compadd -U -V unsorted ${${(M)shown:#* -- *}:+-l} -d shown -a names
    return 0
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor, and what of the next one is there."""
        before, self._typed = super().get_completion_args()
        return before, self._typed

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Write an answer as the script reads it, in three lines."""
        whole = _whole(item, self._typed)
        return f"{whole.type}\n{whole.value}\n{whole.help or ''}"


class Fish(FishComplete):
    """Completion of fish, where an answer is a whole word; answers stay in their order."""

    source_template = """\
function %(complete_func)s
    set -l response (env %(complete_var)s=fish_complete COMP_WORDS=(commandline -cp) COMP_CWORD=(commandline -ct) \
        %(prog_name)s 2>/dev/null)
    for completion in $response
        set -l told (string split --max 1 "," -- $completion)
        set -l before (string match --regex '^.*=' -- $told[2])
        set -l path (string replace --regex '^.*=' '' -- $told[2])
        switch $told[1]
            case dir
                for found in (__fish_complete_directories $path)
                    echo "$before"$found
                end
            case file
                for found in (__fish_complete_path $path)
                    echo "$before"$found
                end
            case '*'
                echo $told[2]
        end
    end
end

complete --keep-order --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor, and what of the next one is there."""
        before, self._typed = super().get_completion_args()
        return before, self._typed

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Write an answer as the script reads it, in a line."""
        return super().format_completion(_whole(item, self._typed))


def _whole(item: CompletionItem[str], typed: str) -> CompletionItem[str]:
    """Return an answer as the whole word: behind the name of its option where that was typed before it."""
    option, equals, _ = typed.partition("=")
    if not equals or not option.startswith("--"):
        return item
    return CompletionItem(f"{option}={item.value}", type=item.type, help=item.help)


def answer(cli: click.Command, shell: Shell, instruction: str) -> int:
    """Answer a shell that asks by `VARIABLE`, with a script or with completions; return the exit code.

    Raises:
        UsageError: the instruction is none.
    """
    if instruction not in {f"{name}_{what}" for name in _SHELLS for what in ("source", "complete")}:
        raise UsageError(
            f"{VARIABLE} must be {', '.join(f'{name}_source' for name in _SHELLS)}, or what the script of one of these "
            f"sets, not {brief(instruction)}; unset it."
        )
    for each in (Bash, Zsh, Fish):
        add_completion_class(each)
    if instruction.endswith("_source"):
        return shell_complete(cli, {"obj": shell}, "kernbench", VARIABLE, instruction)
    with Path(os.devnull).open("w") as nothing, redirect_stderr(nothing):  # what is wrong is told by the command itself
        try:
            return shell_complete(cli, {"obj": shell}, "kernbench", VARIABLE, instruction)
        except Exception:
            return 0


def _plain(names: Iterable[str], incomplete: str) -> Items:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _or_path(found: Items, incomplete: str, kind: str = "file") -> Items:
    """Let the shell complete the path of a file where no name matches."""
    return found or [CompletionItem(incomplete, type=kind)]


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Let the shell complete the path of a file."""
    return _or_path([], incomplete)


def folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Let the shell complete the path of a folder."""
    return _or_path([], incomplete, "dir")


def benches(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete the name of a bench, or the path of a file; the `.py` files at hand stand beside the names."""
    found = _plain(ctx.obj.plugins.benches, incomplete)
    here = sorted(path.name for path in Path().glob("*.py"))
    return _or_path([*found, *_plain(here, incomplete)], incomplete)


def presets(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete the name of a preset, or the path of a file."""
    return _or_path(preset_names(ctx, param, incomplete), incomplete)


def preset_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete the name of a preset, with what it is."""
    entries = ctx.obj.plugins.topologies
    return [CompletionItem(name, help=entry.sentence) for name, entry in entries.items() if name.startswith(incomplete)]


def networks(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete the name of a shape of the scale-up network."""
    return _plain(ctx.obj.plugins.networks, incomplete)


def models(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete the name of a hardware model; the name without its vendor where that begins so, or a word of it."""
    entries = ctx.obj.plugins.components
    whole = {name: entry.sentence for name, entry in entries.items() if name.startswith(incomplete)}
    named = {bare(name): entry.sentence for name, entry in entries.items()}
    begun = {name: told for name, told in named.items() if name.startswith(incomplete)}
    later = {name: told for name, told in named.items() if f"_{incomplete}" in name}
    return [CompletionItem(name, help=told) for name, told in (whole or begun or later).items()]


def plugins(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete the name of a plug-in."""
    return _plain(sorted({provider.plugin for provider in ctx.obj.plugins.providers}), incomplete)


def parameters(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete `NAME=` of a parameter of the bench that stands before, and then its value, where there are a few."""
    from kernbench_core.cli.written_benches import parameters_of

    bench = ctx.params.get("bench") or next(iter(ctx.args), None)  # click leaves it there when an option has no value
    declared = parameters_of(bench, ctx.obj.plugins) if isinstance(bench, str) else {}
    name, equals, value = incomplete.partition("=")
    if not equals:
        given = {text.partition("=")[0] for text in ctx.params.get(param.name or "") or ()}
        left = {each: told for each, told in declared.items() if each not in given}
        return [
            CompletionItem(f"{each}=", help=told.words) for each, told in left.items() if each.startswith(incomplete)
        ]
    found = declared.get(name)
    if found is None:
        return []
    if found.is_file:
        return [CompletionItem(incomplete, type="file")]
    return [CompletionItem(f"{name}={choice}") for choice in found.choices if choice.startswith(value)]


def devices(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete what `--device` may be of any machine."""
    return _plain(("all", "sip:0"), incomplete)
