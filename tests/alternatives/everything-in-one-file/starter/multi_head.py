# see block.py, it is all in there
from starter.block import MultiHeadSelfAttention
