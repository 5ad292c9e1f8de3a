"""The kernel language as a file written in Triton has it: what differs from `tl` of kernbench's own kernels."""

from __future__ import annotations

from functools import partial
from typing import Any

from kernbench_builtin.triton.language.atomics import AtomicLanguage
from kernbench_builtin.triton.language.blocks import BlockLanguage
from kernbench_builtin.triton.language.combine import CombineLanguage
from kernbench_builtin.triton.language.extremes import WideningLanguage
from kernbench_builtin.triton.language.libdevice import BITCASTS, REFUSED, SPELLINGS
from kernbench_builtin.triton.language.random import RandomLanguage
from kernbench_builtin.triton.language.scaled import ScaledProductLanguage
from kernbench_builtin.triton.language.sorting import SortLanguage
from kernbench_core.callsite import call_site, describe_site
from kernbench_core.compute.ops import OPS
from kernbench_core.errors import UnsupportedError


class TritonLanguage(
    AtomicLanguage,
    BlockLanguage,
    WideningLanguage,
    CombineLanguage,
    SortLanguage,
    RandomLanguage,
    ScaledProductLanguage,
):
    """`triton.language` for one program: numbers are typed scalars, and computed data may be read and branched on."""

    def __getattr__(self, name: str) -> Any:
        op = SPELLINGS.get(name)
        if op is not None:
            return partial(self.unary if OPS[op].arity == 1 else self.binary, op)
        if name in BITCASTS:
            return partial(self.cast, dtype=BITCASTS[name], bitcast=True)
        if name in REFUSED:
            here = f"tl.math.{name} at {describe_site(call_site())}"
            raise UnsupportedError(f"{here} is a name of Triton's that kernbench refuses: {REFUSED[name]}.")
        return super().__getattr__(name)
