"""torch's tensors and its device "cuda", with a small module in torch's place: the interface, not torch itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import kernbench as kb
from kernbench_core.errors import UsageError
from tests.builtin.triton.kernels import scaling

# mypy: disable-error-code="import-not-found, import-untyped"


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have `import torch` give the module beside this file, anew."""
    before = sys.modules.pop("torch", None)
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "fake_torch"))
    yield
    sys.modules.pop("torch", None)
    if before is not None:
        sys.modules["torch"] = before


def test_a_tensor_with_a_mask_is_refused() -> None:
    """As of `torch.masked`, which has the mask in a tensor of its own."""
    with kb.triton("tiny"):
        import torch

        x = torch.full(8, 3.0)
        x.get_mask = lambda: None
        with pytest.raises(UsageError) as caught:
            scaling()[(1,)](x, x, 8, BLOCK=8)
    assert str(caught.value) == (
        "argument 'x_ptr' of kernel 'scale_kernel' must be a tensor without a mask; give its .to_tensor(value), and "
        "the mask as a tensor of its own."
    )


@pytest.mark.parametrize("imported_before", [True, False])
def test_cuda_is_the_simulated_device_inside_only(imported_before: bool) -> None:
    """Tensors on it are launched with, whenever torch was imported; afterwards torch is as it was."""
    if imported_before:
        import torch
    finders = list(sys.meta_path)
    with kb.triton("tiny") as sim:
        import torch
        import triton

        place = triton.runtime.driver.active.get_active_torch_device()
        x = torch.full(8, 3.0, device="cuda", pin_memory=True)
        y = torch.full(8, 0.0, device=place).cuda().to("cuda:0")
        assert x.is_cuda
        assert x.device == place == torch.device("cuda", 0)
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event()
        start.record()
        scaling()[(1,)](x, y, 8, BLOCK=8)
        end.record()
        torch.cuda.synchronize()
        assert y.numpy().tolist() == [6.0] * 8
        assert start.elapsed_time(end) == pytest.approx(sim.launches[0].time_ns * 1e-6)
        assert torch.cuda.is_available()
        assert torch.cuda.get_device_properties(0).multi_processor_count == 4
        torch.set_default_device("cuda")
        assert torch.full(2, 1.0, device=0).numpy().tolist() == [1, 1]
    assert sim.notes == [
        "torch's device 'cuda' is the simulated one: its tensors lie in the host's memory, and torch's own operators "
        "take no time."
    ]
    assert (x.is_cuda, x.device, torch.cuda.is_available()) == (False, torch.device("cpu"), False)
    assert not hasattr(torch.cuda, "Event")
    assert sys.meta_path == finders
    with pytest.raises(RuntimeError, match="no CUDA"):
        torch.full(8, 3.0, device="cuda")


def test_views_and_tensors_elsewhere() -> None:
    """A tensor is taken by its storage and offset; one that is really on a device is refused."""
    with kb.triton("tiny"):
        import torch

        whole = torch.full(16, 1.0)
        view = torch.Tensor(whole.storage, torch.float32, (8,), 8)
        scaling()[(1,)](view, view, 8, BLOCK=8)
        assert whole.numpy().tolist() == [1.0] * 8 + [2.0] * 8
        there = torch.Tensor(whole.storage, torch.float32, (16,), 0, "cuda")
        with pytest.raises(kb.KernbenchError) as error:
            scaling()[(1,)](there, view, 8, BLOCK=8)
        assert str(error.value) == (
            "argument 'x_ptr' of kernel 'scale_kernel' must be in the host's memory, not on cuda; kernbench simulates "
            "the device, give x.cpu()."
        )
    assert np.array_equal(view.numpy(), np.full(8, 2, np.float32))


def test_what_goes_around_torchs_modes() -> None:
    """Seeds, generators, what backward runs, and torch.compile mean the host inside, and are torch's own afterwards."""
    import torch

    own = torch.Generator, torch.compile, torch.autograd._engine_run_backward, torch.set_default_device
    with kb.triton("tiny") as sim:
        assert torch.manual_seed(5).get_state() == torch.cuda.get_rng_state() == 5
        torch.cuda.manual_seed(7)
        assert torch.default_generator.get_state() == 7
        assert torch.Generator(device="cuda:0").manual_seed(3).get_state() == 3
        assert torch.compile(len) is len
        assert torch.compile(mode="max-autotune")(len) is len
        x = torch.full(4, 1.0, device="cuda")
        assert x.pin_memory() is x
        assert x.get_device() == 0
        modes = torch.MODES.copy()
        torch.MODES.clear()  # as where a function of torch that went through the mode goes on
        made = torch.autograd._engine_run_backward(lambda: torch.full(4, 1.0, device="cuda").device)
        torch.MODES.extend(modes)
        assert made == torch.device("cuda", 0)
    assert sim.notes[1] == "torch.compile leaves functions as they are."
    assert own == (torch.Generator, torch.compile, torch.autograd._engine_run_backward, torch.set_default_device)
