"""The hooks of one plug-in, each called once. pluggy is used here, at start-up only."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any, Final

import pluggy

from kernbench_core.errors import PluginError
from kernbench_core.package import API, __version__
from kernbench_core.params import closest
from kernbench_core.plugins.entries import Entry, HookRaised, Provider
from kernbench_core.plugins.points import POINTS, PREFIX, Point, known_hooks
from kernbench_core.plugins.registry import PluginFailure

_NAME: Final = "kernbench"
_API: Final = f"{PREFIX}api"
_OPEN: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class _HookManager(pluggy.PluginManager):
    """A plug-in manager that takes every function named `kernbench_…` as a hook, decorated or not."""

    def parse_hookimpl_opts(self, plugin: object, name: str) -> Any:
        if not inspect.isroutine(vars(plugin).get(name)):  # known at once; pluggy takes long over each name
            return None
        options = super().parse_hookimpl_opts(plugin, name)
        if options is None and name.startswith(PREFIX) and callable(getattr(plugin, name)):
            return {}
        return options


def declared(module: ModuleType) -> list[Point[Any]]:
    """Return the points that a plug-in declares; raise HookRaised for what is none, or a plug-in for other hooks."""
    _refuse_other_versions(module)
    if POINTS not in vars(module):
        return []
    _refuse_no_hook(module, POINTS, "Point")
    points = []
    for point in _called(POINTS, vars(module)[POINTS], "Point"):
        if not isinstance(point, Point) or not point.kind:
            raise HookRaised(f"{POINTS} must return Point objects, each of a class with a KIND, not {point!r}")
        points.append(point)
    return points


def collect(
    provider: Provider, module: ModuleType, points: Sequence[Point[Any]]
) -> tuple[dict[str, list[Entry]], list[PluginFailure]]:
    """Call every hook of one plug-in; return its entries by kind, and those that will not do, which are left out.

    Raise HookRaised where nothing of the plug-in can be used.
    """
    functions = _functions(provider, module, points)
    collected: dict[str, list[Entry]] = {}
    failures: list[PluginFailure] = []
    for point in points:
        name, expected = PREFIX + point.kind, point.entry.__name__
        for entry in (each for function in functions[name] for each in _called(name, function, expected)):
            if not isinstance(entry, point.entry):
                raise HookRaised(f"{name} must return {expected} objects, not {entry!r}")
            try:
                entry.check(provider)
            except PluginError as error:
                failures.append(PluginFailure(provider, str(error).rstrip("."), f"{point.noun} {entry.name!r}"))
            else:
                collected.setdefault(point.kind, []).append(entry)
    return collected, failures


def _functions(
    provider: Provider, module: ModuleType, points: Sequence[Point[Any]]
) -> dict[str, list[Callable[[], object]]]:
    """Return a plug-in's functions for each hook; raise HookRaised for one that has a hook's name and is none."""
    hooks, asked = known_hooks(), [*(PREFIX + point.kind for point in points), POINTS]
    for name in sorted(vars(module)):
        if name in hooks:
            _refuse_no_hook(module, name, hooks[name])
        elif name.startswith(PREFIX) and callable(getattr(module, name)):  # pluggy names no remedy
            hint = f"; perhaps {close!r} is meant" if (close := closest(name, asked)) else ""
            raise HookRaised(f"its hooks must be among {', '.join(asked)}, not {name!r}{hint}")
    manager = _manager(tuple(hooks))
    try:
        manager.register(module, provider.plugin)
        manager.check_pending()
        return {name: [one.function for one in getattr(manager.hook, name).get_hookimpls()] for name in hooks}
    except pluggy.PluginValidationError as error:
        raise HookRaised(" ".join(str(error).split())) from error
    finally:
        manager.unregister(module)


@lru_cache(maxsize=1)
def _manager(hooks: tuple[str, ...]) -> _HookManager:
    """Return the manager of hooks, which one plug-in at a time is registered with: making one takes a millisecond."""
    manager = _HookManager(_NAME)
    manager.add_hookspecs(type("Hooks", (), dict.fromkeys(hooks, _specification)))
    return manager


@pluggy.HookspecMarker(_NAME)
def _specification() -> Sequence[object]:  # type: ignore[empty-body]
    """Return a list, of entries or of points: how every hook is called."""


def _called(name: str, hook: Callable[[], object], expected: str) -> Iterator[object]:
    """Call a hook, and yield what is in the list that it returns."""
    try:
        returned = hook()
    except PluginError as error:
        raise HookRaised(str(error)) from error
    if not isinstance(returned, Iterable):
        raise HookRaised(f"{name} must return a list of {expected} objects, not {returned!r}")
    yield from returned


def _refuse_other_versions(module: ModuleType) -> None:
    """Raise HookRaised for a plug-in that is written for other hooks than ours, or that does not say for which."""
    api = vars(module).get(_API)
    if type(api) is int and api == API:
        return
    must = f"{_API} of module {module.__name__!r}, the version of the hooks that it is written for, must be {API}"
    if type(api) is int and api > API:
        raise HookRaised(f"{must}, which kernbench {__version__} has, not {api}; use a newer kernbench")
    found = "is missing" if api is None else f"is {api!r}"
    raise HookRaised(f"{must}, and {found}; write '{_API} = {API}' into it")


def _refuse_no_hook(module: ModuleType, name: str, expected: str) -> None:
    """Raise HookRaised for what has a hook's name and cannot be called as one."""
    hook = vars(module)[name]
    shown = repr(hook)
    if inspect.isfunction(hook):
        signature = inspect.signature(hook)
        needed = [p for p in signature.parameters.values() if p.default is p.empty and p.kind not in _OPEN]
        if not needed:
            return
        shown = f"{name}{signature.replace(return_annotation=signature.empty)}"
    raise HookRaised(
        f"{name} must be a function without arguments that returns a list of {expected} objects, not {shown}"
    )
