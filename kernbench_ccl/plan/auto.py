"""Which algorithm `auto` is: by a table of this machine, the package's own table, short simulations, a rule.

The first of these that holds counts: the package's table where machine, ranks and settings are as it was measured with.
Where no table holds, closed forms say which algorithms to try and simulations of these which is the fastest. Where
nothing may be simulated, or nobody knows the size, the nearest measurement counts, and at last a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from attrs import field, frozen

from kernbench_ccl.plan.machine_key import machine_key
from kernbench_ccl.plan.trial_choice import TrialTimes, choose_by_form, choose_by_trial
from kernbench_ccl.plan.tuning import shipped
from kernbench_core.units import format_bytes

if TYPE_CHECKING:
    from kernbench_ccl.plan.machine_tuning import MachineTuning, MeasuredTimes
    from kernbench_core.graph import Graph


@frozen
class AutoSettings:
    """What the section `auto` of ccl.yaml says: a table of a machine, and whether algorithms may be tried."""

    simulate: bool = True
    tuning: MachineTuning | None = None


@frozen(eq=False)
class AutoMachine:
    """The machine of a call; `graph` is None where nobody knows it.

    `whole` says that all SIPs take part in order, with all their PEs. `network` is the name of its shape.
    """

    graph: Graph | None
    network: str
    whole: bool = True

    @cached_property
    def key(self) -> str | None:
        """What a table of times knows it by."""
        return None if self.graph is None else machine_key(self.graph)


@frozen
class AutoChoice:
    """The algorithm that `auto` is, and on what grounds; `tried` are the (algorithm, size) that were simulated.

    `estimates` are the times in ns by which it was chosen, where it was tried. `unused` says why the user's table does
    not count.
    """

    name: str
    basis: str
    tried: tuple[tuple[str, int], ...] = ()
    unused: str | None = field(default=None, eq=False)
    estimates: Mapping[str, float] = field(factory=dict, eq=False)


def choose_auto(
    settings: AutoSettings,
    machine: AutoMachine,
    call: tuple[str, int, int],
    able: Sequence[str],
    times: Callable[[], TrialTimes] | None,
    *,
    changed: Mapping[str, tuple[str, ...]] | None = None,
) -> AutoChoice | None:
    """Choose one of `able`, registered names of algorithms that do the call: (collective, ranks, bytes).

    Bytes are as nccl-tests counts them, 0 where each rank knows its own only. `times` gives the times of simulations,
    None where there are none. `changed` has, by name, the settings that are not as where nobody says anything, with
    which the package's table was measured. None where nobody is able.
    """
    collective, world, nbytes = call
    if len(able) < 2:
        return AutoChoice(able[0], "nobody else does it") if able else None
    table, unused = settings.tuning, None
    if table is not None and machine.whole:
        measured = table.of(collective, machine.network, world)
        unused = unfit(table, machine) or _measured_otherwise(table, measured, able, changed or {})
        best = None if unused or measured is None else measured.best(nbytes, able)
        if best is not None:
            return AutoChoice(best, f"by the measurements of {table.source}")
    own = shipped()
    if machine.whole and not changed and own.measured.issuperset(able) and machine.key in own.machines:
        entry = own.covers(collective, machine.network, world)
        if entry is not None and entry.at(nbytes) in able:
            return AutoChoice(entry.at(nbytes), "by measurement", unused=unused)
    if settings.simulate and times is not None and world > 1 and nbytes > 0:
        return _tried(able, nbytes, times(), unused)
    name = own.choose(collective, machine.network, world, nbytes, able)
    assert name is not None, "there are two at least"
    return AutoChoice(name, own.basis(collective, machine.network, world, machine.key), unused=unused)


def unfit(table: MachineTuning, machine: AutoMachine) -> str | None:
    """Return why a table says nothing of a machine, None where it does."""
    if table.key == machine.key:
        return None
    return (
        f"{table.source} is not used: it was measured on another machine ({table.made_on}); kernbench ccl tune "
        "measures this one."
    )


def _measured_otherwise(
    table: MachineTuning, measured: MeasuredTimes | None, able: Sequence[str], changed: Mapping[str, tuple[str, ...]]
) -> str | None:
    """Return why what a table has of a call says nothing of algorithms with these settings, None where it does."""
    if measured is None:
        return None
    for name in able:
        told, now = (", ".join(given.get(name, ())) or "the defaults" for given in (measured.settings, changed))
        if told != now:
            return (
                f"{table.source} is not used: it was measured with other settings of {name}, {told} and not {now}; "
                "kernbench ccl tune --config measures with those of a ccl.yaml."
            )
    return None


def _tried(able: Sequence[str], nbytes: int, times: TrialTimes, unused: str | None) -> AutoChoice:
    """Choose by trial; where every trial failed, by closed forms, and the first by name where there are none."""
    found = choose_by_trial(able, nbytes, times)
    if found.name is not None:
        return AutoChoice(found.name, told_trials(found.tried), found.tried, unused, found.estimates)
    name = choose_by_form(able, nbytes, times)
    return AutoChoice(name or min(able), "by closed forms, as no simulation ended", found.tried, unused)


def told_trials(tried: Sequence[tuple[str, int]]) -> str:
    """Say on what grounds the best of those that were tried is taken."""
    sizes = [size for _, size in tried]
    many = f"{len(sizes)} short simulation{'s' if len(sizes) > 1 else ''}"
    return f"by closed forms, checked by {many} of up to {format_bytes(max(sizes))}"
