"""A second opinion on kernels: an interpreter that shares nothing with kernbench, and programs made up to compare them.

`numerics` and `interpreter` are written from docs/language.md, docs/queues.md and docs/placement.md, and from the
rules of types of `triton.language`. They import numpy and ml_dtypes, nothing of kernbench: what both get wrong has
been misread twice, from the same page.
"""
