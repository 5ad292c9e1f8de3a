"""The jobs that are compared, and how many times as fast as before each must be."""

from __future__ import annotations

from typing import Any

from gates import programs
from gates.sides import Gate, Job

KIB, MIB = 1 << 10, 1 << 20
_SMALL = ["run", "gemm-naive", "--topology", "tiny", "-q"]


def _run(bench: str, topology: str, *more: str, **params: object) -> list[str]:
    given = [word for name, value in params.items() for word in ("-p", f"{name}={value}")]
    return ["run", bench, "--topology", topology, "-q", *given, *more]


def _command(label: str, words: list[str], quick: list[str], gate: Gate, rounds: int = 3) -> Job:
    """Return the job of a command; a small run of the same sort goes before it."""
    return Job(
        label, programs.program(programs.COMMAND), {"warm": quick, "words": words}, {"warm": _SMALL, "words": quick},
        gate, rounds,
    )  # fmt: skip


def _cube(size: int) -> dict[str, object]:
    return dict.fromkeys("MNK", size)


def _mesh(cycles: int) -> list[str]:
    return ["probe", "--traffic", "uniform", "--load", "0.3", "--warmup", "100", "--measure", str(cycles)]


def _hbm(requests: int) -> dict[str, Any]:
    return {"pattern": "random", "chunk": 32, "requests": requests, "reads": 1.0, "outstanding": 1024}


def _phase_2(tokens: int) -> dict[str, Any]:
    return {
        "bench": "attention", "topology": "default", "params": {"model": "llama3-8b", "tokens": tokens},
        "warm": {"model": "llama3-8b", "tokens": 128},
    }  # fmt: skip


def _collective(topology: str, ranks: int, size: int, warm: int) -> dict[str, Any]:
    return {"topology": topology, "sets": [f"system.sips={ranks}"], "size": size, "warm": warm}


def _all_reduce(label: str, size: int, rounds: int) -> Job:
    return Job(
        label, programs.program(programs.COLLECTIVE), _collective("default", 8, size, 64 * KIB),
        _collective("tiny", 2, 8 * KIB, 4 * KIB), Gate(1.5, 3.0), rounds,
    )  # fmt: skip


_LLAMA: dict[str, object] = {"model": "llama3-8b"}
ENGINE: dict[str, Job] = {
    "gemm": _command(
        "`gemm` 1024 x 1024 x 1024, `default`",
        _run("gemm-naive", "default", **_cube(1024)), _run("gemm-naive", "default", **_cube(128)), Gate(1.3, 4.0), 5,
    ),
    "attention": _command(
        "`attention`, llama3-8b, 2048 tokens, data verified, `default`",
        _run("attention", "default", "--verify-data", **_LLAMA, tokens=2048),
        _run("attention", "default", "--verify-data", **_LLAMA, tokens=128), Gate(1.5, 3.5),
    ),
    "gemm-composite": _command(
        "`gemm-composite` 2048 x 2048 x 2048, `full`",
        _run("gemm-composite", "full", **_cube(2048)), _run("gemm-composite", "full", **_cube(128)), Gate(1.3, 4.0), 1,
    ),
    "hbm": Job(
        "bank-level HBM, random reads of 32 B", programs.program(programs.HBM), _hbm(20000), _hbm(300),
        Gate(2.0, 8.0), 5,
    ),
    "mesh": _command(
        "uniform traffic on a mesh of 8 x 8, load 0.3", _mesh(5000), _mesh(100), Gate(1.2, 4.0),
    ),
    "phase-2": Job(
        "data of `attention`, llama3-8b, 2048 tokens (wall time)", programs.program(programs.PHASE_2), _phase_2(2048),
        _phase_2(128), Gate(2.5, 3.0),
    ),
    "tiny": Job(
        "whole command `kernbench run gemm-naive --topology tiny -q`", programs.program(programs.WHOLE),
        {"words": _SMALL},
        {"words": _SMALL}, Gate(None, None, 0.35), 9,
    ),
    "first-event": Job(
        "`full` up to its first event, from the second time (wall time)", programs.program(programs.FIRST_EVENT),
        {"words": _run("gemm-naive", "full", **_cube(1024))}, {"words": _SMALL}, Gate(None, None, 0.8), 3,
    ),
    "first-time": Job(
        "`full` up to its first event, without any bytecode (wall time)", programs.program(programs.FIRST_EVENT),
        {"words": _run("gemm-naive", "full", **_cube(1024))}, {"words": _SMALL}, Gate(None, None, 2.5), 3, first=True,
    ),
}  # fmt: skip
"""What tools/bench_engine.py compares, by name."""
CCL: dict[str, Job] = {
    "sips-1M": _all_reduce("all-reduce of 1 MiB over 8 packages, data checked", MIB, 3),
    "sips-16M": _all_reduce("all-reduce of 16 MiB over 8 packages, data checked", 16 * MIB, 1),
}
"""What tools/bench_ccl.py compares, by name."""
