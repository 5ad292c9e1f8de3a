"""`triton.autotune` and `triton.heuristics`: wrappers of jit functions that choose arguments, stacked in any order.

Each configuration is tried by launches on a machine beside the run, whose times and data nobody sees but the choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen

from kernbench_builtin.triton.kernel import Launchable
from kernbench_builtin.triton.simulation import JitTuning, Trial, current
from kernbench_core.callsite import call_site, describe_site
from kernbench_core.errors import (
    DeadlockError,
    ExecutionError,
    KernbenchError,
    LimitError,
    OutOfBoundsError,
    SanityError,
    UninitializedReadError,
    UsageError,
)
from kernbench_core.spread import TimeSpread, contest
from kernbench_core.wording import brief

#: What is wrong with a kernel, or with its launch, and not with a configuration.
_FAULTS = (
    UsageError, LimitError, OutOfBoundsError, UninitializedReadError, DeadlockError, ExecutionError, SanityError,
)  # fmt: skip

Values = Mapping[str, Any]
Hook = Callable[..., object]


class JitConfig:
    """One configuration: values of parameters (`kwargs`), and hints to a compiler, which change nothing here."""

    def __init__(
        self,
        kwargs: Values | None = None,
        num_warps: int = 4,
        num_stages: int = 3,
        num_ctas: int = 1,
        maxnreg: int | None = None,
        pre_hook: Hook | None = None,
        ir_override: object = None,
        **hints: object,
    ) -> None:
        self.kwargs = dict(kwargs or {})
        self.num_warps, self.num_stages, self.num_ctas, self.maxnreg = num_warps, num_stages, num_ctas, maxnreg
        self.pre_hook = pre_hook

    def all_kwargs(self) -> dict[str, Any]:
        """Return what a launch is given: the values, and the hints that are set."""
        names = ("num_warps", "num_ctas", "num_stages", "maxnreg")
        hints = {name: getattr(self, name) for name in names}
        return {**self.kwargs, **{name: value for name, value in hints.items() if value is not None}}

    def __str__(self) -> str:
        return ", ".join(f"{name}: {value}" for name, value in self.all_kwargs().items())

    def __repr__(self) -> str:
        return f"<Config {self}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JitConfig):
            return NotImplemented
        return (self.all_kwargs(), self.pre_hook) == (other.all_kwargs(), other.pre_hook)

    def __hash__(self) -> int:
        return hash((*self.all_kwargs().items(), self.pre_hook))


@frozen
class Pruning:
    """Which configurations are tried: what `early` returns, of which the `top` are least by `model`."""

    early: Callable[..., Sequence[JitConfig]] | None = None
    model: Callable[..., float] | None = None
    top: float = 1.0

    @classmethod
    def of(cls, given: Values | None) -> Pruning:
        """Read `prune_configs_by`; UsageError for a key that it does not have."""
        known = {"early_config_prune": "early", "perf_model": "model", "top_k": "top"}
        for name in given or {}:
            if name not in known:
                raise UsageError(f"a key of prune_configs_by must be one of {', '.join(known)}, not {brief(name)}.")
        return cls(**{known[name]: value for name, value in (given or {}).items()})

    def left(self, configs: Sequence[JitConfig], arguments: Values, named: Values) -> list[JitConfig]:
        """Return the configurations to try."""
        found = list(configs) if self.early is None else list(self.early(list(configs), dict(arguments), **named))
        if self.model is None:
            return found
        most = int(len(found) * self.top) if isinstance(self.top, float) and self.top <= 1 else int(self.top)
        model = self.model
        estimates = [model(**{**arguments, **named, **config.all_kwargs()}) for config in found]
        order = sorted(range(len(found)), key=estimates.__getitem__)
        return [found[at] for at in order[:most]]


class Heuristics(Launchable):
    """A kernel some of whose arguments are computed from the others."""

    def __init__(self, fn: Launchable, values: Mapping[str, Callable[[dict[str, Any]], Any]]) -> None:
        super().__init__(fn)
        self.values = dict(values)
        self._supply(self.values)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **named: Any) -> Any:
        """Launch the kernel with the computed arguments."""
        for name, compute in self.values.items():
            named[name] = compute({**dict(zip(self.arg_names, args, strict=False)), **named})
        return self.fn.run(*args, grid=grid, warmup=warmup, **named)


class Autotuner(Launchable):
    """A kernel for which the fastest of some configurations is chosen, once for each key."""

    def __init__(
        self,
        fn: Launchable,
        arg_names: Sequence[str],
        configs: Sequence[JitConfig],
        key: Sequence[str],
        reset_to_zero: Sequence[str] | None,
        restore_value: Sequence[str] | None,
        pre_hook: Hook | None = None,
        post_hook: Hook | None = None,
        prune_configs_by: Values | None = None,
        *ignored: object,
        **also_ignored: object,
    ) -> None:
        super().__init__(fn)
        self.arg_names = arg_names
        self.reset_to_zero, self.restore_value = list(reset_to_zero or ()), list(restore_value or ())
        self.user_defined_pre_hook, self.user_defined_post_hook = pre_hook is not None, post_hook is not None
        base: Any = fn
        while isinstance(base, Launchable):
            base = base.fn
        self.base_fn = base
        self.pre_hook = pre_hook or self._zero_named
        self.post_hook = post_hook or _no_hook
        self.nargs: Values | None = None
        self.configs = list(configs)
        self._supply({name for config in self.configs for name in config.kwargs})
        self.keys = list(key)
        self.cache: dict[tuple[object, ...], JitConfig] = {}
        self.best_config: JitConfig | None = None
        pruning = self._pruning = Pruning.of(prune_configs_by)
        self.perf_model, self.early_config_prune, self.configs_top_k = pruning.model, pruning.early, pruning.top
        if not self.configs:
            raise UsageError(
                f"triton.autotune of kernel {self.__name__!r} must be given a configuration at least, not none; write "
                "configs=[triton.Config({…})]."
            )

    def run(self, *args: Any, grid: Any, warmup: bool = False, **named: Any) -> Any:
        """Launch the kernel with the configuration that is the fastest for arguments like these.

        `warmup` prepares each configuration, and tries none.
        """
        arguments = dict(zip(self.arg_names, args, strict=False))
        if warmup:
            left = self._left(arguments, named)
            return [self.fn.run(*args, grid=grid, warmup=True, **self._with(named, config)) for config in left]
        key = self._key({**arguments, **named})
        if key not in self.cache:
            self.cache[key] = self._fastest(args, grid, named, arguments)
        config = self.best_config = self.cache[key]
        chosen = self._with(named, config)
        if config.pre_hook is not None:
            config.pre_hook({**arguments, **chosen})
        return self.fn.run(*args, grid=grid, warmup=False, **chosen)

    def prune_configs(self, named: Values) -> list[JitConfig]:
        """Return the configurations to try for the arguments in `nargs`, for a class that tunes in its own way."""
        return self._pruning.left(self.configs, self.nargs or {}, named)

    def _bench(self, *args: Any, config: JitConfig, grid: Any, **named: Any) -> list[float]:
        """Return what a configuration takes, in ms, for a class that tunes in its own way; inf if it does not run."""
        trial = self._tried(config, args, grid, named, dict(zip(self.arg_names, args, strict=False)))
        return [math.inf if trial.time_ns is None else trial.time_ns * 1e-6] * 3

    def _key(self, given: Values) -> tuple[object, ...]:
        values = [_plain(given[name]) for name in self.keys if name in given]
        return (*values, *(str(value.dtype) for value in given.values() if hasattr(value, "dtype")))

    def _with(self, named: Values, config: JitConfig) -> dict[str, Any]:
        """Return the named arguments of a launch with those of a configuration; UsageError where one is in both."""
        chosen = config.all_kwargs()
        if twice := [name for name in chosen if name in named]:
            each = "it" if len(twice) == 1 else "them"
            raise UsageError(
                f"the launch of kernel {self.__name__!r} at {describe_site(call_site())} must not give "
                f"{', '.join(twice)}, as triton.autotune chooses {each}; leave {each} out."
            )
        return {**named, **chosen}

    def _left(self, arguments: Values, named: Values) -> list[JitConfig]:
        """Return the configurations to try; UsageError where there is none."""
        configs = self._pruning.left(self.configs, arguments, named)
        if not configs:
            raise UsageError(
                f"prune_configs_by of kernel {self.__name__!r} must leave a configuration, not none of "
                f"{len(self.configs)}; keep one."
            )
        return configs

    def _fastest(self, args: Sequence[Any], grid: Any, named: Values, arguments: Values) -> JitConfig:
        configs = self._left(arguments, named)
        if len(configs) == 1:
            return configs[0]
        simulation = current(f"kernel {self.__name__!r}")
        given = {**arguments, **named}
        shown = tuple((name, _plain(given[name])) for name in self.keys if name in given)
        asked = args, grid, named, arguments
        trials = [self._tried(config, *asked) for config in configs]
        tuning = JitTuning(self.__name__, shown, tuple(trials))
        if tuning.best is None:
            raise UsageError(tuning.nothing_runs)
        if simulation.shakes and len({trial.config for trial in trials if trial.time_ns is not None}) > 1:
            tuning = self._shaken(tuning, lambda at, found: self._tried(configs[at], *asked, found))
        simulation.tuned(tuning)
        assert tuning.best is not None, "one of those that ran"
        best = configs[trials.index(tuning.best)]
        self.pre_hook({**given, **best.all_kwargs()}, reset_only=True)
        return best

    def _shaken(self, tuning: JitTuning, try_again: Callable[[int, list[TimeSpread]], object]) -> JitTuning:
        """Have the fastest configurations run again on machines that are the same but for a thousandth."""
        at = {trial.config: at for at, trial in reversed([*enumerate(tuning.trials)])}
        times = {trial.config: trial.time_ns for trial in tuning.trials if trial.time_ns is not None}

        def spread_of(config: str) -> TimeSpread:
            found: list[TimeSpread] = []
            try_again(at[config], found)
            return found[0]

        return evolve(tuning, contest=contest(times, spread_of))

    def _tried(
        self, config: JitConfig, args: Sequence[Any], grid: Any, named: Values, arguments: Values,
        spreads: list[TimeSpread] | None = None,
    ) -> Trial:  # fmt: skip
        chosen = self._with(named, config)
        given = {**arguments, **chosen}
        hooked = self.user_defined_pre_hook or self.user_defined_post_hook or self.reset_to_zero or config.pre_hook
        with current(f"kernel {self.__name__!r}").trying(given.values(), bool(hooked), spreads):
            if config.pre_hook is not None:
                config.pre_hook(given)
            self.pre_hook(given)
            try:
                figures = self.fn.run(*args, grid=grid, **chosen)
            except Exception as error:
                self.post_hook(given, exception=error)
                if isinstance(error, _FAULTS) or not isinstance(error, KernbenchError):
                    raise
                return Trial(str(config), None, str(error))
            self.post_hook(given, exception=None)
        return Trial(str(config), figures.time_ns)

    def _zero_named(self, given: Values, reset_only: bool = False) -> None:
        """Fill with zeros what `reset_to_zero` names: before each trial, and once more when all are over."""
        for name in self.reset_to_zero:
            if name not in given:
                raise UsageError(
                    f"reset_to_zero of kernel {self.__name__!r} must name arguments of its launches, not {name!r}; "
                    "correct the name."
                )
            array = given[name]
            if hasattr(array, "zero_"):
                array.zero_()
            elif array is not None:
                np.asarray(array)[...] = 0


def _no_hook(*_: object, **__: object) -> None:
    """Do nothing: trials leave arrays as they were."""


def _plain(value: Any) -> object:
    """Return what of a key's value tells it from others: an array's shape, else the value."""
    return tuple(value.shape) if hasattr(value, "shape") else getattr(value, "value", value)


def autotune(
    configs: Sequence[JitConfig],
    key: Sequence[str] = (),
    prune_configs_by: Values | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Hook | None = None,
    post_hook: Hook | None = None,
    **ignored: object,
) -> Callable[[Launchable], Autotuner]:
    """Choose the fastest of some configurations for each value of the arguments that `key` names.

    What trials write is never seen, so that `restore_value` has nothing left to do.
    """
    Pruning.of(prune_configs_by)  # wrong keys are the decorator's
    return lambda fn: Autotuner(
        fn, fn.arg_names, configs, key, reset_to_zero, restore_value, pre_hook, post_hook, prune_configs_by
    )


def heuristics(values: Mapping[str, Callable[[dict[str, Any]], Any]]) -> Callable[[Launchable], Heuristics]:
    """Compute arguments of a launch from its others."""
    return lambda fn: Heuristics(fn, values)
