"""What the commands of one invocation share: the plug-ins, loaded once, and the two output streams."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from kernbench_core.plugins import Plugins, load_plugins


class Shell:
    """Hold the plug-ins of one invocation, and write its messages to stderr."""

    def __init__(self, plugins: Plugins | None = None) -> None:
        self._plugins = plugins
        self._warned = False

    @property
    def plugins(self) -> Plugins:
        """The plug-ins; the first call loads them and warns, in one line each, of those left out."""
        if self._plugins is None:
            self._plugins = load_plugins()
        if not self._warned:
            self._warned = True
            for failure in self._plugins.failures:
                self.warn(f"{failure}.")
        return self._plugins

    def warn(self, sentence: str) -> None:
        """Write a warning to stderr."""
        self._write("warning", "33", sentence)

    def complain(self, sentence: str) -> None:
        """Write an error to stderr."""
        self._write("error", "1;31", sentence)

    def report(self, problems: Iterable[str]) -> None:
        """Write the problems of a configuration to stderr, a line each: they begin with their place in a file."""
        sys.stdout.flush()
        sys.stderr.write("".join(f"{problem}\n" for problem in problems))
        sys.stderr.flush()

    def _write(self, label: str, colour: str, sentence: str) -> None:
        sys.stdout.flush()
        if sys.stderr.isatty():
            label = f"\x1b[{colour}m{label}\x1b[0m"
        sys.stderr.write(f"{label}: {sentence}\n")
        sys.stderr.flush()
