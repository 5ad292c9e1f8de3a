"""What the shell completes: names of benches, presets and models, keys of `--set`, files.

Asked each time that somebody presses the key: nothing heavy is imported, and what goes wrong is no completion and not
a word.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stderr
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem, shell_complete

from kernbench_core.errors import UsageError
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_core.cli.shell import Shell
    from kernbench_core.plugins import Plugins

VARIABLE = "_KERNBENCH_COMPLETE"
"""The environment variable by which a shell asks, as click's protocol has it."""
SHELLS = ("bash", "zsh", "fish")
Items = list[CompletionItem[str]]


def answer(cli: click.Command, shell: Shell, instruction: str) -> int:
    """Answer a shell that asks by `VARIABLE` for completions; return the exit code.

    Raises:
        UsageError: the instruction is none.
    """
    if instruction not in {f"{name}_complete" for name in SHELLS}:
        raise UsageError(
            f"{VARIABLE} must be what the script of a shell sets, not {brief(instruction)}; unset it, and see "
            "'kernbench completion --help'."
        )
    with Path(os.devnull).open("w") as nothing, redirect_stderr(nothing):  # what is wrong is told by the command itself
        try:
            return shell_complete(cli, {"obj": shell}, "kernbench", VARIABLE, instruction)
        except Exception:
            return 0


def _plain(names: Iterable[str], incomplete: str) -> Items:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _or_path(found: Items, incomplete: str) -> Items:
    """Let the shell complete the path of a file where no name matches."""
    return found or [CompletionItem(incomplete, type="file")]


def _named(names: Callable[[Plugins], Iterable[str]]) -> Callable[[click.Context, click.Parameter, str], Items]:
    return lambda ctx, param, incomplete: _plain(names(ctx.obj.plugins), incomplete)


shells = _named(lambda plugins: SHELLS)
devices = _named(lambda plugins: ("all", "sip:0"))
networks = _named(lambda plugins: plugins.networks)
plugins = _named(lambda plugins: sorted({provider.plugin for provider in plugins.providers}))


def files(ctx: click.Context, param: click.Parameter, incomplete: str, kind: str = "file") -> Items:
    """Let the shell complete a path."""
    return [CompletionItem(incomplete, type=kind)]


folders = partial(files, kind="dir")


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


def keys(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete a key of the configuration that the line or the project names, section by section, with its value."""
    from kernbench_core.runs.parts import machine_of
    from kernbench_core.runs.preset_files import PresetFiles
    from kernbench_core.topology.configuration import load_config

    given = ctx.params
    named = given.get("topology") if "topology" in given else next(iter(ctx.args), None)  # `topology show PRESET`
    if "topology" in given:
        typed = None if ctx.get_parameter_source("topology") is ParameterSource.DEFAULT else named
        typed_here = {"topology": typed, "components": given.get("components"), "set": ()}
        given = {**given, **machine_of(ctx.obj.plugins, ctx, typed_here, {"quiet": True})}
        named = given["topology"]
    named = given.get("b_topology") or named if param.name == "b_set" else named
    overlays = [each for each in (given.get("components"),) if each]
    presets = PresetFiles(ctx.obj.plugins.topologies)
    config = load_config(str(named or "default").partition(",")[0], presets=presets, overlays=overlays, defer=True)
    above, dot, begun = incomplete.rpartition(".")
    section: Any = config.data
    for name in filter(None, above.split(".")):
        section = section[name]
    return [
        CompletionItem(f"{above}{dot}{name}.") if isinstance(value, Mapping)
        else CompletionItem(f"{above}{dot}{name}=", help=str(value))
        for name, value in section.items() if name.startswith(begun)
    ]  # fmt: skip


def models(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete the name of a hardware model; the name without its vendor where that begins so, or a word of it."""
    entries = ctx.obj.plugins.components
    whole = {name: entry.sentence for name, entry in entries.items() if name.startswith(incomplete)}
    named = {name.rpartition(".")[2]: entry.sentence for name, entry in entries.items()}
    begun = {name: told for name, told in named.items() if name.startswith(incomplete)}
    later = {name: told for name, told in named.items() if f"_{incomplete}" in name}
    return [CompletionItem(name, help=told) for name, told in (whole or begun or later).items()]
