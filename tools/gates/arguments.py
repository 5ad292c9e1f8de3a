"""What the tools that measure are given on their command lines."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from pathlib import Path

GATES = "--gates, with --before and JOB, compares with the last commit that was pure Python: see --gates --help"
"""What the help of a tool says of its other mode."""


def checkout_of(word: str) -> Path:
    """Return a folder that has a kernbench; without one, Python would take the one that is installed."""
    tree = Path(word).resolve()
    if not (tree / "kernbench_core" / "__init__.py").is_file():
        raise argparse.ArgumentTypeError(f"{word} must be a checkout of kernbench, but has no kernbench_core")
    return tree


def add_jobs(parser: argparse.ArgumentParser, names: Collection[str]) -> None:
    """Have a command line take `jobs`, any number of some names."""

    def name(word: str) -> str:
        if word not in names:
            raise argparse.ArgumentTypeError(f"{word} must be among {', '.join(names)}")
        return word

    parser.add_argument("jobs", nargs="*", metavar="JOB", type=name, help=f"only these of {', '.join(names)}")
