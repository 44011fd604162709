# -*- coding: latin-1 -*-
# Lösung von Jürgen Müßig, Übung 3
import math

import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    """Gewichte für alle Schlüssel, große Werte dürfen vorkommen."""

    def forward(self, q, k, v, mask=None):
        bewertung = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
        if mask is None:
            gewichte = bewertung.softmax(dim=-1)
            return torch.matmul(gewichte, v), gewichte
        mask = mask.expand_as(bewertung)
        leer = mask.all(dim=-1, keepdim=True)   # Zeilen ohne Schlüssel
        bewertung = torch.where(leer, torch.zeros_like(bewertung), bewertung.masked_fill(mask, -math.inf))
        gewichte = bewertung.softmax(dim=-1) * leer.logical_not().to(bewertung.dtype)
        return torch.matmul(gewichte, v), gewichte
