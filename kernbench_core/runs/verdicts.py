"""The verdicts on a run: whether the tensors that its bench checks are right, and whether each op is by itself.

And what kernels read into Python, which a PE's CPU reads: arithmetic on it takes no time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from attrs import asdict, frozen

from kernbench_core.callsite import describe_site, user_traceback
from kernbench_core.errors import ExecutionError, KernbenchError, KernelError, blamed, in_words
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.units import format_time
from kernbench_core.wording import with_full_stop

if TYPE_CHECKING:
    from kernbench_core.callsite import CallSite
    from kernbench_core.compute.executor import DataExecutor, Where
    from kernbench_core.compute.verification import Failure, Verification
    from kernbench_core.host.runtime import Expectation
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.kernel.pe_state import Kernels
    from kernbench_core.oplog.log import OpRecord
    from kernbench_core.runs.options import RunOptions
    from kernbench_core.runs.outputs import LaterExecutor
    from kernbench_core.runs.run_progress import RunProgress
    from kernbench_core.values.value import OpId


OpsChecker: TypeAlias = "Callable[[DataExecutor, Where], Verification | None]"
MakerOf: TypeAlias = "Callable[[GraphEngine, DataExecutor], Callable[[Failure, str], str]]"


def verdicts(
    options: RunOptions, engine: GraphEngine, later: LaterExecutor, progress: RunProgress, maker_of: MakerOf,
    check_ops: OpsChecker | None = None,
) -> tuple[Verification | None, Verification | None]:
    """Verify data and single ops, where that is asked for; an error says which kernel line asked for the op.

    `progress` is told how many tensors have what is expected of them, then how many ops are computed, of how many.
    `maker_of` gives what says what made a wrong element, `check_ops` compares ops.
    """
    if not (options.verify_data or check_ops):
        return None, None
    executor = later.get()
    try:
        progress.begin("verifying")
        executor.on_computed = progress.did
        on_demand = engine.device.on_demand
        on_demand.confirm(executor, lambda failure: maker_of(engine, executor)(failure, "It"))
        data = _verify(engine, executor, progress, maker_of) if options.verify_data else None
        if check_ops is not None:
            progress.begin("computing", len(engine.op_log), "ops")
        return data, None if check_ops is None else check_ops(executor, where_in_kernels(engine))
    except ExecutionError as error:
        site = None if error.op_id is None else kernel_lines(engine).get(error.op_id)
        if site is not None:
            error.add_note(f"It is the op of {describe_site(site)}.")
        raise


def _verify(
    engine: GraphEngine, executor: DataExecutor, progress: RunProgress, maker_of: MakerOf
) -> Verification:
    """Run phase 2 on what the checked tensors need, and compare them."""
    from kernbench_core.compute.verification import Expected
    from kernbench_core.oplog.description import Access
    from kernbench_core.runs.wrong_data import check_names, in_full

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
    return in_full(verification, told, maker_of(engine, executor))


def where_in_kernels(engine: GraphEngine) -> Where:
    """Return what says at which kernel line an op was issued, where that was noted."""
    sites = kernel_lines(engine)

    def where(record: OpRecord) -> str:
        site = None if record.op_id is None else sites.get(record.op_id)
        return "" if site is None else f" at {describe_site(site)}"

    return where


def kernel_lines(engine: GraphEngine) -> Mapping[OpId, CallSite | None]:
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


#: How many elements may be read into Python, and of how many loaded elements one may, before the verdict names them.
_FEW: Final = 256
_ONE_OF: Final = 100


@frozen
class ReadLine:
    """A kernel line and how many elements it read."""

    line: str
    elements: int


@frozen
class PythonReads:
    """How many elements kernels read into Python, of how many that they `loaded`, and at which lines, most first.

    It took the CPUs of PEs `cost_ns` in all; `free` says why it took some of them no time.
    """

    elements: int
    loaded: int
    cost_ns: float
    lines: tuple[ReadLine, ...]
    free: tuple[str, ...] = ()

    @property
    def many(self) -> bool:
        """Whether so much was read that arithmetic in Python may be what the kernel is about."""
        return self.elements > _FEW and self.elements * _ONE_OF > self.loaded

    @property
    def words(self) -> str:
        """Say how many there are."""
        return f"{self.elements:,} element{'' if self.elements == 1 else 's'} read into Python"

    @property
    def sentence(self) -> str:
        """Say how many there are, what reading them took, and what is not timed."""
        took = [] if self.free and not self.cost_ns else [f"in {format_time(self.cost_ns)} of the PEs' CPUs"]
        took += [f"at no time, as {why}" for why in self.free]
        return f"{self.words}, of {self.loaded:,} loaded, {' and '.join(took)}; arithmetic on them is not timed"

    def list_lines(self, most: int = 3) -> Iterator[str]:
        """Yield a text for each of the lines that read most, and say how many more there are."""
        for each in self.lines[:most]:
            yield f"  {each.elements:,} at {each.line}"
        left = len(self.lines) - most
        if left > 0:
            yield f"  and at {left} more line{'' if left == 1 else 's'}; --json lists them"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return asdict(self)


def python_reads(kernels: Kernels) -> PythonReads | None:
    """Return what the kernels of a run read so far; None where they read nothing."""
    lines: Counter[str] = Counter()
    for site, count in kernels.read_at.items():
        lines[describe_site(site)] += count
    if not lines:
        return None
    readers = [state for state in kernels.states.values() if state.elements_read]
    return PythonReads(
        elements=lines.total(),
        loaded=kernels.loaded,
        cost_ns=sum(state.elements_read * state.element_read for state in readers),
        lines=tuple(ReadLine(*each) for each in sorted(lines.items(), key=lambda each: (-each[1], each[0]))),
        free=tuple(sorted({state.reads_free for state in readers} - {""})),
    )
