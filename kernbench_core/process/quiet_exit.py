"""Ctrl-C before a command has begun and after its end: nothing is to be cleared up, and Python says nothing of it."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

_TOLD = "interrupted while loading kernbench."
#: What --json prints; the module that would write it may be what is being loaded.
_OBJECT = f'{{"schema": "kernbench.error/1", "exit_code": 130, "problems": ["{_TOLD}"]}}\n'


class QuietExit:
    """A handler of SIGINT that ends the process at once, with exit code 130; until the command `began` it says so.

    `report` is called with that code before, for whoever keeps the process.
    """

    def __init__(self) -> None:
        self.began = False
        self.report: Callable[[int], object] | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """End the process; called by Python when the signal comes."""
        if not self.began:
            if "--json" in sys.argv:
                os.write(1, _OBJECT.encode())
            os.write(2, f"error: {_TOLD}\n".encode())
        if self.report is not None:
            self.report(128 + number)
        os._exit(128 + number)

    @classmethod
    def install(cls) -> None:
        """Handle Ctrl-C so, unless somebody else does; when Python itself comes to its end, it changes nothing more."""
        main_thread = threading.current_thread() is threading.main_thread()
        if main_thread and signal.getsignal(signal.SIGINT) == signal.default_int_handler:
            signal.signal(signal.SIGINT, cls())
            atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
