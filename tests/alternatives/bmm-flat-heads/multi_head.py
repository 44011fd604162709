import torch
import torch.nn as nn
from attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super(MultiHeadSelfAttention, self).__init__()
        if d_model % n_heads != 0:
            raise ValueError('d_model %d not divisible by n_heads %d' % (d_model, n_heads))
        self.d_model = d_model
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=True)
        self.proj = nn.Linear(d_model, d_model, bias=True)
        self.core = ScaledDotProductAttention()

    def forward(self, x, causal=True, key_padding_mask=None):
        B, T, D = x.shape
        H = self.n_heads
        z = self.qkv(x)
        q = z[:, :, :D]
        k = z[:, :, D:2 * D]
        v = z[:, :, 2 * D:]

        # (B, T, D) -> (B*H, T, d_head), batch outermost
        flat = lambda a: a.reshape(B, T, H, -1).permute(0, 2, 1, 3).reshape(B * H, T, -1)

        mask = torch.zeros(B, T, T, dtype=torch.bool, device=x.device)
        if causal:
            mask = mask | ~torch.tril(torch.ones(T, T, dtype=torch.bool, device=x.device))
        if key_padding_mask is not None:
            mask = mask | key_padding_mask.unsqueeze(1)
        mask = mask.repeat_interleave(H, dim=0)  # same order: every sample H times

        o, _ = self.core(flat(q), flat(k), flat(v), mask)
        o = o.reshape(B, H, T, -1).permute(0, 2, 1, 3).reshape(B, T, D)
        return self.proj(o)
