"""The layer shapes of public models, as named parameters: `-p model=llama3-8b -p layer=qkv -p tokens=128`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from attrs import frozen

ModelName = Literal["llama3-8b", "llama3-70b", "gpt2", "mixtral-8x7b"]
"""Names that the benches' parameter `model` takes."""


@frozen
class ModelShape:
    """One model's layers: `hidden` features, `heads` of queries and `kv_heads` of keys of `head_dim`, `ffn` features.

    `gated` models compute down(silu(gate(x)) * up(x)), the others down(gelu(up(x))). Of `experts` each token uses some.
    """

    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_dim: int
    gated: bool = True
    experts: int = 1

    def product(self, layer: str) -> tuple[int, int]:
        """Return (K, N) of a layer's matrix product with (tokens, K) activations."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return {
            "qkv": (self.hidden, queries + 2 * keys),
            "q": (self.hidden, queries),
            "kv": (self.hidden, 2 * keys),
            "out": (queries, self.hidden),
            "up": (self.hidden, self.ffn),
            "down": (self.ffn, self.hidden),
        }[layer]


MODELS: Mapping[str, ModelShape] = MappingProxyType(
    {
        # the figures are those of the models' published configurations
        "llama3-8b": ModelShape(hidden=4096, ffn=14336, heads=32, kv_heads=8, head_dim=128),
        "llama3-70b": ModelShape(hidden=8192, ffn=28672, heads=64, kv_heads=8, head_dim=128),
        "gpt2": ModelShape(hidden=768, ffn=3072, heads=12, kv_heads=12, head_dim=64, gated=False),
        "mixtral-8x7b": ModelShape(hidden=4096, ffn=14336, heads=32, kv_heads=8, head_dim=128, experts=8),
    }
)
"""Shapes by name."""
