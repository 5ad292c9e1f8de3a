"""Shapes that a stranger may bring: a right one with a parameter, one with links and a switch, and wrong ones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kernbench_core.params import Param
from kernbench_core.plugins import NetworkEntry, NetworkRegistry, Provider
from kernbench_core.topology.networks import Extent, NetworkFault, NetworkShape, ScaleUpLink
from tests.core.offered import NETWORKS


def chordal_links(extent: Extent) -> list[ScaleUpLink]:
    chord, sips = extent.params["chord"], extent.sips
    if 2 * chord >= sips:
        raise NetworkFault("chord", f"must be less than half of the {sips} packages, not {chord}.")
    return [ScaleUpLink(sip, f"up{far}", (sip + far) % sips, f"down{far}") for far in (1, chord) for sip in range(sips)]


def chordal_step(extent: Extent, here: int, there: int) -> int:
    chord, distance = extent.params["chord"], (there - here) % extent.sips
    return (here + (chord if distance >= chord else 1)) % extent.sips


def pair_and_switch(extent: Extent) -> list[ScaleUpLink]:
    own = [ScaleUpLink(0, "near", 1, "near")]
    return own + [ScaleUpLink(sip, "switch0", None) for sip in range(extent.sips)]


def numpy_links(extent: Extent) -> list[ScaleUpLink]:
    packages = np.arange(extent.sips)
    return [ScaleUpLink(a, f"to{b}", b, f"to{a}") for a in packages for b in packages if a < b]


def line_links(extent: Extent) -> list[ScaleUpLink]:
    return [ScaleUpLink(sip, "e", sip + 1, "w") for sip in range(extent.sips - 1)]


def straight(_: Extent, __: int, there: int) -> int:
    return there


def to_and_fro(_: Extent, here: int, there: int) -> int:
    """Go on for ever between the first two packages, when it is to the third."""
    if there == 2:
        return 1 - here if here < 2 else 2
    return here + (1 if there > here else -1)


def broken(extent: Extent) -> list[ScaleUpLink]:
    raise LookupError(f"no table for {extent.sips}")


CHORD = Param("chord", "int", 2, "How far the second link leads.", minimum=2)
DEMANDING = NetworkShape(chordal_links, chordal_step, params=(Param("chord", "int", None, "How far.", minimum=2),))
CHORDAL = NetworkShape(chordal_links, chordal_step, params=(CHORD,))
MIXED = NetworkShape(pair_and_switch, straight)
CIRCLE = NetworkShape(line_links, to_and_fro)
LEAP = NetworkShape(line_links, straight)
NUMPY = NetworkShape(pair_and_switch, lambda _, __, there: np.int64(there))
NUMPY_LINKS = NetworkShape(numpy_links, straight)
HALF = NetworkShape(line_links, lambda _, __, there: float(there))
BROKEN = NetworkShape(broken, straight)
NO_SHAPE = "a text"

TARGETS: Mapping[str, str] = {
    "chordal": "CHORDAL", "mixed": "MIXED", "circle": "CIRCLE", "leap": "LEAP", "broken": "BROKEN", "text": "NO_SHAPE",
    "gone": "GONE", "demanding": "DEMANDING", "numpy": "NUMPY", "half": "HALF",
    "numpy_links": "NUMPY_LINKS",
}  # fmt: skip
ACME = Provider("acme", "acme-nets", "1.2")
ENTRIES = [NetworkEntry(f"acme.{name}", f"{__name__}:{target}", "One.") for name, target in TARGETS.items()]
STRANGERS = NetworkRegistry(entries=[*NETWORKS, *((entry, ACME) for entry in ENTRIES)])
