"""What of a run is otherwise than when its golden was written: kernel, model, configuration, libraries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kernbench_core.comparison import RunComparison
from kernbench_core.comparison.moved_rows import ChangedInput
from kernbench_core.wording import brief

#: How many values of one sort are told, and how many lines of a kernel's diff.
_MOST, _MOST_LINES = 8, 24
_VALUES: Final = {
    "bench": "The bench is another one",
    "configuration": "The configuration changed",
    "params": "The parameters changed",
    "options": "The options changed",
    "plugins": "The plug-ins changed",
    "versions": "The libraries changed",
}
_NOTHING: Final = (
    "Nothing that a golden names changed: the same kernel, models, configuration, parameters, options and libraries. "
    "Code of kernbench itself did, something was patched while the tests ran, or the bench reads something else."
)


def what_changed(compared: RunComparison) -> list[str]:
    """Return lines that say what changed since a golden was written; one that says so where nothing did."""
    lines = [*_kernels(compared), *_models(compared)]
    for sort, said in _VALUES.items():
        values = [_value(each) for each in compared.causes if each.sort == sort]
        if values:
            lines.append(f"{said}: {_listed(values)}.")
    return lines or [_NOTHING]


def changed_in_short(compared: RunComparison) -> str:
    """Say the same in a line, without lines of kernels and values of keys: "kernel gemm.py:kernel, model acme.unit"."""
    words = {"sources": "bench", "models": "model", "params": "parameter", "options": "option", "plugins": "plug-in"}
    found = [
        f"{'kernel' if each.sort == 'sources' and ':' in each.name else words.get(each.sort, each.sort)} {each.name}"
        for each in compared.causes
        if each.sort != "versions"
    ]
    return _listed(found)


def _kernels(compared: RunComparison) -> Iterator[str]:
    """Say which kernels changed, and in which lines; of a file in which no kernel did, that it changed."""
    told = set()
    for source in compared.sources:
        yield f"The kernel changed, {source.name}:"
        lines = [line for line in source.lines if line[:3] not in ("---", "+++")]
        yield from (f"    {line}" for line in lines[:_MOST_LINES])
        if len(lines) > _MOST_LINES:
            yield f"    … and {len(lines) - _MOST_LINES} more lines"
        told.update(source.name.split(" → "))
    names = [each.name for each in compared.causes if each.sort == "sources" and each.name not in told]
    kernels = [name for name in names if ":" in name]
    if kernels:
        yield f"Other kernels ran: {_listed(_value(each) for each in _named(compared, kernels))}."
    files = {name.partition(":")[0] for name in (*told, *kernels)}
    others = [name for name in names if ":" not in name and name not in files]
    if others:
        yield f"The bench changed: {_listed(others)}."


def _named(compared: RunComparison, names: Sequence[str]) -> Iterator[ChangedInput]:
    yield from (each for each in compared.causes if each.sort == "sources" and each.name in names)


def _models(compared: RunComparison) -> Iterator[str]:
    """Say which implementations changed, and the versions of the distributions that they come from."""
    changed = []
    for each in compared.causes:
        if each.sort != "models":
            continue
        vendor = each.name.partition(".")[0]
        plugins = (run.causes.get("plugins", {}) for run in (compared.before, compared.after))
        then, now = (str(each.get(vendor, "")).strip() for each in plugins)
        version = f"{now}, was {then}" if then and now and then != now else now or then
        which = "" if each.absent is None else " is new" if each.absent == "before" else " is not there any more"
        changed.append(f"{each.name}{f' ({version})' if version else ''}{which}")
    if changed:
        yield f"The model changed: {_listed(changed)}."


def _value(each: ChangedInput) -> str:
    """Say what a value was and is: "cube.noc.latency is '1.5 ns', was '0.5 ns'"."""
    if each.sort == "sources":
        return f"{each.name} is {'new' if each.absent == 'before' else 'gone' if each.absent else 'another one'}"
    if each.absent == "after":
        return f"{each.name} is gone, was {brief(each.before, 60)}"
    if each.absent == "before":
        return f"{each.name} is new, {brief(each.after, 60)}"
    return f"{each.name} is {brief(each.after, 60)}, was {brief(each.before, 60)}"


def _listed(values: Iterable[str]) -> str:
    several = list(values)
    more = f"; and {len(several) - _MOST} more" if len(several) > _MOST else ""
    return "; ".join(several[:_MOST]) + more
