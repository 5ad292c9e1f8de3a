"""The folder that a run writes: inputs, op log, result and manifest, whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernbench_core.errors import UsageError
from kernbench_core.files import whole_file, write_text
from kernbench_core.manifest import describe_params, write_npy
from kernbench_core.result import RunResult, json_text

if TYPE_CHECKING:
    from kernbench_core.bench import Bench

#: The folder of the op log inside --out.
OP_LOG = "oplog"


def out_folder(out: str | Path | None) -> Path | None:
    """Check, before the run, that `out` can become a folder; raise UsageError otherwise."""
    if out is None:
        return None
    path = Path(out)
    if path.exists() and not path.is_dir():
        raise UsageError(f"--out must name a folder, not the file {str(path)!r}.")
    if not path.parent.is_dir():
        raise UsageError(f"--out must be in a folder that exists; make {str(path.parent)!r} first.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"--out must be a folder that can be written, not {str(path)!r}; give another one.")
    return path


def write_out(
    out: Path,
    result: RunResult,
    functions: Mapping[str, str],
    bench: Bench,
    values: Mapping[str, Any],
    given: Mapping[str, Any],
) -> None:
    """Write inputs, op log and result, and the manifest last: where it is, everything is; or leave no folder behind.

    `functions` say who computes which op, `values` and `given` are the parameters of `bench`, checked and as typed.
    """
    was_there = out.exists()
    out.mkdir(exist_ok=True)
    unfinished = out / f".{OP_LOG}.tmp"
    try:
        (out / "manifest.json").unlink(missing_ok=True)
        _write_inputs(out, bench, values, given)
        _write_op_log(out, unfinished, result, functions)
        write_text(out / "result.json", json_text(result.to_json()))
        write_text(out / "manifest.json", json_text(result.manifest))
    except BaseException:
        shutil.rmtree(unfinished if was_there else out, ignore_errors=True)
        raise


def _write_inputs(out: Path, bench: Bench, values: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    _, arrays = describe_params(values, given, copied=True)
    for name, array in arrays.items():
        (out / name).parent.mkdir(exist_ok=True)
        with whole_file(out / name) as file:
            write_npy(array, file.write)
    if bench.file is not None:
        with whole_file(out / bench.file.name) as file:
            file.write(bench.file.read_bytes())


def _write_op_log(out: Path, unfinished: Path, result: RunResult, functions: Mapping[str, str]) -> None:
    from kernbench_core.oplog_file import save_run

    for folder in (unfinished, out / OP_LOG):
        shutil.rmtree(folder, ignore_errors=True)
    save_run(unfinished, result.op_log, result.store, functions)
    unfinished.rename(out / OP_LOG)
