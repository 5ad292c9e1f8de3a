"""A whole run: plug-ins, configuration, session, phase 2, result and files, and the same again from a manifest.

In: a bench, a topology and options. Out: a result, its text, and a folder that can be run again. Notebooks and the
command line call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_core.runs.backends import open_backend as open_backend
    from kernbench_core.runs.bench_run import configure as configure
    from kernbench_core.runs.bench_run import run as run
    from kernbench_core.runs.bench_run import tell_warnings as tell_warnings
    from kernbench_core.runs.options import DATA as DATA
    from kernbench_core.runs.options import LIMITS as LIMITS
    from kernbench_core.runs.options import MACHINE as MACHINE
    from kernbench_core.runs.options import Option as Option
    from kernbench_core.runs.options import OptionRecord as OptionRecord
    from kernbench_core.runs.options import RunCall as RunCall
    from kernbench_core.runs.parts import RunPart as RunPart
    from kernbench_core.runs.parts import SoFar as SoFar
    from kernbench_core.runs.parts import show_answers as show_answers
    from kernbench_core.runs.progress import ProgressDisplay as ProgressDisplay
    from kernbench_core.runs.result import RunResult as RunResult
    from kernbench_core.runs.result import json_text as json_text
    from kernbench_core.runs.text_report import bare_table as bare_table
    from kernbench_core.runs.text_report import make_console as make_console
    from kernbench_core.runs.text_report import show as show

__getattr__ = door(__name__)
