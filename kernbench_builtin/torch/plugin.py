"""What PyTorch offers: a backend, for `--backend torch` and `torch:cuda`."""

from __future__ import annotations

from kernbench_core.plugins import BackendEntry

#: The version of the hooks that this module is written for.
kernbench_api = 1


def kernbench_backends() -> list[BackendEntry]:
    """Return what computes the data, beside numpy."""
    target = "kernbench_builtin.torch.torch_backend:TorchBackend"
    return [BackendEntry("torch", target, "PyTorch, on the CPU or a GPU.", ("cpu", "cuda"))]
