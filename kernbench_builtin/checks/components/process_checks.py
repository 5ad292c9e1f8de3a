"""Whether a model is the same in another process, built anew from its name and parameters."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from kernbench_builtin.checks.chosen_kits import with_kits
from kernbench_builtin.checks.components.component_under_test import ComponentUnderTest, first_difference, log_of
from kernbench_builtin.checks.components.other_parameters import variations
from kernbench_builtin.checks.components.other_processes import GIVEN, SEEDS, VARIED
from kernbench_builtin.checks.components.outside_reads import OutsideReads
from kernbench_core.errors import PluginError, in_words
from kernbench_core.plugins import Plugins, PluginSource, Provider, load_plugins
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.testing.kit import CheckFailed, NotApplicable

#: Whose kits are taken of several with one name: those that are named.
_NOBODY: Final = Provider("", "", "")


def logs_the_same_under_every_hash_seed(under_test: ComponentUnderTest) -> None:
    """Processes with PYTHONHASHSEED 0, 1 and random give one log: nothing depends on the order of a set."""
    under_test.drives_for("logs_the_same_under_every_hash_seed")
    first, *others = under_test.other_processes.logs(under_test.name)
    for seed, log in zip(SEEDS[1:], others, strict=True):
        if told := first_difference(first, log):
            raise CheckFailed(f"with PYTHONHASHSEED={SEEDS[0]} and {seed} {told}")


def logs_the_same_in_another_process(under_test: ComponentUnderTest) -> None:
    """Built anew from its name and parameters, here a second time and in another process, it gives the same log."""
    log = log_of(under_test.drives_for("logs_the_same_in_another_process"))
    first, *others = under_test.other_processes.logs(under_test.name)
    if any(each != first for each in others):
        raise NotApplicable("its log depends on the seed of hashes, as logs_the_same_under_every_hash_seed tells")
    if told := first_difference(log, log_of(under_test.again)):
        raise CheckFailed(f"in this process, and when it is built anew there, {told}")
    if told := first_difference(log, first):
        raise CheckFailed(f"in this process and in another {told}")


def keeps_nothing_between_runs(under_test: ComponentUnderTest) -> None:
    """Driven before or after it is driven with other parameters, it gives one log: no module or class keeps any."""
    log = log_of(under_test.drives_for("keeps_nothing_between_runs"))
    first, *others = under_test.other_processes.logs(under_test.name)
    if any(each != first for each in others):
        raise NotApplicable("its log depends on the seed of hashes, as logs_the_same_under_every_hash_seed tells")
    if not log == log_of(under_test.again) == first:
        raise NotApplicable("it differs without other parameters, too, as logs_the_same_in_another_process tells")
    (params, alone), (_, late) = under_test.other_processes.varied(under_test.name)
    if alone == first == late:
        raise NotApplicable(f"nothing differs with {params}, as it would if times followed parameters")
    for what, one, other in (
        (params, alone, late),
        ("the parameters it is given", first, under_test.other_processes.log_after_others(under_test.name)),
    ):
        if told := first_difference(one, other):
            raise CheckFailed(
                f"with {what}, in a process that drove nothing else and in one that drove it with other parameters "
                f"before, {told}; keep what depends on parameters in the component, not in its module or class"
            )


def reads_nothing_outside(under_test: ComponentUnderTest) -> None:
    """It reads no clock, environment, chance or machine: what it does follows from parameters and messages."""
    under_test.drives_for("reads_nothing_outside")
    if reads := under_test.other_processes.reads(under_test.name):
        raise CheckFailed(
            f"it must depend on its parameters and on messages alone, and {reads[0]}; make that a parameter, or draw "
            "from a random.Random with a seed"
        )


def print_logs(
    names: Sequence[str],
    sources: Sequence[dict[str, str]],
    kits: Sequence[str],
    watch_reads: bool,
    order: Sequence[str],
) -> None:
    """Drive registered models, and print the log of each as JSON, or why there is none; in a process of its own.

    `order` is `GIVEN`, `VARIED` or both: all are driven with the first before any is with the second. `watch_reads`
    prints what else their packages read: while they are imported, and while the model is driven as given.
    """
    given = [PluginSource(**source) for source in sources]
    packages = {source.module.partition(".")[0] for source in given} if watch_reads else set()
    early = OutsideReads(packages)
    with early.recording():
        plugins = with_kits(load_plugins(given, installed=False), _NOBODY, kits)
        for name in names:
            with suppress(PluginError):
                plugins.components.load(name)
    for what in order:
        for name in names:
            found = _log_and_reads(name, plugins, early) if what == GIVEN else {VARIED: _varied_log(name, plugins)}
            print(json.dumps({name: found}), flush=True)


def _log_and_reads(name: str, plugins: Plugins, early: OutsideReads) -> dict[str, list[str] | str]:
    """Return the log of a model as given, and what it read besides."""
    own = OutsideReads(early.packages)
    with own.recording():
        log = _log(name, plugins)
    package = plugins.components[name].target.partition(":")[0].partition(".")[0]
    return {GIVEN: log, "reads": [*early.of(package), *own.of(package)]}


def _varied_log(name: str, plugins: Plugins) -> list[str] | str:
    """Return with which other parameters it can be driven, and its log then; in words why there is none."""
    try:
        under_test = ComponentUnderTest(name, plugins)
        sets = list(variations(under_test.cls.PARAMS, under_test.given))
    except (*INTERRUPTS, MemoryError):
        raise
    except BaseException as error:
        return f"it raised {in_words(error)}"
    why = "it has no parameter that could be another"
    for params in sets:
        log = _log(name, plugins, params)
        if isinstance(log, list):
            return [", ".join(f"{param}={value}" for param, value in params.items()), *log]
        why = f"with other parameters {log}"
    return why


def _log(name: str, plugins: Plugins, params: Mapping[str, object] | None = None) -> list[str] | str:
    try:
        drives = ComponentUnderTest(name, plugins).driven(params)
        failed = [in_words(drive.error) for drive in drives if drive.error is not None]
        return f"it raised {failed[0]}" if failed else log_of(drives)
    except (*INTERRUPTS, MemoryError):
        raise
    except BaseException as error:
        return f"it raised {in_words(error)}"
