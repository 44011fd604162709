"""Random number helpers (yes, same name as the one in the standard library, imported relatively)."""
import torch


def init_linear(linear, std=0.02):
    torch.nn.init.trunc_normal_(linear.weight, std=std)
    torch.nn.init.zeros_(linear.bias)
    return linear
