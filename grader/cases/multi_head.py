"""Cases of multi-head attention."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch

from grader.cases.sequence import SequenceCase


@dataclass(frozen=True)
class MultiHeadCase(SequenceCase):
    """Multi-head attention with random weights and biases."""

    @cached_property
    def weights(self) -> dict[str, torch.Tensor]:
        D = self.D
        sharpness = 300.0 if self.sharp else 1.0
        return {
            "qkv.weight": sharpness * self.randn("qkv.weight", 3 * D, D) / math.sqrt(D),
            "qkv.bias": self.randn("qkv.bias", 3 * D) / 2,
            "proj.weight": self.randn("proj.weight", D, D) / math.sqrt(D),
            "proj.bias": self.randn("proj.bias", D) / 2,
        }
