"""How a matrix product is cut over a machine: a grid of blocks of C, rows over packages first."""

from __future__ import annotations

from attrs import frozen

from kernbench_core.runtime import Runtime


@frozen
class Blocks:
    """Cut an M x N result into blocks of `rows` x `cols`, one per PE, `across` of them side by side.

    PEs count along a row of blocks first. The last blocks of a row or a column may be smaller or empty.
    """

    rows: int
    cols: int
    across: int

    @classmethod
    def over(cls, rt: Runtime, m: int, n: int) -> Blocks:
        """Choose the grid that reads least: rows are dealt to packages, each package is a grid of its own.

        A PE reads (M / down + N / across) x K elements; what a package reads of A, it holds itself.
        """
        packages = rt.mesh[0]
        pes = rt.n_pes // packages
        shapes = [(pes // across, across) for across in range(1, pes + 1) if pes % across == 0]
        down, across = min(shapes, key=lambda shape: (-(-m // (packages * shape[0])) + -(-n // shape[1]), shape))
        return cls(-(-m // (packages * down)), -(-n // across), across)

    def of(self, pe: int) -> tuple[int, int]:
        """Return the first row and the first column of a PE's block."""
        down, across = divmod(pe, self.across)
        return down * self.rows, across * self.cols
