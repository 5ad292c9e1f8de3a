"""`kernbench ccl list`: which collective algorithms there are, what they do, and for whom."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

import rich_click as click
from attrs import asdict, frozen

from kernbench_ccl.cli.completion import collectives
from kernbench_core.cli.options import JSON
from kernbench_core.cli.shell import Shell
from kernbench_core.errors import UsageError
from kernbench_core.params import did_you_mean
from kernbench_core.process import shown
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_ccl.catalogue import Algorithm, Catalogue

_OWN = "ccl."
"""What the names of the algorithms begin with that come with kernbench."""

SCHEMA = "kernbench.ccl.algorithms/1"


@frozen
class Listed:
    """One algorithm. `ranks` are the numbers from 2 to 17 that it does on some network, `file` is its module's."""

    name: str
    method: str
    collective: str
    sentence: str
    networks: tuple[str, ...]
    ranks: tuple[int, ...]
    contributors: tuple[str, ...]
    provider: str
    file: str


@click.command("list")
@click.argument("collective", required=False, shell_complete=collectives)
@JSON
@click.pass_obj
def list_algorithms(shell: Shell, /, collective: str | None, as_json: bool) -> int:
    """List the algorithms of COLLECTIVE, or of all: their networks, numbers of ranks, and what they do."""
    from kernbench_ccl.catalogue import Catalogue, meant

    catalogue = Catalogue.of(shell.plugins)
    known = catalogue.collectives
    if collective is not None and meant(collective, known) is None and collective in known:
        collective = known[collective].name  # with its vendor before it, or without one
    if collective is not None and meant(collective, known) is None:
        hint = did_you_mean(collective, known).partition(" Known: ")[0]
        raise UsageError(f"collective must be one of {', '.join(known)}, not {brief(collective)}.{hint}")
    found = list(_listed(shell, catalogue, None if collective is None else meant(collective, known)))
    if as_json:
        listed = [asdict(each) for each in found]
        click.echo(json.dumps({"schema": SCHEMA, "algorithms": listed}, indent=2, ensure_ascii=False))
        return 0
    width = min(max(shutil.get_terminal_size((80, 24)).columns, 60), 120)
    for number, name in enumerate(dict.fromkeys(each.collective for each in found)):
        click.echo(shown(("\n" if number else "") + name))
        for line in _lines([each for each in found if each.collective == name], width):
            click.echo(shown(line))
    return 0


def _listed(shell: Shell, catalogue: Catalogue, wanted: str | None) -> Iterable[Listed]:
    """Yield the algorithms in the order of their collectives, and warn of each that cannot be loaded."""
    registry = catalogue.algorithms
    opened, broken = catalogue.open_every()
    for sentence in broken.values():
        shell.warn(sentence)
    for collective in catalogue.collectives:
        methods = {full: method for method, full in catalogue.methods_of(collective).items()}
        for each in opened:
            if each.collective == collective and wanted in (collective, None):
                yield Listed(
                    each.name, methods.get(each.name, each.name), collective, registry[each.name].sentence,
                    tuple(each.topologies), _ranks(each), each.contributors, str(registry.provider(each.name)),
                    each.file,
                )  # fmt: skip


def _ranks(algorithm: Algorithm) -> tuple[int, ...]:
    from kernbench_ccl.prove import network_of
    from kernbench_ccl.prove.algorithm_check import RANKS
    from kernbench_core.topology import NetworkFault

    def does(network: str, world: int) -> bool:
        try:
            return algorithm.own_refusal(world, network_of(network, world)) is None
        except NetworkFault:
            return False

    return tuple(world for world in RANKS if any(does(network, world) for network in algorithm.topologies))


def _lines(algorithms: list[Listed], width: int) -> Iterable[str]:
    """Yield a line for each algorithm: what calls it, and its sentence; what it does not do follows in brackets."""
    from kernbench_ccl.contract import NETWORKS

    wide = max(len(each.method) for each in algorithms)
    for each in algorithms:
        limits = [] if each.name.startswith(_OWN) else [f"by {each.provider}"]
        if len(each.networks) < len(NETWORKS):
            limits.append(f"on {', '.join(each.networks)}")
        if each.ranks and len(each.ranks) < each.ranks[-1] - 1:
            limits.append(f"for {', '.join(map(str, each.ranks))}, … ranks")
        text = each.sentence + (f" [{'; '.join(limits)}]" if limits else "")
        yield from textwrap.wrap(
            text, width, initial_indent=f"  {each.method:<{wide}}  ", subsequent_indent=" " * (wide + 4),
            break_on_hyphens=False,
        )  # fmt: skip
