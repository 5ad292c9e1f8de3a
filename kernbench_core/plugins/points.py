"""Points: the sorts of entries that there are. A plug-in declares one by `kernbench_points`, and any may add to it.

A plug-in is a module with one plain function for each hook it needs, without arguments: `kernbench_KIND` returns a list
of the entries of that kind. Hooks are recognised by their prefix: no decorator is needed. They are called once, at
start-up, in no order that a plug-in may rely on. Import nothing heavy in a plug-in module: entries name what they offer
as `"module:attr"`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Generic

import attrs

from kernbench_core.plugins import entries
from kernbench_core.plugins.entries import Entry
from kernbench_core.plugins.registry import ComponentRegistry, E, MachineRegistry, NetworkRegistry, Registry

PREFIX: Final = "kernbench_"
#: The hook by which a plug-in declares points.
POINTS: Final = f"{PREFIX}points"


@attrs.frozen(eq=False)
class Point(Generic[E]):
    """A sort of entries: `plugins.of(POINT)` has those that plug-ins return from the hook of the class `entry`.

    `returns` says what such a hook returns; of `all_used` entries both of two with one name are used.

    >>> class AlarmEntry(Entry):
    ...     KIND, NOUN = "acme_alarms", "alarm"
    >>> ALARMS = Point(AlarmEntry, "Return what rings.")
    >>> kernbench_points = lambda: [ALARMS]
    """

    entry: type[E]
    returns: str
    registry: type[Registry[E]] = Registry
    all_used: bool = False

    @property
    def kind(self) -> str:
        """The name of the sort: that of its hook without `kernbench_`."""
        return self.entry.KIND

    @property
    def noun(self) -> str:
        """The word for one entry."""
        return self.entry.NOUN


COMPONENTS: Final = Point(
    entries.ComponentEntry,
    "Return the hardware models, named `vendor.thing` with the plug-in's entry-point name as vendor.",
    ComponentRegistry,
)
BENCHES: Final = Point(
    entries.BenchEntry,
    "Return the benches that `kernbench run NAME` finds and `kernbench list` prints; names are bare.",
)
PROGRAMS: Final = Point(
    entries.ProgramEntry,
    "Return the kinds of program that `kernbench run FILE:NAME` and `kb.launch` run; names are bare.",
)
TOPOLOGIES: Final = Point(
    entries.TopologyEntry, "Return the topology presets that `--topology NAME` finds; names are bare."
)
NETWORKS: Final = Point(
    entries.NetworkEntry,
    "Return the shapes of the scale-up network that `system.network.topology` finds, named `vendor.thing`.",
    NetworkRegistry,
)
MACHINES: Final = Point(
    entries.MachineEntry,
    "Return the kinds of machine, each named as the section of a configuration that describes it.",
    MachineRegistry,
)
OPS: Final = Point(
    entries.OpEntry, "Return the functions by which phase 2 computes the plug-in's own messages, by their op_name."
)
LANGUAGE: Final = Point(entries.LanguageEntry, "Return what kernels call as `tl.NAME`; names are bare.")
BACKENDS: Final = Point(
    entries.BackendEntry, "Return what computes the data that `--backend NAME[:DEVICE]` asks for, named `vendor.thing`."
)
COMMANDS: Final = Point(
    entries.CommandEntry, "Return click commands that become sub-commands of `kernbench`; names are bare."
)
RUN_PARTS: Final = Point(
    entries.RunPartEntry,
    "Return what runs may be asked for besides their times; names are bare, and attributes of results.",
)
DIAGNOSES: Final = Point(
    entries.DiagnosisEntry, "Return what tells who waits, at a deadlock or a limit; names are bare.", all_used=True
)
PICTURES: Final = Point(entries.PictureEntry, "Return what draws things for notebooks; names are bare.")


def known_hooks() -> Mapping[str, str]:
    """Return the hooks that there are, ours first, each with what it returns.

    They are those of all classes of entries that somebody made, whose points may be declared by nobody: a plug-in
    works, too, where that is left out which declares a point, and its entries of that kind are not used.
    """
    ours = [each for each in vars(entries).values() if isinstance(each, type) and issubclass(each, Entry)]
    found = {f"{PREFIX}{each.KIND}": each.__name__ for each in (*ours, *_classes(Entry)) if each.KIND}
    return {**found, POINTS: Point.__name__}


def _classes(entry: type[Entry]) -> Iterator[type[Entry]]:
    for each in entry.__subclasses__():
        yield each
        yield from _classes(each)
