from .masks import combine, future_mask
from .shapes import join_heads, split_heads

__all__ = ["combine", "future_mask", "join_heads", "split_heads"]
