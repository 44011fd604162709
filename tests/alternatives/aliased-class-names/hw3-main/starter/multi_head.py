from starter.attention import *


class SelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("d_model % n_heads must be 0")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.attention = Attention()
        self.split = lambda t: t.unflatten(-1, (n_heads, d_model // n_heads)).transpose(-2, -3)

    def forward(self, x, causal=True, key_padding_mask=None):
        q, k, v = (self.split(t) for t in self.qkv(x).chunk(3, -1))
        n = x.shape[1]
        mask = torch.zeros(n, n, device=x.device).bool()
        if causal:
            mask = torch.ones(n, n, device=x.device).triu(1).bool()
        if key_padding_mask is not None:
            mask = mask | key_padding_mask[:, None, None]
        y, _ = self.attention(q, k, v, mask)
        return self.proj(y.transpose(-2, -3).flatten(-2))


MultiHeadSelfAttention = SelfAttention
