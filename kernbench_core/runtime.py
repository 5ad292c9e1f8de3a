"""The host API: what a bench calls (`rt`) to place tensors, launch kernels and check results.

A bench is a plain function that runs beside the simulation: a call that takes simulated time
suspends it until the device has answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import numpy.typing as npt

from kernbench_core.bridge import Bridge, in_kernel
from kernbench_core.device_tensor import Array, DeviceTensor, LocalTensor, ShardInfo, cell_of
from kernbench_core.dtypes import dtype_name, numpy_dtype
from kernbench_core.errors import KernelError, ShapeError, UsageError
from kernbench_core.launching import bind_arguments, choose_pes, deal_programs, replace_nested
from kernbench_core.messages import (
    HostRequest,
    KernelLaunchMsg,
    Launch,
    MapUpdate,
    MemoryReadMsg,
    MemoryWriteMsg,
    MmuMapMsg,
)
from kernbench_core.placement import Placements
from kernbench_core.pointers import LocalPointers, Pointer
from kernbench_core.regions import Region
from kernbench_core.rows import Cell, make_row
from kernbench_core.values import ArrayValue, Value

if TYPE_CHECKING:
    from kernbench_core.engine import GraphEngine
    from kernbench_core.graph import PeSite
    from kernbench_core.memory import TensorAllocation
    from kernbench_core.oplog import OpLog

__all__ = ["DeviceTensor", "Expectation", "LaunchHandle", "LocalTensor", "Runtime", "ShardInfo"]


@attrs.frozen
class Expectation:
    """Keep what a tensor must be: the value it held when checked, and the array or its maker.

    `rtol` and `atol` None mean the dtype's own tolerance.
    """

    name: str
    value: Value
    expected: Array | Callable[[], Array]
    rtol: float | None
    atol: float | None

    def array(self) -> Array:
        """Return the expected array, computing it when it was given as a function."""
        return np.asarray(self.expected() if callable(self.expected) else self.expected)


@attrs.define
class LaunchHandle:
    """Refer to a launch that may still be running."""

    request: KernelLaunchMsg
    tensors: tuple[DeviceTensor, ...]

    @property
    def launch(self) -> Launch:
        """The launch, with each PE's start and end in ns."""
        return self.request.launch


class Runtime:
    """Give a host program the device. `rt.pes` are the PEs it may use, `rt.rng` is seeded by the run."""

    bridge: Bridge

    def __init__(self, engine: GraphEngine) -> None:
        self._engine = engine
        self.data = engine.ctx.data
        self.store = engine.ctx.store
        self.pes: tuple[PeSite, ...] = engine.pes
        self._pe_indices = tuple(site.index for site in engine.pes)
        self.rng = np.random.default_rng(engine.ctx.seed)
        self.requests: list[HostRequest] = []
        self.expectations: list[Expectation] = []
        self.rows: list[dict[str, Cell]] = []
        self._running: list[LaunchHandle] = []
        self._named = 0
        self._executor: Any = None

    @property
    def n_pes(self) -> int:
        """How many PEs the device has."""
        return len(self.pes)

    @property
    def mesh(self) -> tuple[int, int, int]:
        """How many SIPs the device has, cubes in each, and PEs in each cube: the mesh that placements are over."""
        sips = len({site.sip for site in self.pes})
        cubes = len({(site.sip, site.cube) for site in self.pes})
        return sips, cubes // sips, len(self.pes) // cubes

    @property
    def cube_mesh(self) -> tuple[int, int]:
        """Width and height of the mesh that the cubes of a SIP form; cubes are numbered along its rows."""
        design = self._engine.ctx.design
        return design.mesh_width, design.cubes_per_sip // design.mesh_width

    @property
    def now(self) -> float:
        """Simulated time in ns."""
        return self._engine.env.now

    # Tensors --------------------------------------------------------------------------------------

    def tensor(
        self,
        source: npt.ArrayLike | tuple[int, ...],
        dtype: str | None = None,
        *,
        name: str | None = None,
        placement: Placements | None = None,
        device: int | str | Iterable[int] | None = None,
    ) -> DeviceTensor:
        """Place an array, or random numbers of a shape, in device memory, and take the time of the copy.

        `source` is an array, or a tuple of ints that is a shape: then the content is drawn from `rt.rng`
        (normal floats, ints from -8 to 7, unsigned ones from 0 to 15). `dtype` is a name like "f16"; default the
        array's own, or f32.
        Every copy of a replicated tensor is written, and takes its time. For `placement` and `device` see `empty`.
        """
        self._require_host("rt.tensor")
        shape = _as_shape(source)
        if shape is not None:
            kind = dtype or "f32"
            _check_shape(shape, name)
            array = _random(self.rng, shape, kind) if self.data else None
        else:
            array = np.asarray(source)
            kind = dtype or dtype_name(array.dtype)
            array = array.astype(numpy_dtype(kind), copy=False)
            shape = array.shape
        tensor = self.empty(shape, kind, name=name, placement=placement, device=device)
        self._put(tensor, array)
        self._request(MemoryWriteMsg(tensor.allocation.all_regions))
        return tensor

    def zeros(
        self,
        shape: Sequence[int],
        dtype: str = "f32",
        *,
        name: str | None = None,
        placement: Placements | None = None,
        device: int | str | Iterable[int] | None = None,
    ) -> DeviceTensor:
        """Place zeros in device memory, and take the time of the copy. For the rest see `empty`."""
        self._require_host("rt.zeros")
        _check_shape(shape, name)
        source = np.zeros(tuple(shape), numpy_dtype(dtype)) if self.data else tuple(shape)
        return self.tensor(source, dtype, name=name, placement=placement, device=device)

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
        self._require_host("rt.empty")
        _check_shape(shape, name)
        self._named += 1
        label = name or f"tensor{self._named}"
        pes = choose_pes(self.pes, device, "rt.empty")
        extents = tuple(int(n) for n in shape)
        allocation = self._engine.ctx.memory.allocate(extents, dtype, label, pes, placement)
        self._request(MmuMapMsg(self._pe_indices, MapUpdate(allocation.all_regions)))
        return DeviceTensor(self, allocation)

    def free(self, tensor: DeviceTensor) -> None:
        """Give a tensor's device memory back, content and all, and take the time of telling the MMUs of all PEs.

        The tensor is dead then: every use of it raises KernelError.
        """
        self._require_host("rt.free")
        self.require_live(tensor)
        self.settle(tensor)
        self._request(MmuMapMsg(self._pe_indices, MapUpdate(tensor.allocation.all_regions, unmap=True)))
        self._engine.ctx.memory.free(tensor.allocation)
        self.store.forget("hbm", tensor.allocation.all_regions)

    def copy_to_host(self, tensor: DeviceTensor) -> None:
        """Take the time of reading a tensor back; `tensor.numpy()` gives its data, at no time."""
        self._require_host("rt.copy_to_host")
        self.require_live(tensor)
        self.settle(tensor)
        self._request(MemoryReadMsg(tensor.regions))

    def check(
        self,
        tensor: DeviceTensor,
        expected: npt.ArrayLike | Callable[[], Array],
        rtol: float | None = None,
        atol: float | None = None,
    ) -> None:
        """Ask that `tensor`, as it is now, be compared with `expected` when data is verified.

        `expected` is an array of the tensor's shape, or a function that makes one and is called only then. Every copy
        of a replicated tensor is compared, those that hold the very same values once.
        """
        self._require_host("rt.check")
        self.require_live(tensor)
        self.settle(tensor)
        if not callable(expected) and np.shape(expected) != tensor.shape:
            raise ShapeError(
                f"rt.check({tensor.name!r}): expected must have the tensor's shape {tensor.shape}, "
                f"not {np.shape(expected)}."
            )
        made = expected if callable(expected) else np.array(expected)
        for replica, value in tensor.distinct().items():
            name = tensor.name if tensor.replicas == 1 else f"{tensor.name}, replica {replica}"
            self.expectations.append(Expectation(name, value, made, rtol, atol))

    @property
    def op_log(self) -> OpLog:
        """What was recorded so far; between launches that is everything that they did."""
        return self._engine.op_log

    def report(self, **columns: Any) -> None:
        """Add a row to the table that the result shows (`result.rows`); takes no simulated time.

        Values are numbers, texts, bools or None. A column named `…_ns` is shown as a time, `…_bytes` as bytes.
        """
        self._require_host("rt.report")
        self.rows.append(make_row(columns))

    # Launches -------------------------------------------------------------------------------------

    def launch(
        self,
        kernel: Callable[..., Any],
        *args: object,
        grid: tuple[int, ...] | None = None,
        device: int | str | Iterable[int] | None = None,
        wait: bool = True,
        **kwargs: object,
    ) -> LaunchHandle:
        """Run `kernel(*args, **kwargs, tl)` on the device's PEs and wait for it, unless `wait` is false.

        Without `grid` there is one program per PE; with `grid=(x[, y[, z]])` programs are dealt to PEs
        round-robin in PE order, x fastest. `device` restricts the PEs to those of one SIP (a number, or "sip:N")
        or of several (numbers). The kernel gets a pointer for each tensor, also inside tuples, lists and dicts:
        each program gets its own copies of those. For `tensor.to_local()` it is a pointer to its PE's own shard.
        """
        self._require_host("rt.launch")
        sites = choose_pes(self.pes, device)
        programs, full_grid = deal_programs([site.index for site in sites], grid)
        arguments = bind_arguments(kernel, args, kwargs)
        tensors: list[DeviceTensor] = []

        def given(tensor: DeviceTensor) -> Pointer:
            self.require_live(tensor)
            tensors.append(tensor)
            return Pointer(tensor.allocation, 0, tensor.dtype)

        def given_local(local: LocalTensor) -> LocalPointers:
            given(local.tensor)
            return self._local_pointers(local.tensor, sorted(programs))

        plain = {name: replace_nested(value, DeviceTensor, given) for name, value in arguments.items()}
        plain = {name: replace_nested(value, LocalTensor, given_local) for name, value in plain.items()}
        request = KernelLaunchMsg(Launch(kernel, plain, full_grid, programs))
        request.launch.injected_ns = self.now
        self._engine.ctx.launches.append(request.launch)
        handle = LaunchHandle(request, tuple(tensors))
        self._running.append(handle)
        self._engine.ctx.hazards.launched(request.launch)
        self._engine.submit(request)
        if wait:
            self._wait(handle)
        return handle

    def wait(self, handle: LaunchHandle) -> None:
        """Wait, in simulated time, until a launch is complete."""
        self._require_host("rt.wait")
        self._wait(handle)

    def wait_for(self, tensor: DeviceTensor) -> None:
        """Wait, in simulated time, for every running launch that was given `tensor`."""
        self._require_host("rt.wait_for")
        self.settle(tensor)

    def wait_all(self) -> None:
        """Wait, in simulated time, for every running launch."""
        self._require_host("rt.wait_all")
        for handle in list(self._running):
            self._wait(handle)

    def _local_pointers(self, tensor: DeviceTensor, pes: Sequence[int]) -> LocalPointers:
        """Return the shards of a tensor that PEs hold; UsageError when one holds none."""
        found: dict[int, TensorAllocation] = {}
        for pe in pes:
            shard = self._engine.ctx.memory.local(tensor.allocation, pe)
            if shard is None:
                raise UsageError(
                    f"rt.launch: tensor {tensor.name!r} must have a shard on each PE of the launch for to_local(), "
                    f"and has none on {self._engine.ctx.design.pes[pe].prefix}; launch on the tensor's device, or give "
                    "the whole tensor."
                )
            found[pe] = shard
        return LocalPointers(found)

    # Inside ---------------------------------------------------------------------------------------

    def require_live(self, tensor: DeviceTensor) -> None:
        """Raise KernelError when `tensor` was freed, or is of another run."""
        self._engine.ctx.memory.require_live(tensor.allocation)

    def settle(self, tensor: DeviceTensor) -> None:
        """Wait for every running launch that was given `tensor`; outside the host program none is waited for."""
        if self.bridge.inside:
            for handle in [handle for handle in self._running if tensor in handle.tensors]:
                self._wait(handle)

    def _wait(self, handle: LaunchHandle) -> None:
        if not handle.request.done.fired:
            self.bridge.suspend(handle.request.done)
        if handle in self._running:
            self._running.remove(handle)
            self._engine.ctx.hazards.joined(handle.launch)

    def _require_host(self, call: str) -> None:
        """Raise a sentence when `call` is made by anything but the host program, while it runs."""
        if self.bridge.inside:
            return
        if in_kernel():
            raise KernelError(f"{call} must be called by the host program, not in a kernel; call it around the launch.")
        raise UsageError(f"{call} must be called by the host program while it runs; call it in the bench.")

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

    def _request(self, request: HostRequest) -> None:
        self.bridge.suspend(request)

    def materialize(self, value: Value) -> Array:
        """Compute what `value` needs, and return it."""
        from kernbench_core.executor import DataExecutor

        if self._executor is None:
            self._executor = DataExecutor(self._engine.op_log, self.store, self._engine.functions)
        result: Array = self._executor.materialize(value)
        return result


def _check_shape(shape: Sequence[object], name: str | None) -> None:
    if any(not isinstance(extent, int | np.integer) or extent < 1 for extent in shape):
        which = "a tensor" if name is None else f"tensor {name!r}"
        raise ShapeError(f"the shape of {which} must be positive integers, not {tuple(shape)!r}; correct its extents.")


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
