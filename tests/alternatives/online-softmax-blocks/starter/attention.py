"""FlashAttention-style forward pass (Dao et al. 2022, algorithm 1), keys in blocks of BLOCK."""
import torch
from torch import nn

BLOCK = 16


class ScaledDotProductAttention(nn.Module):
    def block_scores(self, q, k, mask, lo, hi):
        s = q @ k[..., lo:hi, :].transpose(-2, -1)
        if mask is not None:
            s = s.masked_fill(mask[..., lo:hi], float("-inf"))
        return s

    def forward(self, q, k, v, mask=None):
        Tq, Tk = q.shape[-2], k.shape[-2]
        q = q / q.shape[-1] ** 0.5
        if mask is not None:
            mask = mask.broadcast_to(*q.shape[:-1], Tk)

        m = q.new_full((*q.shape[:-1], 1), float("-inf"))   # running max
        l = q.new_zeros((*q.shape[:-1], 1))                 # running sum of exponentials
        acc = q.new_zeros((*q.shape[:-1], v.shape[-1]))     # running output, not normalised
        for lo in range(0, Tk, BLOCK):
            hi = min(lo + BLOCK, Tk)
            s = self.block_scores(q, k, mask, lo, hi)
            m_new = torch.maximum(m, s.detach().amax(-1, keepdim=True))
            safe = m_new.masked_fill(m_new.isneginf(), 0.0)  # nothing open so far
            p = torch.exp(s - safe)
            rescale = torch.exp(m - safe)
            l = l * rescale + p.sum(-1, keepdim=True)
            acc = acc * rescale + p @ v[..., lo:hi, :]
            m = m_new

        m = m.masked_fill(m.isneginf(), 0.0)
        l = l.masked_fill(l == 0, 1.0)
        # the weights are never needed above, a second sweep makes them for the caller
        weights = [
            torch.exp(self.block_scores(q, k, mask, lo, min(lo + BLOCK, Tk)) - m) / l
            for lo in range(0, Tk, BLOCK)
        ]
        return acc / l, torch.cat(weights, dim=-1)
