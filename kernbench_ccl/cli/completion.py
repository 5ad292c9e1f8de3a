"""What the shell completes behind `kernbench ccl`: algorithms, collectives, dtypes; no algorithm's module is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

from kernbench_ccl.catalogue.names import ending, spellings
from kernbench_ccl.plugin import ALGORITHMS, COLLECTIVES

_Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def algorithms_of(collective: str, *more: str) -> _Complete:
    """Return what completes an algorithm of a collective by its shortest name, or by its full one; or one of `more`."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        registry = ctx.obj.plugins.of(ALGORITHMS)
        collectives = tuple(ctx.obj.plugins.of(COLLECTIVES))
        full = [
            name for name, entry in registry.items() if (entry.collective or ending(name, collectives)) == collective
        ]
        return _first_of((spellings(name, collective)[::-1] for name in full), more, incomplete)

    return complete


def every_algorithm(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the full name of an algorithm, its method, or `all`."""
    registry, collectives = ctx.obj.plugins.of(ALGORITHMS), tuple(ctx.obj.plugins.of(COLLECTIVES))
    named = (
        spellings(name, entry.collective or ending(name, collectives))[::-1] for name, entry in registry.items()
    )
    return _first_of(named, ("all",), incomplete)


def collectives(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a collective."""
    return [name for name in ctx.obj.plugins.of(COLLECTIVES) if name.startswith(incomplete)]


def networks(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a shape of the scale-up network."""
    return [name for name in ctx.obj.plugins.networks if name.startswith(incomplete)]


def dtypes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a dtype."""
    from kernbench_core.values.dtypes import DTYPES

    return [name for name in DTYPES if name.startswith(incomplete)]


def _first_of(named: Iterable[tuple[str, ...]], more: Iterable[str], incomplete: str) -> list[str]:
    """Return of each thing the first of its names that begins so, then those of `more` that do, each once."""
    found = (next((each for each in names if each.startswith(incomplete)), None) for names in named)
    begun = (each for each in more if each.startswith(incomplete))
    return list(dict.fromkeys([*(each for each in found if each is not None), *begun]))
