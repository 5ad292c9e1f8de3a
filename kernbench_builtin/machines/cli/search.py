"""Find registered names by what a user remembers of them: the name, its end, or a part of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from kernbench_core.errors import UsageError
from kernbench_core.params import closest
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_core.cli.shell import Shell


def matching(wanted: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that `wanted` may mean, sorted: those of the first of these sorts that has any.

    The name itself; the name without its vendor (`pe_gemm` is `acme.pe_gemm`); the last words of it (`gemm`); a
    part of it (`sys`). Case, `-` and `_` make no difference.
    """
    known = {name: _folded(name) for name in sorted(names)}
    text = _folded(wanted)
    if wanted in known:
        return (wanted,)
    if not text:
        return ()
    sorts = (
        [name for name, folded in known.items() if folded == text],
        [name for name, folded in known.items() if bare(folded) == text],
        [name for name, folded in known.items() if folded.endswith(f"_{text}")],
        [name for name, folded in known.items() if text in folded],
    )
    return tuple(next((found for found in sorts if found), []))


def bare(name: str) -> str:
    """Return a name without its vendor."""
    return name.rpartition(".")[2]


def nothing_found(noun: str, wanted: str, names: Iterable[str], or_else: str = "", left_out: str = "") -> UsageError:
    """Return the error for a name that nothing matches, with the nearest one there is, and what was `left_out`."""
    known: dict[str, str] = {}
    for name in sorted(names, reverse=True):  # of two that end alike, the first is meant
        words = bare(name).split("_")
        known.update({"_".join(words[at:]): name for at in range(len(words))})
        known[name] = name
    close = closest(_folded(wanted), known)
    hint = f" Did you mean {known[close]!r}?" if close else f" Known: {', '.join(sorted(set(known.values())))}."
    if not known:
        hint = " No plug-in registers any."
    must_be = f"a registered name, a part of one, {or_else}" if or_else else "a registered name or a part of one"
    return UsageError(f"{noun} must be {must_be}, not {brief(wanted)}.{hint}{left_out}")


def tell_of_none(shell: Shell, noun: str, names: Collection[str]) -> None:
    """Warn where there is nothing to list."""
    if not names:
        shell.warn(f"no plug-in registers any {noun}; 'kernbench plugins list' says which plug-ins there are.")


def _folded(name: str) -> str:
    return name.lower().replace("-", "_")
