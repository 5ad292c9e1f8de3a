"""What computes floats in phase 2: numpy, or what a plug-in registers. All else is numpy's.

In and out: arrays. Runs look one up by its name, and hand it to the executor.
"""

from __future__ import annotations

from kernbench_core.compute.backends.backend import Backend, ComputedBy, plainly

__all__ = ["Backend", "ComputedBy", "plainly"]
