import torch
from torch import nn
from torch.nn import functional as F


class ScaledDotProductAttention(nn.Module):
    """Trick for empty rows: one more key, a "sink", that is open only where all the others are blocked.

    Its weight (1 in an empty row, 0 in the others) is cut off at the end. No NaN ever comes up.
    """

    def forward(self, q, k, v, mask=None):
        scores = F.linear(q, k) if q.dim() == 2 else q @ k.transpose(-2, -1)
        scores = scores / q.shape[-1] ** 0.5
        if mask is None:
            mask = torch.tensor(False, device=q.device)
        mask = mask.expand_as(scores)
        sink_blocked = ~mask.all(dim=-1, keepdim=True)

        scores = F.pad(scores, (0, 1), value=0.0)
        scores = scores.masked_fill(torch.cat([mask, sink_blocked], dim=-1), -torch.inf)
        weights = F.softmin(-scores, dim=-1)[..., :-1]
        return weights @ v, weights
