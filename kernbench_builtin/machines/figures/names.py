"""The figures of a run that are attributes of its result, too."""

from typing import Final

GIVES: Final = (
    "launches", "kernels", "links", "components", "lines", "functions", "op_kinds", "models", "ops", "masked_share",
)  # fmt: skip
