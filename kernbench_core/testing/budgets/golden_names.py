"""Where the golden of a test lies: beside its file, under a name that follows from its node id."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final

from kernbench_core.errors import UsageError
from kernbench_core.wording import brief

__tracebackhide__ = True  # a failure shows the line of the test
#: The folder beside a file of tests; each file has a folder of its own in there.
FOLDER: Final = "goldens"
SUFFIX: Final = ".json"
#: Stands before the name of one of several goldens of a test, and before the digest of a test that has no plain name.
NAMED, DIGESTED = "@", "~"
_LONGEST = 120
#: What becomes a file name without loss: classes and a function, and an id in lower case; its last dots are not kept.
_PLAIN = re.compile(r"[\w.]+(?:::\w+)*(?:\[[a-z0-9_.-]*[a-z0-9_]\])?", re.ASCII)
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,59}")


def case_of(nodeid: str) -> str:
    """Return what a node id says behind the file: "TestSoftmax::test_rows[64]"."""
    return nodeid.partition("::")[2] or nodeid.rpartition("/")[2]


def folder_of(file: Path) -> Path:
    """Return the folder of the goldens of a file of tests."""
    return file.parent / FOLDER / file.stem


def golden_name(case: str, name: str | None = None) -> str:
    """Return the name of the file; UsageError for a name that is none.

    No two tests of a file share one, on file systems that take capitals for small letters too, unless the names of
    functions or classes differ in nothing else: a golden says whose it is. It is made of letters, digits and `_.-@~`.
    """
    if name is not None and not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise UsageError(
            f"the name of a golden must be small letters, digits, '_', '.' and '-', 60 at most, not {brief(name)}."
        )
    readable = re.sub(r"[^\w.-]+", "-", case.replace("::", "."), flags=re.ASCII).strip("-.")
    if _PLAIN.fullmatch(case) is None or len(readable) > _LONGEST:
        digest = hashlib.sha256(case.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        readable = f"{readable[: _LONGEST - 13]}{DIGESTED}{digest}"
    return f"{readable}{'' if name is None else NAMED + name}{SUFFIX}"


def owner_of(file_name: str) -> str:
    """Return what of a golden's file name stands for its test."""
    return file_name.removesuffix(SUFFIX).partition(NAMED)[0]
