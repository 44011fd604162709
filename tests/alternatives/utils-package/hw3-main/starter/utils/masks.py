import torch


def future_mask(length, device=None):
    """True above the diagonal."""
    return torch.ones(length, length, dtype=torch.bool, device=device).triu(1)


def combine(*masks):
    """Blocked if any of the masks blocks; those that are None are left out."""
    result = None
    for mask in masks:
        if mask is not None:
            result = mask if result is None else result | mask
    return result
