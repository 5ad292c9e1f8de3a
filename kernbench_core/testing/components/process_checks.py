"""Whether a model is the same in another process, built anew from its name and parameters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from kernbench_core.errors import PluginError, in_words
from kernbench_core.plugins import Plugins, PluginSource, load_plugins
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.registry import Provider
from kernbench_core.testing.chosen_kits import with_kits
from kernbench_core.testing.components.elsewhere import SEEDS
from kernbench_core.testing.components.outside_reads import OutsideReads
from kernbench_core.testing.components.subject import ComponentUnderTest, first_difference, log_of
from kernbench_core.testing.kit import CheckFailed, NotApplicable

#: Whose kits are taken of several with one name: those that are named.
_NOBODY: Final = Provider("", "", "")


def logs_the_same_under_every_hash_seed(subject: ComponentUnderTest) -> None:
    """Processes with PYTHONHASHSEED 0, 1 and random give one log: nothing depends on the order of a set."""
    subject.courses_for("logs_the_same_under_every_hash_seed")
    first, *others = subject.elsewhere.logs(subject.name)
    for seed, log in zip(SEEDS[1:], others, strict=True):
        if told := first_difference(first, log):
            raise CheckFailed(f"with PYTHONHASHSEED={SEEDS[0]} and {seed} {told}")


def logs_the_same_in_another_process(subject: ComponentUnderTest) -> None:
    """Built anew from its name and parameters, here a second time and in another process, it gives the same log."""
    log = log_of(subject.courses_for("logs_the_same_in_another_process"))
    first, *others = subject.elsewhere.logs(subject.name)
    if any(each != first for each in others):
        raise NotApplicable("its log depends on the seed of hashes, as logs_the_same_under_every_hash_seed tells")
    if told := first_difference(log, log_of(subject.driven())):
        raise CheckFailed(f"in this process, and when it is built anew there, {told}")
    if told := first_difference(log, first):
        raise CheckFailed(f"in this process and in another {told}")


def reads_nothing_outside(subject: ComponentUnderTest) -> None:
    """It reads no clock, environment, chance or machine: what it does follows from parameters and messages."""
    subject.courses_for("reads_nothing_outside")
    if reads := subject.elsewhere.reads(subject.name):
        raise CheckFailed(
            f"it must depend on its parameters and on messages alone, and {reads[0]}; make that a parameter, or draw "
            "from a random.Random with a seed"
        )


def tell(names: Sequence[str], sources: Sequence[dict[str, str]], kits: Sequence[str], looks: bool) -> None:
    """Drive registered models, and print the log of each as JSON, or why there is none; in a process of its own.

    Where it `looks`, it prints what else their packages read: while they are imported, and while the model is driven.
    """
    given = [PluginSource(**source) for source in sources]
    packages = {source.module.partition(".")[0] for source in given} if looks else set()
    early = OutsideReads(packages)
    with early.looking():
        plugins = with_kits(load_plugins(given, installed=False), _NOBODY, kits)
        for name in names:
            with suppress(PluginError):
                plugins.components.load(name)
    for name in names:
        own = OutsideReads(packages)
        with own.looking():
            log = _log(name, plugins)
        package = plugins.components[name].target.partition(":")[0].partition(".")[0]
        print(json.dumps({name: {"log": log, "reads": [*early.of(package), *own.of(package)]}}), flush=True)


def _log(name: str, plugins: Plugins) -> list[str] | str:
    try:
        courses = ComponentUnderTest(name, plugins).driven()
        failed = [in_words(course.error) for course in courses if course.error is not None]
        return f"it raised {failed[0]}" if failed else log_of(courses)
    except (*INTERRUPTS, MemoryError):
        raise
    except BaseException as error:
        return f"it raised {in_words(error)}"
