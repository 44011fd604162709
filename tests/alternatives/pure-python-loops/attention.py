import math
import torch
from torch import nn


def dot(a, b):
    return (a * b).sum()


class ScaledDotProductAttention(nn.Module):
    """Straight from the formula, one number at a time. NOT fast."""

    def row(self, query, keys, values, blocked):
        """One query, a list of keys, a list of values, a list of bools."""
        n = len(keys)
        allowed = [j for j in range(n) if not blocked[j]]
        zero = query.new_zeros(())
        weights = [zero] * n
        output = torch.zeros_like(values[0])
        if not allowed:
            return output, torch.stack(weights)

        scores = {j: dot(query, keys[j]) / math.sqrt(len(query)) for j in allowed}
        biggest = max(float(s) for s in scores.values())
        exps = {j: torch.exp(s - biggest) for j, s in scores.items()}
        total = sum(exps.values())
        for j in allowed:
            weights[j] = exps[j] / total
            output = output + weights[j] * values[j]
        return output, torch.stack(weights)

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
        keys, values = k.unbind(0), v.unbind(0)
        pairs = [self.row(query, keys, values, b) for query, b in zip(q.unbind(0), blocked)]
        return torch.stack([o for o, _ in pairs]), torch.stack([w for _, w in pairs])
