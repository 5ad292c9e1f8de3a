"""What libraries build on: launches that are launched again, their own launchers and tuners, parameters and digests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernbench as kb
from tests.builtin.triton.kernels import scaling

# mypy: disable-error-code="import-not-found, misc, no-untyped-call"


def test_a_launch_gives_the_kernel_to_be_launched_again() -> None:
    """It has the figures of its own launch, and needs what `warmup` says."""
    x = np.ones(8, np.float32)
    with kb.triton("tiny") as sim:
        done = scaling()[(1,)](x, x, 8, BLOCK=8)
        done[(1, 1, 1)](x, x, 8, 8, 1)
        assert done.time_ns == done.figures.time_ns == sim.launches[0].time_ns
        assert done.metadata.shared == sim.machine.scratchpad_bytes
        with pytest.raises(AttributeError):
            scaling().warmup(x, x, 8, BLOCK=8, grid=(1,)).time_ns  # noqa: B018
    assert x.tolist() == [4.0] * 8
    assert len(sim.launches) == 2


def test_parameters_and_digests_of_kernels() -> None:
    """Those that are fixed, those not to specialise by number or name, and what tells one kernel from another."""
    with kb.triton("tiny"):
        import triton

        def kernel(a: Any, b: Any, C: triton.language.constexpr = 3) -> None:  # noqa: N803
            pass

        first = triton.jit(do_not_specialize=["b", 0])(kernel)
        assert [(each.num, each.name, each.is_constexpr, each.do_not_specialize) for each in first.params] == [
            (0, "a", False, True), (1, "b", False, True), (2, "C", True, False),
        ]  # fmt: skip
        assert [each.has_default for each in first.params] == [False, False, True]
        assert first.params[2].default == 3
        assert first.__globals__ is globals()
        assert first.src.startswith("def kernel(a") and first.src.endswith(":  # noqa: N803\n    pass\n")

        @triton.heuristics({})
        @triton.jit
        def decorated(a: Any) -> None: ...

        assert decorated.fn.src == "def decorated(a: Any) -> None: ...\n"
        assert first.cache_key == triton.jit(kernel).cache_key != scaling().cache_key


def test_a_launcher_and_a_tuner_of_a_library() -> None:
    """A launcher that wraps a tuner, which measures configurations by itself: the fastest runs, trials leave arrays."""
    x = np.ones(300, np.float32)
    with kb.triton("tiny") as sim:
        import triton

        class OwnTuner(triton.runtime.Autotuner):
            def run(self, *args: Any, **named: Any) -> Any:
                self.nargs = dict(zip(self.arg_names, args, strict=False))
                self.times = {each: self._bench(*args, config=each, **named) for each in self.prune_configs(named)}
                self.best_config = min(self.times, key=self.times.__getitem__)
                self.pre_hook({**self.nargs, **named}, reset_only=True)
                return self.fn.run(*args, **named, **self.best_config.all_kwargs())

        class Launcher(triton.KernelInterface):
            def __init__(self, fn: Any) -> None:
                self.fn = fn

            def run(self, *args: Any, **named: Any) -> Any:
                return self.fn.run(*args, **named)

        configs = [triton.Config({"BLOCK": block}) for block in (16, 64, 1 << 22)]
        tuner = OwnTuner(scaling(), ["x_ptr", "y_ptr", "n"], configs, ["n"], None, None, None, None, None, 25, 100)
        Launcher(tuner)[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, x, n=300)
    assert x.tolist() == [2.0] * 300
    assert [len(sim.launches), tuner.best_config.kwargs] == [1, {"BLOCK": 64}]
    assert tuner.times[configs[1]] == [pytest.approx(sim.launches[0].time_ns * 1e-6)] * 3
    assert tuner.times[configs[2]] == [float("inf")] * 3, "it does not fit the scratchpad"
    assert tuner.base_fn.__name__ == "scale_kernel"


def test_modules_below_the_language() -> None:
    """What libraries take from them, and the names of the language beside that."""
    with kb.triton("tiny"):
        import triton.language as tl

        assert tl.core.CONSTEXPR_0 == 0
        assert tl.core.get_int_dtype(bitwidth=16, signed=False) == tl.uint16
        assert tl.core.get_int_dtype(64) == tl.int64
        assert [tl.standard._log2(tl.constexpr(size)).value for size in (1, 8, 1024)] == [0, 3, 10]
        assert tl.core.int32 is tl.int32
        assert tl.bfloat16.is_bf16()
        assert not tl.float16.is_bf16()
        assert (tl.uint16.value, tl.uint16.int_bitwidth) == (tl.uint16, 16)


def test_a_hook_of_a_configuration_sets_blocks_of_descriptors() -> None:
    """Each configuration has its own, and the array is copied whole with the one that is chosen."""
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    with kb.triton("tiny") as sim:
        import triton
        import triton.language as tl
        from triton.tools.tensor_descriptor import TensorDescriptor

        def fit(given: Any) -> None:
            given["x"].block_shape = given["y"].block_shape = [given["BLOCK"]]

        configs = [triton.Config({"BLOCK": block}, pre_hook=fit) for block in (16, 64)]

        @triton.autotune(configs, key=[])  # type: ignore[untyped-decorator]
        @triton.jit  # type: ignore[untyped-decorator]
        def copy_kernel(x: Any, y: Any, BLOCK: tl.constexpr) -> None:  # noqa: N803
            at = tl.program_id(0) * BLOCK
            y.store([at], x.load([at]))

        given = [TensorDescriptor.from_tensor(array, [1]) for array in (x, y)]
        copy_kernel[lambda meta: (64 // meta["BLOCK"],)](*given)
    assert np.array_equal(x, y)
    assert len(sim.tunings[0].trials) == 2
    assert list(given[0].block_shape) == [copy_kernel.best_config.kwargs["BLOCK"]]
