"""`kernbench topology list`: the presets, who brings each, and how large the machine is that it describes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import rich_click as click

from kernbench_builtin.machines.cli.search import matching, nothing_found, tell_of_none
from kernbench_core.cli.columns import table
from kernbench_core.errors import KernbenchError

if TYPE_CHECKING:
    from kernbench_core.cli.shell import Shell

_SIZES = ("sips", "cubes", "pes")


def list_presets(shell: Shell, name: str | None, as_json: bool) -> None:
    """Print the presets, or those that `name` may mean; warn of one that cannot be read, which has no sizes then."""
    from kernbench_core.runs.result import json_text

    presets = shell.plugins.topologies
    found = tuple(presets) if name is None else (name,) if name in presets else matching(name, presets)
    if not found and name is not None:
        raise nothing_found("topology preset", name, presets, left_out=presets.left_out)
    tell_of_none(shell, "topology preset", presets)
    sizes = {each: _told_sizes(shell, each) for each in found}
    if as_json:
        listed = [
            {
                "name": each,
                "sentence": presets[each].sentence,
                "provider": str(presets.provider(each)),
                **{size: sizes[each].get(size) for size in _SIZES},
            }
            for each in found
        ]
        click.echo(json_text({"schema": "kernbench.topologies/1", "topologies": listed}))
        return
    table(
        ("preset", "SIPs", "cubes", "PEs", "what it is", "provider"),
        [
            (each, *(str(sizes[each].get(size, "-")) for size in _SIZES), presets[each].sentence,
             str(presets.provider(each)))
            for each in found
        ],
    )  # fmt: skip


def _told_sizes(shell: Shell, preset: str) -> Mapping[str, int]:
    from kernbench_builtin.machines.presets import sizes_of

    try:
        return sizes_of(shell.plugins, preset)
    except KernbenchError as error:
        shell.warn(str(error))
        return {}
