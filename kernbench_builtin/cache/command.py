"""`kernbench cache`: what the user's cache holds, one entry of it, and making room."""

from __future__ import annotations

import time
from typing import Any

import rich_click as click

from kernbench_core.cache.store import Cache, CacheEntry
from kernbench_core.cli.columns import table
from kernbench_core.cli.options import JSON
from kernbench_core.errors import UsageError
from kernbench_core.process.terminal import shown
from kernbench_core.runs.result import json_text
from kernbench_core.units import format_bytes, parse_quantity
from kernbench_core.wording import brief, in_a_line


@click.group("cache", context_settings={"help_option_names": ["-h", "--help"]})
def cache_group() -> None:
    """List, show and remove the results that --cached stored."""


@cache_group.command("list")
@JSON
def list_entries(as_json: bool) -> None:
    """List the stored results, last used first."""
    cache = Cache.of_user()
    entries = list(cache.entries())
    held = sum(entry.nbytes for entry in entries)
    if as_json:
        told = {"folder": str(cache.folder), "bytes": held, "most_bytes": cache.most_bytes}
        of_each = [_entry_json(entry) for entry in entries]
        click.echo(json_text({"schema": "kernbench.cache-entries/2", **told, "entries": of_each}))
        return
    if entries:
        rows = [
            (each.key[:12], str(each.about.get("kind")), in_a_line(str(each.about.get("name")), 80),
             format_bytes(each.nbytes), _date(each.used_ns))
            for each in entries
        ]  # fmt: skip
        table(("key", "kind", "what", "size", "last used"), rows)
        click.echo()
    of = format_bytes(cache.most_bytes)
    click.echo(shown(f"entries: {len(entries):,}, {format_bytes(held)} of at most {of}, in {cache.folder}"))


@cache_group.command()
@click.argument("key")
def show(key: str) -> None:
    """Print the result whose key begins with KEY, and all that it depends on, as JSON."""
    found = [entry for entry in Cache.of_user().entries() if entry.key.startswith(key.lower())]
    if len(found) != 1:
        raise UsageError(
            f"KEY must begin one stored key, not {len(found)}, as {brief(key)} does; 'kernbench cache list' shows them."
        )
    click.echo(json_text({"schema": "kernbench.cache-entry/2", **_entry_json(found[0])}))


@cache_group.command()
@click.option("--keep", metavar="SIZE", help="Keep the last used results, up to SIZE ('500 MB').")
@click.option("--older", "days", metavar="DAYS", type=click.FloatRange(0), help="Remove results unused for DAYS.")
@click.option("--all", "everything", is_flag=True, help="Remove everything.")
def prune(keep: str | None, days: float | None, everything: bool) -> None:
    """Remove the least recently used results, by default down to the cache's size limit."""
    if everything and (keep is not None or days is not None):
        raise UsageError("--all removes everything; leave out --keep and --older, or --all.")
    try:
        keep_bytes = None if keep is None else int(parse_quantity(keep, "size"))
    except ValueError as error:
        raise UsageError(f"option --keep {error}") from None
    removed, kept = Cache.of_user().prune(0 if everything else keep_bytes, None if days is None else days * 86400)
    sizes = [f"{len(each):,} of {format_bytes(sum(each))}" for each in (removed, kept)]
    click.echo(f"entries removed: {sizes[0]}; left: {sizes[1]}")


def _entry_json(entry: CacheEntry) -> dict[str, Any]:
    return {"key": entry.key, "bytes": entry.nbytes, "used": _date(entry.used_ns), "about": entry.about}


def _date(ns: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(ns / 1e9))
