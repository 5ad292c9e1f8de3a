"""The collectives of plug-ins, which torch.distributed has no functions for: one function for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernbench_ccl import plugin
from kernbench_ccl.catalogue import Collectives
from kernbench_ccl.collectives import COLLECTIVES, CallShape, CollectiveKind
from kernbench_ccl.distributed.calls import Call, Work
from kernbench_ccl.distributed.checks import (
    AnyTensor,
    is_index,
    overlap,
    own_tensor,
    place_in_group,
    reduction,
    same_dtype,
    sized,
)
from kernbench_ccl.distributed.world import Here, ProcessGroup, here
from kernbench_core.errors import KernbenchError, UsageError
from kernbench_core.host import Runtime, current_program
from kernbench_core.params import did_you_mean
from kernbench_core.plugins import load_plugins
from kernbench_core.wording import brief

__tracebackhide__ = True


def collective(
    name: str,
    count: int,
    output: AnyTensor | None = None,
    input: AnyTensor | None = None,
    op: str | None = None,
    root: int | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Call a plug-in's collective by its name, for `count` elements as its record counts them.

    `input` is what the record says that this rank brings, `output` holds what it ends with; None where there is none.
    `op` is for a collective that reduces, `root`, a rank of the world, for one that has a root.
    """
    call = f"dist.collective({name!r})"
    own = here("dist.collective")
    found, kind = own.group(group, call), _kind(own, name)
    if not is_index(count) or int(count) < 1:
        raise UsageError(f"{call}: count must be a number of elements from 1, not {brief(count)}.")
    place = 0 if root is None and not kind.rooted else place_in_group(found, call, "root", root, None)
    if root is not None and not kind.rooted:
        raise UsageError(f"{call}: root must be left out, as {name} has none, not {brief(root)}.")
    if kind.reduces != (op is not None):
        must = "be given, as it reduces" if kind.reduces else "be left out, as it reduces nothing"
        raise UsageError(f"{call}: op must {must}, not {brief(op)}.")
    shape = CallShape(found.size(), int(count), op, place)
    dtype = _checked(own, found, call, kind, shape, output, input)
    redop = None if op is None else reduction(call, op, dtype)
    words = {"op": redop, "root": f"root {found.ranks[place]}" if kind.rooted else None}
    details = {what: word for what, word in words.items() if word is not None}
    called = Call(own, found, call, kind.name, int(count), dtype, input, output, redop, place, details=details)
    return called.run(async_op)


def plugin_function(name: str) -> Callable[..., Work | None] | None:
    """Return the function of a plug-in's collective whose record names it so; None where none does.

    It is `collective` without the name. In a run the plug-ins are that run's, elsewhere those that are installed.
    AttributeError where several have it.
    """
    program = current_program()
    try:
        plugins = program.plugins if isinstance(program, Runtime) else load_plugins()
    except KernbenchError:  # told where somebody wants them
        return None
    usable, _ = Collectives(plugins.of(plugin.COLLECTIVES)).usable()
    found = [kind for kind in usable.values() if kind.function == name]
    if not found:
        return None
    if len(found) > 1:
        several = " and ".join(repr(kind.name) for kind in found)
        must = f"dist.{name} must be the function of one collective, not of {several}"
        raise AttributeError(f"{must}; use dist.collective.")
    called = found[0].name

    def function(count: int, *args: Any, **named: Any) -> Work | None:
        return collective(called, count, *args, **named)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Call {called}: `collective({called!r}, count, …)`, which has the other arguments."
    return function


def _kind(own: Here, name: str) -> CollectiveKind:
    """Return the record of a plug-in's collective; UsageError for another name."""
    kinds = own.world.config.catalogue.collectives
    others = [each for each in kinds if each not in COLLECTIVES]
    if name in kinds and kinds[name].name in COLLECTIVES:
        raise UsageError(
            f"dist.collective: name must be a collective of a plug-in, not {brief(name)}; call its own function of "
            "dist."
        )
    if name not in kinds:
        raise UsageError(
            f"dist.collective: name must be a registered collective of a plug-in, not {brief(name)}."
            f"{did_you_mean(str(name), others)}"
        )
    return kinds[name]


def _checked(
    own: Here,
    group: ProcessGroup,
    call: str,
    kind: CollectiveKind,
    shape: CallShape,
    output: AnyTensor | None,
    input: AnyTensor | None,
) -> str:
    """Return the dtype of a call whose tensors are those that its record says; raise a sentence otherwise."""
    rank = group.ranks.index(own.rank)
    ends = kind.ends(shape, rank)
    wanted = {"output": None if ends is None else sum(piece.count for piece in ends), "input": kind.brings(shape, rank)}
    given: list[tuple[str, AnyTensor]] = []
    for what, tensor in (("output", output), ("input", input)):
        size = wanted[what]
        if size is None and tensor is not None:
            raise UsageError(f"{call}: {what} must be None on rank {own.rank}, which has none; leave it out.")
        if size is not None:
            found = own_tensor(own, call, what, tensor)
            sized(call, what, found, size, f"for a count of {shape.count} on rank {own.rank}")
            given.append((what, found))
    if not given:
        raise UsageError(f"{call}: rank {own.rank} must have an input or an output, and {kind.name} gives it neither.")
    if len(given) == 2:
        same_dtype(call, *given)
        if overlap(given[0][1], given[1][1]):
            raise UsageError(f"{call}: output and input must not share memory; make one with rt.empty.")
    return given[0][1].dtype
