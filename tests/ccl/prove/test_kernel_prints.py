"""What kernels print in a check is told once for each rank, which is named."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from kernbench_ccl.prove.kernel_prints import KernelPrints
from kernbench_core.plugins import Plugins
from tests.ccl.prove.proofs import run_command
from tests.ccl.ring_source import ring

BEGIN = "    c = tl.collective\n"


def test_each_line_of_a_kernel_is_printed_once_for_each_rank(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On stderr, however many cases and PEs there are."""
    ring(tmp_path, (BEGIN, f"{BEGIN}    print('tiles of', c.tile)\n    print(f'PE {{pe}}', end='\\n\\n')\n"))
    assert run_command(plugins, str(tmp_path / "ring.py"), "--ranks", "2", "--pes", "2", "--count", "7,9") == 0
    told = capsys.readouterr()
    lines = [line for line in told.err.splitlines() if "PE" in line or "tiles" in line]
    assert lines == [
        "rank 0: tiles of 4", "rank 0: PE 0", "rank 0: PE 1", "rank 1: tiles of 4", "rank 1: PE 0", "rank 1: PE 1",
    ]  # fmt: skip
    assert "tiles" not in told.out


def test_lines_that_come_in_pieces_are_put_together() -> None:
    """What no kernel prints has no rank."""
    out = io.StringIO()
    prints = KernelPrints(out)
    for text in ("a", "b\n", "ab\nc\n", "d"):
        prints.write(text)
    assert out.getvalue() == "ab\nc\n"


def test_it_may_go_after_what_it_prints_to() -> None:
    """Closing it, as Python does when nobody holds it, is no error then."""
    out = io.StringIO()
    prints = KernelPrints(out)
    out.close()
    prints.close()
    assert prints.closed
