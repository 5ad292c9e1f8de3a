"""As much of torch's interface as the front end uses, over numpy: functions go through modes, and CUDA is not there."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import numpy as np


class dtype:  # noqa: N801 - torch's spelling
    """A dtype."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return f"torch.{self.name}"


float32, uint8 = dtype("float32"), dtype("uint8")
MODES: list[Any] = []


class _ThroughModes(type):
    """Classes of torch that are called through modes, too."""

    def __call__(cls, *args: Any, **named: Any) -> Any:
        if not MODES:
            return super().__call__(*args, **named)
        mode = MODES.pop()
        try:
            return mode.__torch_function__(cls, (), args, named)
        finally:
            MODES.append(mode)


class device(metaclass=_ThroughModes):  # noqa: N801 - torch's spelling
    """A device."""

    def __init__(self, type: Any, index: int | None = None) -> None:
        name, _, number = str(type).partition(":")
        self.type, self.index = name, int(number) if number else index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash(self.type)

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"


def through_modes(func: Any) -> Any:
    """Have calls of a function go through the innermost mode."""

    def call(*args: Any, **named: Any) -> Any:
        if not MODES:
            return func(*args, **named)
        mode = MODES.pop()
        try:
            return mode.__torch_function__(call, (), args, named)
        finally:
            MODES.append(mode)

    return call


class TorchFunctionMode:
    """Functions are called through it while it is entered."""

    def __enter__(self) -> Any:
        MODES.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        MODES.remove(self)


overrides = SimpleNamespace(TorchFunctionMode=TorchFunctionMode)


class Tensor:
    """A tensor of the host; what it says of its place goes through modes, as torch's does."""

    is_cuda = SimpleNamespace(__get__=through_modes(lambda self: False))
    device = SimpleNamespace(__get__=through_modes(lambda self: device("cpu")))

    def __init__(self, storage: Any, dtype: Any, shape: Any, offset: int = 0, place: str = "cpu") -> None:
        self.storage, self.dtype, self.shape, self._offset, self._place = storage, dtype, shape, offset, place

    def __getattribute__(self, name: str) -> Any:
        if name in ("is_cuda", "device"):
            return getattr(Tensor, name).__get__(self)
        return super().__getattribute__(name)

    def numpy(self) -> Any:
        """Give it as an array of the same memory."""
        size = int(np.prod(self.shape))
        return self.storage.view(self.dtype.name)[self._offset : self._offset + size].reshape(self.shape)

    def set_(self, storage: Any) -> Tensor:
        """Take a whole storage."""
        return Tensor(storage.data, uint8, (len(storage.data),))

    def untyped_storage(self) -> Any:
        """Give the bytes."""
        return SimpleNamespace(data=self.storage, device=device(self._place))

    def storage_offset(self) -> int:
        """Give the first element."""
        return self._offset

    def element_size(self) -> int:
        """Give the bytes of an element."""
        return np.dtype(self.dtype.name).itemsize

    @through_modes
    def to(self, place: Any) -> Tensor:
        """Move it."""
        if device(place).type != "cpu":
            raise RuntimeError("no CUDA")
        return self


def _cuda(self: Tensor) -> Tensor:
    raise RuntimeError("no CUDA")


Tensor.cuda = through_modes(_cuda)  # type: ignore[attr-defined]
Tensor.pin_memory = through_modes(_cuda)  # type: ignore[attr-defined]
Tensor.get_device = through_modes(lambda self: -1)  # type: ignore[attr-defined]
Tensor.data_ptr = through_modes(lambda self: self.numpy().ctypes.data)  # type: ignore[attr-defined]


@through_modes
def full(shape: Any, value: float, kind: Any = float32, device: Any = "cpu", pin_memory: bool = False) -> Tensor:
    """Make a tensor."""
    if str(device) != "cpu" or pin_memory:
        raise RuntimeError("no CUDA")
    array = np.full(shape, value, kind.name)
    return Tensor(array.reshape(-1).view(np.uint8), kind, tuple(np.atleast_1d(shape)))


def empty(shape: Any, dtype: Any = float32) -> Tensor:
    """Make a tensor."""
    return Tensor(np.zeros(shape, np.uint8), dtype, (shape,))


def no_grad() -> Any:
    """Do nothing."""
    return contextlib.nullcontext()


class Generator:
    """A source of random numbers: its state is what it was seeded with, and that counts up."""

    def __new__(cls, device: Any = "cpu") -> Any:
        """Make one, on the host."""
        if str(device) != "cpu":
            raise RuntimeError("no CUDA")
        return object.__new__(cls)

    def manual_seed(self, seed: int) -> Generator:
        """Begin anew."""
        self.state = seed
        return self

    def get_state(self) -> int:
        """Give its state."""
        return self.state

    def set_state(self, state: int) -> None:
        """Go back to a state."""
        self.state = state


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seed the host, and CUDA as torch does."""
    cuda.manual_seed_all(seed)
    return default_generator.manual_seed(seed)


def compile(model: Any) -> Any:
    """Fail, where there is no compiler."""
    raise RuntimeError("no compiler")


autograd = SimpleNamespace(_engine_run_backward=lambda function: function())


def set_default_device(place: Any) -> None:
    """Take the host alone."""
    if str(place) != "cpu":
        raise RuntimeError("no CUDA")


cuda = SimpleNamespace(is_available=lambda: False, device_count=lambda: 0, manual_seed_all=lambda seed: None)
