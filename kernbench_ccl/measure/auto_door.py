"""How `auto` tries algorithms from within a run: on the machine of the run, beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import evolve

from kernbench_ccl.measure.machine import timed_machine
from kernbench_ccl.measure.trials import AlgorithmTrials
from kernbench_ccl.plan import machine_network
from kernbench_ccl.plan.auto import AutoChoice, AutoMachine
from kernbench_ccl.plan.selection import AutoDoor

if TYPE_CHECKING:
    from kernbench_ccl.catalogue import Algorithm
    from kernbench_ccl.measure.trials import TrialCall
    from kernbench_ccl.plan import Settings
    from kernbench_core.host import Runtime


def auto_door(rt: Runtime, call: TrialCall, called: str, pes: int | None = None) -> AutoDoor:
    """Return what `auto` needs to serve a call of a host program, which the result's warnings name as `called`.

    `pes` of a rank take part where the call itself says so.
    """
    design, group = rt.design, call.group
    whole = group is None or (group.sips == tuple(range(design.sips)) and group.n_pe * group.world == len(design.pes))
    if whole:
        call = evolve(call, group=None)
    ranks = design.sips if group is None else group.world

    def times(able: Mapping[str, tuple[Algorithm, Settings]]) -> AlgorithmTrials:
        if pes is not None:
            able = {name: (algorithm, evolve(settings, pes=pes)) for name, (algorithm, settings) in able.items()}
        return AlgorithmTrials(call, timed_machine(rt.graph, rt.plugins), rt.plugins, able)

    def note(chosen: AutoChoice) -> None:
        if chosen.tried:
            told = f"{called}: auto took {chosen.name} for {ranks} ranks here, {chosen.basis}."
            rt.shared.notes[told] = None
        if chosen.unused is not None:
            rt.shared.notes[chosen.unused] = None

    machine = AutoMachine(rt.graph, machine_network(design).name, whole)
    kept = rt.shared.kept.setdefault(f"{__name__}, {whole}", machine)  # its key is made once for all calls
    return AutoDoor(kept, times, note)
