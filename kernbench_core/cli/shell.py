"""What the commands of one invocation share: the plug-ins, loaded once, and the two output streams."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from kernbench_core.cli.streams import prints_to_stderr
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.process.interrupt import WallTime
from kernbench_core.process.terminal import shown
from kernbench_core.wording import first_of, shortened

if TYPE_CHECKING:
    from kernbench_core.topology.configuration import Config


class Shell:
    """Hold the plug-ins of one invocation, and write its messages to stderr."""

    def __init__(
        self, plugins: Plugins | None = None, *, as_json: bool = False, timeout_s: float | None = None
    ) -> None:
        self._plugins = plugins
        self._as_json = as_json
        self._timeout_s = timeout_s
        self._warned = False
        #: The warnings that were written.
        self.heard: list[str] = []
        #: What Ctrl-C or SIGTERM ended, as " while building the machine"; "" where nobody said.
        self.interrupted = ""

    @property
    def plugins(self) -> Plugins:
        """The plug-ins; the first call loads them and warns, in one line each, of those left out.

        They have the wall time of --timeout for themselves: it is not that of the command.
        """
        if self._plugins is None:
            wall = WallTime(self._timeout_s)
            with wall.spent_on("loading the plug-ins"), prints_to_stderr():  # what one prints is no result
                self._plugins = load_plugins()
        if not self._warned:
            self._warned = True
            for failure in self._plugins.failures:
                self.warn(f"{failure}.")
        return self._plugins

    def warn(self, sentence: str) -> None:
        """Write a warning to stderr."""
        self.heard.append(sentence)
        self._write("warning", "33", sentence)

    def note(self, sentence: str) -> None:
        """Write to stderr what is no warning, and worth a word."""
        self._write("note", "36", sentence)

    def error(self, sentence: str) -> None:
        """Write an error to stderr, beside a result that is on stdout."""
        self._write("error", "1;31", shortened(sentence))

    def fail(self, exit_code: int, *problems: str, labelled: bool = True) -> int:
        """Write problems to stderr, with --json also as one object to stdout; return `exit_code`.

        Those that begin with their place in a file are not `labelled`, so that editors find the place.
        """
        problems = tuple(map(shortened, problems))
        if self._as_json:
            found = {"schema": "kernbench.error/1", "exit_code": exit_code, "problems": problems}
            sys.stdout.write(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
        if labelled:
            self.error("\n".join(first_of(problems)))
        else:
            sys.stdout.flush()
            sys.stderr.write("".join(f"{shown(problem)}\n" for problem in first_of(problems)))
            sys.stderr.flush()
        return exit_code

    def replay(self, command: str, options: Mapping[str, Any], config: Config, make: Callable[[], int]) -> int:
        """Print what a command that is no run printed before for the same machine, where --cached asks for that.

        `make` prints it, and returns the exit code; `options` are those that change what it prints, files among them.
        """
        from kernbench_core.runs.parts import parts_of

        for part in parts_of(self.plugins):
            make = partial(part.around_command, self, command, options, config, make)
        return make()

    def _write(self, label: str, colour: str, sentence: str) -> None:
        sys.stdout.flush()
        if sys.stderr.isatty():
            label = f"\x1b[{colour}m{label}\x1b[0m"
        sys.stderr.write(f"{label}: {shown(sentence)}\n")
        sys.stderr.flush()
