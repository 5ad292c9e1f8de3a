"""The commands of `kernbench cache`: list, show and prune."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, Final

import rich_click as click

from kernbench_core.cli.shell import Shell
from kernbench_core.errors import UsageError
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_core.cache import Cache, CacheEntry

_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
_SECONDS: Final = {"s": 1, "min": 60, "h": 3600, "day": 86400, "days": 86400, "week": 604800, "weeks": 604800}
#: Characters of a key that are shown, and the fewest that are taken.
_SHOWN, _LEAST = 12, 4


class _Age(click.ParamType):  # type: ignore[type-arg]  # generic in the stubs only
    """A time of hours or days, in s."""

    name = "age"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds; raise UsageError naming the option."""
        found = re.fullmatch(rf"\s*([0-9]{{1,9}}(?:\.[0-9]{{1,9}})?)\s*({'|'.join(_SECONDS)})\s*", str(value))
        if found is None:
            raise UsageError(
                f"option --older must be a time with its unit, {', '.join(_SECONDS)}, as '30 days', not {brief(value)}."
            )
        return float(found[1]) * _SECONDS[found[2]]


class _Size(click.ParamType):  # type: ignore[type-arg]  # generic in the stubs only
    """A number of bytes with its unit."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the bytes; raise UsageError naming the option."""
        from kernbench_core.units import parse_quantity

        try:
            found: int = parse_quantity(value, "size")
        except ValueError as error:
            raise UsageError(f"option --keep {error}") from None
        return found


@click.command("list")
@_JSON
@click.pass_obj
def list_entries(shell: Shell, as_json: bool) -> None:
    """List what is kept, what was used last first."""
    from kernbench_core.cli.columns import table
    from kernbench_core.process.terminal import shown
    from kernbench_core.runs.result import json_text
    from kernbench_core.units import format_bytes

    cache = _cache()
    entries = list(cache.entries())
    held = sum(entry.nbytes for entry in entries)
    if as_json:
        listed = [_entry_json(entry) for entry in entries]
        about = {"folder": str(cache.folder), "bytes": held, "most_bytes": cache.most_bytes, "entries": listed}
        click.echo(json_text({"schema": "kernbench.cache-entries/1", **about}))
        return
    now = time.time_ns()
    rows = [
        (entry.key[:_SHOWN], *_told(entry), format_bytes(entry.nbytes), _ago(now - entry.used_ns)) for entry in entries
    ]
    if rows:
        table(("key", "kind", "what", "size", "last used"), rows)
        click.echo()
    count = "1 entry" if len(entries) == 1 else f"{len(entries):,} entries"
    of = format_bytes(cache.most_bytes)
    click.echo(shown(f"{count}, {format_bytes(held)} of at most {of}, in {cache.folder}"))


@click.command()
@click.argument("key")
@_JSON
@click.pass_obj
def show(shell: Shell, key: str, as_json: bool) -> None:
    """Describe the entry whose key is, or begins with, KEY: what it is of, and all that its key is made of."""
    from kernbench_core.cli.columns import paragraph, width
    from kernbench_core.runs.result import json_text

    entry = _entry(_cache(), key)
    if as_json:
        click.echo(json_text({"schema": "kernbench.cache-entry/1", **_entry_json(entry)}))
        return
    most = min(width(), 120)
    told = _entry_json(entry)
    about = told.pop("about") or {"state": "written by another version, or damaged"}
    for name, value in {**told, **about}.items():
        for part, each in value.items() if isinstance(value, dict) else [("", value)]:
            label = f"{name}: " if not part else f"{name}, {part}: "
            paragraph(f"{label}{each}", "    ", "", most)


@click.command()
@click.option("--keep", "keep_bytes", metavar="SIZE", type=_Size(), help="Keep this much, as '500 MB', used last.")
@click.option("--older", "older_s", metavar="T", type=_Age(), help="Remove what was not used for so long: '30 days'.")
@click.option("--all", "everything", is_flag=True, help="Remove everything.")
@_JSON
@click.pass_obj
def prune(shell: Shell, keep_bytes: int | None, older_s: float | None, everything: bool, as_json: bool) -> None:
    """Remove what was used least recently, down to the cache's bound where nothing else is said."""
    from kernbench_core.runs.result import json_text
    from kernbench_core.units import format_bytes

    if everything and (keep_bytes is not None or older_s is not None):
        raise UsageError("--all removes everything; leave out --keep and --older, or --all.")
    pruned = _cache().prune(0 if everything else keep_bytes, older_s)
    if as_json:
        import attrs

        click.echo(json_text({"schema": "kernbench.cache-pruned/1", **attrs.asdict(pruned)}))
        return
    count = "1 entry" if pruned.removed == 1 else f"{pruned.removed:,} entries"
    kept = f"{pruned.kept:,} of {format_bytes(pruned.kept_bytes)} {'is' if pruned.kept == 1 else 'are'} left"
    click.echo(f"removed {count} of {format_bytes(pruned.removed_bytes)}; {kept}")


def _cache() -> Cache:
    from kernbench_core.cache import Cache

    return Cache.of_user()


def _entry(cache: Cache, key: str) -> CacheEntry:
    """Return the entry whose key begins so; UsageError where there is none, or several."""
    if len(key) < _LEAST:
        raise UsageError(f"the key must be given by {_LEAST} characters of it or more, not by {brief(key)}.")
    found = [entry for entry in cache.entries() if entry.key.startswith(key.lower())]
    if len(found) != 1:
        several = ", ".join(entry.key[:_SHOWN] for entry in found[:8])
        many = f"begin one key, not {len(found)}: {several}" if found else "begin a key that is kept"
        raise UsageError(f"the key must {many}, and {brief(key)} does not; 'kernbench cache list' lists them.")
    return found[0]


def _entry_json(entry: CacheEntry) -> dict[str, Any]:
    about = None if entry.about is None else dict(entry.about)
    return {"key": entry.key, "bytes": entry.nbytes, "used": _date(entry.used_ns), "made": _date(entry.made_ns),
            "about": about}  # fmt: skip


def _told(entry: CacheEntry) -> tuple[str, str]:
    if entry.about is None:
        return "-", "of another version, or damaged"
    params = entry.about.get("params")
    given = "".join(f" {k}={v}" for k, v in params.items() if v is not None) if isinstance(params, dict) else ""
    return str(entry.about.get("kind", "-")), brief(f"{entry.about.get('name', '')}{given}", 80).strip("'")


def _date(ns: int | None) -> str | None:
    return None if ns is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ns / 1e9))


def _ago(ns: int) -> str:
    """Write how long ago something was."""
    seconds = max(0, ns // 1_000_000_000)
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= size:
            count = seconds // size
            return f"{count} {unit}{'s' * (count > 1)} ago"
    return "now"
