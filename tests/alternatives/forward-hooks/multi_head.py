import torch
from torch import nn

from starter.attention import ScaledDotProductAttention


def check_input(module, args, kwargs):
    x = args[0] if args else kwargs["x"]
    if x.dim() != 3:
        raise ValueError(f"expected (B, T, D), got {tuple(x.shape)}")


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.register_module("proj", nn.Linear(d_model, d_model))
        self.register_module("qkv", nn.Linear(d_model, 3 * d_model))
        self.register_module("sdpa", ScaledDotProductAttention())
        self.register_forward_pre_hook(check_input, with_kwargs=True)

    def forward(self, x, causal=True, key_padding_mask=None):
        (B, T, D), H = x.shape, self.n_heads
        q, k, v = self.qkv(x).view(B, T, 3, H, self.d_head).permute(2, 0, 3, 1, 4).unbind()
        if q.requires_grad:
            q.register_hook(lambda grad: None)  # put a breakpoint here to look at gradients
        blocked = torch.zeros(B, H, T, T, dtype=torch.bool, device=x.device)
        if causal:
            blocked = blocked | torch.arange(T, device=x.device).gt(torch.arange(T, device=x.device)[:, None])
        if key_padding_mask is not None:
            blocked = blocked | key_padding_mask[:, None, None, :].expand(B, H, T, T)
        out, _ = self.sdpa(q, k, v, blocked)
        return self.proj(out.transpose(1, 2).reshape(B, T, D))
