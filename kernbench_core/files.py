"""Write files whole or not at all, with bytes that depend on nothing but their content."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from kernbench_core.errors import UsageError


@contextmanager
def whole_file(path: Path, *, compress: bool = False) -> Iterator[IO[bytes]]:
    """Open a temporary file beside `path` for bytes, and rename it to `path` when the block ends well.

    When the block raises, `path` is as it was before. `compress` writes gzip without name and time, so that equal
    content gives equal bytes. Raise UsageError when the folder of `path` cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        raw = temporary.open("xb")
    except OSError as error:
        raise UsageError(f"file {str(path)!r} must be in a folder that can be written: {error.strerror}.") from None
    try:
        with raw:
            if compress:
                with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
                    yield cast("IO[bytes]", packed)
            else:
                yield raw
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write `text` and a final newline to `path` as UTF-8, whole or not at all."""
    with whole_file(path) as out:
        out.write(text.encode() + b"\n")
