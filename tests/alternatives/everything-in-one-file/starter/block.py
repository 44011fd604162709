import torch
import torch.nn as nn
import torch.nn.functional as F


class ScaledDotProductAttention(nn.Module):
    def forward(self, q, k, v, mask=None):
        return attention(q, k, v, mask)


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)

    def forward(self, x, causal=True, key_padding_mask=None):
        # does the attention itself, without part 1
        B, T, D = x.shape
        H, d = self.n_heads, D // self.n_heads
        q, k, v = self.qkv(x).view(B, T, 3, H, d).permute(2, 0, 3, 1, 4)
        att = (q @ k.transpose(-2, -1)) * d**-0.5
        blocked = torch.zeros(B, 1, T, T, dtype=torch.bool, device=x.device)
        if causal:
            blocked = blocked | torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        if key_padding_mask is not None:
            blocked = blocked | key_padding_mask[:, None, None, :]
        att = F.softmax(att.masked_fill(blocked, float("-inf")), dim=-1).masked_fill(blocked, 0.0)
        y = (att @ v).transpose(1, 2).contiguous().view(B, T, D)
        return self.proj(y)


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        self.ln1 = nn.LayerNorm(d_model)
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ln2 = nn.LayerNorm(d_model)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))
        self.norm_first = norm_first

    def forward(self, x, causal=True, key_padding_mask=None):
        if self.norm_first:
            x = x + self.attn(self.ln1(x), causal, key_padding_mask)
            x = x + self.ffn(self.ln2(x))
            return x
        x = self.ln1(x + self.attn(x, causal, key_padding_mask))
        x = self.ln2(x + self.ffn(x))
        return x


def attention(q, k, v, mask=None):
    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5
    if mask is None:
        mask = torch.zeros_like(s, dtype=torch.bool)
    p = F.softmax(s.masked_fill(mask, float("-inf")), dim=-1).masked_fill(mask, 0.0)
    return p @ v, p
