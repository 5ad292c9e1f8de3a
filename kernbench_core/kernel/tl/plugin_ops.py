"""Which functions compute the ops of plug-ins, and that none of their math ops is called like what `tl` has."""

from __future__ import annotations

from kernbench_core.compute.ops import ALIASES, OPS, MathOp
from kernbench_core.errors import PluginError
from kernbench_core.kernel.tl.language import TLContext
from kernbench_core.registry import OpEntry, Registry


def op_functions(ops: Registry[OpEntry]) -> dict[str, str]:
    """Return the "module:attr" of each op; PluginError for a math op whose name kernels have already.

    A plain function may be registered under the name of a built-in op: phase 2 computes that op by it. PluginError
    where two plug-ins do.
    """
    for name in (*ops, *ops.taken):
        taken = hasattr(TLContext, name) or name in OPS or name in ALIASES
        if taken and name in ops.taken:
            raise PluginError(f"{ops.taken[name]}".partition(", or write")[0] + ".")
        if taken and isinstance(ops.load(name), MathOp):
            raise ops.fault(name, f"must not be called as kernbench's own {name!r}, which kernels would still get")
    # what two have is told where a kernel asks for it, and either is asked for as VENDOR:name
    picked = {f"{ops.provider(name).plugin}:{name}": entry.target for name, entry in ops.items() if ":" not in name}
    return {name: entry.target for name, entry in ops.items()} | dict.fromkeys(ops.taken, "") | picked
