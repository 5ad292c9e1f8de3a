"""The options that say which plug-ins are wanted: before the command's name or behind it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import rich_click as click

from kernbench_core.errors import UsageError
from kernbench_core.plugins.chosen import Chosen, names

_FILE, _WITHOUT, _STRICT = "--plugin", "--no-plugin", "--strict-plugins"

#: As the help of `kernbench` tells of them.
OPTIONS = (
    click.Option([_FILE], metavar="FILE.py", help="Also load a plug-in that is not installed.", expose_value=False),
    click.Option([_WITHOUT], metavar="NAME", help="Do not load this installed plug-in.", expose_value=False),
    click.Option([_STRICT], is_flag=True, help="Fail when a plug-in cannot be used.", expose_value=False),
)


def without_plugin_options(given: Sequence[str]) -> tuple[list[str], Chosen]:
    """Return a command line without these options, and what they and the environment say.

    Raise UsageError for one whose value is missing. What stands behind `--` is not looked at.
    """
    files: list[str] = []
    without: list[str] = []
    rest: list[str] = []
    strict, words = False, iter(given)
    for word in words:
        option, equals, value = word.partition("=")
        if word == "--":
            rest += [word, *words]
        elif word == _STRICT:
            strict = True
        elif option in (_FILE, _WITHOUT):
            value = value if equals else next(words, "")
            if not value:
                raise UsageError(f"option {option} must be followed by {'FILE.py' if option == _FILE else 'NAME'}.")
            if option == _FILE:
                files.append(value)
            else:
                without += names(value)
        else:
            rest.append(word)
    return rest, Chosen.of_environment().with_more(tuple(files), tuple(without), strict)


@contextmanager
def wanted(chosen: Chosen) -> Iterator[None]:
    """Have this process, and those that it starts, load the plug-ins that are wanted."""
    variables = chosen.environment()
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, text in before.items():
            if text is None:
                del os.environ[name]
            else:
                os.environ[name] = text
