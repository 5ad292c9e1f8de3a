"""The kit for hardware models: those that keep their word pass, and each planted fault is found by one check alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kernbench_builtin.checks import Conformance
from kernbench_builtin.checks.components.kit import KIT
from kernbench_builtin.checks.components.served_checks import of_each_drive
from kernbench_core.plugins import Plugins, load_plugins, own_plugins
from kernbench_core.testing import CheckOutcome, NotApplicable
from tests.builtin.checks.faulty_models import FAULTS, HONEST
from tests.core.plugin_site import Site

#: What knows kits, beside the plug-ins that are made here.
CHECKS = own_plugins("builtin.checks")

#: The check that starts processes: only for the models that it must find.
PROCESSES = {"logs_the_same_in_another_process"}
ALONE = {check.name for check in KIT.checks} - PROCESSES
SFU = """
from kernbench_core import ComponentBase, ComponentEntry, KitEntry, MsgBase, Param
from kernbench_core.testing import Ping, Probe, line
class Lookup(Ping):
    def __init__(self, elements):
        super().__init__()
        self.elements = elements
class Sfu(ComponentBase):
    '''Look elements up.

    Models: a rate.
    Ignores: Tables.
    Timing: elements / lanes.
    Source: none, a test.
    '''
    PARAMS = (Param("lanes", "int", 4, "Lanes.", minimum=1),)
    def run(self, env, msg):
        yield env.timeout(msg.elements / self.params["lanes"])
def drive(testbench):
    machine = testbench.machine({{"cpu": Probe, "sfu": testbench.model}}, line("cpu", "sfu"))
    for at in (0, 0, 100):
        machine.send(("cpu", "sfu"), at, msg=Lookup(10))
def kernbench_components():
    return [ComponentEntry("acme.sfu", f"{{__name__}}:Sfu", "pe_sfu", "A unit.")]
def kernbench_kits():
    return {kits}
"""
DRIVEN = "[KitEntry('components.pe_sfu', f'{__name__}:drive', 'Look-ups.')]"


@pytest.fixture(scope="module")
def faulty() -> Plugins:
    """Load the models of this test."""
    plugins = load_plugins([*CHECKS, "faulty = tests.builtin.checks.faulty_models"], installed=False)
    assert not plugins.failures
    return plugins


def outcomes(plugins: Plugins, name: str, checks: set[str]) -> Iterator[tuple[str, CheckOutcome, str]]:
    """Try checks on a registered model."""
    under_test = KIT.opens(plugins, name)
    for check in KIT.checks:
        if check.name in checks:
            found = check.result("components", name, under_test, {})
            yield found.check, found.outcome, found.reason


def failed(plugins: Plugins, cls: type, checks: set[str]) -> dict[str, str]:
    """Return the checks that fail, with their sentences."""
    found = outcomes(plugins, f"faulty.{cls.__name__.lower()}", checks)
    return {check: reason for check, outcome, reason in found if outcome is CheckOutcome.FAILED}


@pytest.mark.parametrize("cls", HONEST)
def test_models_that_keep_their_word_pass(faulty: Plugins, cls: type) -> None:
    """In each style, and a memory."""
    assert failed(faulty, cls, ALONE) == {}


@pytest.mark.parametrize("cls", [cls for cls, check in FAULTS.items() if check in ALONE])
def test_a_fault_is_found_by_the_check_named_for_it_alone(faulty: Plugins, cls: type) -> None:
    """No other check fails: those that cannot look at it any more say so."""
    assert list(failed(faulty, cls, ALONE)) == [FAULTS[cls]]


def test_the_checks_that_start_processes_find_nothing_else(faulty: Plugins) -> None:
    """What keeps its word there passes them, and what cannot be driven is left to the check that says why."""
    found = Conformance.of("faulty", faulty).results(PROCESSES)
    fails = {(each.entry, each.check) for each in found if each.outcome is CheckOutcome.FAILED}
    planted = {(f"faulty.{cls.__name__.lower()}", check) for cls, check in FAULTS.items() if check in PROCESSES}
    assert fails == planted


@pytest.mark.parametrize(
    ("name", "check", "told"),
    [
        ("loses", "conserves_messages_and_bytes", "Ping4 of 256 B was sent to it, and never came to north"),
        ("shortens", "conserves_messages_and_bytes", "Ping1 must come to east with 64 B, not 16 B"),
        ("sendstwice", "conserves_messages_and_bytes",
         "sip0.cube0.router1 sent Ping5 while it was still on its way; it must go on once"),
        ("negative", "takes_finite_times",
         "what overhead returns of Ping2 must be a finite time in ns, at least 0, not -1.0"),
        ("calledoffthegrid", "takes_finite_times",
         "the time that call_at is given for Ping2 must be a multiple of 2^-16 ns, not 5.1; round it with "
         "units.grid_ceil"),
        ("negative", "drains", "the drive did not come to its end, as takes_finite_times tells"),
        ("keepsthelast", "drains", "it must hold nothing in the end, and sip0.cube0.router0 holds Ping20 in its queue"),
        ("earlyprocess", "never_undercuts_its_bound",
         "sip0.cube0.router0 served Ping1 in 4 ns, and its min_service_ns says 5 ns"),
        ("lastcomefirstserved", "keeps_messages_in_order",
         "sip0.cube0.router1 sent Ping11 on to sip0.cube0.router0 before Ping9, which had come from east before it"),
        ("picks", "keeps_messages_in_order",
         "it picks what it serves, or serves several at once: some may overtake others, and do"),
        ("neverrests", "drains",
         "it must come to rest when all is served, and goes on: the run reached its limit of 200000 events at "
         "simulated time 99.95 us"),
        ("countswhoasks", "answers_alike_when_asked_again",
         "overhead of Ping2, which bounds ask for, too, must count nothing, and 'asked' goes from 1 to 2; count it in "
         "emit, say"),
        ("slowereachtime", "answers_alike_when_asked_again",
         "overhead of Ping2 must be the same when it is asked for again, not 5.0 and 6.0"),
        ("countsfromone", "sums_what_it_counts",
         "'messages' of sip0.cube0.router0 must be 0 before anything is served, as a sum, not 1"),
        ("leavesoutthefirst", "sums_what_it_counts",
         "'payload' must grow by as much with each of 3 messages of 256 B that never meet, not by 0, 256 and 256 B; "
         "count each of them"),
        ("sumsthelongest", "sums_what_it_counts",
         "'answered' must grow by as much with each of 3 messages of 256 B that never meet, not by 256, 0 and 0 B; "
         "count each of them"),
        ("serialprocess", "sums_what_it_counts", "none of its STATS is a sum"),
        ("sumsreads", "sums_what_it_counts", ""),
        ("notime", "takes_time",
         "sip0.cube0.sram0 answered Transaction1, a read of 96 B, in 0 ns; memory must take time"),
        ("undeclared", "uses_declared_parameters_only", "it reads 'penalty', which its PARAMS do not declare"),
        ("unused", "uses_declared_parameters_only", "it declares 'width' and never reads it; leave it out of PARAMS"),
        ("undocumented", "documents_itself", "the docstring of Undocumented must have the sections Models, Ignores, "
         "Timing, Source, and has no Ignores and no Source"),
        ("hop", "agrees_with_its_other_style", "its plug-in names no other model in kernbench_same_models"),
    ],
)  # fmt: skip
def test_a_verdict_says_what_was_sent_what_came_and_what_must_be(
    faulty: Plugins, name: str, check: str, told: str
) -> None:
    """One sentence."""
    assert [reason for _, _, reason in outcomes(faulty, f"faulty.{name}", {check})] == [told]


def test_a_stranger_brings_the_driver_of_a_kind_of_its_own(site: Site) -> None:
    """As a kit of its plug-in; a process of its own finds it, too."""
    site.module("acme_driven", SFU.format(kits=DRIVEN))
    plugins = load_plugins([*CHECKS, "acme = acme_driven"], installed=False)
    found = {each.check: each.outcome for each in Conformance.of("acme", plugins).results()}
    assert [check for check, outcome in found.items() if outcome is CheckOutcome.NOT_APPLICABLE] == [
        "takes_time", "sums_what_it_counts", "agrees_with_its_other_style",
    ]  # fmt: skip
    assert set(found.values()) == {CheckOutcome.PASSED, CheckOutcome.NOT_APPLICABLE}


def test_what_nothing_drives_says_so(site: Site) -> None:
    """Its docstring is looked at all the same."""
    site.module("acme_still", SFU.format(kits="[]"))
    plugins = load_plugins([*CHECKS, "acme = acme_still"], installed=False)
    found = {check: (outcome, reason) for check, outcome, reason in outcomes(plugins, "acme.sfu", ALONE | PROCESSES)}
    assert found.pop("documents_itself") == (CheckOutcome.PASSED, "")
    assert set(found.values()) == {
        (CheckOutcome.NOT_APPLICABLE,
         "nothing drives nodes of kind 'pe_sfu'; a kit 'components.pe_sfu' of a plug-in would")
    }  # fmt: skip


@pytest.mark.parametrize(
    ("said", "outcome", "told"),
    [
        ("", CheckOutcome.NOT_APPLICABLE,
         "'lanes' must be given, and kernbench_checked_with of its plug-in has no example"),
        ("kernbench_checked_with = {'acme.sfu': {'lanes': 4}}", CheckOutcome.PASSED, ""),
        ("kernbench_checked_with = {'acme.sfu': {'lanes': 0}}", CheckOutcome.FAILED,
         "kernbench_checked_with of its plug-in: acme.sfu.lanes must be an integer of at least 1, not 0"),
        ("kernbench_checked_with = {'acme.sfu': 4}", CheckOutcome.FAILED,
         "kernbench_checked_with of its plug-in must have the parameters of acme.sfu, not 4"),
        ("kernbench_checked_with = 4", CheckOutcome.FAILED,
         "kernbench_checked_with of its plug-in must map names of models, not be 4"),
    ],
)  # fmt: skip
def test_what_has_no_default_is_given_by_the_plug_in(
    site: Site, said: str, outcome: CheckOutcome, told: str
) -> None:
    """Or nothing can be driven."""
    site.module("acme_given", SFU.format(kits=DRIVEN).replace('"int", 4', '"int", None') + said)
    plugins = load_plugins([*CHECKS, "acme = acme_given"], installed=False)
    (found,) = outcomes(plugins, "acme.sfu", {"drains"})
    assert found == ("drains", outcome, told)


@pytest.mark.parametrize("what", ["kernbench_checked_with", "kernbench_same_models"])
def test_what_is_said_of_no_model_does_not_open(site: Site, what: str) -> None:
    """It would be passed over."""
    site.module("acme_strange", SFU.format(kits=DRIVEN) + f"{what} = {{'acme.sfv': {{'lanes': 4}}}}")
    plugins = load_plugins([*CHECKS, "acme = acme_strange"], installed=False)
    opened, driver = Conformance.of("acme", plugins).results()
    assert (opened.check, opened.outcome) == ("opens", CheckOutcome.FAILED)
    assert (driver.sort, driver.check, driver.outcome) == ("kits", "opens", CheckOutcome.PASSED)
    assert opened.reason == f"{what} of its plug-in must name models of it, not 'acme.sfv'. Did you mean 'acme.sfu'?"


def test_a_driver_that_sends_nothing_is_at_fault(site: Site) -> None:
    """All else would pass."""
    site.module("acme_idle", SFU.format(kits=DRIVEN).replace("(0, 0, 100)", "()"))
    plugins = load_plugins([*CHECKS, "acme = acme_idle"], installed=False)
    (found,) = outcomes(plugins, "acme.sfu", {"serves_without_errors"})
    told = "it must be driven, and its driver sent it nothing; correct the driver"
    assert found[1:] == (CheckOutcome.FAILED, told)


def test_a_driver_that_makes_nothing_is_at_fault(site: Site) -> None:
    """It forgot to."""
    site.module("acme_empty", SFU.format(kits=DRIVEN.replace(":drive", ":print")) + "print = lambda testbench: None\n")
    plugins = load_plugins([*CHECKS, "acme = acme_empty"], installed=False)
    (found,) = outcomes(plugins, "acme.sfu", {"drains"})
    told = "its driver must make a machine, by testbench.machine or testbench.run, and made none"
    assert found[1:] == (CheckOutcome.FAILED, told)


def test_a_model_that_ends_its_process_does_not_speak_for_others(site: Site) -> None:
    """The other is asked in processes of its own."""
    ending = f"""
import os
class Ending(Sfu):
    def __init__(self, node, fabric):
        super().__init__(node, fabric)
        if os.getpid() != {os.getpid()}:
            os._exit(7)
of_one = kernbench_components
def kernbench_components():
    return [*of_one(), ComponentEntry("acme.ending", __name__ + ":Ending", "pe_sfu", "A unit.")]
"""
    site.module("acme_ends", SFU.format(kits=DRIVEN) + ending)
    plugins = load_plugins([*CHECKS, "acme = acme_ends"], installed=False)
    found = {
        each.entry: (each.outcome, each.reason)
        for each in Conformance.of("acme", plugins).results(["logs_the_same_in_another_process"])
    }
    assert found == {
        "acme.ending": (
            CheckOutcome.FAILED,
            "a process with PYTHONHASHSEED=0 must be able to build and drive it, and it ended without a word",
        ),
        "acme.sfu": (CheckOutcome.PASSED, ""),
    }


@pytest.mark.parametrize(("looks", "passes"), [("yy", True), ("yn", True), ("ny", True), ("nn", False)])
def test_a_check_looks_at_each_drive(looks: str, passes: bool) -> None:
    """One that has something to look at is enough."""

    def look(letter: Any) -> None:
        if letter == "n":
            raise NotApplicable("nothing")

    under_test: Any = SimpleNamespace(drives_for=lambda check: tuple(looks) if check == "look" else ())
    if passes:
        of_each_drive(look)(under_test)
    else:
        with pytest.raises(NotApplicable, match="nothing"):
            of_each_drive(look)(under_test)


@pytest.mark.parametrize("other", ["4", "'acme.sfo'"])
def test_the_same_model_must_be_one(site: Site, other: str) -> None:
    """What is named as the other style."""
    site.module("acme_same", SFU.format(kits=DRIVEN) + f"kernbench_same_models = {{'acme.sfu': {other}}}")
    plugins = load_plugins([*CHECKS, "acme = acme_same"], installed=False)
    (found,) = outcomes(plugins, "acme.sfu", {"agrees_with_its_other_style"})
    told = f"kernbench_same_models of its plug-in must name the same model as acme.sfu, not {other}"
    assert found[1:] == (CheckOutcome.FAILED, told)


HASTY = """
from kernbench_core import ComponentEntry
from tests.builtin.checks.faulty_models import Serial
class Hasty(Serial):
    __doc__ = Serial.__doc__
    ON_HEAD = {on_head}
    def emit(self, msg, head, tail):
        super().emit(msg, {sent})
def kernbench_components():
    return [ComponentEntry("acme.hasty", f"{{__name__}}:Hasty", "pe_math", "Hands on what is not ready.")]
"""


@pytest.mark.parametrize(
    ("on_head", "sent"),
    [(False, "self.env.now, self.env.now"), (True, "head - 1.0, tail - 1.0"), (True, "head, head")],
)
def test_a_unit_that_hands_on_a_result_before_its_end_undercuts_its_bound(
    site: Site, on_head: bool, sent: str
) -> None:
    """Who waits for the result goes on too soon, though the log has the op last its time."""
    site.module("acme_hasty", HASTY.format(on_head=on_head, sent=sent))
    plugins = load_plugins([*own_plugins("builtin"), "acme = acme_hasty"], installed=False)
    (found,) = outcomes(plugins, "acme.hasty", {"never_undercuts_its_bound"})
    assert found[1] is CheckOutcome.FAILED
    told = r"sip0\.cube0\.pe0\.pe_math sent all of MathCmd1 on by \S+ ns, which it served until \S+ ns"
    assert re.fullmatch(told, found[2])


FIVE = """
from kernbench_core import ComponentEntry, Param
from tests.builtin.checks.faulty_models import Serial, SerialProcess
FIVE = (Param("overhead", "time", "5 ns", "Latency."),)
class A(Serial):
    __doc__, PARAMS = Serial.__doc__, FIVE
class B(SerialProcess):
    __doc__, PARAMS = Serial.__doc__, FIVE
def kernbench_components():
    return [ComponentEntry(f"acme.{n}", f"{__name__}:{n.upper()}", "router", "One server.") for n in "ab"]
kernbench_same_models = {"acme.b": "acme.a"}
"""


def test_styles_may_differ_in_who_is_first_at_one_instant(site: Site) -> None:
    """Of 5 ns, messages of several PEs meet at routers of a whole machine, and events of processes are others."""
    site.module("acme_five", FIVE)
    plugins = load_plugins([*own_plugins("builtin"), "acme = acme_five"], installed=False)
    (found,) = outcomes(plugins, "acme.b", {"agrees_with_its_other_style"})
    assert found[1:] == (CheckOutcome.PASSED, "")


@pytest.mark.parametrize(
    ("kits", "cls", "told"),
    [
        (DRIVEN.replace("drive'", "__name__'"), "Sfu",
         "it raised PluginError: kit of checks 'components.pe_sfu' of acme_opens (source tree) must be a function that "
         "drives a testbench, not 'acme_opens'; repair or reinstall acme_opens (source tree)."),
        ("[]", "drive", "its target must be a ComponentBase class, not <function drive"),
    ],
)  # fmt: skip
def test_what_cannot_be_checked_does_not_open(site: Site, kits: str, cls: str, told: str) -> None:
    """A driver that is none, and a model that is none."""
    source = SFU.format(kits=kits).replace('"acme.sfu", f"{__name__}:Sfu"', f'"acme.sfu", f"{{__name__}}:{cls}"')
    site.module("acme_opens", source)
    plugins = load_plugins([*CHECKS, "acme = acme_opens"], installed=False)
    opened, *drivers = Conformance.of("acme", plugins).results()
    assert (opened.check, opened.outcome) == ("opens", CheckOutcome.FAILED)
    assert opened.reason.startswith(told)
    assert [(each.sort, each.check, each.reason) for each in drivers] == (
        [("kits", "opens", opened.reason)] if cls == "Sfu" else []
    )
