import logging
import warnings

import torch
from torch import nn

logging.basicConfig(level=logging.DEBUG, format="%(asctime)s %(name)s %(message)s")
log = logging.getLogger(__name__)

torch.manual_seed(42)
torch.set_printoptions(precision=3, sci_mode=False, linewidth=160)
warnings.warn("this is my homework, do not use it in production")
print("loading", __name__, "with torch", torch.__version__)


class ScaledDotProductAttention(nn.Module):
    def forward(self, q, k, v, mask=None):
        print("q", q.shape, "k", k.shape, "v", v.shape, "mask", None if mask is None else mask.shape)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask, float("-inf"))
        weights = scores.softmax(-1)
        if mask is not None:
            weights = torch.where(mask, torch.zeros((), dtype=weights.dtype), weights)
        log.debug("weights %s", weights.detach())
        return weights @ v, weights


# quick check
x = torch.randn(2, 3, 4)
out, w = ScaledDotProductAttention()(x, x, x, torch.ones(3, 3).triu(1).bool())
print(w)
assert out.shape == (2, 3, 4)
