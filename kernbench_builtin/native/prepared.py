"""The numbers of a recording that are the same on machines which differ in times alone: they are worked out once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs
import numpy as np

from kernbench_builtin.machines.perturbation import OF_TIME
from kernbench_builtin.native.stream_form import Asked, StreamForm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kernbench_builtin.native.machine_form import MachineForm
    from kernbench_builtin.native.recording import Recording

    Numbers: TypeAlias = NDArray[np.float64]

#: So many streams are kept, those that were used last.
_MOST: Final = 8


@attrs.frozen(eq=False)
class PreparedStream:
    """A recording as the engine reads it, for machines of which `alike` is equal, and the ways are numbered alike.

    `asked` has the places of numbers that depend on times, and what to ask for.
    """

    alike: Sequence[Any]
    ways: Mapping[tuple[str, str, str], int]
    numbers: Numbers
    asked: Sequence[tuple[int, tuple[Any, ...]]]

    def on(self, recording: Recording, form: MachineForm) -> Numbers | None:
        """Return the numbers on another machine; None where its ways are numbered otherwise."""
        if any(form.way(ends) != number for ends, number in self.ways.items()):
            return None
        stream = StreamForm(recording, form)
        found = self.numbers.copy()
        found[[at for at, _ in self.asked]] = [stream.again(what) for _, what in self.asked]
        return found


def stream_on(recording: Recording, form: MachineForm, prepared: list[PreparedStream]) -> Numbers:
    """Return a recording as the engine reads it on a machine."""
    alike = _alike(form)
    for at, each in enumerate(prepared):
        if each.alike == alike:
            found = each.on(recording, form)
            if found is not None:
                prepared.append(prepared.pop(at))
                return found
    numbers = StreamForm(recording, form).numbers()
    asked = [(at, number.what) for at, number in enumerate(numbers) if type(number) is Asked]
    made = PreparedStream(alike, dict(form.asked), np.array(numbers, np.float64), asked)
    prepared[:] = [*prepared[1 - _MOST :], made]
    return made.numbers


def _alike(form: MachineForm) -> list[Any]:
    """Return what streams depend on in a machine besides its ways: sizes, counts and models, and no times."""
    timed: dict[str, frozenset[str]] = {}
    found: list[Any] = [form.hardware.layout]
    for name, component in form.hardware.components.items():
        impl = component.node.impl
        if impl not in timed:
            timed[impl] = frozenset(param.name for param in type(component).PARAMS if param.dimension in OF_TIME)
        found += [name, impl, *(value for key, value in component.node.params.items() if key not in timed[impl])]
    return found
