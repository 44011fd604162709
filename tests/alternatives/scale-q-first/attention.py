import torch
import torch.nn as nn


class ScaledDotProductAttention(nn.Module):

    def forward(self, q, k, v, mask=None):
        # scale the (small) queries, not the (big) score matrix
        q = q * q.size(-1) ** -0.5
        att = torch.matmul(q, k.mT)

        if mask is not None:
            att = att.masked_fill(mask, float("-inf"))

        att = att.softmax(-1)

        if mask is not None:
            # rows that are masked everywhere came out as nan
            att = att.masked_fill(mask, 0)

        return torch.matmul(att, v), att
