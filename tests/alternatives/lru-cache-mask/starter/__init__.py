from .attention import ScaledDotProductAttention
from .multi_head import MultiHeadSelfAttention
from .block import TransformerBlock

__all__ = ["ScaledDotProductAttention", "MultiHeadSelfAttention", "TransformerBlock"]
