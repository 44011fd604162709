def split_heads(x, n_heads):
    """(B, T, D) -> (B, H, T, D / H)"""
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def join_heads(x):
    """(B, H, T, D / H) -> (B, T, D)"""
    return x.transpose(1, 2).flatten(2)
