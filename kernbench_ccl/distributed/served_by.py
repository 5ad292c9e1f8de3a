"""Which algorithm serves a call of ranks: of the same call always the same one, which is chosen once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from kernbench_ccl.measure.auto_door import auto_door
from kernbench_ccl.measure.trials import TrialCall
from kernbench_ccl.plan import choose_algorithm

if TYPE_CHECKING:
    from kernbench_ccl.catalogue import Algorithm
    from kernbench_ccl.distributed.world import ProcessGroup
    from kernbench_ccl.plan import Settings
    from kernbench_core.host import Runtime

__tracebackhide__ = True


@frozen
class AskedCall:
    """What a call asks for, the same on every rank; `nbytes` is 0 where each rank knows its own size only."""

    collective: str
    dtype: str
    nbytes: int
    redop: str | None = None
    root: int = 0
    pes: int | None = None


def served_by(rt: Runtime, group: ProcessGroup, asked: AskedCall) -> tuple[Algorithm, Settings]:
    """Return the algorithm that serves a call of a group, with its settings."""
    world = group.world
    key = (group.group, asked)
    if key not in world.served:
        config = world.config
        kind = config.catalogue.collectives[asked.collective]
        call = TrialCall(kind, asked.dtype, asked.redop, asked.root, group=group.group)
        world.served[key] = choose_algorithm(
            config.catalogue, config, asked.collective, rt.design, group.size(), asked.nbytes,
            auto_door(rt, call, f"dist.{asked.collective}", asked.pes),
        )  # fmt: skip
    return world.served[key]
