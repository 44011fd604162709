import math
import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    """Straight from the formula, one dot product at a time. NOT fast."""

    def row(self, query, keys, columns, blocked):
        """One query, a list of keys, a list of the columns of v, a list of bools."""
        weights = query.new_zeros(len(keys))
        allowed = [j for j in range(len(keys)) if not blocked[j]]
        if allowed:
            scores = torch.stack([torch.dot(query, keys[j]) for j in allowed]) / math.sqrt(len(query))
            exps = torch.exp(scores - max(scores.tolist()))
            weights = weights.index_copy(0, torch.tensor(allowed), exps / exps.sum())
        output = torch.stack([torch.dot(weights, column) for column in columns])
        return output, weights

    def forward(self, q, k, v, mask=None):
        if q.dim() > 2:
            # peel off the first dimension
            n = q.shape[0]
            if mask is not None and mask.dim() == q.dim():
                masks = mask.expand(n, *mask.shape[1:])
            else:
                masks = [mask] * n
            pairs = [self.forward(q[i], k[i], v[i], masks[i]) for i in range(n)]
            return torch.stack([o for o, _ in pairs]), torch.stack([w for _, w in pairs])

        if mask is None:
            blocked = [[False] * len(k)] * len(q)
        else:
            blocked = mask.broadcast_to(len(q), len(k)).tolist()
        keys, columns = k.unbind(0), v.unbind(1)
        pairs = [self.row(query, keys, columns, b) for query, b in zip(q.unbind(0), blocked)]
        return torch.stack([o for o, _ in pairs]), torch.stack([w for _, w in pairs])
