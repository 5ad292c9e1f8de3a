"""What the models of a run counted, one number for each statistic that they declare."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import attrs
import numpy as np

from kernbench_core.engine.faults import models_blamed
from kernbench_core.errors import ComponentError
from kernbench_core.reporting import COMBINE

if TYPE_CHECKING:
    from kernbench_core.component import ComponentBase
    from kernbench_core.engine.hardware import Hardware
    from kernbench_core.reporting import Stat


@attrs.frozen
class Statistic:
    """One number of a run: the `combined` ("sum", "max" or "mean") counts of `of` components of the model `component`.

    `unit` is "ns", "B", or "" for a plain number; `sentence` says what it is.
    """

    component: str
    name: str
    value: float
    unit: str
    combined: str
    of: int
    sentence: str


def statistics(hardware: Hardware) -> tuple[Statistic, ...]:
    """Combine what the components counted that served anything, model by model.

    ComponentError when something that a model declares is no number, or when the model raises instead of giving it.
    """
    counted: dict[tuple[str, Stat], list[float]] = {}
    for component in hardware.components.values():
        if component.served:
            for stat in component.STATS:
                with models_blamed(hardware, component):
                    number = _number(component, stat)
                counted.setdefault((component.node.impl, stat), []).append(number)
    return tuple(
        Statistic(impl, stat.name, COMBINE[stat.combine](numbers), stat.unit, stat.combine, len(numbers), stat.doc)
        for (impl, stat), numbers in sorted(counted.items(), key=lambda item: item[0][0])
    )


def _number(component: ComponentBase, stat: Stat) -> float:
    missing = object()
    found: object = getattr(component, stat.name, missing)
    if isinstance(found, np.integer | np.floating):
        found = found.item()
    if isinstance(found, int | float) and math.isfinite(found):
        return found
    shown = "nothing" if found is missing else repr(found)
    raise ComponentError(
        f"{component.id}: {type(component).__module__}.{type(component).__qualname__}.{stat.name} must be a finite "
        f"number at the end of a run, as its STATS say, not {shown}; count it there, or leave it out of STATS."
    )
