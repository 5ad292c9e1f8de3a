"""The fitted machine as a file: an overlay of the machine it began with, that says of each value where it is from."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from kernbench_builtin.calibrate.calibration import Calibrated, signed_percent
from kernbench_builtin.calibrate.fit import FittedValue
from kernbench_core.errors import ConfigError, UsageError
from kernbench_core.process import folder_above, whole_file
from kernbench_core.topology import load_config

_INDENT = "  "


def overlay_text(found: Calibrated, path: Path, presets: object) -> str:
    """Return the YAML of a fitted machine, to stand at `path`; it is the same whenever it is made."""
    sources = ", ".join(Path(one).name for one in found.logs.sources)
    lines = [
        f"# Fitted by kernbench calibrate to {len(found.rows)} rows of {sources}.",
        f"# Simulated on this machine the rows are {found.mean_error:.1%} off on average; the farthest is "
        f"{found.worst.row.label}, {signed_percent(found.worst.error)}.",
        *(f"# {sentence}" for sentence in found.ran),
        *(["# Give later commands the same options: with others these rows take other times."] if found.ran else []),
        f"base: {_yaml(_base(found.base.topology, path, presets))}",
        f"title: {_yaml(path.stem)}",
    ]
    remarks = {tuple(one.unknown.key.split(".")): remark(one) for one in found.values}
    # as every command lays settings over each other: a key may be within the mapping that another one gives
    settings = load_config({}, sets=found.machine.sets)
    return "\n".join([*lines, *_lines(settings.data, remarks, ())]) + "\n"


def remark(fitted: FittedValue) -> str:
    """Say in a few words how sure a value is, and between which limits it had to be."""
    unknown = fitted.unknown
    limits = f"{unknown.text(unknown.low)} to {unknown.text(unknown.high)}"
    if fitted.limit is not None:
        return f"{unknown.name}, on the {fitted.limit} limit of {limits}; it may lie beyond"
    error = "as many values as rows" if fitted.error is None else f"+- {fitted.error:.1%} in 95 of 100 fits"
    return f"{unknown.name}, {error}, within {limits}"


def require_free(path: Path, logs: Iterable[Path], *, force: bool) -> None:
    """Raise UsageError where a file is there already that may not be written over, or no folder for it.

    One of the `logs` may not be, whatever is given.
    """
    if path.exists() and any(log.exists() and path.samefile(log) for log in logs):
        raise UsageError(f"option --output must name a file of its own, not {str(path)!r}, which is one of the logs.")
    if path.is_dir():
        raise UsageError(f"option --output must name a file that can be written, not a folder: {str(path)!r}.")
    folder_above("option --output", path)
    if path.exists() and not force:
        raise UsageError(f"option --output must name a file that is not there yet, not {str(path)!r}; or give --force.")


def write_overlay(text: str, path: Path) -> None:
    """Write a file as a whole or not at all, with the folders above it; UsageError where it cannot be written."""
    with whole_file(path) as out:
        out.write(text.encode())


def _base(topology: str, path: Path, presets: Any) -> str:
    """Return what the overlay names as its base: a preset, or the way to a file from where the overlay stands."""
    return topology if topology in presets else os.path.relpath(topology, path.parent)


def _lines(tree: Mapping[str, Any], remarks: Mapping[tuple[str, ...], str], above: tuple[str, ...]) -> list[str]:
    """Return the lines of a mapping that stands below the keys `above`, with the remarks on its values."""
    found, indent = list[str](), _INDENT * len(above)
    for key, value in tree.items():
        path = (*above, key)
        if isinstance(value, dict) and value:
            found += [f"{indent}{_yaml(key)}:", *_lines(value, remarks, path)]
        else:
            told = f"  # {remarks[path]}" if path in remarks else ""
            found.append(f"{indent}{_yaml(key)}: {_yaml(value)}{told}")
    return found


def _yaml(value: Any) -> str:
    """Write a value so that it is read back as itself: text plain, where that can be."""
    if isinstance(value, str):
        with suppress(ConfigError):
            if load_config({}, sets=[f"key={value}"]).data["key"] == value:
                return value
    return json.dumps(value)
