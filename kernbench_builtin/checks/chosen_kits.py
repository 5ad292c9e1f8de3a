"""Which kits check a plug-in: of two with one name its own, or the one that somebody chooses."""

from __future__ import annotations

from collections.abc import Collection
from inspect import signature
from typing import Any, Final

from kernbench_builtin.checks.plugin import KITS, kernbench_kits
from kernbench_core.errors import UsageError
from kernbench_core.plugins import CORE, KitEntry, Plugins, Provider, Registry
from kernbench_core.testing.kit import Kit
from kernbench_core.wording import PLAIN, never_runs

#: What the name of a driver begins with, as that of units of a kind: `components.pe_sfu`.
DRIVES: Final = "components."
_PART: Final = "."
_OURS: Final = Registry("kit", ((entry, CORE) for entry in kernbench_kits()))


def with_kits(plugins: Plugins, provider: Provider, picks: Collection[str]) -> Plugins:
    """Return the plug-ins with one kit of each name that several have, where it is the `provider`'s or among `picks`.

    Raises:
        UsageError: no kit has the name of a pick.
    """
    kits = plugins.of(KITS)
    for pick in picks:
        if pick not in kits:
            raise UsageError(f"kit must be a registered one, not {pick!r}; one of several is written VENDOR:NAME.")
    own = [name for name in kits if kits.provider(name) == provider]
    chosen = {kits[name].name: (kits[name], kits.provider(name)) for name in (*own, *picks)}
    others = [(kits[name], kits.provider(name)) for name in kits if kits[name].name not in chosen]
    entries: list[tuple[KitEntry, Provider]] = [*others, *chosen.values()]
    return plugins.having(KITS, Registry(kits.noun, entries, kits.failures))


def kit_names(plugins: Plugins) -> list[str]:
    """Return the names of the kits of plug-ins, and of ours, sorted."""
    return sorted({*plugins.of(KITS), *_OURS})


def kit_for(plugins: Plugins, sort: str) -> Kit[Any] | None:
    """Return the kit for a sort of entries: of a plug-in, or else ours; None where nobody has one.

    Raises:
        PluginError: what a plug-in has is none, or one of two.
    """
    kits = plugins.of(KITS) if sort in plugins.of(KITS) else _OURS
    if sort not in kits:
        return None
    kit = kits.load(sort)
    if not isinstance(kit, Kit):
        raise kits.fault(sort, f"must be a Kit for a sort of entries, not {kit!r}")
    return kit


def open_kit(plugins: Plugins, name: str) -> object:
    """Open a kit, or a driver of models; PluginError for what is neither."""
    kits = plugins.of(KITS)
    bare = kits[name].name
    if not bare.startswith(DRIVES):
        if _PART in bare or bare not in plugins.points:
            raise kits.fault(name, f"must be named after a sort of entries, or begin with {DRIVES!r}")
        found = kits.load(name)
        if not isinstance(found, Kit):
            raise kits.fault(name, f"must be a Kit for a sort of entries, not {found!r}")
        return found
    driver = kits.load(name)
    if not callable(driver):
        raise kits.fault(name, f"must be a function that drives a testbench, not {driver!r}")
    if never_runs(driver):
        raise kits.fault(name, PLAIN)
    if (fault := _not_of_a_testbench(driver)) is not None:
        raise kits.fault(name, f"must take a testbench, and nothing else, which {fault} does not")
    return driver


def _not_of_a_testbench(driver: Any) -> str | None:
    """Return the signature of a function that cannot be called with one argument; None where it can."""
    try:
        of = signature(driver)
    except ValueError:
        return None  # of one that is not written in Python nobody knows
    try:
        of.bind(None)
    except TypeError:
        return str(of)
    return None
