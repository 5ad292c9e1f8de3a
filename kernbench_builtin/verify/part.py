"""The part of runs that checks single ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernbench_core.runs import RunPart

if TYPE_CHECKING:
    from kernbench_core.compute.executor import DataExecutor, Where
    from kernbench_core.compute.verification import Verification


class OpChecks(RunPart):
    """Check ops against themselves computed anew, where `--verify-ops` of core asks for it."""

    NAME = "op_checks"

    @classmethod
    def wanted(cls, options: Any, call: Any) -> bool:
        """No run has it for itself."""
        return False

    @classmethod
    def verify_ops(cls, executor: DataExecutor, where: Where) -> Verification:
        """Compute each op of a run anew, by itself, and compare."""
        from kernbench_builtin.verify.op_check import verify_ops

        return verify_ops(executor, where=where)
