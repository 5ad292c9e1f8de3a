"""Which functions compute the ops of plug-ins, and that none of their math ops is called like what `tl` has."""

from __future__ import annotations

from kernbench_core.compute.ops import MathOp
from kernbench_core.kernel.tl.language import TLContext
from kernbench_core.plugins import OpEntry, Registry


def op_functions(ops: Registry[OpEntry]) -> dict[str, str]:
    """Return the "module:attr" of each op; PluginError for a math op whose name kernels have already.

    What is called like one of core's ops has been left out as it was registered.
    """
    for name in ops:
        if hasattr(TLContext, name) and isinstance(ops.load(name), MathOp):
            raise ops.fault(name, f"must not be called as kernbench's own {name!r}, which kernels would still get")
    # what two have is told where a kernel asks for it, and either is asked for as VENDOR:name
    picked = {f"{ops.provider(name).plugin}:{name}": entry.target for name, entry in ops.items() if ":" not in name}
    return {name: entry.target for name, entry in ops.items()} | dict.fromkeys(ops.taken, "") | picked
