"""torch's device "cuda" as the simulated one, inside a `with` and nowhere else: tensors on it lie in the host's memory.

torch is never imported here: where a script imports it, it is changed then, and as before at the end.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

from kernbench_builtin.triton.modules import driver
from kernbench_builtin.triton.simulation import current

_NOTE = (
    "torch's device 'cuda' is the simulated one: its tensors lie in the host's memory, and torch's own operators take "
    "no time."
)


@contextmanager
def replaced() -> Iterator[None]:
    """Have torch's device "cuda" mean the simulated one, from the import of torch on."""
    with ExitStack() as stack:
        torch = sys.modules.get("torch")
        if torch is not None:
            stack.enter_context(_on_the_host(torch))
            yield
            return
        finder = _AtImport(lambda torch: stack.enter_context(_on_the_host(torch)))
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            finder.leave()


class _AtImport:
    """Call `then` with torch when it has been imported."""

    def __init__(self, then: Callable[[ModuleType], object]) -> None:
        self._then = then

    def leave(self) -> None:
        """Look at no more imports."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return where torch is, with a loader that calls `then` at the end; None for all others."""
        if name != "torch":
            return None
        self.leave()
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                self._then(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


@contextmanager
def _on_the_host(torch: Any) -> Iterator[None]:
    """Change torch while a block runs."""
    moved = _mover(torch)
    with ExitStack() as stack:
        stack.enter_context(_with(torch.cuda, _answers(torch)))
        stack.enter_context(_with(torch, _functions(torch, moved)))
        if hasattr(torch, "accelerator"):
            stack.enter_context(_with(torch.accelerator, _accelerator()))
        if hasattr(torch, "_C"):
            stack.enter_context(_with(torch._C, {"_cuda_getCurrentRawStream": _number(0)}))
        mode = _mode(torch, moved)
        stack.enter_context(_with(torch.autograd, _inside(mode, torch.autograd, "_engine_run_backward")))
        stack.enter_context(mode)
        yield


def _inside(mode: Any, module: Any, name: str) -> dict[str, object]:
    """Return a function of a module such that what it calls is in a mode, too, that it was called through."""
    given = getattr(module, name, None)
    if given is None:
        return {}

    def call(*args: Any, **named: Any) -> Any:
        with mode:
            return given(*args, **named)

    return {name: call}


@contextmanager
def _with(module: Any, names: Mapping[str, object]) -> Iterator[None]:
    """Give a module other names while a block runs."""
    missing = object()
    before = {name: getattr(module, name, missing) for name in names}
    for name, value in names.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is missing:
                delattr(module, name)
            else:
                setattr(module, name, value)


def _functions(torch: Any, moved: Callable[[Any], Any]) -> dict[str, object]:
    """Return what stands for functions of torch that no mode is asked about."""
    default, generator = torch.set_default_device, torch.Generator

    def set_default_device(device: Any) -> None:
        default(moved(device))

    class Generator(generator):  # type: ignore[misc, valid-type]  # torch is not here to be read
        """A source of random numbers, on the host."""

        def __new__(cls, device: Any = "cpu") -> Any:
            return super().__new__(cls, moved(device))

    def compile_nothing(model: Any = None, **options: object) -> Any:
        current("torch.compile").note("torch.compile leaves functions as they are.")
        return (lambda function: function) if model is None else model

    return {"set_default_device": set_default_device, "Generator": Generator, "compile": compile_nothing}


def _mover(torch: Any) -> Callable[[Any], Any]:
    """Return what gives the host's device for "cuda", and anything else as it is."""

    def moved(value: Any) -> Any:
        is_cuda = value.type == "cuda" if isinstance(value, torch.device) else False
        if is_cuda or (isinstance(value, str) and value.partition(":")[0] == "cuda"):
            current("torch's device 'cuda'").note(_NOTE)
            return torch.device("cpu")
        return value

    return moved


def _mode(torch: Any, moved: Callable[[Any], Any]) -> Any:
    """Return a mode of torch in which its functions take "cuda" for the host, and tensors say that they are on it."""
    device = torch.device("cuda", 0)
    tensor = torch.Tensor

    class CudaIsHost(torch.overrides.TorchFunctionMode):  # type: ignore[misc]  # torch is not here to be read
        """Functions of torch are called through this."""

        def __torch_function__(
            self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
        ) -> Any:
            """Call a function with "cuda" taken for the host."""
            if func is torch.device:  # what it names is taken for the host where it is used
                return func(*args, **kwargs or {})
            if func in (tensor.cuda, tensor.pin_memory):
                return args[0]
            if func == tensor.get_device:
                return 0
            if func == tensor.data_ptr:
                address = func(*args)
                current("tensor.data_ptr").took_address(address, args[0])
                return address
            if func == tensor.is_cuda.__get__:
                return True
            if func == tensor.device.__get__:
                return device
            named = {name: moved(value) for name, value in (kwargs or {}).items()}
            if isinstance(named.get("device"), int):  # the number of a device of CUDA
                named["device"] = moved("cuda")
            named.pop("pin_memory", None)
            return func(*map(moved, args), **named)

    return CudaIsHost()


def _number(value: object) -> Callable[..., object]:
    """Return what answers `value`: a function of its own for each name, as torch.compile's tables have them by id."""
    return lambda *_, **__: value


def _accelerator() -> dict[str, object]:
    """Return what `torch.accelerator` answers for the machine."""
    return {
        "synchronize": _number(None), "current_device_index": _number(0), "device_count": _number(1),
        "is_available": _number(True),
    }  # fmt: skip


def _answers(torch: Any) -> dict[str, object]:
    """Return what `torch.cuda` answers for the machine."""

    def properties(device: object = None) -> SimpleNamespace:
        machine = current("torch.cuda").machine
        major, minor = driver.CAPABILITY
        return SimpleNamespace(
            name=driver.NAME, major=major, minor=minor, total_memory=machine.hbm_bytes, warp_size=32,
            multi_processor_count=machine.pes, shared_memory_per_block=machine.scratchpad_bytes,
            shared_memory_per_multiprocessor=machine.scratchpad_bytes, regs_per_multiprocessor=65536,
        )  # fmt: skip

    states = SeedAndOffset(torch)
    tensors = {name: getattr(torch, name) for name in dir(torch) if name.endswith("Tensor") and name != "Tensor"}
    return {
        **tensors, "is_available": _number(True), "is_initialized": _number(True), "init": _number(None),
        "device_count": _number(1), "current_device": _number(0), "set_device": _number(None),
        "synchronize": _number(None), "empty_cache": _number(None), "_lazy_init": _number(None),
        "get_device_name": _number(driver.NAME),
        "get_device_capability": _number(driver.CAPABILITY), "get_device_properties": properties,
        "is_bf16_supported": _number(True), "device": DeviceGuard,
        "device_of": DeviceGuard, "_DeviceGuard": DeviceGuard,
        "stream": lambda *_: contextlib.nullcontext(),
        "manual_seed": lambda seed: (states.manual_seed(seed), torch.default_generator.manual_seed(seed))[1],
        "manual_seed_all": states.manual_seed,  # torch.manual_seed calls it
        "default_generators": (states,),
        "get_rng_state": lambda *_: torch.default_generator.get_state(),
        "set_rng_state": lambda state, *_: torch.default_generator.set_state(state),
        "Event": TimeMark, "Stream": Stream, "current_stream": _number(Stream()), "default_stream": _number(Stream()),
        "set_stream": _number(None), "is_current_stream_capturing": _number(False), "memory_allocated": _number(0),
        "max_memory_allocated": _number(0), "memory_reserved": _number(0),
        "reset_peak_memory_stats": _number(None),
        "mem_get_info": lambda *_: (current("torch.cuda").machine.hbm_bytes,) * 2,
    }  # fmt: skip


class TimeMark:
    """A point in simulated time: after the kernels that were launched before it."""

    def __init__(self, *_: object, **__: object) -> None:
        self.at_ns = 0.0

    def record(self, stream: object = None) -> None:
        """Note the time that kernels took until now."""
        self.at_ns = sum(figures.time_ns for figures in current("torch.cuda.Event").launches)

    def elapsed_time(self, end: TimeMark) -> float:
        """Return the time that kernels took from here to `end`, in ms."""
        return (end.at_ns - self.at_ns) * 1e-6

    def query(self) -> bool:
        """Tell whether it has come: a launch returns when it is over."""
        return True

    def synchronize(self) -> None:
        """Wait for it."""

    def wait(self, stream: object = None) -> None:
        """Have a stream wait for it."""


class SeedAndOffset:
    """The device's source of random numbers, as libraries take its state to give kernels: a seed and an offset."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._pair = [0, 0]

    def manual_seed(self, seed: int) -> SeedAndOffset:
        """Begin anew."""
        self._pair = [int(seed), 0]
        return self

    def initial_seed(self) -> int:
        """Return the seed."""
        return self._pair[0]

    def get_state(self) -> Any:
        """Return both as the bytes of a tensor."""
        return self._torch.tensor(self._pair, dtype=self._torch.int64).view(self._torch.uint8)

    def set_state(self, state: Any) -> None:
        """Go to a state."""
        self._pair = state.view(self._torch.int64).tolist()


class DeviceGuard:
    """A block in which a device is the current one: there is one."""

    def __init__(self, *_: object) -> None:
        self.idx = 0

    def __enter__(self) -> DeviceGuard:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Stream:
    """A stream: launches are one after the other, on whichever."""

    cuda_stream = 0

    def __init__(self, *_: object, **__: object) -> None:
        self.device = None

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def synchronize(self) -> None:
        """Wait for its launches."""

    def wait_stream(self, stream: object) -> None:
        """Wait for another one."""

    def wait_event(self, event: object) -> None:
        """Wait for an event."""

    def record_event(self, event: TimeMark | None = None) -> TimeMark:
        """Return an event that is recorded now."""
        found = event or TimeMark()
        found.record()
        return found
