"""Configurations that are texts instead of files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from kernbench_core.topology.configuration import Config, KeyPath, Layering, _read_setting, _Reader, by_key


def parse_config(
    text: str,
    name: str = "<text>",
    *,
    presets: Mapping[str, Path] | None = None,
    sets: Sequence[str] = (),
    layering: Callable[[KeyPath], Layering] = by_key,
) -> Config:
    """Read configuration from text; `name` stands for the file in messages."""
    reader = _Reader(presets or {}, layering=layering)
    layers = [reader.text_layer(text, name, Path(), ())]
    layers.extend(reader.attempt(partial(_read_setting, setting)) for setting in sets)
    return reader.finish(layers)
