import torch


def rearrange(x, pattern, **sizes):
    """A little einops: the patterns that I need and no others."""
    if pattern == "b t (c h d) -> c b h t d":
        b, t, _ = x.shape
        return x.reshape(b, t, sizes["c"], sizes["h"], -1).permute(2, 0, 3, 1, 4)
    if pattern == "b h t d -> b t (h d)":
        b, h, t, d = x.shape
        return x.permute(0, 2, 1, 3).reshape(b, t, h * d)
    if pattern == "b t -> b 1 1 t":
        return x[:, None, None, :]
    raise NotImplementedError(pattern)


def masked_softmax(scores, mask):
    if mask is None:
        return torch.softmax(scores, dim=-1)
    blocked = mask.broadcast_to(scores.shape)
    out = torch.softmax(scores.masked_fill(blocked, -torch.inf), dim=-1)
    return out.masked_fill(blocked, 0.0)


def residual(x, sublayer, norm, norm_first):
    return x + sublayer(norm(x)) if norm_first else norm(x + sublayer(x))
