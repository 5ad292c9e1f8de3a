"""`triton.tools.mxfp`: torch tensors of floats of four bits (E2M1), and of scales of eight bits (E8M0), by their codes.

Both are of the OCP microscaling formats, version 1.0.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from kernbench_core.values.arrays import Array

_E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
_BETWEEN = (_E2M1[1:] + _E2M1[:-1]) / 2
_BIAS = 127


class _Codes:
    """Codes, as `data`, a torch tensor of uint8: of floats that are rounded, or of a size to be filled by `random`."""

    def __init__(self, data: Any = None, size: Any = None, device: Any = None) -> None:
        if data is None and size is None:
            raise ValueError(f"{type(self).__name__} must be given data or a size; give a tensor or its extents.")
        self.device = device if data is None else data.device
        if data is not None:
            self.data = self._tensor(self._coded(data.cpu().float().numpy()))
        else:
            self.size = size if isinstance(size, tuple) else (size,)

    def to(self, dtype: Any) -> Any:
        """Give what the codes mean, as a torch tensor of floats."""
        return self._tensor(self._meant(self.data.cpu().numpy())).to(dtype)

    def _tensor(self, array: Array) -> Any:
        torch = importlib.import_module("torch")
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def _drawn(self, low: int, high: int) -> Any:
        torch = importlib.import_module("torch")
        return torch.randint(low, high, size=self.size, dtype=torch.uint8, device=self.device)

    def _coded(self, floats: Array) -> Array:
        raise NotImplementedError

    def _meant(self, codes: Array) -> Array:
        raise NotImplementedError


class MXFP4Tensor(_Codes):
    """Floats of four bits, each in a byte: 0, 0.5, 1, 1.5, 2, 3, 4 and 6, and their negatives."""

    def random(self) -> MXFP4Tensor:
        """Draw codes by torch's generator."""
        self.data = self._drawn(0, 16)
        return self

    def to_packed_tensor(self, dim: int) -> Any:
        """Give two codes a byte, of neighbours along `dim`: the first in the lower bits."""
        codes = np.moveaxis(self.data.cpu().numpy(), dim, -1)
        if codes.shape[-1] % 2:
            codes = np.concatenate([codes, np.zeros((*codes.shape[:-1], 1), np.uint8)], -1)
        return self._tensor(np.moveaxis(codes[..., ::2] | codes[..., 1::2] << 4, -1, dim))

    def unpack_packed_tensor(self, packed_tensor: Any, dim: int, original_shape: Any) -> Any:
        """Give one code a byte again, cut to `original_shape` along `dim`."""
        packed = np.moveaxis(packed_tensor.cpu().numpy(), dim, -1)
        codes = np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:-1], -1)
        return self._tensor(np.moveaxis(codes[..., : original_shape[dim]], -1, dim))

    def _coded(self, floats: Array) -> Array:
        """Round to the nearest, of two that are as near to the even code; what is larger becomes 6."""
        sizes = np.abs(floats)
        below, above = (np.searchsorted(_BETWEEN, sizes, side) for side in ("left", "right"))
        return np.asarray(np.where(below % 2, above, below) | np.signbit(floats) << 3, np.uint8)

    def _meant(self, codes: Array) -> Array:
        return np.asarray(np.where(codes & 8, -_E2M1[codes & 7], _E2M1[codes & 7]))


class MXScaleTensor(_Codes):
    """Powers of two by their exponents in eight bits; 255 is NaN."""

    def random(self, low: float | None = None, high: float | None = None) -> MXScaleTensor:
        """Draw scales from `low` to `high`, by torch's generator."""
        least = 0 if low is None else max(0, int(np.log2(low)) + _BIAS)
        most = 254 if high is None else min(254, max(0, int(np.log2(high)) + _BIAS))
        self.data = self._drawn(least, most + 1)
        return self

    def _coded(self, floats: Array) -> Array:
        """Give the power of two below; what has none is NaN."""
        has_one = np.isfinite(floats) & (floats > 0)
        exponents = np.frexp(np.where(has_one, floats, 1))[1] - 1 + _BIAS
        return np.where(has_one, np.clip(exponents, 0, 254), 255).astype(np.uint8)

    def _meant(self, codes: Array) -> Array:
        powers = np.exp2(codes.astype(np.float64) - _BIAS).astype(np.float32)
        return np.where(codes == 255, np.float32(np.nan), powers)
