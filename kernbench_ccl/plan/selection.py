"""Which algorithm serves a call, and the collective that its kernels are told."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import frozen

from kernbench_ccl.catalogue import Algorithm, Catalogue
from kernbench_ccl.contract import Collective, Network
from kernbench_ccl.plan.auto import AutoChoice, AutoMachine, choose_auto
from kernbench_ccl.plan.candidates import find_able
from kernbench_ccl.plan.configuration import AUTO
from kernbench_core.errors import KernbenchWarning, UsageError
from kernbench_core.plugins import NetworkRegistry
from kernbench_core.topology import NetworkFault
from kernbench_core.values.dtypes import itemsize

if TYPE_CHECKING:
    from kernbench_ccl.plan.configuration import CclConfig, Settings
    from kernbench_ccl.plan.groups import Group
    from kernbench_ccl.plan.trial_choice import TrialTimes
    from kernbench_core.topology import Design

__tracebackhide__ = True


def machine_network(design: Design, name: str | None = None, networks: NetworkRegistry | None = None) -> Network:
    """Return the scale-up network of a machine as algorithms see it, or another shape of `networks` over the same SIPs.

    Raises:
        UsageError: the SIPs do not fit the shape.
    """
    found = design.network
    if found is None or (name is not None and name != found.topology):
        shape = name or "ring"
        try:
            return Network.alone(shape, design.sips, networks)
        except NetworkFault as fault:
            raise UsageError(f"topology {shape!r} of ccl.yaml does not fit the machine: {fault.key} {fault}") from None
    return Network.of(found)


@frozen(eq=False)
class AutoDoor:
    """What `auto` needs beside a design: the machine, how to time algorithms on it, whom to tell what it went by."""

    machine: AutoMachine
    times: Callable[[Mapping[str, tuple[Algorithm, Settings]]], TrialTimes]
    note: Callable[[AutoChoice], None]


def choose_algorithm(
    catalogue: Catalogue,
    config: CclConfig,
    collective: str,
    design: Design,
    world: int,
    nbytes: int,
    door: AutoDoor | None = None,
) -> tuple[Algorithm, Settings]:
    """Return the algorithm that the configuration has for a collective of `world` ranks, with its settings.

    `nbytes` is the size as nccl-tests counts it, by which `auto` chooses, 0 where nobody knows it; without a `door` it
    simulates nothing. UsageError when the algorithm will not do this number of ranks, or when `auto` finds none that
    will; of those that cannot be loaded `auto` warns.
    """
    name, most = config.chosen(collective), design.cubes_per_sip * design.pes_per_cube
    if name != AUTO:
        settings = config.settings(name)
        settings.check_pes(most)
        algorithm = catalogue.open(settings.algorithm, collective)
        refusal = algorithm.refusal(machine_network(design, settings.topology, catalogue.networks), world)
        if refusal is not None:
            raise UsageError(refusal)
        return algorithm, settings
    able = find_able(
        catalogue, config, collective, partial(machine_network, design, networks=catalogue.networks), world
    )
    for sentence in able.warnings:
        warnings.warn(sentence, KernbenchWarning, stacklevel=1)
    machine = AutoMachine(None, machine_network(design).name) if door is None else door.machine
    times = None if door is None else partial(door.times, able.chosen)
    call, changed = (collective, world, nbytes), able.changed
    chosen = choose_auto(config.auto, machine, call, tuple(able.chosen), times, changed=changed)
    if chosen is None:
        nobody = f"no registered algorithm does {collective} of {world} ranks; register one."
        raise UsageError("\n".join([nobody, *able.refusals.values()]))
    able.chosen[chosen.name][1].check_pes(most)
    if door is not None:
        door.note(chosen)
    return able.chosen[chosen.name]


def make_collective(
    group: Group,
    algorithm: Algorithm,
    settings: Settings,
    design: Design,
    dtype: str,
    networks: NetworkRegistry,
    **details: Any,
) -> Collective:
    """Return what the kernels of a call find in `tl.collective`; `details` are its redop, root, counts and sequence.

    `networks` has the shapes that the settings may lay over the ranks.
    """
    given: Mapping[str, Any] = {key: value for key, value in details.items() if value is not None}
    return Collective(
        algorithm.kind,
        dtype,
        machine_network(design, settings.topology, networks),
        group.sips,
        tile=settings.tile(itemsize(dtype)),
        pipeline=settings.pipeline,
        algorithm=algorithm.name,
        cubes=(design.mesh_width, design.cubes_per_sip // design.mesh_width),
        **given,
    )
