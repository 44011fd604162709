from typing import Optional, Tuple

from torch import Tensor

Mask = Optional[Tensor]
OutputAndWeights = Tuple[Tensor, Tensor]
