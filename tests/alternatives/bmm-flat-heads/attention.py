import torch
import torch.nn as nn


class ScaledDotProductAttention(nn.Module):
    '''Works on three dimensions inside (batch, time, features), everything in front is flattened.'''

    def forward(self, q, k, v, mask=None):
        lead = q.shape[:-2]
        Tq, Tk, d = q.shape[-2], k.shape[-2], q.shape[-1]

        Q = q.reshape(-1, Tq, d)
        K = k.reshape(-1, Tk, d)
        V = v.reshape(-1, Tk, v.shape[-1])

        S = torch.bmm(Q, K.transpose(1, 2))
        S = S / torch.sqrt(torch.tensor(d, dtype=S.dtype, device=S.device))

        if mask is not None:
            M = mask.broadcast_to(lead + (Tq, Tk)).reshape(-1, Tq, Tk)
            S = S.masked_fill(M, -float('inf'))
            A = nn.functional.softmax(S, dim=2).masked_fill(M, 0.0)
        else:
            A = nn.functional.softmax(S, dim=2)

        O = torch.bmm(A, V)
        return O.reshape(lead + O.shape[1:]), A.reshape(lead + A.shape[1:])
