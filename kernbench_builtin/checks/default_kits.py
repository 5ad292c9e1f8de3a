"""What is checked of sorts that nobody has a kit for: that an entry can be had, and fits what will be asked of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

import click

from kernbench_builtin.calibrate.plugin import CALIBRATORS
from kernbench_builtin.checks.chosen_kits import open_kit
from kernbench_builtin.pages.plugin import EXPORTERS, FOLDERS, REPORT_SECTIONS
from kernbench_builtin.pages.report.page import open_section
from kernbench_core.calibration import Calibrator
from kernbench_core.cli.group import CommandGroup
from kernbench_core.host.bench import open_bench
from kernbench_core.host.programs import open_kind as open_program_kind
from kernbench_core.kernel import TLContext
from kernbench_core.plugins import DIAGNOSES, LANGUAGE, PICTURES, Plugins
from kernbench_core.runs import configure
from kernbench_core.runs.backends import backend_class
from kernbench_core.runs.parts import open_part
from kernbench_core.testing.kit import CheckFailed, Kit
from kernbench_core.topology import compile_topology
from kernbench_core.topology.machine_kinds import open_kind
from kernbench_core.wording import PLAIN, is_async, never_runs


def _preset(plugins: Plugins, name: str) -> object:
    """Read a preset's file, and build its machine."""
    config = configure(plugins, name)
    return compile_topology(config, plugins)


def _machine(plugins: Plugins, name: str) -> object:
    """Import a kind of machine, whose stages take what they will be given."""
    kind = open_kind(plugins.machines, name)
    for stage, given in (("read", 2), ("place", 1), ("wire", 1), ("finish", 2)):
        if getattr(kind, stage) is not None:
            _must_take(getattr(kind, stage), given, stage)
    return kind


def _command(plugins: Plugins, name: str) -> object:
    """Import a command of click's."""
    group, _, _ = name.rpartition(" ")
    if group and not isinstance(plugins.commands.load(group), CommandGroup):
        raise CheckFailed(f"{group!r} must be a CommandGroup of kernbench_core.cli.group to have commands of others")
    command = plugins.commands.load(name)
    if not isinstance(command, click.Command):
        raise CheckFailed(f"it must be a click command, not {command!r}")
    if never_runs(command.callback):
        raise CheckFailed(f"it {PLAIN}")
    if command.callback is not None:
        _must_take_options(command)
    return command


def _must_take_options(command: click.Command) -> None:
    """Raise CheckFailed where a command's function cannot be called as click will: each option by its name."""
    function: Any = command.callback
    given = 0
    while getattr(function, "__globals__", {}).get("__name__") == "click.decorators":  # pass_obj and its like
        function, given = function.__wrapped__, given + 1
    names = [str(each.name) for each in command.params if each.expose_value]
    signature = inspect.signature(function, follow_wrapped=False)
    try:
        signature.bind(*[None] * given, **dict.fromkeys(names))
    except TypeError as error:
        raise CheckFailed(
            f"its function must take {', '.join(names) or 'no option'}, as its options are named, but {signature} "
            f"does not: {error}"
        ) from None


def _section(plugins: Plugins, name: str) -> object:
    """Import a section of the report, whose functions take a run."""
    section = open_section(name, plugins.of(REPORT_SECTIONS))
    _must_take(section.html, 1, "html")
    if section.data is not None:
        _must_take(section.data, 1, "data")
    return section


def _exporter(plugins: Plugins, name: str) -> object:
    """Import a function of what is written and an open file."""
    _must_take(exporter := plugins.of(EXPORTERS).load(name), 2, "target")
    if never_runs(exporter):
        raise CheckFailed(f"its target {PLAIN}")
    return exporter


def _folder(plugins: Plugins, name: str) -> object:
    """Import a kind of folder, with all that pages ask of one."""
    folder = plugins.of(FOLDERS).load(name)
    for method, given in (("is_one", 1), ("read_page", 3), ("write_page", 4)):
        _must_take(getattr(folder, method, None), given, method)
    return folder


def _picture(plugins: Plugins, name: str) -> object:
    """Import a function of a thing that is drawn."""
    _must_take(picture := plugins.of(PICTURES).load(name), 1, "target")
    return picture


def _diagnosis(plugins: Plugins, name: str) -> object:
    """Import a function of a session, and of whether nothing is left to happen."""
    _must_take(diagnosis := plugins.of(DIAGNOSES).load(name), 2, "target")
    return diagnosis


def _call(plugins: Plugins, name: str) -> object:
    """Import a function that takes `tl` first, of a name that `tl` has not."""
    if hasattr(TLContext, name):
        raise CheckFailed(f"tl has a name {name!r} of its own, which kernels get")
    call: Any = plugins.of(LANGUAGE).load(name)
    if not callable(call) or is_async(call) or not inspect.signature(call).parameters:
        raise CheckFailed(f"its target must be a function of tl, without async, not {call!r}")
    return call


def _calibrator(plugins: Plugins, name: str) -> object:
    """Import a class with everything that a `Calibrator` has, each with as many arguments."""
    found = plugins.of(CALIBRATORS).load(name)
    if not isinstance(found, type):
        raise CheckFailed(f"it must be a class, as Calibrator of kernbench_core.calibration, not {found!r}")
    if not isinstance(getattr(found, "FORM", None), str):
        raise CheckFailed(f"it must say as FORM, in words, what a log of it is, not {getattr(found, 'FORM', None)!r}")
    _must_take(found, 2, "__init__")
    for method, asked in vars(Calibrator).items():
        if not method.startswith("_") and callable(getattr(Calibrator, method)):
            given = len(inspect.signature(getattr(Calibrator, method)).parameters)
            bound = isinstance(inspect.getattr_static(found, method, None), classmethod | staticmethod)
            alone = isinstance(asked, staticmethod) or not bound
            _must_take(getattr(found, method, None), given if alone else given - 1, method)
    return found


def _must_take(function: Any, given: int, what: str) -> None:
    """Raise CheckFailed where a function cannot be called with so many arguments."""
    if not callable(function):
        raise CheckFailed(f"its {what} must be a function, not {function!r}")
    if is_async(function):
        raise CheckFailed(f"its {what} must be a function without async: it would never run")
    try:
        signature = inspect.signature(function)
    except ValueError:
        return  # of one that is not written in Python nobody knows
    try:
        signature.bind(*[None] * given)
    except TypeError as error:
        many = f"{given} argument" if given == 1 else f"{given} arguments"
        raise CheckFailed(f"its {what} must take {many}, but {signature} does not: {error}") from None


_OPENERS: Final[Mapping[str, Callable[[Plugins, str], object]]] = {
    "benches": lambda plugins, name: open_bench(name, plugins.benches),
    "programs": lambda plugins, name: open_program_kind(plugins.programs, name),
    "backends": backend_class,
    "topologies": _preset,
    "machines": _machine,
    "exporters": _exporter,
    "commands": _command,
    "calibrators": _calibrator,
    "report_sections": _section,
    "run_parts": lambda plugins, name: open_part(name, plugins.run_parts),
    "folders": _folder,
    "pictures": _picture,
    "language": _call,
    "diagnoses": _diagnosis,
    "kits": open_kit,
}


def default_kit(sort: str) -> Kit[Any]:
    """Return the kit for a sort that nobody has one for; its only check is that an entry opens."""
    return Kit(_OPENERS.get(sort, lambda plugins, name: plugins.registries[sort].load(name)), ())
