"""What computes floats in phase 2: numpy, or PyTorch on the CPU or a GPU. All else is numpy's.

In: a name as `--backend` has it. Out: a `Backend`, which takes arrays and gives arrays.
"""

from __future__ import annotations

from kernbench_core.compute.backends.backend import Backend, ComputedBy
from kernbench_core.errors import UsageError
from kernbench_core.wording import brief

__all__ = ["Backend", "ComputedBy", "backend_of", "require_name"]


def require_name(name: object) -> str:
    """Return the name of a backend; UsageError for what is none, whether or not it can be had on this machine."""
    library, colon, device = name.partition(":") if isinstance(name, str) else ("", "", "")
    if library == "numpy" and colon:
        raise UsageError(f"backend 'numpy' has no device, as in {brief(name)}; give --backend numpy.")
    if library not in ("numpy", "torch") or (colon and not device):
        known = "numpy, torch, torch:cpu or torch:cuda"
        raise UsageError(f"a backend must be {known}, not {brief(name)}; give one of these.")
    return str(name)


def backend_of(name: object) -> Backend:
    """Return the backend of a name; UsageError for one that is none, or that cannot be had on this machine.

    A backend is returned as it is.
    """
    if isinstance(name, Backend):
        return name
    library, _, device = require_name(name).partition(":")
    if library == "numpy":
        return Backend()
    from kernbench_core.compute.backends.torch_backend import TorchBackend

    return TorchBackend.on(device or "cpu")
