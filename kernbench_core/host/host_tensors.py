"""Device memory as a host program uses it: make tensors, copy, free, check.

Copies take the time of the copy, allocations that of telling the MMUs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernbench_core.callsite import describe_site, site_of_frame
from kernbench_core.errors import ShapeError, StoreError, UsageError
from kernbench_core.host.device_tensor import DeviceTensor, cell_of
from kernbench_core.host.expectation import Expectation, require_like, require_numbers
from kernbench_core.host.host_program import HostProgram, Shared
from kernbench_core.host.launch_arguments import choose_pes
from kernbench_core.memory.placement import Placements
from kernbench_core.messages import MapUpdate, MemoryReadMsg, MemoryWriteMsg, MmuMapMsg
from kernbench_core.values.arrays import Array
from kernbench_core.values.dtypes import cast, dtype_name, is_known, itemsize, numpy_dtype
from kernbench_core.values.masks import NO_MASK, has_mask
from kernbench_core.values.region import Region
from kernbench_core.values.value import ArrayValue, Value
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_core.graph import PeSite
    from kernbench_core.host.host_program import Session


def _tolerance(name: str, which: str, given: float | None) -> float | None:
    if given is None or (isinstance(given, int | float | np.number) and given >= 0):
        return given
    raise UsageError(
        f"rt.check({name!r}): {which} must be a number from 0 up, not {brief(given)}; leave it out for that of the "
        "dtype."
    )


def _require_no_mask(which: str, given: object) -> None:
    if has_mask(given):
        raise ShapeError(f"{which} must be {NO_MASK}.")


class HostTensors(HostProgram):
    """The part of `rt` that makes tensors and looks at them."""

    def __init__(
        self, session: Session, shared: Shared, pes: tuple[PeSite, ...], name: str, seed: int | Sequence[int]
    ) -> None:
        super().__init__(session, shared, pes, name, seed)
        self.store = session.device.store
        self.data = self.store.data
        self._pe_indices = tuple(site.index for site in pes)
        self._named = 0

    def tensor(
        self,
        source: npt.ArrayLike | tuple[int, ...],
        dtype: str | None = None,
        *,
        name: str | None = None,
        placement: Placements | None = None,
        device: int | str | Iterable[int] | None = None,
        resident: bool = False,
    ) -> DeviceTensor:
        """Place an array, or random numbers of a shape, in device memory, and take the time of the copy.

        `source` is an array, or a tuple of ints that is a shape: then the content is drawn from `rt.rng`
        (normal floats, ints from -8 to 7, unsigned ones from 0 to 15). `dtype` is a name like "f16"; default the
        array's own, f32 for a shape or a list of Python floats. A float64 array without one is a StoreError.
        Every copy of a replicated tensor is written, and takes its time. With `resident`, as weights are, the data is
        there before the run: nothing is copied, and only the MMUs are told. For `placement` and `device` see `empty`.
        """
        self.require_host("rt.tensor")
        shape = _as_shape(source)
        if shape is not None:
            kind = dtype or "f32"
            _check_shape(shape, name)
            array = _random(self.rng, shape, kind) if self.data else None
        else:
            _require_no_mask(f"the array of {_named(name)}", source)
            array = np.asarray(source)
            kind = dtype or _own_dtype(source, array, name)
            if dtype is not None:
                require_numbers(f"the array of {_named(name)}", array)
            array = cast(array, kind)
            shape = array.shape
        tensor = self.empty(shape, kind, name=name, placement=placement, device=device)
        self._put(tensor, array)
        shared = self.shared
        if not shared.residents.take(tensor.name, tensor.nbytes, begun=bool(shared.launches)) and not resident:
            self.request(MemoryWriteMsg(tensor.allocation.all_regions))
        return tensor

    def preload(self, tensor: DeviceTensor, array: Array) -> None:
        """Have a tensor hold `array`, of its shape and dtype, as if it had been there before; takes no time."""
        self.require_host("rt.preload")
        self.require_live(tensor)
        self.settle(tensor)
        _require_no_mask(f"rt.preload: the array of tensor {tensor.name!r}", array)
        if self.data:
            self._put(tensor, array)

    def operand(
        self,
        source: npt.NDArray[Any] | DeviceTensor | None,
        shape: Sequence[int],
        dtype: str,
        *,
        name: str,
        placement: Placements | None = None,
    ) -> DeviceTensor:
        """Return the tensor that an array parameter of a bench stands for; it has this shape and dtype.

        A tensor of the device is taken as it is, where it lies. An array is placed as by `tensor`, and so are random
        numbers for None. Pairs of bytes, which is what a file has of bf16, are taken for `dtype`. Raise UsageError for
        another shape or dtype.
        """
        self.require_host("rt.operand")
        shape = tuple(int(extent) for extent in shape)
        if source is None:
            return self.tensor(shape, dtype, name=name, placement=placement)
        kind = source.dtype
        if isinstance(source, np.ndarray) and kind == np.dtype(f"V{itemsize(dtype)}"):
            source = source.view(numpy_dtype(dtype))
            kind = source.dtype
        if tuple(source.shape) != shape:
            raise UsageError(
                f"operand {name!r} must be an array of shape {shape}, not {tuple(source.shape)}; give another array, "
                "or other sizes."
            )
        if (kind if isinstance(kind, str) else is_known(kind) and dtype_name(kind)) != dtype:
            raise UsageError(
                f"operand {name!r} must be an array of dtype {dtype}, not {kind}; cast it, or choose another dtype."
            )
        if isinstance(source, DeviceTensor):
            self.require_live(source)
            return source
        return self.tensor(source, dtype, name=name, placement=placement)

    def zeros(
        self,
        shape: Sequence[int],
        dtype: str = "f32",
        *,
        name: str | None = None,
        placement: Placements | None = None,
        device: int | str | Iterable[int] | None = None,
        resident: bool = False,
    ) -> DeviceTensor:
        """Place zeros in device memory, and take the time of the copy. For the rest see `tensor` and `empty`."""
        self.require_host("rt.zeros")
        _check_shape(shape, name)
        source = np.zeros(tuple(shape), numpy_dtype(dtype)) if self.data else tuple(shape)
        return self.tensor(source, dtype, name=name, placement=placement, device=device, resident=resident)

    def empty(
        self,
        shape: Sequence[int],
        dtype: str = "f32",
        *,
        name: str | None = None,
        placement: Placements | None = None,
        device: int | str | Iterable[int] | None = None,
    ) -> DeviceTensor:
        """Allocate device memory without writing it, and take the time of telling the MMUs of all PEs.

        `placement` is `Shard(dim)`, `Replicate()` or `Interleave(nbytes)` over all PEs, a tuple of one for each of the
        mesh dimensions sip, cube and pe, or a mapping from these names, where those that are not named replicate.
        Without one the first dimension is dealt in equal blocks over the memory slices of the device's PEs. `device`
        restricts the PEs to those of one SIP (a number, or "sip:N") or of several (numbers).
        """
        self.require_host("rt.empty")
        _check_shape(shape, name)
        self._named += 1
        label = name or f"tensor{self._named}"
        pes = choose_pes(self.pes, device, "rt.empty")
        extents = tuple(int(n) for n in shape)
        allocation = self._session.device.memory.allocate(extents, dtype, label, pes, placement)
        self.request(MmuMapMsg(self._pe_indices, MapUpdate(allocation.all_regions)))
        self.shared.tensors[allocation] = name
        return DeviceTensor(self, allocation)

    def free(self, tensor: DeviceTensor) -> None:
        """Give a tensor's device memory back, content and all, and take the time of telling the MMUs of all PEs.

        The tensor is dead then: every use of it raises KernelError.
        """
        self.require_host("rt.free")
        self.require_live(tensor)
        self.settle(tensor)
        self.request(MmuMapMsg(self._pe_indices, MapUpdate(tensor.allocation.all_regions, unmap=True)))
        self._session.device.memory.free(tensor.allocation)
        self.shared.tensors.pop(tensor.allocation, None)
        self.store.forget("hbm", tensor.allocation.all_regions)

    def copy_to_host(self, tensor: DeviceTensor) -> None:
        """Take the time of reading a tensor back; `tensor.numpy()` gives its data, at no time. Return nothing."""
        self.require_host("rt.copy_to_host")
        self.require_live(tensor)
        self.settle(tensor)
        self.request(MemoryReadMsg(tensor.regions))

    def check(
        self,
        tensor: DeviceTensor,
        expected: npt.ArrayLike | Callable[[], Array],
        rtol: float | None = None,
        atol: float | Callable[[], float] | None = None,
    ) -> None:
        """Ask that `tensor`, as it is now, be compared with `expected` when data is verified.

        `expected` is an array of the tensor's shape, or a function that makes one and is called only then; so may
        `atol` be. Such a function may read tensors that were not written since, else it raises UsageError. Every copy
        of a replicated tensor is compared, those that hold the very same values once.
        """
        self.require_host("rt.check")
        self.require_live(tensor)
        self.settle(tensor)
        rtol = _tolerance(tensor.name, "rtol", rtol)
        atol = atol if callable(atol) else _tolerance(tensor.name, "atol", atol)
        _require_no_mask(f"rt.check({tensor.name!r}): expected", expected)
        site, made = site_of_frame(sys._getframe()), expected if callable(expected) else np.array(expected)
        which = f"the reference of tensor {tensor.name!r}, checked at {describe_site(site)},"
        later = partial(self._as_checked, which, self.store.stamp("hbm"))
        if callable(made):
            made = partial(later, made)
        else:
            require_like(f"rt.check({tensor.name!r}): expected", made, tensor.shape)
        if callable(atol):
            atol = partial(later, atol)
        for replica, value in tensor.distinct().items():
            name = tensor.name if tensor.replicas == 1 else f"{tensor.name}, replica {replica}"
            self.shared.expectations.append(Expectation(name, value, made, rtol, atol, self, site))

    # Inside -----------------------------------------------------------------------------------------

    def _as_checked(self, which: str, stamp: int, compute: Callable[[], Any]) -> Any:
        """Compute a reference, or a tolerance, which must not read what was written after its check."""
        self.shared.reference = which, stamp
        try:
            return compute()
        finally:
            self.shared.reference = None

    def require_unchanged(self, tensor: DeviceTensor) -> None:
        """Raise UsageError where the reference that is being computed would read what was written after its check."""
        if self.shared.reference is None:
            return
        which, stamp = self.shared.reference
        if self.store.stamp("hbm", tensor.allocation.all_regions) > stamp:
            raise UsageError(
                f"{which} must not read tensor {tensor.name!r}, which was written after the check; give rt.check an "
                f"array, or call {tensor.name}.snapshot() before the check, and what it returns in the reference."
            )

    def require_live(self, tensor: DeviceTensor) -> None:
        """Raise KernelError when `tensor` was freed, or is of another run."""
        self._session.device.memory.require_live(tensor.allocation)

    def _put(self, tensor: DeviceTensor, array: Array | None) -> None:
        if array is None:
            return
        whole = np.array(array, order="C")
        whole.flags.writeable = False
        layout = tensor.allocation.layout
        assert layout is not None
        cells: dict[int, ArrayValue] = {}
        for segment in tensor.allocation.segments:
            if segment.cell not in cells:
                cells[segment.cell] = ArrayValue(cell_of(whole, layout, segment.cell))
            self.store.write("hbm", Region(segment.pa, segment.nbytes), cells[segment.cell])

    def materialize(self, value: Value) -> Array:
        """Compute what `value` needs, and return it."""
        return self._session.device.on_demand.array(value, "the host", host=True)


def _check_shape(shape: Sequence[object], name: str | None) -> None:
    if any(not isinstance(extent, int | np.integer) or extent < 1 for extent in shape):
        which = "a tensor" if name is None else f"tensor {name!r}"
        raise ShapeError(
            f"the shape of {which} must be positive integers, not {brief(tuple(shape))}; correct its extents."
        )


def _own_dtype(source: object, array: Array, name: str | None) -> str:
    """Return the dtype of an array, or f32 for Python floats; StoreError for a float64 array, mostly made unawares."""
    if array.dtype == np.float64:
        if not isinstance(source, np.ndarray | np.generic):
            return "f32"
        raise StoreError(
            f"the array of {_named(name)} must be given a dtype, as it is of float64, numpy's default; pass "
            'dtype="f32", or another, to round it, or dtype="f64".'
        )
    return dtype_name(array.dtype)


def _named(name: str | None) -> str:
    return "a tensor" if name is None else f"tensor {name!r}"


def _as_shape(source: object) -> tuple[int, ...] | None:
    """Return `source` where it is a shape: a tuple of ints."""
    return tuple(map(int, source)) if isinstance(source, tuple) and all(map(_is_int, source)) else None


def _is_int(thing: object) -> bool:
    return isinstance(thing, int | np.integer) and not isinstance(thing, bool)


def _random(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    kind = numpy_dtype(dtype)
    if kind.kind in "iub":
        least = 0 if kind.kind == "u" else -8
        return rng.integers(least, least + 16, shape).astype(kind)
    return rng.standard_normal(shape, np.float32).astype(kind)
