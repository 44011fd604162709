import numpy as np
import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    """softmax by hand:  exp(s - max) / sum exp(s - max)

    Careful!! The max has to be over the OPEN keys. With the max over all keys a huge
    blocked score pushes all the open ones down to exp(-huge) = 0.
    """

    def forward(self, q, k, v, mask=None):
        s = (q @ k.transpose(-2, -1)) * float(1 / np.sqrt(q.shape[-1]))
        if mask is not None:
            s = s.masked_fill(mask, -np.inf)

        top = s.amax(dim=-1, keepdim=True).detach()
        top = torch.where(torch.isfinite(top), top, torch.zeros_like(top))  # no open key
        p = torch.exp(s - top)

        z = p.sum(dim=-1, keepdim=True)
        z = torch.where(z > 0, z, torch.ones_like(z))

        # normalise after the product with v, that is T_q * d_v divisions instead of T_q * T_k
        return (p @ v) / z, p / z
