import torch
from torch import einsum, nn


class ScaledDotProductAttention(nn.Module):
    def forward(self, q, k, v, mask=None):
        sim = einsum("...id,...jd->...ij", q, k) / q.shape[-1] ** 0.5
        if mask is not None:
            sim = sim.masked_fill(mask, -torch.inf)
        att = sim.softmax(dim=-1)
        if mask is not None:
            # nan != nan, but masked_fill does not care what was there
            nothing_left = mask.broadcast_to(sim.shape).all(-1, keepdim=True)
            att = att.masked_fill(nothing_left, 0.0)
        return einsum("...ij,...jd->...id", att, v), att
