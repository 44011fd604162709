from torch import nn

from starter.multi_head import MultiHeadSelfAttention


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.ln1 = nn.LayerNorm(d_model)
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ln2 = nn.LayerNorm(d_model)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def forward(self, x, causal=True, key_padding_mask=None):
        if self.norm_first:
            x = x + self.attn(self.ln1(x), causal, key_padding_mask)
            return x + self.ffn(self.ln2(x))
        x = self.ln1(x + self.attn(x, causal, key_padding_mask))
        return self.ln2(x + self.ffn(x))


if __name__ == "__main__":
    import matplotlib.pyplot as plt  # pip install matplotlib
    import torch

    theirs = nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    mine = TransformerBlock(64, 4, 256)
    mine.load_state_dict(theirs.state_dict())  # FIXME the names are different, does not work yet
    x = torch.randn(1, 7, 64)
    print((mine(x, causal=False) - theirs(x)).abs().max())
    plt.imshow(mine.attn.qkv.weight.detach())
    plt.show()
    while True:
        pass
