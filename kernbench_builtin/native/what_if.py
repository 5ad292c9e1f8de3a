"""What a recorded run would gain if a resource of its machine were faster, all else being as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from kernbench_builtin.machines.perturbation import WITHIN, perturbed
from kernbench_builtin.native.resources import FREE, RESOURCES, Improvable
from kernbench_builtin.native.timing import Retimer
from kernbench_core.errors import UsageError
from kernbench_core.spread import TimeSpread

if TYPE_CHECKING:
    from kernbench_builtin.native.recording import Recording
    from kernbench_core.plugins import Plugins
    from kernbench_core.topology.design import Machine

_TWICE: Final = 2.0
#: So many machines that are the same within a thousandth say how much a difference means.
_SHAKEN: Final = 8


@attrs.frozen
class Retimed:
    """The times in ns of a run: all of it, and its kernels. `refused` says why there are none."""

    total_ns: float = 0.0
    kernel_ns: float = 0.0
    refused: str = ""


@attrs.frozen
class WhatIf:
    """What a run takes `now`, and by resource what it would take with that twice as fast, and free.

    `chosen` are parameters that the program chose by, `looked_at` times that it asked for: it is not made anew.
    `kernels` and `total` say how far apart the times are on machines that are the same within a thousandth.
    """

    now: Retimed
    kernels: TimeSpread
    total: TimeSpread
    rows: tuple[tuple[Improvable, Retimed, Retimed], ...]
    chosen: tuple[str, ...] = ()
    looked_at: tuple[str, ...] = ()

    def ranked(self) -> list[tuple[Improvable, Retimed, Retimed]]:
        """Return the rows, what gains most for the kernels first, then for all."""
        return sorted(
            self.rows,
            key=lambda row: (row[2].refused, row[2].kernel_ns, row[2].total_ns, row[1].kernel_ns, row[0].name),
        )

    def unknown(self) -> list[str]:
        """Say why there are changes of which nothing is known, each cause once."""
        return [*dict.fromkeys(each.refused for _, *both in self.rows for each in both if each.refused)]

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        rows = [
            {"resource": resource.name, "twice": attrs.asdict(twice), "free": attrs.asdict(free)}
            for resource, twice, free in self.rows
        ]
        return {
            "schema": "kernbench.what-if/1", "now": attrs.asdict(self.now), "kernels": self.kernels.to_json(),
            "total": self.total.to_json(), "rows": rows, "chosen": [*self.chosen],
            "looked_at": [*self.looked_at],
        }  # fmt: skip


def what_if(
    recording: Recording, machine: Machine, plugins: Plugins, *, resources: Sequence[Improvable] = RESOURCES,
    done: Callable[[int], object] = lambda count: None,
) -> WhatIf:  # fmt: skip
    """Time a recording with each resource of its machine twice as fast, and free; `done` is told how many are over.

    The program is the same each time: what it chose by the parameters of its machine, or by times that it looked at,
    stays as it was.
    UsageError for a recording that does not hold, or for a machine that the engine has no models of.
    """
    retimer = Retimer(recording, plugins)
    retimer.require(machine, as_it_was=True)

    def outcome(changed: Machine) -> Retimed:
        try:
            timed = retimer.times(changed)
        except UsageError as error:
            return Retimed(refused=str(error))
        return Retimed(timed.total_ns, timed.phases(recording)["kernel"])

    now = outcome(machine)
    if now.refused:
        raise UsageError(now.refused)
    rows = []
    kinds = {node.kind for node in machine.nodes.values()}
    wires = {edge.kind for edge in machine.edges.values()}
    here = [each for each in resources if kinds.intersection(each.kinds) or wires.intersection(each.edges)]
    for number, resource in enumerate(here):
        twice, free = (outcome(resource.faster(machine, plugins, times)) for times in (_TWICE, FREE))
        rows.append((resource, twice, free))
        done(number + 1)
    chosen = dict.fromkeys(f"{name} of {node.rpartition('.')[2]}" for node, name, _ in recording.params_read)
    shaken = [outcome(perturbed(machine, plugins.components, f"{at}", WITHIN)) for at in range(_SHAKEN)]
    known = [now, *(each for each in shaken if not each.refused)]
    kernels, total = (TimeSpread.of(getattr(each, name) for each in known) for name in ("kernel_ns", "total_ns"))
    return WhatIf(now, kernels, total, tuple(rows), tuple(chosen), recording.looked_at)
