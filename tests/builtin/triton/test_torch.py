"""torch itself, where it is installed: its tensors on the simulated device, through autograd, and its own checks."""

from __future__ import annotations

from typing import Any

import pytest

import kernbench as kb
from tests.builtin.triton.kernels import scaling

# mypy: disable-error-code="import-not-found, import-untyped, no-untyped-call, unused-ignore"

torch: Any = pytest.importorskip("torch")


def test_a_function_of_autograd_launches_forward_and_backward() -> None:
    """Gradients of a kernel that doubles are 2, also of views, and what backward makes may be on "cuda"."""
    with kb.triton("tiny") as sim:
        kernel = scaling()

        class Double(torch.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                y = torch.empty_like(x)
                kernel[(2,)](x, y, x.numel(), BLOCK=8)
                return y

            @staticmethod
            def backward(ctx: Any, dy: Any) -> Any:
                assert dy.is_cuda
                dx = torch.empty(dy.shape, device="cuda")
                kernel[(2,)](dy.contiguous(), dx, dy.numel(), BLOCK=8)
                return dx

        x = torch.randn(2, 8, device="cuda", requires_grad=True)
        y = Double.apply(x)
        torch.testing.assert_close(y, 2 * x)
        y.backward(torch.full_like(y, 3))
        torch.testing.assert_close(x.grad, torch.full_like(x, 6))
        (dx,) = torch.autograd.grad(Double.apply(x[1]).sum(), x)
        torch.testing.assert_close(dx, torch.tensor([[0.0] * 8, [2.0] * 8]))
    assert len(sim.launches) == 4
    assert x.device.type == "cpu"


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "float8_e5m2"])
def test_storages_of_torch_are_those_of_the_device(dtype: str) -> None:
    """A kernel that copies writes through a view, whatever the dtype; what is beside the view stays."""
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit  # type: ignore[untyped-decorator]
        def copy_kernel(x_ptr: Any, y_ptr: Any, stride: Any, BLOCK: tl.constexpr) -> None:  # noqa: N803
            at = tl.arange(0, BLOCK)
            tl.store(y_ptr + at * stride, tl.load(x_ptr + at))

        kind = getattr(torch, dtype)
        x = torch.arange(4, device="cuda").to(kind)
        whole = torch.zeros(3, 4, device="cuda").to(kind)
        column = whole.T[1]
        copy_kernel[(1,)](x[:2], column, column.stride(0), BLOCK=2)
        assert whole.float().tolist() == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]


def test_the_device_is_the_simulated_one() -> None:
    """Devices, seeds, generators and events, as scripts ask for them."""
    with kb.triton("tiny") as sim:
        import triton

        device = triton.runtime.driver.active.get_active_torch_device()
        torch.manual_seed(3)
        x = torch.rand(4, device=device)
        torch.cuda.manual_seed(3)
        assert torch.equal(x, torch.rand(4, device="cuda:0"))
        generator = torch.Generator(device="cuda").manual_seed(3)
        assert torch.equal(x, torch.rand(4, generator=generator, device="cuda"))
        (states,) = torch.cuda.default_generators
        assert states.get_state().view(torch.int64).tolist() == [3, 0]
        states.set_state(torch.tensor([3, 8]).view(torch.uint8))
        assert (states.initial_seed(), states.get_state().view(torch.int64)[1]) == (3, 8)
        with torch.device("cuda"):
            assert torch.zeros(3).device == device == torch.cuda.FloatTensor([1.0]).device
        assert torch.nn.Linear(2, 2).to("cuda").half().weight.is_cuda
        assert triton.cdiv(torch.numel(x), 3) == 2
    assert not torch.cuda.is_available()
    assert sim.notes[0].startswith("torch's device 'cuda' is the simulated one")
