"""What a user may call a registered algorithm: in full, without the vendor, or by its method."""

from __future__ import annotations

from kernbench_ccl.collectives import COLLECTIVES
from kernbench_core.errors import UsageError
from kernbench_core.params import did_you_mean
from kernbench_core.registry import AlgorithmEntry, Registry

Algorithms = Registry[AlgorithmEntry]


def collective_of(entry: AlgorithmEntry) -> str:
    """Return which collective an entry does: what it says, else what its name ends with, "" where neither tells."""
    if entry.collective:
        return entry.collective
    return next((name for name in sorted(COLLECTIVES, key=len, reverse=True) if entry.name.endswith(f"_{name}")), "")


def spellings(full: str, collective: str) -> tuple[str, ...]:
    """Return what a user may write for a registered name: `ccl.ring_all_reduce` is also `ring`.

    Further `ring_all_reduce` and `ccl.ring`.
    """
    vendor, _, bare = full.rpartition(".")
    method = bare.removesuffix(f"_{collective}")
    dot = "." if vendor else ""
    return tuple(dict.fromkeys((full, bare, f"{vendor}{dot}{method}", method)))


def named(registry: Algorithms, name: str, collective: str | None = None) -> list[str]:
    """Return the registered names that a user may mean by `name`: of one collective, or (None) of any."""
    if name in registry:
        return [name]
    does = {full: collective_of(registry[full]) for full in registry}
    return [
        full
        for full in registry
        if collective is None or does[full] in (collective, "")
        if name in spellings(full, does[full] or collective or "")
    ]


def full_name(registry: Algorithms, name: str, collective: str) -> str:
    """Return the registered name of the algorithm of a collective that a user means by `name`.

    UsageError where several vendors have the method, and where nobody has it; UnknownName for a full name that nobody
    registered.
    """
    if name.endswith(".py") or name in registry:
        return name
    found = named(registry, name, collective)
    if len(found) > 1:
        raise UsageError(f"algorithm {name!r} must name one algorithm, not {' and '.join(found)}; write its full name.")
    if found:
        return found[0]
    methods = methods_of(registry, collective)
    known = ", ".join(methods) or "(none is registered)"
    must = f"algorithm of {collective} must be one of {known}, or a registered name, not {name!r}"
    others = dict.fromkeys(collective_of(registry[full]) for full in named(registry, name))
    if others:
        raise UsageError(f"{must}, which does {' and '.join(others)}.")
    if "." in name:
        return registry[name].name
    raise UsageError(f"{must}.{did_you_mean(name, methods).partition(' Known: ')[0]}")


def methods_of(registry: Algorithms, collective: str) -> dict[str, str]:
    """Return the algorithms that do a collective: short name (the full one where two share it) to full name."""
    full = [name for name in registry if collective_of(registry[name]) == collective]
    short = {name: name.partition(".")[2].removesuffix(f"_{collective}") for name in full}
    shared = [method for method in short.values() if list(short.values()).count(method) > 1]
    return {name if short[name] in shared else short[name]: name for name in full}
