"""The hooks of one plug-in, each called once. pluggy is used here, at start-up, and by the hooks' specifications."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from types import ModuleType
from typing import Any, Final

import pluggy

from kernbench_core.errors import PluginError
from kernbench_core.package import API, OLDEST_API, __version__
from kernbench_core.params import closest
from kernbench_core.plugins import hookspecs
from kernbench_core.plugins.registry import Entry, PluginFailure, Provider
from kernbench_core.plugins.sorts import OFFERS, HookRaised, checked
from kernbench_core.wording import is_async

_MANAGER_NAME: Final = "kernbench"
_API: Final = f"{hookspecs.PREFIX}api"
_OPEN: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class _HookManager(pluggy.PluginManager):
    """A plug-in manager that takes every function named `kernbench_…` as a hook, decorated or not."""

    def parse_hookimpl_opts(self, plugin: object, name: str) -> Any:
        options = super().parse_hookimpl_opts(plugin, name)
        if options is None and name.startswith(hookspecs.PREFIX) and callable(getattr(plugin, name)):
            return {}
        return options


def collect(provider: Provider, module: ModuleType) -> tuple[dict[str, list[Entry]], list[PluginFailure]]:
    """Call every hook of one plug-in; return its entries by sort, and those that will not do, which are left out.

    Raise HookRaised where nothing of the plug-in can be used.
    """
    _refuse_other_versions(module)
    manager = _manager(provider, module)
    collected: dict[str, list[Entry]] = {kind: [] for kind in OFFERS}
    failures: list[PluginFailure] = []
    for kind, (expected, noun) in OFFERS.items():
        for entry in _returned(getattr(manager.hook, hookspecs.PREFIX + kind), expected.__name__):
            if kind != "algorithms" and not isinstance(entry, expected):
                raise HookRaised(f"{hookspecs.PREFIX}{kind} must return {expected.__name__} objects, not {entry!r}")
            try:
                collected[kind].append(checked(provider, kind, entry))
            except PluginError as error:
                name = repr(entry.name) if isinstance(entry, Entry) else repr(entry)
                failures.append(PluginFailure(provider, str(error).rstrip("."), f"{noun} {name}"))
    return collected, failures


def _manager(provider: Provider, module: ModuleType) -> _HookManager:
    manager = _HookManager(_MANAGER_NAME)
    manager.add_hookspecs(hookspecs)
    _refuse_unknown_hooks(module)
    _refuse_no_hooks(module)
    try:
        manager.register(module, provider.plugin)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        raise HookRaised(" ".join(str(error).split())) from error
    return manager


def _returned(hook: Any, expected: str) -> Iterable[object]:
    """Call a hook; return what is in the list that it returns."""
    try:
        returned = hook()
    except PluginError as error:
        raise HookRaised(str(error)) from error
    if not returned and hook.get_hookimpls():  # pluggy leaves out what is None
        returned = [None]
    for entries in returned:
        if not isinstance(entries, Iterable):
            raise HookRaised(f"{hook.name} must return a list of {expected} objects, not {entries!r}")
    return (entry for entries in returned for entry in entries)


def _refuse_other_versions(module: ModuleType) -> None:
    """Raise HookRaised for a plug-in that is written for other hooks than ours, or that does not say for which."""
    api = vars(module).get(_API)
    if type(api) is int and OLDEST_API <= api <= API:
        return
    known = str(API) if OLDEST_API == API else f"from {OLDEST_API} to {API}"
    must = f"{_API} of module {module.__name__!r}, the version of the hooks that it is written for, must be {known}"
    if type(api) is int and api > API:
        raise HookRaised(f"{must}, which kernbench {__version__} has, not {api}; use a newer kernbench")
    found = "is missing" if api is None else f"is {api!r}"
    raise HookRaised(f"{must}, and {found}; write '{_API} = {API}' into it")


def _refuse_unknown_hooks(module: ModuleType) -> None:
    """Raise HookRaised for a function whose name looks like a hook and is none: pluggy names no remedy."""
    known = [hookspecs.PREFIX + kind for kind in OFFERS]
    for name in sorted(vars(module)):
        if name.startswith(hookspecs.PREFIX) and name not in known and callable(getattr(module, name)):
            hint = f"; did you mean {close!r}?" if (close := closest(name, known)) else ""
            raise HookRaised(f"its hooks must be among {', '.join(known)}, not {name!r}{hint}")


def _refuse_no_hooks(module: ModuleType) -> None:
    """Raise HookRaised for what has a hook's name and cannot be called as one."""
    for kind, (expected, _) in OFFERS.items():
        name = hookspecs.PREFIX + kind
        if name not in vars(module):
            continue
        hook = vars(module)[name]
        shown = repr(hook)
        if inspect.isfunction(hook):
            signature = inspect.signature(hook)
            needed = [p for p in signature.parameters.values() if p.default is p.empty and p.kind not in _OPEN]
            options = getattr(hook, f"{_MANAGER_NAME}_impl", None) or {}
            if not needed and not is_async(hook) and not options.get("wrapper") and not options.get("hookwrapper"):
                continue
            called = f"{name}{signature.replace(return_annotation=signature.empty)}"
            shown = f"async def {called}" if is_async(hook) else called if needed else "a wrapper of pluggy"
        raise HookRaised(
            f"{name} must be a function without arguments that returns a list of {expected.__name__} objects, not "
            f"{shown}"
        )
