"""What kernels wrote, by the names that the user gave: computed when it is looked at, and only what that needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs

from kernbench_core.errors import NoDataError, UninitializedReadError
from kernbench_core.host.device_tensor import DeviceTensor
from kernbench_core.kernel.arguments import PerPe
from kernbench_core.kernel.pointers import Pointer
from kernbench_core.process.notebook import Pictured
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_core.compute.backends import Backend, ComputedBy
    from kernbench_core.compute.executor import DataExecutor
    from kernbench_core.host.host_program import Shared
    from kernbench_core.oplog.log import OpLog
    from kernbench_core.values.arrays import Array
    from kernbench_core.values.memory_store import MemoryStore
    from kernbench_core.values.value import Value

#: Names that a repr shows.
_SHOWN = 12


class LaterExecutor:
    """Make what computes the data of a run when data is first asked for: it takes as long to import as a small run."""

    def __init__(self, log: OpLog, store: MemoryStore, functions: Mapping[str, str], backend: Backend) -> None:
        self._log, self._store, self._functions, self._backend = log, store, functions, backend
        self._made: DataExecutor | None = None

    def get(self) -> DataExecutor:
        """Return it, the same each time."""
        if self._made is None:
            from kernbench_core.compute.executor import DataExecutor

            self._made = DataExecutor(self._log, self._store, self._functions, backend=self._backend)
        return self._made

    @property
    def computed_by(self) -> ComputedBy | None:
        """What computed data so far; None where nobody asked for any."""
        return None if self._made is None else self._made.computed_by


@attrs.define(eq=False)
class _Kept:
    """Hold the memory of a run that is over, for its tensors: nothing of its machine."""

    store: MemoryStore
    executor: LaterExecutor
    data: bool = True

    def require_live(self, tensor: DeviceTensor) -> None:
        """Do nothing: tensors that were freed are no outputs."""

    def require_unchanged(self, tensor: DeviceTensor) -> None:
        """Do nothing: outputs are what a run left."""

    def settle(self, tensor: DeviceTensor) -> None:
        """Do nothing: every launch is over."""

    def materialize(self, value: Value) -> Array:
        """Compute what a value needs, and return its data."""
        return self.executor.get().materialize(value)


class Outputs(Mapping[str, "Array"], Pictured):
    """The tensors that kernels wrote, by name, as numpy arrays; each is computed when it is first looked at.

    A tensor is called as `rt.tensor` was told, else as the parameter that a launch first gave it as. The second of a
    name is `c.2`, the third `c.3`, in the order in which they were made. Freed tensors are not there. Of several copies
    it is the first. What the run has no data for is a NoDataError.
    """

    __hash__ = None  # type: ignore[assignment]  # it holds arrays

    def __init__(
        self, find: Callable[[], Mapping[str, DeviceTensor]] | None, shapes: dict[str, Any] | None = None
    ) -> None:
        self._find = find
        self._computed: dict[str, Array] = {}
        self._known: Mapping[str, DeviceTensor | None] | None = None
        #: What `to_json` says, where a result was unpickled, or has no data.
        self._shapes = shapes

    @property
    def tensors(self) -> Mapping[str, DeviceTensor | None]:
        """What kernels wrote, by name, with shape and dtype; None where a result was unpickled."""
        if self._known is None:
            self._known = {} if self._find is None else self._find()
        return self._known

    def __getitem__(self, name: str) -> Array:
        if name not in self.tensors:
            more = [f"{len(self) - _SHOWN:,} more"] if len(self) > _SHOWN else []
            known = ", ".join([*(brief(each) for each in [*self.tensors][:_SHOWN]), *more]) or "none"
            told = f"which are {known}; {brief(name)} is not one"
            raise KeyError(f"outputs are the live tensors that a kernel wrote, {told}")
        if name not in self._computed:
            tensor = self.tensors[name]
            if tensor is None:
                raise NoDataError(
                    f"output {name!r} must be computed before its result is pickled or kept in the cache, and was not; "
                    f"look at r.outputs[{name!r}] before that, or run with outputs=True."
                )
            array = tensor.numpy()
            array.flags.writeable = False
            self._computed[name] = array
        return self._computed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    def compute(self) -> None:
        """Compute all that were written as a whole; of others a part has no content."""
        for name in self.tensors:
            with suppress(UninitializedReadError):
                _ = self[name]

    @property
    def computed(self) -> Mapping[str, Array]:
        """Those that were looked at."""
        return dict(self._computed)

    def to_json(self) -> dict[str, Any]:
        """Return shape and dtype of each."""
        if self._shapes is not None:
            return self._shapes
        return {
            name: {"shape": list(tensor.shape), "dtype": tensor.dtype}
            for name, tensor in self.tensors.items()
            if tensor is not None
        }

    def __getstate__(self) -> dict[str, Any]:
        shapes = self.to_json()
        return {"_find": None, "_computed": self._computed, "_known": dict.fromkeys(shapes), "_shapes": shapes}

    def __repr__(self) -> str:
        if self._find is _no_data:
            return "<Outputs: none, as the run keeps shapes only>"
        names = [*self.to_json()]
        told = [f"{name!r}: {self._describe(name)}" for name in names[:_SHOWN]]
        more = [f"… {len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
        return f"<Outputs {{{', '.join([*told, *more])}}}>"

    def _describe(self, name: str) -> str:
        array = self._computed.get(name)
        return "not computed yet" if array is None else f"{array.dtype}{list(array.shape)}"


def outputs_of(shared: Shared, store: MemoryStore, executor: LaterExecutor) -> Outputs:
    """Return what the kernels of a run that is over wrote; who wrote what is found out when that is asked."""
    if not store.data:
        return Outputs(_no_data, {})
    kept, given, made = _Kept(store, executor), _parameters(shared), dict(shared.tensors)

    def find() -> dict[str, DeviceTensor]:
        found: dict[str, DeviceTensor] = {}
        for allocation, named in made.items():
            if any(store.holds_results("hbm", region) for region in allocation.all_regions):
                name = _free(named or given.get(allocation.va) or allocation.name, found)
                found[name] = DeviceTensor(kept, allocation)
        return found

    return Outputs(find)


def _no_data() -> Mapping[str, DeviceTensor]:
    raise NoDataError("the outputs have no data in a run that keeps shapes only; leave out data=False.")


def _free(name: str, taken: Mapping[str, object]) -> str:
    """Return a name, with the first number from 2 on that is free where it is taken."""
    number, made = 1, name
    while made in taken:
        number += 1
        made = f"{name}.{number}"
    return made


def _parameters(shared: Shared) -> dict[int, str]:
    """Return by virtual address as which parameter a tensor was first given to a launch."""
    found: dict[int, str] = {}
    for handle in shared.launches:
        for name, value in handle.launch.arguments.items():
            for at, pointer in _pointers(name, value):
                found.setdefault(pointer.tensor.va, at)
    return found


def _pointers(name: str, value: object) -> Iterable[tuple[str, Pointer]]:
    """Yield the pointers in an argument, with what to call each."""
    if isinstance(value, Pointer):
        yield name, value
    elif isinstance(value, Mapping) and not isinstance(value, PerPe):
        for key, each in value.items():
            yield from _pointers(f"{name}[{key!r}]", each)
    elif isinstance(value, list | tuple):
        for at, each in enumerate(value):
            yield from _pointers(f"{name}[{at}]", each)
