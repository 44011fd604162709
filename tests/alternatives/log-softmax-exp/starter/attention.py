import math
from typing import Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F


class ScaledDotProductAttention(nn.Module):
    def forward(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        mask: Optional[torch.Tensor] = None,
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        d_head: int = q.shape[-1]
        logits = q @ k.transpose(-2, -1) / math.sqrt(d_head)
        if mask is None:
            p = F.log_softmax(logits, dim=-1).exp()
        else:
            logp = F.log_softmax(logits.masked_fill(mask, -math.inf), dim=-1)
            p = logp.masked_fill(mask, -math.inf).exp()  # also wipes out the NaN of empty rows
        return p @ v, p
