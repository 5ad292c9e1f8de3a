"""Whether buffers are large enough for the wires in front of them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable

from kernbench_builtin.components.flits.channels import OutputPort
from kernbench_core.errors import KernbenchWarning
from kernbench_core.units import format_time


def tell_slow_wires(wires: Iterable[tuple[str, str, OutputPort, float]]) -> None:
    """Warn of the wire that the buffers behind it, of all channels together, keep idle most.

    A wire is its two ends, the port that sends over it, and the round of a credit in ns.
    """
    slowest, least = None, 1.0 - 1e-9
    for wire in wires:
        _, _, out, again = wire
        share = len(out.credits) * out.credits[0] * out.flit_ns / again
        if share < least:
            slowest, least = wire, share
    if slowest is None:
        return
    begin, end, out, again = slowest
    vcs, flits = len(out.credits), out.credits[0]
    alone, shared = (math.ceil(again / out.flit_ns / share - 1e-9) for share in (1, vcs))
    warnings.warn(
        f"{end}: {vcs} channel{'s' if vcs > 1 else ''} of {flits} flit{'s' if flits > 1 else ''} carry at most "
        f"{least:.1%} of what the wire from {begin} could, as a credit is back after {format_time(again)}; raise "
        f"buffer_flits to {shared}, or to {alone} for a single message.",
        KernbenchWarning,
        stacklevel=2,
    )
