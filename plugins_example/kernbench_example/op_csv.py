"""A format of traces: one line for each record of the op log, for a spreadsheet."""

from __future__ import annotations

import csv
import io
from typing import IO, Any

COLUMNS = ("start_ns", "end_ns", "component", "kind", "op", "bytes_written")


def export(op_log: Any, out: IO[bytes]) -> None:
    """Write the records in their order; the same log gives the same bytes."""
    text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(COLUMNS)
    for record in op_log:
        written = 0 if record.writes is None else record.writes.nbytes
        times = (repr(record.t_start), repr(record.t_end))
        lines.writerow((*times, record.component_id, record.op_kind, record.op_name, written))
    text.detach()  # the file is the caller's to close
