"""The numbers of a recording that are the same on machines which differ in times alone: they are worked out once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs
import numpy as np

from kernbench_builtin.machines.perturbation import OF_TIME
from kernbench_builtin.native.machine_form import MachineForm, Numbering
from kernbench_builtin.native.stream_form import Asked, StreamForm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kernbench_builtin.native.recording import Recording
    from kernbench_core.engine.hardware import Hardware

    Numbers: TypeAlias = NDArray[np.float64]

#: So many streams are kept, those that were used last.
_MOST: Final = 8


@attrs.frozen(eq=False)
class PreparedStream:
    """A recording as the engine reads it, for machines of which `alike` is equal, and the ways are numbered alike.

    `edges` says what the ways follow from, and `asked` which numbers depend on times, and what to ask for.
    """

    alike: Sequence[Any]
    edges: Sequence[tuple[object, ...]]
    layout: Numbering
    numbers: Numbers
    places: Sequence[int]
    asked: Sequence[tuple[Any, ...]]

    def form_on(self, hardware: Hardware, edges: Sequence[tuple[object, ...]]) -> MachineForm | None:
        """Return the form of another machine; None where its ways are numbered otherwise."""
        if edges == self.edges:
            return MachineForm(hardware, self.layout)
        form = MachineForm(hardware)
        same = all(form.way(ends) == number for ends, number in self.layout.asked.items())
        return form if same else None

    def on(self, recording: Recording, form: MachineForm) -> Numbers:
        """Return the numbers on the machine of a form of this."""
        stream = StreamForm(recording, form)
        found = self.numbers.copy()
        found[self.places] = [*map(stream.again, self.asked)]
        return found


def numbers_on(recording: Recording, hardware: Hardware, prepared: list[PreparedStream]) -> tuple[Numbers, Numbers]:
    """Return a machine and a recording as the engine reads them; of those `prepared` one is used, or one more made."""
    alike, edges = _alike(hardware), _edges(hardware)
    of_alike = [each for each in prepared if each.alike == alike]
    for each in sorted(of_alike, key=lambda each: each.edges != edges):  # where ways are known none is looked for
        form = each.form_on(hardware, edges)
        if form is not None and form.layout is not None:
            if form.layout is each.layout:
                prepared.remove(each)
            prepared[:] = [*prepared[1 - _MOST :], attrs.evolve(each, edges=edges, layout=form.layout)]
            stream = each.on(recording, form)  # which may ask for ways, so that the machine comes later
            return np.array(form.numbers(), np.float64), stream
    form = MachineForm(hardware)
    numbers = StreamForm(recording, form).numbers()
    machine = np.array(form.numbers(), np.float64)
    asked = [(at, number.what) for at, number in enumerate(numbers) if type(number) is Asked]
    assert form.layout is not None, "made with the form"
    made = PreparedStream(
        alike, edges, form.layout, np.array(numbers, np.float64), [at for at, _ in asked], [what for _, what in asked]
    )
    prepared[:] = [*prepared[1 - _MOST :], made]
    return machine, made.numbers


def _edges(hardware: Hardware) -> list[tuple[object, ...]]:
    """Return what ways follow from: the wires, and how long each takes."""
    return [(ends, edge.kind, edge.latency) for ends, edge in hardware.graph.edges.items()]


def _alike(hardware: Hardware) -> list[Any]:
    """Return what streams depend on in a machine besides its ways: sizes, counts and models, and no times."""
    timed: dict[str, frozenset[str]] = {}
    found: list[Any] = [hardware.layout]
    for name, component in hardware.components.items():
        impl = component.node.impl
        if impl not in timed:
            timed[impl] = frozenset(param.name for param in type(component).PARAMS if param.dimension in OF_TIME)
        found += [name, impl, *(value for key, value in component.node.params.items() if key not in timed[impl])]
    return found
