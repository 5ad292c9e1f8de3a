"""A launch as the host's code asks for it, with arrays of the host, given to the device that holds copies of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve

from kernbench_builtin.triton.host_arrays import DeviceCopies, HeldArgument
from kernbench_builtin.triton.language.blocks import TensorDescriptor
from kernbench_builtin.triton.placement import LaunchShape
from kernbench_builtin.triton.scalars import mapped
from kernbench_builtin.triton.storage import StorageView, addresses_of, reached, view_of
from kernbench_core.host.launch_arguments import deal_programs
from kernbench_core.messages import Launch

if TYPE_CHECKING:
    from kernbench_builtin.triton.simulation import JitLaunch
    from kernbench_core.host.host_program import LaunchHandle


def launched(copies: DeviceCopies, asked: JitLaunch, kept: bool) -> LaunchHandle:
    """Launch on the device what the host's code asks for, with the host's arrays."""
    rt = copies.rt
    views: dict[str, StorageView] = {}
    arrays = dict(each for given in asked.arguments.items() for each in _parts(*given))
    for name, value in arrays.items():
        view = view_of(_base(value), f"argument {name!r} of kernel {asked.name!r}")
        if view is not None:
            views[name] = view
    views.update(reached(views, asked.reachable, f"an array that kernel {asked.name!r} reaches by its address"))
    shapes = {name: _shape(_base(value)) for name, value in arrays.items()}
    launch = LaunchShape.of(asked.grid, [site.sip for site in rt.pes], asked.of_compile_time)
    held = copies.hold(views, shapes, launch, asked.name)
    if asked.reachable:
        asked.kernel.addresses = addresses_of(held.values())  # type: ignore[attr-defined]  # of a jit function
    arguments = {name: _on_device(name, value, held) for name, value in asked.arguments.items()}
    programs, grid = deal_programs([site.index for site in rt.pes], asked.grid)
    tensors = [each.held.tensor for each in held.values()]
    handle = rt.submit(Launch(asked.kernel, arguments, grid, programs), tensors, asked.name)
    handle.site = asked.site
    rt.wait(handle)
    if kept:
        copies.read_back(held.values(), asked.name)
    else:
        copies.forget(held.values())
    return handle


def _base(value: object) -> Any:
    return value.base if isinstance(value, TensorDescriptor) else value


def _shape(array: Any) -> tuple[int, ...]:
    """Return the shape of an array whose elements are in order without holes, and () of all others."""
    flags = getattr(array, "flags", None)
    in_order = flags.c_contiguous if flags is not None else getattr(array, "is_contiguous", bool)()
    return tuple(array.shape) if in_order else ()


def _parts(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield an argument, or what is in it where it is a tuple, with the name of each."""
    if not isinstance(value, tuple):
        yield name, value
        return
    for place, each in zip(_places(value), value, strict=True):
        yield from _parts(f"{name}{place}", each)


def _places(value: tuple[object, ...]) -> Iterable[str]:
    fields = getattr(value, "_fields", None)
    return (f"[{at}]" for at in range(len(value))) if fields is None else (f".{field}" for field in fields)


def _on_device(name: str, value: object, held: Mapping[str, HeldArgument]) -> object:
    """Give an argument as the device has it: an array's pointer, a descriptor of what is there, a tuple of such."""
    if isinstance(value, tuple):
        places = iter(_places(value))
        return mapped(lambda each: _on_device(f"{name}{next(places)}", each, held), value)
    if name not in held:
        return value
    pointer = held[name].pointer
    return evolve(value, base=pointer) if isinstance(value, TensorDescriptor) else pointer
