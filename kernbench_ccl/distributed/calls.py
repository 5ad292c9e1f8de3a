"""The collectives of torch.distributed: check what a rank gives, write the call down, launch the rank's part of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

from attrs import define, field

from kernbench_ccl.distributed.checks import (
    AnyTensor,
    apart,
    elements,
    overlap,
    own_tensor,
    part_of,
    place_in_group,
    reduction,
    same_dtype,
    sized,
    split_sizes,
)
from kernbench_ccl.distributed.served_by import AskedCall, served_by
from kernbench_ccl.distributed.torch_names import REFUSED_OPS, UnsupportedName
from kernbench_ccl.distributed.world import Here, ProcessGroup, here
from kernbench_ccl.plan import plan_collective
from kernbench_ccl.plan.selection import make_collective
from kernbench_core.errors import UnsupportedError, UsageError
from kernbench_core.host import DeviceTensor
from kernbench_core.params import did_you_mean
from kernbench_core.values.dtypes import itemsize

if TYPE_CHECKING:
    from kernbench_core.host import LaunchHandle

__tracebackhide__ = True


_OPS: Final = ("SUM", "AVG", "PRODUCT", "MIN", "MAX")


class _OpNames(type):
    """Refuse the reduce operations that only torch has, by name."""

    def __getattr__(cls, name: str) -> NoReturn:
        if name in REFUSED_OPS:
            raise UnsupportedName(f"ReduceOp.{name} is not there in kernbench; {REFUSED_OPS[name]}.")
        raise AttributeError(f"type object 'ReduceOp' has no attribute {name!r}.{did_you_mean(name, _OPS)}")


class ReduceOp(metaclass=_OpNames):
    """The reductions, named as torch names them."""

    SUM: Final = "sum"
    AVG: Final = "avg"
    PRODUCT: Final = "product"
    MIN: Final = "min"
    MAX: Final = "max"


@define(eq=False)
class Work:
    """A call that may still be under way; `async_op=True` gives one. `wait` makes the rank's program wait for it.

    The forms that take lists copy their results out of scratch memory at the end of `wait`. That happens at the latest
    when one of `results` is used next, or when the rank's program ends; `function` is what was called.
    """

    _here: Here
    _handle: LaunchHandle | None
    _scratch: list[DeviceTensor] = field(factory=list)
    _after: Callable[[], None] | None = None
    _function: str = ""
    _results: tuple[DeviceTensor, ...] = ()

    def __attrs_post_init__(self) -> None:
        for tensor in self._results:
            tensor.before_use(lambda name=tensor.name: self._finish(name))  # type: ignore[misc]
        if self._results:
            self._here.world.at_end.setdefault(self._here.rank, {})[self] = self.wait

    def _finish(self, name: str) -> None:
        """Wait, as a result is used; UsageError where that is not done by the program whose call it is."""
        if self._handle is not None and not self._here.rt.bridge.inside:
            raise UsageError(
                f"rank {self._here.rank} must wait for tensor {name!r} before others use it, as {self._function} still "
                "has to copy its result there; call wait() of its Work first."
            )
        self.wait()

    def wait(self, timeout: object = None) -> bool:
        """Wait, in simulated time, until the rank's part is over and its tensors may be used; give True."""
        if timeout is not None:
            raise UnsupportedError(
                "Work.wait: timeout must be left out; kernbench run has --timeout and --max-sim-time."
            )
        if self._handle is not None:
            self._here.rt.join(self._handle)
            self._handle = None
            after, self._after = self._after, None
            if after is not None:
                after()
            for tensor in self._scratch:
                self._here.give_back(tensor)
            self._scratch.clear()
            if self._results:
                del self._here.world.at_end[self._here.rank][self]
        return True

    def is_completed(self) -> bool:
        """Return whether the rank's part is over; where it is not, wait for it first, but 100 ns at most.

        So `while not work.is_completed(): pass` takes the time of `wait`. The forms that take lists copy their results
        out, as in `wait`, before they are found over.
        """
        return self._handle is None or (self._handle.done and self.wait())


@define(eq=False)
class Call:
    """One collective that a rank calls, checked; `run` launches it.

    `function` is what the user called, `name` the collective. `given` and `got` are the rank's input and output.
    """

    here: Here
    group: ProcessGroup
    function: str
    name: str
    count: int
    dtype: str
    given: AnyTensor | None
    got: AnyTensor | None
    redop: str | None = None
    root: int = 0
    counts: tuple[tuple[int, ...], ...] | None = None
    #: Words that must be the same on every rank, beside count and dtype, which are "size".
    details: Mapping[str, str] = field(factory=dict)
    scratch: list[DeviceTensor] = field(factory=list)
    after: Callable[[], None] | None = None
    #: What `after` writes.
    results: Sequence[AnyTensor] = ()
    pes: int | None = None

    @property
    def nbytes(self) -> int:
        """The size as nccl-tests counts it, the same on all ranks; 0 where each knows only its own."""
        if self.counts is not None:
            return 0
        kind = self.here.world.config.catalogue.collectives[self.name]
        return kind.size_count(self.count, self.group.size()) * itemsize(self.dtype)

    def run(self, async_op: bool, before: Callable[[int], None] | None = None) -> Work | None:
        """Launch the rank's part and wait for it, or with `async_op` give the Work. `before` gets the call's number."""
        here, group = self.here, self.group
        function = self.function.removeprefix("dist.")
        details = {"size": f"{self.count} x {self.dtype}", **self.details}
        number = here.enter(group.ledger, function, {name: words for name, words in details.items() if words})
        if before is not None:
            before(number)
        world, rt = here.world, here.rt
        asked = AskedCall(self.name, self.dtype, self.nbytes, self.redop, self.root, self.pes)
        algorithm, settings = served_by(rt, group, asked)
        with_queues = group.with_channel(settings)
        collective = make_collective(
            with_queues, algorithm, settings, rt.design, self.dtype, world.config.catalogue.networks,
            redop=self.redop, root=self.root, counts=self.counts, sequence=number,
        )  # fmt: skip
        own = group.ranks.index(here.rank)
        need = algorithm.scratch(self.count, group.size())
        if need:
            self.scratch.append(here.take(need, self.dtype))
        given, got = (None if tensor is None else part_of(tensor) for tensor in (self.given, self.got))
        for place in (given, got):
            if place is not None:
                rt.settle(place.tensor)
        planned = plan_collective(
            rt, with_queues, collective, algorithm, {own: given}, {own: got}, self.count,
            pes=settings.pes if self.pes is None else self.pes,
            scratch={own: self.scratch[-1]} if need else None,
        )  # fmt: skip
        handle = planned.launch(rt, wait=False, label=f"{function} #{number} of {group.name()}")
        if async_op:
            results = tuple(dict.fromkeys(part_of(tensor).tensor for tensor in self.results))
            return Work(here, handle, self.scratch, self.after, self.function, results)
        Work(here, handle, self.scratch, self.after).wait()
        return None


# Collectives --------------------------------------------------------------------------------------------


def all_reduce(tensor: AnyTensor, op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Reduce the tensors of all ranks, element by element; each rank's tensor becomes the result."""
    call = "dist.all_reduce"
    own = here(call)
    found = own.group(group, call)
    own_tensor(own, call, "tensor", tensor)
    redop = reduction(call, op, tensor.dtype)
    return Call(
        own, found, call, "all_reduce", elements(tensor), tensor.dtype, tensor, tensor, redop, details={"op": redop}
    ).run(async_op)


def reduce(
    tensor: AnyTensor,
    dst: int | None = None,
    op: str = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Reduce the tensors of all ranks; that of rank `dst` becomes the result, the others are left as they are."""
    call = "dist.reduce"
    own = here(call)
    found = own.group(group, call)
    own_tensor(own, call, "tensor", tensor)
    redop = reduction(call, op, tensor.dtype)
    root = place_in_group(found, call, "dst", dst, group_dst)
    got = tensor if found.ranks[root] == own.rank else None
    details = {"op": redop, "root": f"dst {found.ranks[root]}"}
    return Call(
        own, found, call, "reduce", elements(tensor), tensor.dtype, tensor, got, redop, root, details=details
    ).run(async_op)


def broadcast(
    tensor: AnyTensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Give every rank's tensor the content of that of rank `src`."""
    call = "dist.broadcast"
    own = here(call)
    found = own.group(group, call)
    own_tensor(own, call, "tensor", tensor)
    root = place_in_group(found, call, "src", src, group_src)
    return Call(
        own, found, call, "broadcast", elements(tensor), tensor.dtype, tensor, tensor, root=root,
        details={"root": f"src {found.ranks[root]}"},
    ).run(async_op)  # fmt: skip


def all_gather_into_tensor(
    output_tensor: AnyTensor, input_tensor: AnyTensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Put the inputs of all ranks together, in rank order, in the output of each."""
    call = "dist.all_gather_into_tensor"
    own = here(call)
    found = own.group(group, call)
    own_tensor(own, call, "input_tensor", input_tensor)
    own_tensor(own, call, "output_tensor", output_tensor)
    same_dtype(call, ("output_tensor", output_tensor), ("input_tensor", input_tensor))
    count = elements(input_tensor)
    sized(call, "output_tensor", output_tensor, count * found.size(), f"{count} for each of {found.size()} ranks")
    apart(call, ("input_tensor", input_tensor), ("output_tensor", output_tensor), found.ranks.index(own.rank) * count)
    return Call(own, found, call, "all_gather", count, input_tensor.dtype, input_tensor, output_tensor).run(async_op)


def reduce_scatter_tensor(
    output: AnyTensor, input: AnyTensor, op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduce the inputs of all ranks, and give each rank its part of the result, in rank order."""
    call = "dist.reduce_scatter_tensor"
    own = here(call)
    found = own.group(group, call)
    own_tensor(own, call, "input", input)
    own_tensor(own, call, "output", output)
    same_dtype(call, ("output", output), ("input", input))
    redop = reduction(call, op, input.dtype)
    count = elements(output)
    sized(call, "input", input, count * found.size(), f"{count} for each of {found.size()} ranks")
    apart(call, ("output", output), ("input", input), found.ranks.index(own.rank) * count)
    return Call(
        own, found, call, "reduce_scatter", count, input.dtype, input, output, redop, details={"op": redop}
    ).run(async_op)


def all_to_all_single(
    output: AnyTensor,
    input: AnyTensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send part j of the input to rank j, and put what rank i sent in part i of the output.

    Without sizes the parts are equal. `input_split_sizes[j]` rows (of dimension 0) go to rank j,
    `output_split_sizes[i]` come from rank i; rows past their sum are left alone. All ranks give sizes, or none does.
    """
    call = "dist.all_to_all_single"
    own = here(call)
    found = own.group(group, call)
    own_tensor(own, call, "input", input)
    own_tensor(own, call, "output", output)
    if overlap(output, input):
        raise UsageError(
            f"{call}: output must be another tensor than input {input.name!r}, whose parts would be overwritten before "
            "they are sent; make one with rt.empty."
        )
    same_dtype(call, ("output", output), ("input", input))
    if input_split_sizes is None and output_split_sizes is None:
        count, rest = divmod(elements(input), found.size())
        if rest:
            raise UsageError(
                f"{call}: input {input.name!r} must have a number of elements that divides into {found.size()} equal "
                f"parts, not {elements(input)}; pad it, or give input_split_sizes."
            )
        sized(call, "output", output, elements(input), "as the input")
        return Call(own, found, call, "all_to_all", count, input.dtype, input, output).run(async_op)
    sent = split_sizes(call, "input", input, input_split_sizes, found.size())
    received = split_sizes(call, "output", output, output_split_sizes, found.size())
    if math.prod(input.shape[1:]) != math.prod(output.shape[1:]):
        raise UsageError(
            f"{call}: output {output.name!r} must have rows of the size of those of input {input.name!r}, "
            f"{math.prod(input.shape[1:])} elements, not {math.prod(output.shape[1:])}; correct its shape."
        )
    return _uneven(own, found, call, output, input, sent, received, async_op)


def _uneven(
    own: Here,
    group: ProcessGroup,
    call: str,
    output: AnyTensor,
    input: AnyTensor,
    sent: tuple[int, ...],
    received: tuple[int, ...],
    async_op: bool,
) -> Work | None:
    """Launch an all_to_all of uneven parts; of the matrix of counts a rank knows its row and column, as in torch."""
    row, place, world = math.prod(input.shape[1:]), group.ranks.index(own.rank), group.size()

    def agree(number: int) -> None:
        known = own.world.splits.setdefault((group.name(), number), {})
        known[place] = (sent, received)
        for other, (its_sent, its_received) in list(known.items()):
            for sender, expects, receiver, gives in (
                (place, its_received[place], other, sent[other]), (other, received[other], place, its_sent[place]),
            ):  # fmt: skip
                if gives != expects:
                    own.stall(
                        f"all_to_all_single #{number} of {group.name()}",
                        f"rank {group.ranks[sender]} sends {gives} row{'' if gives == 1 else 's'} to rank "
                        f"{group.ranks[receiver]}, which expects {expects}",
                    )
        if len(known) == world:
            del own.world.splits[group.name(), number]

    counts = [[0] * world for _ in range(world)]
    for other in range(world):
        counts[place][other] = sent[other] * row
        counts[other][place] = received[other] * row
    count = max(max(line) for line in counts)
    return Call(
        own, group, call, "all_to_all", max(1, count), input.dtype, input, output,
        counts=tuple(map(tuple, counts)), pes=group.group.n_pe,
        details={"size": f"parts of {input.dtype} with sizes of their own"},
    ).run(async_op, agree)  # fmt: skip
