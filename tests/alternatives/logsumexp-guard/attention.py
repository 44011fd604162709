import torch
from torch import nn

NEG_INF = float('-inf')


class ScaledDotProductAttention(nn.Module):

    def forward(self, q, k, v, mask=None):
        d_head = q.shape[-1]
        scores = torch.matmul(q, k.transpose(-2, -1)) / d_head ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask, NEG_INF)

        # softmax(s) = exp(s - log sum exp s), and lse is -inf if and only if no key is open
        lse = torch.logsumexp(scores, dim=-1, keepdim=True)
        lse = lse.masked_fill(lse == NEG_INF, 0.0)
        weights = (scores - lse).exp()

        return torch.matmul(weights, v), weights
