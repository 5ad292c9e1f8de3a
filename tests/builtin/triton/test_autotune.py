"""Configurations that are tried beside a run, and arguments that are computed: held against launches one by one."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench as kb
from kernbench_builtin.triton.session import NOTHING_SHAKEN
from tests.builtin.triton.kernels import scaling

# mypy: disable-error-code="import-not-found"

BLOCKS = (16, 64, 256)


def grid(meta: Any) -> tuple[int]:
    """Give as many programs as blocks of the vector."""
    return (-(-meta["n"] // meta["BLOCK"]),)


def refused(do: Callable[[], object]) -> str:
    """Return the sentence with which kernbench refuses something."""
    with pytest.raises(kb.KernbenchError) as error:
        do()
    return str(error.value)


def tuned(configs: Any, **settings: Any) -> Callable[[Any], Any]:
    """Return a wrapper that chooses one of some blocks."""
    import triton

    made = [each if isinstance(each, triton.Config) else triton.Config({"BLOCK": each}) for each in configs]
    return triton.autotune(made, **{"key": ["n"], **settings})  # type: ignore[no-any-return]


def alone(block: int, n: int) -> float:
    """Return the time of a launch on a machine of its own, in ns."""
    x = np.ones(300, np.float32)
    with kb.triton("tiny") as sim:
        scaling()[grid](x, x, n, BLOCK=block)
    return sim.launches[0].time_ns


KERNEL = """
import triton
import triton.language as tl

@triton.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)
"""


def test_shaken_choices_go_by_medians_of_machines_that_differ_by_a_thousandth(tmp_path: Path) -> None:
    """Spreads are those of the kernel shaken alone; hints that change nothing are not told apart, blocks are."""
    (file := tmp_path / "scale.py").write_text(KERNEL)
    x = np.ones(300, np.float32)
    with kb.triton("tiny", shake=3, shake_seed=5) as sim:
        import triton

        same = triton.Config({"BLOCK": 64}, num_warps=8)
        tuned([16, 64, same])(runpy.run_path(str(file))["scale_kernel"])[grid](x, np.zeros_like(x), 300)
    (tuning,) = sim.tunings
    assert tuning.contest is not None and not sim.notes
    spreads = tuning.contest.spreads
    given = {"x_ptr": np.ones(300, np.float32), "y_ptr": np.zeros(300, np.float32), "n": 300}
    for config in (next(iter(spreads)), next(reversed(spreads))):
        block = int(config.partition("BLOCK: ")[2].partition(",")[0])
        params = {**given, "BLOCK": block}
        other = kb.run(f"{file}:scale_kernel", "tiny", params, grid=(-(-300 // block),), shake=3, shake_seed=5)
        assert spreads[config] == other.shake.phases["kernel"]
    assert tuning.best is not None and tuning.best.config == next(iter(spreads))
    assert tuning.contest.equals == tuple(trial.config for trial in tuning.trials[1:]) and len(spreads) == 3
    assert tuning.to_json()["trials"][1]["spread"] == spreads[tuning.trials[1].config].to_json()  # type: ignore[index]
    assert tuning.line.endswith(f"fastest of 3\n  shaken {tuning.contest.against}")
    with kb.triton("tiny", shake=3) as plain:
        scaling()[grid](x, x, 300, BLOCK=64)
    assert plain.notes == [NOTHING_SHAKEN] and plain.launches[0].time_ns == alone(64, 300)


def test_the_fastest_is_chosen_once_for_each_key() -> None:
    """Trials take what the launch takes alone, are no launches of the run, and leave its total alone."""
    x = np.arange(300, dtype=np.float32)
    with kb.triton("tiny") as sim:
        kernel = scaling(tuned(BLOCKS))
        kernel[grid](x, x, 300)
        assert x.tolist() == [2 * value for value in range(300)], "doubled once"
        kernel[grid](x, x, 300)
        block = kernel.best_config.kwargs["BLOCK"]
        kernel[grid](x, x, 17)
        other = kernel.best_config.kwargs["BLOCK"]
    times = [alone(block, 300) for block in BLOCKS]
    first, second = sim.tunings
    assert [trial.time_ns for trial in first.trials] == times
    assert first.best == first.trials[times.index(min(times))]
    assert first.key == (("n", 300),)
    assert second.key == (("n", 17),)
    assert block == BLOCKS[times.index(min(times))]
    assert len(sim.launches) == 3
    with kb.triton("tiny") as plain:
        y = np.arange(300, dtype=np.float32)
        for each, n in ((block, 300), (block, 300), (other, 17)):
            scaling()[grid](y, y, n, BLOCK=each)
    assert sim.result is not None
    assert plain.result is not None
    assert sim.result.total_ns == plain.result.total_ns
    assert np.array_equal(x, y)
    assert first.table.splitlines()[0] == "autotune scale_kernel(n=300)"
    starred = [line for line in first.table.splitlines() if line.startswith("*")]
    assert len(starred) == 1
    assert first.line.startswith(f"autotune scale_kernel(n=300): BLOCK: {block}, num_warps: 4, num_ctas: 1")
    assert first.line.endswith("fastest of 3")


def test_trials_find_arrays_where_the_launch_finds_them() -> None:
    """Where earlier launches of the run put them; not where a run put them that an error ended, nor a trial's grid."""
    blocks, n = (128, 1024), 1 << 13

    def ran(config: int, ends: bool) -> tuple[list[float], list[str]]:
        """Launch after others, with one block or by trials of all; return the times, and where arrays came to lie."""
        x, y, other = (np.ones(n, np.float32) for _ in range(3))
        with kb.triton("default") as sim:
            scaling()[grid](x, other, n, BLOCK=64)
            if ends:
                refused(lambda: scaling()[(1,)](x, y, 2 * n, BLOCK=2 * n))
            if config:
                scaling()[grid](x, y, n, BLOCK=config)
                times = [sim.launches[-1].time_ns]
            else:
                scaling(tuned(blocks))[grid](x, y, n)
                times = [trial.time_ns or 0.0 for trial in sim.tunings[0].trials]
        return times, [str(place) for place in sim.places]

    fastest = []
    for ends in (False, True):
        direct = [ran(block, ends) for block in blocks]
        times, places = ran(0, ends)
        assert times == pytest.approx([time for (time,), _ in direct], rel=0.02)
        best = times.index(min(times))
        assert places == direct[best][1]
        fastest.append((blocks[best], times[best]))
    assert fastest[1][1] < 0.5 * fastest[0][1], "near the programs, where no launch of the run placed them"
    with kb.triton("default", shake=3) as sim:
        x = np.ones(n, np.float32)
        scaling()[grid](x, np.ones(n, np.float32), n, BLOCK=64)
        scaling(tuned(blocks))[grid](x, np.ones(n, np.float32), n)
    tuning = sim.tunings[0]
    assert tuning.contest is not None and tuning.best is not None
    assert tuning.contest.spreads[tuning.best.config].median_ns == pytest.approx(fastest[0][1], rel=0.02)


def test_decorators_stack_in_any_order() -> None:
    """An argument is computed from what the configuration gives, and from what the launch gives."""
    import_order = []
    for flipped in (False, True):
        x, y = np.ones(40, np.float32), np.zeros(40, np.float32)
        with kb.triton("tiny"):
            import triton

            computed = triton.heuristics({"TWICE": lambda given: 3 if given["n"] == 40 else 1})
            wrappers = [tuned((16, 32)), computed]
            kernel = scaling(*(wrappers[::-1] if flipped else wrappers))
            kernel[grid](x, y, n=40)
            import_order.append(type(kernel.fn).__name__)
        assert y.tolist() == [6.0] * 40
    assert import_order == ["Heuristics", "Autotuner"]


def test_hooks_and_zeroed_arguments_leave_no_trace_of_trials() -> None:
    """The hook of the chosen configuration runs before the launch, on what the host has."""
    x, y = np.ones(40, np.float32), np.full(40, 5, np.float32)
    seen: list[tuple[int, float]] = []
    with kb.triton("tiny"):
        import triton

        def add_one(given: Any) -> None:
            seen.append((given["BLOCK"], float(given["x_ptr"][0])))
            given["x_ptr"][:] += 1

        configs = [triton.Config({"BLOCK": block}, pre_hook=add_one) for block in (16, 64)]
        kernel = scaling(tuned(configs, reset_to_zero=["y_ptr"], restore_value=["x_ptr"]))
        kernel[grid](x, y, 8)
        chosen = kernel.best_config.kwargs["BLOCK"]
        assert seen == [(16, 1.0), (64, 1.0), (chosen, 1.0)]
        assert x.tolist() == [2.0] * 40
        assert y.tolist() == [4.0] * 8 + [0.0] * 32, "zeroed before the launch, too"
        wrong = scaling(tuned((16, 32), reset_to_zero=["z_ptr"]))
        assert refused(lambda: wrong[grid](x, y, 8)) == (
            "reset_to_zero of kernel 'scale_kernel' must name arguments of its launches, not 'z_ptr'; correct the name."
        )


def summing(*wrappers: Any) -> Any:
    """Give a kernel that adds the sum of a vector onto a number."""
    import triton
    import triton.language as tl

    def sum_kernel(x_ptr: Any, out_ptr: Any, n: Any, BLOCK: tl.constexpr) -> None:  # noqa: N803
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + at, mask=at < n, other=0.0)))

    kernel = triton.jit(sum_kernel)
    for wrap in reversed(wrappers):
        kernel = wrap(kernel)
    return kernel


def test_what_is_zeroed_is_so_before_each_launch_that_tunes() -> None:
    """Not before one whose key is known, nor by `warmup`; `restore_value` leaves what was there, None is left alone."""
    x, out = np.ones(128, np.float32), np.full(1, 5, np.float32)
    with kb.triton("tiny") as sim:
        zeroing = summing(tuned((16, 64), reset_to_zero=["out_ptr"], restore_value=["x_ptr"]))
        kernels = zeroing.warmup(x, out, 100, grid=grid)
        assert (len(kernels), out.tolist(), sim.tunings) == (2, [5.0], [])
        sums = []
        for n in (100, 128, 128):
            zeroing[grid](x, out, n)
            sums += out.tolist()
        assert sums == [100.0, 128.0, 256.0]
        summing(tuned((16, 64), restore_value=["out_ptr"]))[grid](x, out, 100)
        assert out.tolist() == [356.0]
        zeroing.pre_hook({"out_ptr": None}, reset_only=True)
    assert x.tolist() == [1.0] * 128


def test_hooks_are_called_as_triton_calls_them() -> None:
    """A configuration's own, then the tuner's in place of its zeroing, then that after the trial, with what failed."""
    x, out = np.ones(128, np.float32), np.full(1, 5, np.float32)
    calls: list[object] = []

    def before(given: Any, reset_only: bool = False) -> None:
        calls.append(("before", given["BLOCK"], reset_only))

    def after(given: Any, exception: Exception | None) -> None:
        calls.append(("after", given["BLOCK"], type(exception).__name__))

    with kb.triton("tiny"):
        import triton

        own = triton.Config({"BLOCK": 64}, pre_hook=lambda given: calls.append(("own", given["BLOCK"])))
        hooks: Any = {"pre_hook": before, "post_hook": after, "reset_to_zero": ["out_ptr"]}
        kernel = summing(tuned((own, 1 << 22), **hooks))
        for n in (100, 100):
            kernel[grid](x, out, n)
            calls.append(out.tolist())
        assert calls == [
            ("own", 64), ("before", 64, False), ("after", 64, "NoneType"),
            ("before", 1 << 22, False), ("after", 1 << 22, "TcmOverflowError"),
            ("before", 64, True), ("own", 64), [105.0], ("own", 64), [205.0],
        ]  # fmt: skip
        calls.clear()
        assert "grid must be" in refused(lambda: summing(tuned((16, 64), post_hook=after))[(2, 2, 2, 2)](x, out, 3))
        assert calls == [("after", 16, "UsageError")]


def test_what_a_configuration_gives_is_not_to_be_given_again() -> None:
    """Hints included, in trials and later; those that a configuration leaves to the launch may be."""
    x = np.ones(40, np.float32)
    with kb.triton("tiny"):
        import triton

        kernel = scaling(tuned((16, 32)))
        launch: Any = lambda **named: kernel[grid](x, x, 40, **named)  # noqa: E731 - of one line, which is told
        here = f"the launch of kernel 'scale_kernel' at {__file__}:{launch.__code__.co_firstlineno} must not give"
        assert refused(lambda: launch(BLOCK=8)) == f"{here} BLOCK, as triton.autotune chooses it; leave it out."
        assert refused(lambda: launch(num_warps=2, BLOCK=8)) == (
            f"{here} BLOCK, num_warps, as triton.autotune chooses them; leave them out."
        )
        assert "BLOCK" in refused(lambda: kernel[grid](x, x, 40, 8)) and x.tolist() == [1.0] * 40
        kernel[grid](x, x, 40)
        assert " must not give BLOCK, " in refused(lambda: kernel[grid](x, x, 40, BLOCK=8))
        only = triton.Config({"BLOCK": 16}, num_warps=None)
        scaling(tuned((only,)))[grid](x, x, 40, num_warps=2)
        assert " must not give BLOCK, " in refused(lambda: scaling(tuned((only,)))[grid](x, x, 40, BLOCK=8))
    assert x.tolist() == [4.0] * 40


def test_configurations_are_pruned() -> None:
    """By a function of the arguments, then by a model of which the least are kept."""
    x = np.ones(40, np.float32)
    with kb.triton("tiny") as sim:
        by = {
            "early_config_prune": lambda configs, given, **more: [c for c in configs if c.kwargs["BLOCK"] < given["n"]],
            "perf_model": lambda n, BLOCK, **more: -BLOCK,  # noqa: N803 - the parameter of a kernel
            "top_k": 2,
        }
        scaling(tuned((8, 16, 32, 64), prune_configs_by=by))[grid](x, x, 40)
        assert [trial.config.split(",")[0] for trial in sim.tunings[0].trials] == ["BLOCK: 32", "BLOCK: 16"]
        none = scaling(tuned((8, 16), prune_configs_by={"early_config_prune": lambda *_, **more: []}))
        assert refused(lambda: none[grid](x, x, 40)) == (
            "prune_configs_by of kernel 'scale_kernel' must leave a configuration, not none of 2; keep one."
        )
        assert refused(lambda: tuned((8,), prune_configs_by={"top": 1})) == (
            "a key of prune_configs_by must be one of early_config_prune, perf_model, top_k, not 'top'."
        )


def test_configurations_that_do_not_fit_are_left_out() -> None:
    """With the reason, which has sizes; where none is left, with all of them."""
    x = np.ones(8, np.float32)
    with kb.triton("tiny") as sim:
        kernel = scaling(tuned((2**22, 8)))
        kernel[grid](x, x, 8)
        assert x.tolist() == [2.0] * 8
        left, ran = sim.tunings[0].trials
        assert left.time_ns is None
        assert "16 MiB" in left.reason
        assert ran.time_ns is not None
        assert sim.tunings[0].line.endswith("fastest of 2, of which 1 do not run")
        assert "does not run: " in sim.tunings[0].table
        sentence = refused(lambda: scaling(tuned((2**22, 2**23)))[grid](x, x, 8))
        assert sentence.startswith(
            "autotune of kernel 'scale_kernel' must have a configuration that runs, and none of 2 does; add a smaller "
            "one.\n  BLOCK: 4194304, num_warps: 4, num_ctas: 1, num_stages: 3: "
        )
        assert "16 MiB" in sentence
        assert "32 MiB" in sentence
        assert x.tolist() == [2.0] * 8
        assert refused(lambda: scaling(tuned(()))) == (
            "triton.autotune of kernel 'scale_kernel' must be given a configuration at least, not none; write "
            "configs=[triton.Config({…})]."
        )
    assert len(sim.launches) == 1


def test_configurations_that_differ_in_hints_are_simulated_once() -> None:
    """They take the same time; `warmup` gives what a script asks of a compiled kernel."""
    x = np.ones(8, np.float32)
    with kb.triton("tiny") as sim:
        import triton

        configs = [triton.Config({"BLOCK": 8}, num_warps=warps) for warps in (1, 2, 4, 8)]
        kernel = scaling(tuned(configs))
        kernel[grid](x, x, 8)
        assert len({trial.time_ns for trial in sim.tunings[0].trials}) == 1
        assert sim.tunings[0].best == sim.tunings[0].trials[0]
        compiled = scaling().warmup(x, x, 8, BLOCK=8, grid=(1,))
        assert compiled.metadata.shared == sim.machine.scratchpad_bytes > 0
        compiled[(1,)](x, x, 8, 8)
    assert x.tolist() == [4.0] * 8
