"""The verdicts on a run: whether the tensors that its bench checks are right, and whether each op is by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kernbench_core.callsite import describe_site, user_traceback
from kernbench_core.errors import ExecutionError, KernbenchError, KernelError, blamed, in_words
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.wording import with_full_stop

if TYPE_CHECKING:
    from kernbench_core.callsite import CallSite
    from kernbench_core.compute.executor import DataExecutor
    from kernbench_core.compute.verification import Verification
    from kernbench_core.host.runtime import Expectation
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.oplog.log import OpRecord
    from kernbench_core.runs.options import RunOptions
    from kernbench_core.runs.outputs import LaterExecutor
    from kernbench_core.runs.run_progress import RunProgress
    from kernbench_core.runs.wrong_data import WrongData
    from kernbench_core.values.value import OpId


def verdicts(
    options: RunOptions, engine: GraphEngine, later: LaterExecutor, progress: RunProgress
) -> tuple[Verification | None, Verification | None]:
    """Verify data and single ops, where that is asked for; an error says which kernel line asked for the op.

    `progress` is told how many tensors have what is expected of them, then how many ops are computed, of how many.
    """
    if not (options.verify_data or options.verify_ops):
        return None, None
    executor = later.get()
    try:
        progress.begin("verifying")
        executor.on_computed = progress.did
        on_demand = engine.device.on_demand
        on_demand.confirm(executor, lambda failure: _wrong_data(engine, executor).maker(failure, "It"))
        data = _verify(engine, executor, progress) if options.verify_data else None
        if options.verify_ops:
            progress.begin("computing", len(engine.op_log), "ops")
        return data, _verify_ops(engine, executor) if options.verify_ops else None
    except ExecutionError as error:
        site = None if error.op_id is None else _sites(engine).get(error.op_id)
        if site is not None:
            error.add_note(f"It is the op of {describe_site(site)}.")
        raise


def _verify(engine: GraphEngine, executor: DataExecutor, progress: RunProgress) -> Verification:
    """Run phase 2 on what the checked tensors need, and compare them."""
    from kernbench_core.compute.verification import Expected
    from kernbench_core.oplog.description import Access
    from kernbench_core.runs.wrong_data import check_names

    expected, told = {}, {}
    progress.begin("verifying", len(engine.expectations), "tensors")
    for number, (name, each) in enumerate(zip(check_names(engine.expectations), engine.expectations, strict=True)):
        told[str(number)] = name, each
        reference, atol = _reference(each)
        expected[str(number)] = Expected(Access("", ()), reference, each.rtol, atol, value=each.value)
        progress.did(1)
    if progress.on_tick is not None:
        progress.begin("computing", executor.pending_ops([each.value for each in engine.expectations]), "ops")
    verification = executor.verify(expected)
    if not verification.found:
        return verification
    return _wrong_data(engine, executor).told(verification, told)


def _wrong_data(engine: GraphEngine, executor: DataExecutor) -> WrongData:
    from kernbench_core.runs.wrong_data import WrongData

    return WrongData(engine.op_log, executor, engine.shared.launches, _sites(engine))


def _verify_ops(engine: GraphEngine, executor: DataExecutor) -> Verification:
    """Compute every op anew, by itself, and compare."""
    sites = _sites(engine)

    def where(record: OpRecord) -> str:
        site = None if record.op_id is None else sites.get(record.op_id)
        return "" if site is None else f" at {describe_site(site)}"

    return executor.verify_ops(where=where)


def _sites(engine: GraphEngine) -> Mapping[OpId, CallSite | None]:
    """Return the kernel line of each op, where it was noted."""
    logger = engine.hardware.op_logger
    return {} if logger is None or logger.sites is None else logger.sites


def _reference(expectation: Expectation) -> tuple[Any, float | None]:
    """Return the expected array and its tolerance; raise KernelError when the bench's own reference raises."""
    try:
        return expectation.array(), expectation.absolute()
    except (KernbenchError, *INTERRUPTS):
        raise
    except BaseException as error:
        told = with_full_stop(f"the reference of tensor {expectation.name!r} raised {in_words(error)}")
        raise blamed(error, KernelError)(f"{told}\n{user_traceback(error)}") from error
